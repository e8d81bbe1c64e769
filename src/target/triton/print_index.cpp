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

/// The same as expressions over sizes.
class Bounds {
 public:
  explicit Bounds(const Kernel& kernel) : symbols_(kernel.symbols), syms_(*kernel.syms) {
    worst_ = syms_.constant(0);
    for (const Stage& s : kernel.stages)
      for (const KernelInst& i : s.insts)
        if (i.kind == KernelOp::Index) extents_[i.inst.expr] = i.inst.extent;
  }

  sym::Expr worst() const { return worst_; }
  void note(sym::Expr bound) { worst_ = syms_.max(worst_, bound); }

  std::optional<sym::Expr> of(sym::Expr e) {
    std::vector<sym::Expr> parts;
    const std::vector<sym::Expr> operands(syms_.operands(e).begin(), syms_.operands(e).end());
    for (sym::Expr o : operands) {
      const std::optional<sym::Expr> part = of(o);
      if (!part) return std::nullopt;
      parts.push_back(*part);
    }
    switch (syms_.kind(e)) {
      case sym::Kind::Const:
        return syms_.constant(magnitude({*syms_.as_const(e), *syms_.as_const(e)}));
      case sym::Kind::Var: return of_variable(e);
      case sym::Kind::Add: return syms_.sum(parts);
      case sym::Kind::Mul: return syms_.product(parts);
      case sym::Kind::FloorDiv:
        if (!is_size(operands[1])) break;
        for (sym::Expr p : parts) note(p);
        return syms_.add(syms_.floordiv(parts[0], operands[1]), syms_.constant(1));
      case sym::Kind::Mod:
        if (!is_size(operands[1])) break;
        for (sym::Expr p : parts) note(p);
        return operands[1];
      case sym::Kind::Min:
      case sym::Kind::Max:
      case sym::Kind::Select: break;
      case sym::Kind::Eq:
      case sym::Kind::Ne:
      case sym::Kind::Lt:
      case sym::Kind::Le:
      case sym::Kind::And:
      case sym::Kind::Or:
      case sym::Kind::Not:
        for (sym::Expr p : parts) note(p);
        return syms_.constant(1);
    }
    // Each part is computed, and the result is no larger than one of them and 1.
    sym::Expr out = syms_.constant(1);
    for (sym::Expr p : parts) out = syms_.max(out, p);
    note(out);
    return out;
  }

 private:
  /// A divisor that the launch knows, and that is not negative.
  bool is_size(sym::Expr e) const {
    std::vector<sym::Expr> used;
    syms_.variables(e, used);
    const auto is_symbol = [&](sym::Expr v) {
      return std::find(symbols_.begin(), symbols_.end(), v) != symbols_.end();
    };
    return syms_.range(e).lo >= 0 && std::all_of(used.begin(), used.end(), is_symbol);
  }

  std::optional<sym::Expr> of_variable(sym::Expr e) {
    if (const auto it = extents_.find(e); it != extents_.end()) return of(it->second);
    const sym::Variable& v = syms_.var(e);
    if (v.extent.valid()) return of(extent_at_most(syms_, v.extent));
    if (v.range.lo < 0) return std::nullopt;
    return e;
  }

  const std::vector<sym::Expr>& symbols_;
  sym::Arena& syms_;
  std::map<sym::Expr, sym::Expr> extents_;  // of indices
  sym::Expr worst_;
};

}  // namespace

sym::Expr extent_at_most(const sym::Arena& syms, sym::Expr extent) {
  if (syms.kind(extent) != sym::Kind::Min) return extent;
  for (sym::Expr o : syms.operands(extent))
    if (syms.kind(o) == sym::Kind::Const || syms.kind(o) == sym::Kind::Var) return o;
  return extent;
}

std::optional<sym::Expr> largest_at_launch(const Kernel& kernel, std::span<const sym::Expr> all) {
  Bounds bounds(kernel);
  for (sym::Expr e : all) {
    const std::optional<sym::Expr> bound = bounds.of(e);
    if (!bound) return std::nullopt;
    bounds.note(*bound);
  }
  return bounds.worst();
}

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
    return (syms_.range(operands[0]).lo >= 0 && syms_.range(operands[1]).lo >= 0);
  };
  const auto exact = [&](const char* name) {
    return str("{0}(tl.cast({1}, {3}), tl.cast({2}, {3}))", name, at(0), at(1), type_);
  };
  // A zero divisor has no value; on the host nothing comes of it.
  const auto host_divisor = [&] {
    return syms_.range(operands[1]).lo < 1 ? str("({} or 1)", at(1)) : at(1);
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
    case sym::Kind::FloorDiv:
      if (host) return str("({} // {})", at(0), host_divisor());
      return divides_plainly() ? infix("//") : exact("int_floordiv");
    case sym::Kind::Mod:
      if (host) return str("({} % {})", at(0), host_divisor());
      return divides_plainly() ? infix("%") : exact("int_remainder");
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
