#pragma once
// Spelling of ops, types and literals in generated Triton source.

#include <span>
#include <string>

#include "base/result.h"
#include "ops/scalar.h"

namespace coil::triton {

/// `tl.float32`, `tl.int1`, ...: the type that values of `dtype` have; f32 for the 16-bit floats.
std::string value_type(DType dtype);
/// The type in memory: `tl.bfloat16`, `tl.uint8` for bool, ...
std::string memory_type(DType dtype);
/// Whether buffers of `dtype` can be printed: all but complex and the 8-bit floats.
bool has_memory_type(DType dtype);

/// An exact constant of the value type, as a scalar tensor.
std::string literal(const ops::Scalar& value);

/// The op on named operands of dtype `from` (where: of the values; cast: of the source).
Result<std::string> op_text(ops::ScalarOp op, DType from, DType to,
                            std::span<const std::string> operands);

/// The value as loaded from memory, and as it is stored.
std::string from_memory(DType dtype, const std::string& loaded);
std::string to_memory(DType dtype, const std::string& value);

}  // namespace coil::triton
