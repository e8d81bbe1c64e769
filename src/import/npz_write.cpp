#include <fcntl.h>
#include <minizip/zip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "import/npz.h"

namespace coil {
namespace {

/// NumPy's name of the type that holds the bits.
std::string_view descr(DType dtype) {
  switch (dtype) {
    case DType::u8: return "|u1";
    case DType::i8: return "|i1";
    case DType::i16: return "<i2";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::u16: return "<u2";
    case DType::u32: return "<u4";
    case DType::u64: return "<u8";
    case DType::b8: return "|b1";
    case DType::f16: return "<f2";
    case DType::bf16: return "<u2";
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::f8e4m3fn: return "|u1";
    case DType::f8e5m2: return "|u1";
    case DType::c32: return "<f2";
    case DType::c64: return "<c8";
    case DType::c128: return "<c16";
  }
  COIL_UNREACHABLE();
}

/// Magic, version 1.0 and the padded dict, so that the data starts at a multiple of 64.
std::string npy_header(const NpyArray& array) {
  std::vector<i64> shape = array.shape;
  if (array.dtype == DType::c32) shape.push_back(2);
  std::string dims = join(shape, ", ", [](i64 size) { return str("{}", size); });
  if (shape.size() == 1) dims += ",";
  std::string dict =
      str("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(array.dtype), dims);
  constexpr std::size_t kPrefix = 10;
  dict.resize((kPrefix + dict.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  dict += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

bool write_bytes(zipFile zip, const std::byte* data, i64 size) {
  constexpr i64 kChunk = i64{1} << 30;
  while (size > 0) {
    const i64 count = std::min(size, kChunk);
    if (zipWriteInFileInZip(zip, data, static_cast<unsigned>(count)) != ZIP_OK) return false;
    data += count;
    size -= count;
  }
  return true;
}

bool write_entry(zipFile zip, const NpyArray& array) {
  const std::string name = array.name + ".npy";
  const std::string header = npy_header(array);
  zip_fileinfo info{};
  info.tmz_date.tm_year = 1980;  // the same arrays give the same bytes
  info.tmz_date.tm_mday = 1;
  const int is_large = array.bytes > INT32_MAX - i64{65536} ? 1 : 0;
  constexpr int kStored = 0;
  if (zipOpenNewFileInZip64(zip, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, kStored, 0,
                            is_large) != ZIP_OK)
    return false;
  const bool is_written = write_bytes(zip, reinterpret_cast<const std::byte*>(header.data()),
                                      static_cast<i64>(header.size())) &&
                          write_bytes(zip, array.data, array.bytes);
  return zipCloseFileInZip(zip) == ZIP_OK && is_written;
}

/// Whether the whole archive is on the disk.
bool write_archive(const std::string& path, std::span<const NpyArray> arrays) {
  zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  if (zip == nullptr) return false;
  bool is_written = true;
  for (const NpyArray& array : arrays) is_written = is_written && write_entry(zip, array);
  if (zipClose(zip, nullptr) != ZIP_OK || !is_written) return false;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_synced = ::fsync(file) == 0 || errno == EINVAL || errno == EROFS;
  return ::close(file) == 0 && is_synced;
}

}  // namespace

Status write_npz(const std::string& path, std::span<const NpyArray> arrays) {
  // A device is written to, never replaced.
  struct stat info {};
  const bool is_device =
      ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  const std::string temporary = is_device ? path : str("{}.{}.tmp", path, ::getpid());
  errno = 0;
  const bool is_done = write_archive(temporary, arrays) &&
                       (is_device || std::rename(temporary.c_str(), path.c_str()) == 0);
  if (is_done) return Ok{};
  const int failure = errno;
  if (!is_device) std::remove(temporary.c_str());
  return error("cannot write {}: {}", path,
               failure != 0 ? std::strerror(failure) : "the disk refused it");
}

}  // namespace coil
