#include "import/npz.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

namespace coil {
namespace {

constexpr std::size_t kMaxDims = 64;
constexpr i64 kMaxHeader = i64{1} << 20;
constexpr i64 kMaxUnpacked = i64{1} << 34;  // of one compressed array

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<i64> shape;
};

/// The dict literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
/// Functions return false where the text is anything else.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  bool read(Header& out) {
    int seen = 0;
    if (!accept('{')) return false;
    while (!accept('}')) {
      std::string key;
      if (!quoted(key) || !accept(':') || !value(key, out)) return false;
      ++seen;
      if (!accept(',') && !at('}')) return false;
    }
    skip_spaces();
    return rest_.empty() && seen == 3 && has_descr_ && has_order_ && has_shape_;
  }

 private:
  void skip_spaces() {
    const std::size_t end = rest_.find_first_not_of(" \n\t\r");
    rest_.remove_prefix(std::min(end, rest_.size()));
  }
  bool at(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool quoted(std::string& out) {
    skip_spaces();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool value(const std::string& key, Header& out) {
    if (key == "descr") return has_descr_ = quoted(out.descr);
    if (key == "shape") return has_shape_ = shape(out.shape);
    if (key != "fortran_order") return false;
    has_order_ = true;
    out.fortran = accept_word("True");
    return out.fortran || accept_word("False");
  }
  bool shape(std::vector<i64>& out) {
    if (!accept('(')) return false;
    while (!accept(')')) {
      skip_spaces();
      i64 size = 0;
      const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (failure != std::errc() || size < 0 || out.size() == kMaxDims) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      accept_word("L");  // Python 2 wrote long integers
      out.push_back(size);
      if (!accept(',') && !at(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

struct NumpyType {
  std::string_view descr;
  DType dtype;
};
constexpr NumpyType kTypes[] = {
    {"|b1", DType::b8},  {"|u1", DType::u8},    {"|i1", DType::i8},  {"<u2", DType::u16},
    {"<i2", DType::i16}, {"<u4", DType::u32},   {"<i4", DType::i32}, {"<u8", DType::u64},
    {"<i8", DType::i64}, {"<f2", DType::f16},   {"<f4", DType::f32}, {"<f8", DType::f64},
    {"<c8", DType::c64}, {"<c16", DType::c128},
};

Result<DType> dtype_of(const std::string& descr, const std::string& name) {
  for (const NumpyType& type : kTypes) {
    // Single bytes have no order, and '=' is the order of this machine.
    const bool one_byte = type.descr[0] == '|' && descr.size() == 3;
    const bool native = descr.size() > 1 && descr[0] == '=';
    if (descr == type.descr || ((one_byte || native) && descr.substr(1) == type.descr.substr(1)))
      return type.dtype;
  }
  if (descr.starts_with('>'))
    return error("array '{}' is big-endian ('{}'); save it in little-endian order", name, descr);
  return error("array '{}' has the NumPy type '{}', which is none of coil's", name, descr);
}

/// Bytes of a dense array; nothing if they do not fit in i64.
std::optional<i64> dense_bytes(std::span<const i64> shape, DType dtype) {
  i64 bytes = size_of(dtype);
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  for (i64 size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

template <class Element>
void transpose_elements(const std::byte* from, std::byte* to, std::span<const i64> shape,
                        i64 numel) {
  std::vector<i64> strides(shape.size());
  i64 stride = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  std::vector<i64> index(shape.size(), 0);
  i64 source = 0;
  for (i64 i = 0; i < numel; ++i) {
    std::memcpy(to + i * sizeof(Element), from + source * sizeof(Element), sizeof(Element));
    for (std::size_t d = shape.size(); d-- > 0;) {
      source += strides[d];
      if (++index[d] < shape[d]) break;
      source -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

struct Wide16 {
  u64 words[2];
};

/// Column-major `from` into row-major `to`.
void transpose(const std::byte* from, std::byte* to, std::span<const i64> shape, i64 numel,
               int bytes) {
  if (bytes == 1) return transpose_elements<u8>(from, to, shape, numel);
  if (bytes == 2) return transpose_elements<u16>(from, to, shape, numel);
  if (bytes == 4) return transpose_elements<u32>(from, to, shape, numel);
  if (bytes == 8) return transpose_elements<u64>(from, to, shape, numel);
  transpose_elements<Wide16>(from, to, shape, numel);
}

/// Header text and the offset of the data.
Result<std::pair<std::string_view, i64>> header_text(const Bytes& file, const std::string& name) {
  const Error broken = error("array '{}' is not a valid .npy file; it may be truncated", name);
  const std::string_view text = file.text();
  if (text.size() < 10 || text.substr(0, 6) != "\x93NUMPY") return broken;
  const int major = static_cast<u8>(text[6]);
  if (major < 1 || major > 3)
    return error("array '{}' is of .npy version {}, coil reads 1 to 3", name, major);
  const int length_bytes = major == 1 ? 2 : 4;
  const i64 start = 8 + length_bytes;
  if (file.size < start) return broken;
  i64 length = 0;
  for (int i = length_bytes; i-- > 0;) length = length << 8 | static_cast<u8>(text[8 + i]);
  if (length > kMaxHeader || length > file.size - start) return broken;
  return std::pair(text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(length)),
                   start + length);
}

/// Makes the data row-major and aligned, with a copy if it must.
void arrange(NpyArray& array, bool fortran) {
  const bool is_transposed = fortran && array.shape.size() > 1 && array.bytes > 0;
  const std::size_t alignment = static_cast<std::size_t>(size_of(array.dtype));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(array.data) % alignment == 0;
  if (!is_transposed && is_aligned) return;
  std::shared_ptr<std::byte[]> copy(new std::byte[static_cast<std::size_t>(array.bytes)]);
  const int bytes = size_of(array.dtype);
  if (is_transposed)
    transpose(array.data, copy.get(), array.shape, array.bytes / bytes, bytes);
  else
    std::memcpy(copy.get(), array.data, static_cast<std::size_t>(array.bytes));
  array.data = copy.get();
  array.owner = std::move(copy);
}

}  // namespace

Result<NpyArray> read_npy(const Bytes& file, const std::string& name) {
  const auto [text, offset] = COIL_TRY(header_text(file, name));
  Header header;
  if (!HeaderReader(text).read(header))
    return error("array '{}' has a header that is no NumPy header of a plain array", name);
  NpyArray array{name,      COIL_TRY(dtype_of(header.descr, name)), header.shape, nullptr, 0,
                 file.owner};
  const std::optional<i64> bytes = dense_bytes(array.shape, array.dtype);
  if (!bytes || *bytes > file.size - offset)
    return error("array '{}' should have {} elements of {} bytes, but its file holds only {} bytes",
                 name, join(array.shape, " x ", [](i64 s) { return str("{}", s); }),
                 size_of(array.dtype), file.size - offset);
  array.data = file.data + offset;
  array.bytes = *bytes;
  arrange(array, header.fortran);
  return array;
}

Result<std::vector<NpyArray>> read_npz(Bytes file, const std::string& path) {
  std::vector<NpyArray> arrays;
  if (file.text().starts_with("\x93NUMPY")) {
    arrays.push_back(COIL_TRY(read_npy(file, path)));
    return arrays;
  }
  const Archive archive = COIL_TRY(Archive::open(std::move(file), path));
  constexpr std::string_view kSuffix = ".npy";
  for (const ArchiveEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) continue;
    const Bytes bytes = COIL_TRY(archive.read(entry, Checksum::Verify, kMaxUnpacked));
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    Result<NpyArray> array = read_npy(bytes, name);
    if (!array) return in_context(path, array.error());
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

Result<std::vector<NpyArray>> read_npz(const std::string& path) {
  return read_npz(COIL_TRY(map_file(path)), path);
}

}  // namespace coil
