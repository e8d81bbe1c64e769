#pragma once
// What earlier compilations left on disk, by key. Safe with several processes: entries are written
// by rename, and read with their length and checksum checked; a damaged one counts as absent.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// A kind of entries: `folder`/KEY`suffix` under the cache folder, with `mark` before the checksum.
struct CacheKind {
  std::string_view folder, suffix, mark;
};
inline constexpr CacheKind kObjects{"objects", ".so", "coil object 1 "};
inline constexpr CacheKind kPrograms{"programs", ".plan", "coil program 1 "};
/// How the names of folders begin that a compilation works in, under the cache folder.
inline constexpr std::string_view kWorkPrefix = "build-";

class DiskCache {
 public:
  /// `folder` "" keeps nothing. Keys are lower-case hex digits.
  DiskCache(std::string folder, const CacheKind& kind) : folder_(std::move(folder)), kind_(kind) {}

  /// Where the entry of a key stands, if there is one.
  std::string path(const std::string& key) const;
  /// The content of a sound entry.
  std::optional<std::string> find(const std::string& key) const;
  /// Writes an entry and returns its path. There must be a folder.
  Result<std::string> store(const std::string& key, std::string_view content) const;

  struct Entry {
    std::string path;
    i64 bytes = 0;
    bool sound = false;
  };
  /// All entries; checks each one.
  std::vector<Entry> entries() const;
  /// Removes every entry, and what compilations that were interrupted left; returns how many
  /// entries there were.
  i64 clear() const;

 private:
  std::string folder_;
  CacheKind kind_;
};

}  // namespace coil
