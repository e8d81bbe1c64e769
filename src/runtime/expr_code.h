#pragma once
// Integer expressions as code for a small stack machine: what plans hold instead of sym::Expr.

#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace coil::runtime {

/// Push is followed by a value, Load by a slot number. The others take their operands from the
/// stack, the last one on top, and leave the result.
enum class ExprOp : i64 {
  Push,
  Load,
  Add,
  Mul,
  FloorDiv,
  Mod,
  Min,
  Max,
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,
  Select
};
inline constexpr i64 kExprOps = static_cast<i64>(ExprOp::Select) + 1;

/// A value on the way, or none after an overflow or a zero divisor.
using ExprValue = std::optional<__int128>;

/// One op (not Push or Load) on its operands: the one meaning of integer expressions. FloorDiv and
/// Mod round towards minus infinity. Sums and products may pass i64, operands of all else must fit.
/// And and Or are decided by one deciding operand even where the other has no value, and Select by
/// its condition and the branch taken; any other op has a value only if all its operands do.
ExprValue evaluate(ExprOp op, std::span<const ExprValue> operands);
/// The value, if it fits.
std::optional<i64> narrow(const ExprValue& value);

/// Ops and immediates in order; a plain array, to be stored in a plan as it is.
using ExprCode = std::vector<i64>;

inline constexpr std::size_t kMaxExprStack = 256;

/// Whether `code` (possibly from a damaged file) is well formed: known ops, slots below
/// `num_slots`, operands for each op, at most kMaxExprStack values at a time, one value at the end.
bool valid(const ExprCode& code, u32 num_slots);

/// The value of valid code, by `evaluate` of its ops.
std::optional<i64> run(const ExprCode& code, std::span<const i64> slots);

}  // namespace coil::runtime
