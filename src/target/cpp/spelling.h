#pragma once
// Spelling of ops, types and literals in generated C++.

#include <string>
#include <string_view>

#include "ops/scalar.h"

namespace coil::cpp {

/// The prelude function of an op.
std::string_view spelling(ops::ScalarOp op);
/// The element type in memory: f32, bf16, b8, ...
std::string memory_type(DType dtype);
/// The type that values of `dtype` have: f32 for narrow floats, bool for b8.
std::string value_type(DType dtype);
/// The argument of cast<...>: the value type, but narrow floats stay, since casting to one rounds.
std::string cast_type(DType dtype);
/// An exact literal of the value type: `f32(0x1.8p+0f)`, `i64(-3)`, `true`.
std::string literal(const ops::Scalar& value);

}  // namespace coil::cpp
