#include "import/archive.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "import/zip_memory.h"

namespace coil {
namespace {

constexpr std::size_t kMaxEntries = std::size_t{1} << 20;
constexpr std::size_t kMaxName = 4096;
constexpr int kStored = 0;
constexpr int kDeflated = 8;
constexpr unsigned kEncrypted = 1;
/// Deflate cannot expand by more than this, so a larger declared size is a lie.
constexpr i64 kMaxDeflateRatio = 1040;

struct UnzipCloser {
  void operator()(void* zip) const { unzClose(zip); }
};
using Unzip = std::unique_ptr<void, UnzipCloser>;

/// The record that ends every archive, and nothing before it. minizip does not find it at the first
/// byte in all of its releases.
bool is_empty_archive(const Bytes& file) {
  constexpr std::string_view kEndOfDirectory("PK\5\6", 4);
  constexpr i64 kSize = 22, kCommentSize = 20;
  if (file.size < kSize || std::memcmp(file.data, kEndOfDirectory.data(), 4) != 0) return false;
  u16 comment = 0;
  std::memcpy(&comment, file.data + kCommentSize, sizeof(comment));
  return file.size == kSize + comment;
}

u32 crc_of(const std::byte* data, i64 size) {
  return static_cast<u32>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data), static_cast<z_size_t>(size)));
}

/// Raw deflate of `in` into exactly out_size bytes; false if it is anything else.
bool inflate_exactly(const std::byte* in, i64 in_size, std::byte* out, i64 out_size) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr i64 kChunk = i64{1} << 30;
  std::byte spare{};  // so that an empty output has an address
  const std::byte* in_end = in + in_size;
  std::byte* out_end = out + out_size;
  int status = Z_OK;
  while (status == Z_OK) {
    const i64 give = std::min<i64>(in_end - in, kChunk);
    const i64 room = std::min<i64>(out_end - out, kChunk);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in));
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? out : &spare);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    const i64 taken = give - stream.avail_in;
    const i64 made = room - stream.avail_out;
    in += taken;
    out += made;
    if (taken == 0 && made == 0) break;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && out == out_end;
}

/// The entry that `zip` stands on, or nothing if its headers contradict each other.
std::optional<ArchiveEntry> current_entry(void* zip, std::string& why) {
  unz_file_info64 info{};
  std::string name(kMaxName, '\0');
  if (unzGetCurrentFileInfo64(zip, &info, name.data(), name.size(), nullptr, 0, nullptr, 0) !=
      UNZ_OK) {
    why = "a directory entry is damaged";
    return std::nullopt;
  }
  if (info.size_filename == 0 || info.size_filename >= kMaxName) {
    why = "an entry's name is empty or too long";
    return std::nullopt;
  }
  name.resize(info.size_filename);
  why = str("entry '{}' is damaged", name);
  if (name.find('\0') != std::string::npos) return std::nullopt;
  if (info.flag & kEncrypted) {
    why = str("entry '{}' is encrypted", name);
    return std::nullopt;
  }
  if (info.compression_method != kStored && info.compression_method != kDeflated) {
    why = str("entry '{}' is compressed by method {}, which coil does not read", name,
              info.compression_method);
    return std::nullopt;
  }
  // Raw mode reads the local header, compares it with the directory, and decodes nothing.
  int method = 0, level = 0;
  if (unzOpenCurrentFile2(zip, &method, &level, 1) != UNZ_OK) return std::nullopt;
  const u64 offset = unzGetCurrentFileZStreamPos64(zip);
  unzCloseCurrentFile(zip);
  constexpr u64 kLimit = INT64_MAX;
  if (offset == 0 || offset > kLimit || info.compressed_size > kLimit ||
      info.uncompressed_size > kLimit)
    return std::nullopt;
  return ArchiveEntry{name,
                      info.compression_method == kDeflated,
                      static_cast<i64>(offset),
                      static_cast<i64>(info.compressed_size),
                      static_cast<i64>(info.uncompressed_size),
                      static_cast<u32>(info.crc)};
}

