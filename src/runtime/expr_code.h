#pragma once
// Integer expressions as code for a small stack machine: what plans hold instead of sym::Expr.

#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace coil::runtime {

/// Push is followed by a value, Load by a slot number. The others take their operands from the stack,
/// the last one on top, and leave the result. They mean what sym::Kind says; a missing value (a zero
/// divisor, an overflow) passes through And, Or and Select where it does not matter.
enum class ExprOp : i64 {
  Push, Load, Add, Mul, FloorDiv, Mod, Min, Max, Eq, Ne, Lt, Le, And, Or, Not, Select
};
inline constexpr i64 kExprOps = static_cast<i64>(ExprOp::Select) + 1;

/// Ops and immediates in order; a plain array, to be stored in a plan as it is.
using ExprCode = std::vector<i64>;

inline constexpr std::size_t kMaxExprStack = 256;

/// Whether `code` (possibly from a damaged file) is well formed: known ops, slots below `num_slots`,
/// operands for each op, at most kMaxExprStack values at a time, and one value at the end.
bool valid(const ExprCode& code, u32 num_slots);

/// The value of valid code, nothing on overflow or a zero divisor. Sums and products may pass i64 on
/// the way, as in sym::Arena::eval.
std::optional<i64> run(const ExprCode& code, std::span<const i64> slots);

}  // namespace coil::runtime
