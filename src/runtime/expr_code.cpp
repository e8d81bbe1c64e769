#include "runtime/expr_code.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace coil::runtime {
namespace {

using Wide = __int128;
using Value = ExprValue;

int operand_count(ExprOp op) {
  switch (op) {
    case ExprOp::Push:
    case ExprOp::Load: return 0;
    case ExprOp::Not: return 1;
    case ExprOp::Add:
    case ExprOp::Mul:
    case ExprOp::FloorDiv:
    case ExprOp::Mod:
    case ExprOp::Min:
    case ExprOp::Max:
    case ExprOp::Eq:
    case ExprOp::Ne:
    case ExprOp::Lt:
    case ExprOp::Le:
    case ExprOp::And:
    case ExprOp::Or: return 2;
    case ExprOp::Select: return 3;
  }
  COIL_UNREACHABLE();
}

bool fits(const Value& v) { return v && *v >= INT64_MIN && *v <= INT64_MAX; }

Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q;
}

Value add_or_mul(ExprOp op, const Value& a, const Value& b) {
  Wide out;
  if (!a || !b) return std::nullopt;
  const bool overflow = op == ExprOp::Add ? __builtin_add_overflow(*a, *b, &out)
                                          : __builtin_mul_overflow(*a, *b, &out);
  return overflow ? std::nullopt : Value(out);
}

/// `deciding` is the operand that settles the result alone: 0 for And, 1 for Or.
Value logical(const Value& a, const Value& b, bool deciding) {
  if ((a && (*a != 0) == deciding) || (b && (*b != 0) == deciding)) return Wide{deciding};
  return a && b ? Value(!deciding) : std::nullopt;
}

Value binary(ExprOp op, const Value& x, const Value& y) {
  if (op == ExprOp::Add || op == ExprOp::Mul) return add_or_mul(op, x, y);
  if (op == ExprOp::And || op == ExprOp::Or) return logical(x, y, op == ExprOp::Or);
  if (!fits(x) || !fits(y)) return std::nullopt;
  const Wide a = *x;
  const Wide b = *y;
  switch (op) {
    case ExprOp::FloorDiv: return b == 0 ? std::nullopt : Value(floor_div(a, b));
    case ExprOp::Mod: return b == 0 ? std::nullopt : Value(a - floor_div(a, b) * b);
    case ExprOp::Min: return std::min(a, b);
    case ExprOp::Max: return std::max(a, b);
    case ExprOp::Eq: return a == b;
    case ExprOp::Ne: return a != b;
    case ExprOp::Lt: return a < b;
    case ExprOp::Le: return a <= b;
    case ExprOp::Push:
    case ExprOp::Load:
    case ExprOp::Add:
    case ExprOp::Mul:
    case ExprOp::And:
    case ExprOp::Or:
    case ExprOp::Not:
    case ExprOp::Select: break;
  }
  COIL_UNREACHABLE();
}

}  // namespace

ExprValue evaluate(ExprOp op, std::span<const ExprValue> in) {
  if (op == ExprOp::Not) return fits(in[0]) ? Value(*in[0] == 0) : std::nullopt;
  if (op != ExprOp::Select) return binary(op, in[0], in[1]);
  if (!in[0]) return std::nullopt;
  const Value& taken = in[*in[0] != 0 ? 1 : 2];
  return fits(taken) ? taken : std::nullopt;
}

std::optional<i64> narrow(const ExprValue& value) {
  return fits(value) ? std::optional<i64>(static_cast<i64>(*value)) : std::nullopt;
}

bool valid(const ExprCode& code, u32 num_slots) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] < 0 || code[i] >= kExprOps) return false;
    const ExprOp op = static_cast<ExprOp>(code[i]);
    if (op == ExprOp::Push || op == ExprOp::Load) {
      if (++i == code.size()) return false;
      const bool in_range = code[i] >= 0 && code[i] < static_cast<i64>(num_slots);
      if (op == ExprOp::Load && !in_range) return false;
    }
    const std::size_t taken = static_cast<std::size_t>(operand_count(op));
    if (depth < taken) return false;
    depth = depth - taken + 1;
    if (depth > kMaxExprStack) return false;
  }
  return depth == 1;
}

std::optional<i64> run(const ExprCode& code, std::span<const i64> slots) {
  // Nearly all sizes are a number or a symbol, and a call computes dozens.
  if (code.size() == 2) {
    const bool is_number = static_cast<ExprOp>(code[0]) == ExprOp::Push;
    return is_number ? code[1] : slots[static_cast<std::size_t>(code[1])];
  }
  std::array<Value, kMaxExprStack> stack;
  std::size_t top = 0;  // values on the stack
  for (std::size_t i = 0; i < code.size(); ++i) {
    const ExprOp op = static_cast<ExprOp>(code[i]);
    const std::size_t taken = static_cast<std::size_t>(operand_count(op));
    COIL_CHECK(top >= taken && top - taken < kMaxExprStack);
    Value* in = stack.data() + (top - taken);
    top = top - taken + 1;
    if (op == ExprOp::Push) {
      *in = code[++i];
    } else if (op == ExprOp::Load) {
      *in = slots[static_cast<std::size_t>(code[++i])];
    } else {
      *in = evaluate(op, {in, taken});
    }
  }
  COIL_CHECK(top == 1);
  return narrow(stack[0]);
}

}  // namespace coil::runtime
