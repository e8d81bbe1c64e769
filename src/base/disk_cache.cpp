#include "base/disk_cache.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"

namespace coil {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChecksum = 64;  // digits, the last of the file

/// Mark and checksum stand at the end: a loader of libraries ignores what follows the last section.
std::optional<std::string_view> content_of(std::string_view bytes, std::string_view mark) {
  if (bytes.size() < mark.size() + kChecksum) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - mark.size() - kChecksum);
  const std::string_view trailer = bytes.substr(content.size());
  const bool sound =
      trailer.starts_with(mark) && trailer.substr(mark.size()) == sha256_hex(content);
  return sound ? std::optional(content) : std::nullopt;
}

}  // namespace

std::string DiskCache::path(const std::string& key) const {
  return str("{}/{}/{}{}", folder_, kind_.folder, key, kind_.suffix);
}

std::optional<std::string> DiskCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  Result<std::string> bytes = read_file(path(key));
  if (!bytes.ok()) return std::nullopt;
  const std::optional<std::string_view> content = content_of(*bytes, kind_.mark);
  if (!content) return std::nullopt;
  bytes->resize(content->size());
  return std::move(*bytes);
}

Result<std::string> DiskCache::store(const std::string& key, std::string_view content) const {
  COIL_TRY(make_folders(str("{}/{}", folder_, kind_.folder)));
  COIL_TRY(write_file(path(key), str("{}{}{}", content, kind_.mark, sha256_hex(content))));
  return path(key);
}

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> out;
  std::error_code problem;
  for (const auto& e : fs::directory_iterator(str("{}/{}", folder_, kind_.folder), problem)) {
    const Result<std::string> bytes = read_file(e.path().string());
    out.push_back({e.path().string(), bytes.ok() ? static_cast<i64>(bytes->size()) : 0,
                   bytes.ok() && content_of(*bytes, kind_.mark)});
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return out;
}

i64 DiskCache::clear() const {
  const i64 count = static_cast<i64>(entries().size());
  remove_folder(str("{}/{}", folder_, kind_.folder));
  std::error_code problem;
  for (const fs::directory_entry& e : fs::directory_iterator(folder_, problem))
    if (e.path().filename().string().starts_with(kWorkPrefix)) remove_folder(e.path().string());
  return count;
}

}  // namespace coil
