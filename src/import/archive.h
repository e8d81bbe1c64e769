#pragma once
// A zip file, mapped read-only. Entries that are stored without compression are views of the
// mapping.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// Bytes that live as long as `owner`.
struct Bytes {
  const std::byte* data = nullptr;
  i64 size = 0;
  std::shared_ptr<const void> owner;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
  }
};

struct ArchiveEntry {
  std::string name;
  bool deflated = false;
  i64 offset = 0;  // of the data, in the file
  i64 packed = 0;  // bytes in the file
  i64 size = 0;    // bytes once unpacked
  u32 crc = 0;     // 0: not recorded
};

/// Whether `read` compares the entry's CRC where it has one. Weights are not checked, so that they
/// are paged in when they are first used.
enum class Checksum : u8 { Verify, Skip };

/// Maps a whole file. The mapping ends with the last copy of `owner`.
Result<Bytes> map_file(const std::string& path);

class Archive {
 public:
  /// `path` is for messages only. Every range is checked against the file, and entries may neither
  /// overlap nor share a name: after this, no entry can lead outside of `file`.
  static Result<Archive> open(Bytes file, const std::string& path);
  static Result<Archive> open(const std::string& path);

  const std::vector<ArchiveEntry>& entries() const { return entries_; }
  const ArchiveEntry* find(std::string_view name) const;
  const std::string& path() const { return path_; }

  /// A stored entry is a view; a deflated one is inflated, up to `limit` bytes.
  Result<Bytes> read(const ArchiveEntry& entry, Checksum checksum, i64 limit = kMaxInflated) const;

  static constexpr i64 kMaxInflated = i64{1} << 30;

 private:
  Error broken(std::string_view what) const;

  Bytes file_;
  std::string path_;
  std::vector<ArchiveEntry> entries_;  // sorted by name
};

}  // namespace coil
