#pragma once
// minizip over bytes in memory: the stream functions that unzOpen2_64 takes.

#include <minizip/ioapi.h>

#include <cstddef>

#include "base/ids.h"

namespace coil {

struct MemoryFile {
  const std::byte* data = nullptr;
  i64 size = 0;
  i64 at = 0;
};

/// Read-only functions over `file`, which must outlive the zip handle.
zlib_filefunc64_def memory_file_functions(MemoryFile& file);

}  // namespace coil
