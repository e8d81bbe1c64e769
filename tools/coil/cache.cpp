// coil cache: what is kept of earlier compilations.

#include "base/disk_cache.h"
#include "cli.h"

namespace coil::cli {

Result<int> cache(const std::string& action) {
  const std::string folder = read_environment().cache_dir;
  if (folder.empty())
    return error("no cache folder: neither COIL_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set");
  const DiskCache objects(folder, kObjects), programs(folder, kPrograms);
  if (action == "clear") {
    print(str("removed {} objects and {} programs from {}\n", objects.clear(), programs.clear(),
              folder));
    return kRight;
  }
  const std::vector<DiskCache::Entry> of_objects = objects.entries(),
                                      of_programs = programs.entries();
  i64 bytes = 0, damaged = 0;
  for (const auto* entries : {&of_objects, &of_programs})
    for (const DiskCache::Entry& e : *entries) {
      bytes += e.bytes;
      if (e.sound) continue;
      ++damaged;
      if (action == "verify") print(str("damaged: {}\n", e.path));
    }
  print(str("{}: {} objects, {} programs, {}, {} damaged\n", folder, of_objects.size(),
            of_programs.size(), byte_count(bytes), damaged));
  return action == "verify" && damaged > 0 ? kMismatch : kRight;
}

}  // namespace coil::cli
