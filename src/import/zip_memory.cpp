#include "import/zip_memory.h"

#include <algorithm>
#include <cstring>

namespace coil {
namespace {

MemoryFile& of(void* stream) { return *static_cast<MemoryFile*>(stream); }

void* open_memory(void* opaque, const void*, int) { return opaque; }

uLong read_memory(void*, void* stream, void* buffer, uLong size) {
  MemoryFile& file = of(stream);
  const i64 wanted = size > static_cast<uLong>(INT64_MAX) ? INT64_MAX : static_cast<i64>(size);
  const i64 count = std::min<i64>(wanted, file.size - file.at);
  if (count <= 0) return 0;
  std::memcpy(buffer, file.data + file.at, static_cast<std::size_t>(count));
  file.at += count;
  return static_cast<uLong>(count);
}

uLong write_memory(void*, void*, const void*, uLong) { return 0; }

ZPOS64_T tell_memory(void*, void* stream) { return static_cast<ZPOS64_T>(of(stream).at); }

/// Fails where the target is outside the file, so that no hostile offset gets further.
long seek_memory(void*, void* stream, ZPOS64_T offset, int origin) {
  MemoryFile& file = of(stream);
  i64 base = 0;
  if (origin == ZLIB_FILEFUNC_SEEK_CUR) base = file.at;
  if (origin == ZLIB_FILEFUNC_SEEK_END) base = file.size;
  i64 target = 0;
  if (__builtin_add_overflow(base, static_cast<i64>(offset), &target)) return -1;
  if (target < 0 || target > file.size) return -1;
  file.at = target;
  return 0;
}

int close_memory(void*, void*) { return 0; }

int error_memory(void*, void*) { return 0; }

}  // namespace

zlib_filefunc64_def memory_file_functions(MemoryFile& file) {
  zlib_filefunc64_def functions{};
  functions.zopen64_file = open_memory;
  functions.zread_file = read_memory;
  functions.zwrite_file = write_memory;
  functions.ztell64_file = tell_memory;
  functions.zseek64_file = seek_memory;
  functions.zclose_file = close_memory;
  functions.zerror_file = error_memory;
  functions.opaque = &file;
  return functions;
}

}  // namespace coil
