#include "target/triton/print_index.h"

#include <algorithm>

namespace coil::triton {
namespace {

constexpr i64 kMost = INT32_MAX;
constexpr i64 kTooMuch = kMost + 1;

i64 magnitude(sym::Range r) {
  if (r.lo == sym::kMinInt || r.hi == sym::kMaxInt) return kTooMuch;
  return std::min(kTooMuch,
                  std::max(r.lo < 0 ? -(r.lo + 1) + 1 : r.lo, r.hi < 0 ? -(r.hi + 1) + 1 : r.hi));
}

/// The largest magnitude of a value, or kTooMuch; `worst` gathers that of all parts.
i64 largest(const sym::Arena& syms, sym::Expr e, i64& worst) {
  i64 sum = 0, product = 1, most = 0;
  const auto operands = syms.operands(e);
  for (sym::Expr o : operands) {
    const i64 m = largest(syms, o, worst);
    sum = std::min(kTooMuch, sum + m);
    product = std::min(kTooMuch, product * m);
    most = std::max(most, m);
  }
  i64 here = 0;
  switch (syms.kind(e)) {
    case sym::Kind::Const:
    case sym::Kind::Var: here = magnitude(syms.range(e)); break;
    case sym::Kind::Add: here = sum; break;
    case sym::Kind::Mul: here = product; break;
    case sym::Kind::FloorDiv:
    case sym::Kind::Mod: here = std::min(kTooMuch, most + 1); break;
    case sym::Kind::Min:
    case sym::Kind::Max:
    case sym::Kind::Select: here = most; break;
    case sym::Kind::Eq:
    case sym::Kind::Ne:
    case sym::Kind::Lt:
    case sym::Kind::Le:
    case sym::Kind::And:
    case sym::Kind::Or:
    case sym::Kind::Not: here = 1; break;
  }
  worst = std::max(worst, here);
  return here;
}

}  // namespace

bool fits_in_32_bits(const sym::Arena& syms, sym::Expr e) {
  i64 worst = 0;
  largest(syms, e, worst);
  return worst <= kMost;
}

std::string IndexPrinter::compare(const char* op, sym::Expr e, Spell spell) const {
  const auto operands = syms_.operands(e);
  const std::string a = print(operands[0], spell), b = print(operands[1], spell);
  return spell == Spell::Host ? str("int({} {} {})", a, op, b)
                              : str("tl.cast({} {} {}, {})", a, op, b, type_);
}

std::string IndexPrinter::print(sym::Expr e, Spell spell) const {
  const auto operands = syms_.operands(e);
  const bool host = spell == Spell::Host;
  const auto at = [&](std::size_t i) { return print(operands[i], spell); };
  const auto infix = [&](const char* op) {
    return "(" + join(operands, str(" {} ", op), [&](sym::Expr o) { return print(o, spell); }) +
           ")";
  };
  const auto function = [&](const char* name) {
    std::string all = at(0);
    for (std::size_t i = 1; i < operands.size(); ++i) all = str("{}({}, {})", name, all, at(i));
    return all;
  };
  // Division in Triton truncates.
  const auto divides_plainly = [&] {
    return host || (syms_.range(operands[0]).lo >= 0 && syms_.range(operands[1]).lo >= 0);
  };
  const auto exact = [&](const char* name) {
    return str("{0}(tl.cast({1}, {3}), tl.cast({2}, {3}))", name, at(0), at(1), type_);
  };
  switch (syms_.kind(e)) {
    case sym::Kind::Const: {
      const i64 value = *syms_.as_const(e);
      return value < 0 ? str("({})", value) : str("{}", value);
    }
    case sym::Kind::Var: {
      const auto it = names_.find(e);
      COIL_CHECK(it != names_.end(), "{} has no name here", syms_.text(e));
      return it->second;
    }
    case sym::Kind::Add: return infix("+");
    case sym::Kind::Mul: return infix("*");
    case sym::Kind::FloorDiv: return divides_plainly() ? infix("//") : exact("int_floordiv");
    case sym::Kind::Mod: return divides_plainly() ? infix("%") : exact("int_remainder");
    case sym::Kind::Min: return function(host ? "min" : "tl.minimum");
    case sym::Kind::Max: return function(host ? "max" : "tl.maximum");
    case sym::Kind::Eq: return compare("==", e, spell);
    case sym::Kind::Ne: return compare("!=", e, spell);
    case sym::Kind::Lt: return compare("<", e, spell);
    case sym::Kind::Le: return compare("<=", e, spell);
    case sym::Kind::And: return infix("&");
    case sym::Kind::Or: return infix("|");
    case sym::Kind::Not: return str("(1 - {})", at(0));
    case sym::Kind::Select:
      return host ? str("({} if {} else {})", at(1), at(0), at(2))
                  : str("tl.where({} != 0, {}, {})", at(0), at(1), at(2));
  }
  COIL_UNREACHABLE();
}

}  // namespace coil::triton
