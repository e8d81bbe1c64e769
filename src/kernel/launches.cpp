// What the launches of a kernel have in common on all machines.

#include "kernel/launches.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace coil {
namespace {

/// Values, accumulators and buffers in the order of their first use; others are gone.
void renumber(Kernel& kernel) {
  std::vector<Val> values(kernel.val_dtypes.size());
  std::vector<std::optional<u32>> accumulators(kernel.num_accumulators);
  std::vector<bool> used(kernel.buffers.size()), written(kernel.buffers.size());
  const std::vector<DType> dtypes = std::exchange(kernel.val_dtypes, {});
  kernel.num_accumulators = 0;
  for (Stage& s : kernel.stages)
    for (KernelInst& k : s.insts) {
      for (Val& v : k.inst.operands) v = values[v.index];
      if (k.inst.mask.valid()) k.inst.mask = values[k.inst.mask.index];
      for (Val& v : k.inst.results) {
        values[v.index] = Val{static_cast<u32>(kernel.val_dtypes.size())};
        kernel.val_dtypes.push_back(dtypes[v.index]);
        v = values[v.index];
      }
      if (k.kind == KernelOp::Accumulate) accumulators[k.accumulator] = kernel.num_accumulators++;
      if (k.kind == KernelOp::Accumulate || k.kind == KernelOp::Finish)
        k.accumulator = *accumulators[k.accumulator];
      if (k.kind == KernelOp::Load || k.kind == KernelOp::Store) used[k.buffer] = true;
      if (k.kind == KernelOp::Store) written[k.buffer] = true;
    }
  std::vector<u32> buffers(used.size());
  std::vector<KernelBuffer> kept;
  for (u32 b = 0; b < used.size(); ++b) {
    if (!used[b]) continue;
    buffers[b] = static_cast<u32>(kept.size());
    kept.push_back(std::move(kernel.buffers[b]));
    kept.back().written = written[b];
  }
  kernel.buffers = std::move(kept);
  for (Stage& s : kernel.stages)
    for (KernelInst& k : s.insts)
      if (k.kind == KernelOp::Load || k.kind == KernelOp::Store) k.buffer = buffers[k.buffer];
}

}  // namespace

std::vector<Kernel> parts_of(const Kernel& kernel) {
  if (!kernel.closes()) return {kernel};
  Kernel main = kernel, closing = kernel;
  std::erase_if(main.stages, [](const Stage& s) { return s.closing; });
  std::erase_if(closing.stages, [](const Stage& s) { return !s.closing; });
  for (Stage& s : closing.stages) s.closing = false;
  closing.grid.clear();
  for (Kernel* part : {&main, &closing}) keep_what_is_used(*part);
  std::vector<Kernel> parts;
  for (Kernel* part : {&main, &closing})
    if (!part->stages.empty()) parts.push_back(std::move(*part));
  return parts;
}

u32 checked_indices(const Kernel& kernel) {
  u32 count = 0;
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts) count += i.kind == KernelOp::Index;
  return count;
}

void keep_what_is_used(Kernel& kernel) {
  std::vector<bool> values(kernel.val_dtypes.size()), accumulators(kernel.num_accumulators);
  const auto is_needed = [&](const KernelInst& k) {
    if (k.kind == KernelOp::Store || k.kind == KernelOp::Index) return true;
    if (k.kind == KernelOp::Accumulate) return accumulators[k.accumulator] == true;
    return std::any_of(k.inst.results.begin(), k.inst.results.end(),
                       [&](Val v) { return values[v.index]; });
  };
  for (std::size_t s = kernel.stages.size(); s-- > 0;) {
    std::vector<KernelInst>& insts = kernel.stages[s].insts;
    for (std::size_t i = insts.size(); i-- > 0;) {
      const KernelInst& k = insts[i];
      if (!is_needed(k)) {
        insts.erase(insts.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      for (Val v : k.inst.operands) values[v.index] = true;
      if (k.inst.mask.valid()) values[k.inst.mask.index] = true;
      if (k.kind == KernelOp::Finish) accumulators[k.accumulator] = true;
    }
  }
  std::erase_if(kernel.stages, [](const Stage& s) { return s.insts.empty(); });
  renumber(kernel);
}

}  // namespace coil
