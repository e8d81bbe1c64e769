// coil cache: what is kept of earlier compilations.

#include "cli.h"
#include "target/cpp/object_cache.h"

namespace coil::cli {

Result<int> cache(const std::string& action) {
  const std::string folder = read_environment().cache_dir;
  if (folder.empty())
    return error("no cache folder: neither COIL_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set");
  const cpp::ObjectCache objects(folder);
  if (action == "clear") {
    print(str("removed {} objects from {}\n", COIL_TRY(objects.clear()), folder));
    return kRight;
  }
  i64 bytes = 0, damaged = 0;
  const std::vector<cpp::ObjectCache::Entry> entries = objects.entries();
  for (const cpp::ObjectCache::Entry& e : entries) {
    bytes += e.bytes;
    if (e.sound) continue;
    ++damaged;
    if (action == "verify") print(str("damaged: {}\n", e.path));
  }
  print(
      str("{}: {} objects, {}, {} damaged\n", folder, entries.size(), byte_count(bytes), damaged));
  return action == "verify" && damaged > 0 ? kMismatch : kRight;
}

}  // namespace coil::cli
