#pragma once
// What a launch reports when an index from data is out of range.

#include "base/ids.h"

namespace coil::runtime {

/// The same fields as Fault in the kernels' prelude (target/cpp/prelude/90_kernel.h).
struct Fault {
  i32 lock = 0;
  i32 is_set = 0;
  i64 kernel = 0;
  i64 site = 0;      // which checked index of the kernel
  i64 position = 0;  // row-major iteration point
  i64 value = 0;
  i64 extent = 0;  // kDivisor: the value is a divisor, and 0
};
constexpr i64 kDivisor = -1;

/// A compiled kernel: does the units lo..hi-1 of its work.
using KernelFunction = void (*)(void* const* buffers, const i64* symbols, const double* scalars,
                                i64 lo, i64 hi, Fault* fault);

}  // namespace coil::runtime
