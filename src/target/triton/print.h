#pragma once
// Prints kernels as Triton source. The mapping decides everything; this only spells.

#include <span>
#include <string>

#include "kernel/kernel.h"

namespace coil::triton {

/// A Python module that needs `triton` alone: for each kernel one `@triton.jit` function, with the
/// functions that it calls, and a table LAUNCHES by kernel name: how many programs and warps, which
/// arguments. Kernels are mapped by map_to_gpu. The arguments of a function are, in this order
///   the buffers as pointers to their elements (bool as uint8), without kept ones;
///   the symbols as ints;
///   `scalars`, a pointer to f64, if the kernel has any;
///   one pointer to scratch for each entry of the launch's `kept`;
///   `faults`, a pointer to one i64 for each checked index (`sites`), zero before the launch. Where
///   an index from data is out of range, nothing is read or written through it, and the site's word
///   becomes 2^63 - 1 less the smallest row-major position, over the mapped grid and loop, at which
///   that happened.
/// Nothing is launched where `programs` is 0. Compile with enable_fp_fusion=False: ops round one by
/// one. What has no spelling is an Error that names the kernel.
Result<std::string> print_module(std::span<const Kernel> kernels);

}  // namespace coil::triton
