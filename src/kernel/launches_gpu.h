#pragma once
// A kernel as a GPU runs it: one launch, or several where one would leave most of the chip idle.

#include "kernel/kernel.h"

namespace coil {

/// Launches in order, each a kernel that is mapped by itself and sees what those before it stored.
/// Their buffers have the names of the whole kernel's, or of `scratch`. Where the way depends on
/// sizes there are launches for each, and `units` of those not taken is 0.
///
/// A reduction that is split over programs has the tree of its tile (mapping_gpu.h) in each piece
/// of the row, and once more over the results of the pieces; how long a piece is depends on the
/// extent of the row alone.
struct GpuKernel {
  /// A size that launches have as a symbol, from the symbols of the whole kernel.
  struct Size {
    sym::Expr symbol, value;
  };
  Kernel whole;
  std::vector<KernelBuffer> scratch;
  std::vector<Size> sizes;
  std::vector<Kernel> launches;
  std::vector<u32> sites_before;  // by launch: indices that are checked in stages before its own
};

Result<GpuKernel> launches_on_gpu(const Kernel& kernel);

}  // namespace coil