/// The name of an entry that is not inside the file or not apart from all others; "" if none.
std::string misplaced(const std::vector<ArchiveEntry>& entries, i64 file_size) {
  std::vector<const ArchiveEntry*> order;
  for (const ArchiveEntry& e : entries) {
    if (e.offset > file_size || e.packed > file_size - e.offset) return e.name;
    if (!e.deflated && e.packed != e.size) return e.name;
    if (e.packed > 0) order.push_back(&e);
  }
  std::ranges::sort(order, {}, [](const ArchiveEntry* e) { return e->offset; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->packed) return order[i]->name;
  return "";
}

}  // namespace

Result<Bytes> map_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return error("cannot open {}: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    return error("cannot read {}: it is not a regular file", path);
  }
  const std::size_t size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    ::close(file);
    return Bytes{};
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int failure = errno;
  ::close(file);
  if (address == MAP_FAILED) return error("cannot map {}: {}", path, std::strerror(failure));
  std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
  return Bytes{static_cast<const std::byte*>(address), static_cast<i64>(size), std::move(owner)};
}

Error Archive::broken(std::string_view what) const {
  return error("{} is not a readable zip archive: {}; the file may be truncated or damaged", path_,
               what);
}

Result<Archive> Archive::open(const std::string& path) {
  return open(COIL_TRY(map_file(path)), path);
}

Result<Archive> Archive::open(Bytes file, const std::string& path) {
  Archive archive;
  archive.file_ = std::move(file);
  archive.path_ = path;
  if (is_empty_archive(archive.file_)) return archive;
  MemoryFile stream{archive.file_.data, archive.file_.size, 0};
  zlib_filefunc64_def functions = memory_file_functions(stream);
  Unzip zip(unzOpen2_64("", &functions));
  if (!zip) return archive.broken("it has no central directory");

  std::string why;
  int status = unzGoToFirstFile(zip.get());
  for (; status == UNZ_OK; status = unzGoToNextFile(zip.get())) {
    if (archive.entries_.size() == kMaxEntries) return archive.broken("it has too many entries");
    std::optional<ArchiveEntry> entry = current_entry(zip.get(), why);
    if (!entry) return archive.broken(why);
    archive.entries_.push_back(std::move(*entry));
  }
  if (status != UNZ_END_OF_LIST_OF_FILE && !archive.entries_.empty())
    return archive.broken("its central directory is damaged");
  const std::string bad = misplaced(archive.entries_, archive.file_.size);
  if (!bad.empty())
    return archive.broken(str("entry '{}' lies outside the file or over another", bad));
  std::ranges::sort(archive.entries_, {}, &ArchiveEntry::name);
  const auto twice = std::ranges::adjacent_find(archive.entries_, {}, &ArchiveEntry::name);
  if (twice != archive.entries_.end())
    return archive.broken(str("it has two entries named '{}'", twice->name));
  return archive;
}

const ArchiveEntry* Archive::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &ArchiveEntry::name);
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

Result<Bytes> Archive::read(const ArchiveEntry& entry, Checksum checksum, i64 limit) const {
  Bytes bytes{file_.data + entry.offset, entry.size, file_.owner};
  if (entry.deflated) {
    if (entry.size > limit)
      return error("{}: entry '{}' would unpack to {} bytes, more than the limit of {}", path_,
                   entry.name, entry.size, limit);
    if (entry.size / kMaxDeflateRatio > entry.packed + 1)
      return broken(str("entry '{}' states a size that its data cannot have", entry.name));
    std::shared_ptr<std::byte[]> buffer(new std::byte[static_cast<std::size_t>(entry.size)]);
    if (!inflate_exactly(file_.data + entry.offset, entry.packed, buffer.get(), entry.size))
      return broken(str("the compressed data of entry '{}' is damaged", entry.name));
    bytes = Bytes{buffer.get(), entry.size, buffer};
  }
  if (checksum == Checksum::Verify && entry.crc != 0 && crc_of(bytes.data, bytes.size) != entry.crc)
    return broken(str("entry '{}' does not have its checksum", entry.name));
  return bytes;
}

}  // namespace coil
