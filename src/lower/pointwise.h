#pragma once
// Elementwise ops: one row of ops/pointwise.def each.

#include <string_view>
#include <vector>

#include "lower/body_builder.h"

namespace coil::lowering {

/// The formula of an op's row, or null.
const char* pointwise_formula(std::string_view op);
std::vector<std::string_view> pointwise_ops();
/// The names that a formula may use besides the arguments of its op.
bool is_formula_word(std::string_view name);

/// A Scalar argument as a value of `dtype`: a constant, an index expression, a host float or a 0-d
/// tensor. Complex numbers are no such value.
Val scalar_value(BodyBuilder& b, const Arg& arg, DType dtype);

}  // namespace coil::lowering
