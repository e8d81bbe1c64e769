#pragma once
// Conversions of arrays between dtypes. Only for src/ops.

#include "base/dtype.h"

namespace coil::ops {

/// Each of `n` elements as by `convert`; narrow floats are reached through f32.
void cast_elements(DType from, DType to, i64 n, const void* operand, void* result);

}  // namespace coil::ops
