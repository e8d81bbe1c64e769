// Which launches a kernel is on a GPU, each with its reason.

#include "kernel/launches_gpu.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/mapping_gpu.h"
#include "kernel/split_gpu.h"

namespace coil {
namespace {

/// `launch` runs where `condition` holds and nothing else does.
void only_if(Kernel& launch, sym::Expr condition, std::string reason) {
  sym::Arena& syms = *launch.syms;
  launch.mapping.units = syms.select(condition, launch.mapping.units, syms.constant(0));
  launch.mapping.reasons.push_back(std::move(reason));
}

Status add_part(const Kernel& part, Launches& out) {
  sym::Arena& syms = *part.syms;
  Kernel one = part;
  COIL_TRY(map_to_gpu(one));
  Kernel lines = part;
  if (const std::optional<sym::Expr> fits = map_to_lines(lines)) {
    only_if(lines, *fits,
            str("only where {}: at most a fifth of the lanes is idle", syms.text(*fits)));
    only_if(one, syms.logical_not(*fits), "where lines are too short for tiles of lines");
    out.launches.push_back(std::move(lines));
  }
  const Split split = decide_split(one);
  if (!split.taken.valid()) {
    if (!split.reason.empty()) one.mapping.reasons.push_back(split.reason);
    out.launches.push_back(std::move(one));
    return Ok{};
  }
  std::vector<Kernel> launches = COIL_TRY(split_kernel(one, split, out));
  const bool always = syms.is_const(split.taken, 1);
  for (Kernel& k : launches) {
    if (always) k.mapping.reasons.push_back(split.reason);
    if (!always)
      only_if(k, split.taken, str("only where {}: {}", syms.text(split.taken), split.reason));
    out.launches.push_back(std::move(k));
  }
  if (!always) {
    only_if(one, syms.logical_not(split.taken), str("unless {}", syms.text(split.taken)));
    out.launches.push_back(std::move(one));
  }
  return Ok{};
}

}  // namespace

Result<Launches> launches_on_gpu(const Kernel& kernel) {
  Launches out{kernel, {}, {}, {}, {}};
  u32 sites = 0;
  for (const Kernel& part : parts_of(kernel)) {
    COIL_TRY(add_part(part, out));
    out.sites_before.resize(out.launches.size(), sites);
    sites += checked_indices(part);
  }
  return out;
}

}  // namespace coil
