#pragma once
// Bytes of constants: where they come from, and the mapping or buffer that holds them.

#include <cstddef>
#include <memory>
#include <string>

#include "base/ids.h"

namespace coil {

enum class StorageSource : u8 {
  Inline,  // values typed in the text, or lifted constants of a program
  Seed,    // `seed N`: normal random numbers made from the type and N
  File,    // `file F NAME`: an array of an .npz, or a record of a .pt2
  Absent,  // the file has no data (fake weights): must be supplied
};

/// One block of memory that constants view. `data` stays valid while `owner` lives; a mapped
/// archive entry is not copied.
struct Storage {
  StorageSource source = StorageSource::Inline;
  std::string file;  // File: as written in the text, or the .pt2's own path
  std::string key;   // File: array or record name
  u64 seed = 0;
  const std::byte* data = nullptr;
  i64 bytes = 0;
  std::shared_ptr<const void> owner;
};

}  // namespace coil
