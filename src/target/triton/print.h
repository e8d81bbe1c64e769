#pragma once
// Prints kernels as Triton source. The mapping decides everything; this only spells.

#include <span>
#include <string>

#include "kernel/launches_gpu.h"

namespace coil::triton {

/// A Python module that needs `triton` alone: for each launch one `@triton.jit` function, with the
/// functions that it calls, and a table LAUNCHES by kernel name. An entry has
///   buffers, symbols, scalars   the arguments of the whole kernel
///   sizes                       (name, function of the symbols): further symbols, if there are any
///   scratch                     (name, dtype, elements as a function of the symbols), for one call
///   sites                       how many indices are checked
///   launches                    in order; each has `function`, `warps`, names of its `buffers` and
///                               `symbols`, and as functions of these `programs` and, if not None,
///                               `constants`: keyword arguments
/// The arguments of a function are, in this order
///   the launch's buffers, of the kernel or scratch, as pointers to their elements (bool as uint8);
///   the symbols as ints;
///   `scalars`, a pointer to f64, if the kernel has any;
///   one pointer to scratch of each program for each entry of the launch's `kept`;
///   if the launch has `faults`, a pointer to one i64 for each of the sites, zero before the call.
///   Where an index from data is out of range, nothing is read or written through it, and the
///   site's word becomes 2^63 - 1 less the smallest row-major position, over the mapped grid and
///   loop, at which that happened.
/// Nothing is launched where `programs` is 0. Compile with enable_fp_fusion=False: ops round one by
/// one. What has no spelling is an Error that names the kernel.
Result<std::string> print_module(std::span<const Launches> kernels);

}  // namespace coil::triton
