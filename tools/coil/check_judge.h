#pragma once
// The rule of `coil check`: how far from the truth a result may be.

#include <string>

#include "runtime/tensor.h"

namespace coil::cli {

/// One row of one call on a target, against the interpreter.
struct Verdict {
  bool ok = true;
  double error = 0;      // the largest, in units of the tolerance; 0 for exact dtypes
  std::string mismatch;  // "at [0, 3]: 0.25, expected 0.5", or what else differs
};

/// Four times the interpreter's own error plus 4 ulp, in `plain`'s dtype, of the rms of `wide`; 0
/// for integers and bool. `wide` holds floats as f64.
double tolerance_of(const runtime::Tensor& plain, const runtime::Tensor& wide);

/// Floats: each within the tolerance of `wide`; NaN and infinities as in `wide` or `plain`.
/// Integers, bool and other values: equal to `plain`'s. Dtypes and shapes: as `plain`'s.
Verdict judge(const runtime::Value& found, const runtime::Value& plain, const runtime::Value& wide);

/// Whether all elements and the shape are the same; NaN equals NaN, and f32 1.5 equals f64 1.5.
bool identical(const runtime::Value& a, const runtime::Value& b);
/// Whether the value is made of floats (also complex ones).
bool is_inexact(const runtime::Value& value);

}  // namespace coil::cli
