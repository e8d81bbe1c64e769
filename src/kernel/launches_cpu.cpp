#include "kernel/launches_cpu.h"

#include "kernel/merge_axes.h"
#include "kernel/split_cpu.h"

namespace coil {

Launches launches_on_cpu(const Kernel& kernel, const Machine& machine, const CpuTuning& tuning) {
  Launches out{kernel, {}, {}, {}, {}};
  for (Kernel& one : parts_of(kernel)) {
    if (kernel.closes()) {
      one.scalars.clear();
      collect_symbols(one);
    }
    map_to_cpu(one, machine);
    const RowSplit split = decide_row_split(one, tuning);
    std::vector<Kernel> launches;
    if (split.yes) launches = split_rows(one, tuning, out);
    if (!split.yes) launches.push_back(std::move(one));
    for (Kernel& launch : launches) {
      if (split.yes) map_to_cpu(launch, machine);
      if (!split.reason.empty()) launch.mapping.reasons.push_back(split.reason);
      out.launches.push_back(std::move(launch));
    }
  }
  u32 sites = 0;
  for (std::size_t i = 0; i < out.launches.size(); ++i) {
    Kernel& launch = out.launches[i];
    if (out.launches.size() > 1) launch.name = str("{}_{}", kernel.name, i);
    out.sites_before.push_back(sites);
    sites += checked_indices(launch);
  }
  return out;
}

}  // namespace coil
