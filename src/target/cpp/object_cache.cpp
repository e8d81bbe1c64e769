#include "target/cpp/object_cache.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"

namespace coil::cpp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark =
    "coil object 1 ";  // then 64 digits of checksum, at the end of the file
constexpr std::size_t kTrailer = kMark.size() + 64;

/// A loader ignores what follows the last section, so the checksum can stand there.
bool is_sound(const std::string& bytes) {
  if (bytes.size() < kTrailer) return false;
  const std::string_view body(bytes.data(), bytes.size() - kTrailer);
  const std::string_view trailer = std::string_view(bytes).substr(body.size());
  return trailer.starts_with(kMark) && trailer.substr(kMark.size()) == sha256_hex(body);
}

}  // namespace

std::string ObjectCache::find(const std::string& key) const {
  if (folder_.empty()) return "";
  const std::string path = folder_ + "/objects/" + key + ".so";
  const Result<std::string> bytes = read_file(path);
  return bytes.ok() && is_sound(*bytes) ? path : "";
}

Result<std::string> ObjectCache::store(const std::string& key, const std::string& library) const {
  if (folder_.empty()) return library;
  const std::string body = COIL_TRY(read_file(library));
  COIL_TRY(make_folders(folder_ + "/objects"));
  const std::string path = folder_ + "/objects/" + key + ".so";
  COIL_TRY(write_file(path, str("{}{}{}", body, kMark, sha256_hex(body))));
  return path;
}

Result<std::string> ObjectCache::working_folder() const {
  std::error_code problem;
  if (folder_.empty()) {
    const fs::path temporary = fs::temp_directory_path(problem);
    return make_temporary_folder((problem ? std::string("/tmp") : temporary.string()) + "/coil-");
  }
  COIL_TRY(make_folders(folder_));
  return make_temporary_folder(folder_ + "/build-");
}

std::vector<ObjectCache::Entry> ObjectCache::entries() const {
  std::vector<Entry> out;
  std::error_code problem;
  for (const fs::directory_entry& e : fs::directory_iterator(folder_ + "/objects", problem)) {
    const Result<std::string> bytes = read_file(e.path().string());
    out.push_back({e.path().string(), bytes.ok() ? static_cast<i64>(bytes->size()) : 0,
                   bytes.ok() && is_sound(*bytes)});
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return out;
}

Result<i64> ObjectCache::clear() const {
  const i64 count = static_cast<i64>(entries().size());
  remove_folder(folder_ + "/objects");
  std::error_code problem;
  for (const fs::directory_entry& e : fs::directory_iterator(folder_, problem))
    if (e.path().filename().string().starts_with("build-")) remove_folder(e.path().string());
  return count;
}

}  // namespace coil::cpp
