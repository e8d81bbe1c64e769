#pragma once
// A kernel as a machine runs it: one launch, or several where stages need what all points of others
// have stored.

#include "kernel/kernel.h"

namespace coil {

/// Launches in order, each a kernel without closing stages that is mapped by itself and sees what
/// those before it stored. Their buffers have the names of the whole kernel's, or of `scratch`.
/// Where the way depends on sizes there are launches for each, and `units` of those not taken is 0.
struct Launches {
  /// A size that launches have as a symbol, from the symbols of the whole kernel.
  struct Size {
    sym::Expr symbol, value;
  };
  Kernel whole;
  std::vector<KernelBuffer> scratch;  // memory that launches pass on
  std::vector<Size> sizes;
  std::vector<Kernel> launches;
  std::vector<u32> sites_before;  // by launch: indices that are checked in stages before its own
};

/// The stages before the closing ones, and those: a launch ends where all points must be done.
std::vector<Kernel> parts_of(const Kernel& kernel);
/// How many Index instructions it has.
u32 checked_indices(const Kernel& kernel);

/// Drops instructions whose results nothing needs, then loops, accumulators and buffers, and
/// numbers values anew.
void keep_what_is_used(Kernel& kernel);

}  // namespace coil
