#pragma once
// The one loop of the evaluator. Only for src/ops.

#include <cstring>

#include "base/ids.h"

namespace coil::ops {

/// result[k] = f(operands[k]...) for k in 0..n-1. A block is gathered before it is written: the
/// result may be one of the operands, and the inner loop, whose length is constant and whose target
/// no pointer aliases, is vectorised at -O2.
template <class F, class Result, class... Operands>
void map_elements(F f, i64 n, Result* result, const Operands*... operands) {
  constexpr i64 kBlock = 64;
  i64 at = 0;
  for (; at + kBlock <= n; at += kBlock) {
    Result block[kBlock];
    for (i64 k = 0; k < kBlock; ++k) block[k] = f(operands[at + k]...);
    std::memcpy(result + at, block, sizeof(block));
  }
  for (; at < n; ++at) result[at] = f(operands[at]...);
}

}  // namespace coil::ops
