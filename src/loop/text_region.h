#pragma once
// The text of a combine that has no name: where it starts and what one step does. Levels 1 and 3
// share it.

#include <span>
#include <string>

#include "base/text.h"
#include "ops/combine.h"

namespace coil::loop_text {

/// Prints `HEAD from f32 0, i64 0 {`, one instruction a line, `return c0, c1` and `}`.
void print_region(TextWriter& out, const std::string& head, const ops::Combine& combine);
/// Reads what print_region writes, from the word `from` on.
Result<ops::Combine> parse_region(TextReader& in);

/// The dtype that an op gives: by its rule from the operands, or `given`. There are as many
/// operands as the op's row says.
DType result_dtype(ops::ScalarOp op, std::span<const DType> operands, DType given);

}  // namespace coil::loop_text
