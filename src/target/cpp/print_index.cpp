#include "target/cpp/print_index.h"

#include "target/cpp/spelling.h"

namespace coil::cpp {
namespace {

std::string as_vector(const IndexText& t) {
  return t.lanes ? t.text : str("splat16(i64({}))", t.text);
}

}  // namespace

IndexText IndexPrinter::operation(const char* scalar_op, const char* function, const IndexText& a,
                                  const IndexText& b) const {
  if (a.lanes || b.lanes) return {str("{}({}, {})", function, as_vector(a), as_vector(b)), true};
  if (*scalar_op) return {str("({} {} {})", a.text, scalar_op, b.text), false};
  return {str("{}(i64({}), i64({}))", function, a.text, b.text), false};
}

IndexText IndexPrinter::comparison(const char* scalar_op, const char* function, const IndexText& a,
                                   const IndexText& b) const {
  if (a.lanes || b.lanes)
    return {str("cast<i64>({}({}, {}))", function, as_vector(a), as_vector(b)), true};
  return {str("i64({} {} {})", a.text, scalar_op, b.text), false};
}

IndexText IndexPrinter::print(sym::Expr e, bool lane_axis_varies) const {
  const auto operands = syms_.operands(e);
  const auto at = [&](std::size_t i) { return print(operands[i], lane_axis_varies); };
  const auto fold = [&](const char* op, const char* function) {
    IndexText all = at(0);
    for (std::size_t i = 1; i < operands.size(); ++i) all = operation(op, function, all, at(i));
    return all;
  };
  const auto not_negative = [&] {
    return syms_.range(operands[0]).lo >= 0 && syms_.range(operands[1]).lo > 0;
  };
  switch (syms_.kind(e)) {
    case sym::Kind::Const:
      return {literal(ops::Scalar::of_int(DType::i64, *syms_.as_const(e))), false};
    case sym::Kind::Var: {
      auto it = names_.find(e);
      COIL_CHECK(it != names_.end(), "{} has no name here", syms_.text(e));
      if (lane_axis_varies && e == lane_axis_) return {str("iota16({})", it->second.text), true};
      return it->second;
    }
    case sym::Kind::Add: return fold("+", "add");
    case sym::Kind::Mul: return fold("*", "mul");
    case sym::Kind::FloorDiv: return operation(not_negative() ? "/" : "", "floordiv", at(0), at(1));
    case sym::Kind::Mod: return operation(not_negative() ? "%" : "", "remainder", at(0), at(1));
    case sym::Kind::Min: return fold("", "min");
    case sym::Kind::Max: return fold("", "max");
    case sym::Kind::Eq: return comparison("==", "eq", at(0), at(1));
    case sym::Kind::Ne: return comparison("!=", "ne", at(0), at(1));
    case sym::Kind::Lt: return comparison("<", "lt", at(0), at(1));
    case sym::Kind::Le: return comparison("<=", "le", at(0), at(1));
    case sym::Kind::And: return fold("&", "bit_and");
    case sym::Kind::Or: return fold("|", "bit_or");
    case sym::Kind::Not: return operation("-", "sub", {"i64(1)", false}, at(0));
    case sym::Kind::Select: {
      const IndexText c = at(0), yes = at(1), no = at(2);
      if (c.lanes || yes.lanes || no.lanes)
        return {str("where(ne({}, splat16(i64(0))), {}, {})", as_vector(c), as_vector(yes),
                    as_vector(no)),
                true};
      return {str("({} ? {} : {})", c.text, yes.text, no.text), false};
    }
  }
  COIL_UNREACHABLE();
}

IndexText IndexPrinter::print(sym::Expr e) const { return print(e, lanes_on_); }

std::string IndexPrinter::scalar(sym::Expr e) const {
  const IndexText t = print(e, false);
  COIL_CHECK(!t.lanes, "{} differs between lanes", syms_.text(e));
  return t.text;
}

std::string IndexPrinter::scalar_at(sym::Expr e, const std::string& lane) {
  IndexText& axis = names_.at(lane_axis_);
  const IndexText first = axis;
  axis.text = str("({} + {})", first.text, lane);
  const std::string out = scalar(e);
  axis = first;
  return out;
}

std::string IndexPrinter::vector(sym::Expr e) const { return as_vector(print(e, lanes_on_)); }

bool IndexPrinter::has_lane_variable(sym::Expr e) const {
  for (const auto& [var, text] : names_)
    if (text.lanes && syms_.uses(e, var)) return true;
  return false;
}

}  // namespace coil::cpp
