#pragma once
// Compiled libraries on disk, by key. Safe with several processes: entries are written by rename
// and checked by length and checksum before they are loaded; a damaged one counts as absent.

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil::cpp {

class ObjectCache {
 public:
  /// `folder` "" keeps nothing: libraries live in a temporary folder until they are loaded.
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}

  /// The path of a sound entry, or "".
  std::string find(const std::string& key) const;
  /// Moves a library in and returns the path to load it from.
  Result<std::string> store(const std::string& key, const std::string& library) const;
  /// A fresh folder for the compiler's files; the caller removes it.
  Result<std::string> working_folder() const;

  struct Entry {
    std::string path;
    i64 bytes = 0;
    bool sound = false;
  };
  /// All entries; checks each one.
  std::vector<Entry> entries() const;
  /// Removes every entry and returns how many there were.
  Result<i64> clear() const;

 private:
  std::string folder_;
};

}  // namespace coil::cpp
