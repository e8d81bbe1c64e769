// The text form of expressions.

#include <unordered_map>

#include "sym/arena.h"
#include "sym/tree.h"

namespace coil::sym {
namespace {

/// How tightly a text binds; an operand that binds less than its place asks for gets parentheses.
enum Binding : int { kOr, kAnd, kNot, kComparison, kSum, kQuotient, kProduct, kPrimary };

struct Text {
  std::string text;
  Binding binding = kPrimary;
};
using Texts = std::unordered_map<Expr, Text>;

std::string at_least(const Text& t, Binding binding) {
  return t.binding < binding ? "(" + t.text + ")" : t.text;
}

/// `i0*s0*4`, without the sign: that of a negative constant goes to `negative`, unless it is the
/// least number, which has no positive form.
Text product_text(const Arena& arena, Expr e, const Texts& done, bool& negative) {
  std::string out;
  for (Expr o : arena.operands(e)) {
    const std::optional<i64> c = arena.as_const(o);
    std::string factor = at_least(done.at(o), kPrimary);
    if (c && *c < 0 && *c != kMinInt && !negative) {
      negative = true;
      if (*c == -1) continue;
      factor = factor.substr(1, factor.size() - (factor.front() == '(' ? 2 : 1));
      if (factor.front() == '-') factor.erase(0, 1);
    }
    out += (out.empty() ? "" : "*") + factor;
  }
  return {out, out.find('*') == out.npos ? kPrimary : kProduct};
}

Text sum_text(const Arena& arena, Expr e, const Texts& done) {
  std::string plus;
  std::string minus;
  for (Expr o : arena.operands(e)) {
    bool negative = false;
    Text t = done.at(o);
    if (arena.kind(o) == Kind::Mul) {
      t = product_text(arena, o, done, negative);
    } else if (const auto c = arena.as_const(o); c && *c < 0 && *c != kMinInt) {
      negative = true;
      t = {t.text.substr(1), kPrimary};
    }
    const std::string term = at_least(t, kQuotient);
    if (negative) {
      minus += " - " + term;
    } else {
      plus += (plus.empty() ? "" : " + ") + term;
    }
  }
  if (!plus.empty()) return {plus + minus, kSum};
  return {"-" + minus.substr(3), kSum};
}

std::string list_text(std::span<const Expr> items, std::string_view separator, const Texts& done,
                      Binding binding) {
  return join(items, separator, [&](Expr o) { return at_least(done.at(o), binding); });
}

Text infix(std::span<const Expr> in, std::string_view op, const Texts& done, Binding own,
           Binding operand) {
  return {list_text(in, str(" {} ", op), done, operand), own};
}

Text text_of(const Arena& arena, Expr e, const Texts& done) {
  const std::span<const Expr> in = arena.operands(e);
  switch (arena.kind(e)) {
    case Kind::Const: {
      const i64 value = *arena.as_const(e);
      return {str("{}", value), value < 0 ? kSum : kPrimary};
    }
    case Kind::Var: return {arena.var(e).name, kPrimary};
    case Kind::Add: return sum_text(arena, e, done);
    case Kind::Mul: {
      bool negative = false;
      Text t = product_text(arena, e, done, negative);
      return negative ? Text{"-" + t.text, kSum} : t;
    }
    case Kind::FloorDiv: return infix(in, "//", done, kQuotient, kPrimary);
    case Kind::Mod: return infix(in, "%", done, kQuotient, kPrimary);
    case Kind::Min: return {"min(" + list_text(in, ", ", done, kOr) + ")", kPrimary};
    case Kind::Max: return {"max(" + list_text(in, ", ", done, kOr) + ")", kPrimary};
    case Kind::Select: return {"select(" + list_text(in, ", ", done, kOr) + ")", kPrimary};
    case Kind::Eq: return infix(in, "==", done, kComparison, kSum);
    case Kind::Ne: return infix(in, "!=", done, kComparison, kSum);
    case Kind::Lt: return infix(in, "<", done, kComparison, kSum);
    case Kind::Le: return infix(in, "<=", done, kComparison, kSum);
    case Kind::And: return infix(in, "and", done, kAnd, kNot);
    case Kind::Or: return infix(in, "or", done, kOr, kAnd);
    case Kind::Not: return {"not " + at_least(done.at(in[0]), kComparison), kNot};
  }
  COIL_UNREACHABLE();
}

using Lookup = std::function<std::optional<Expr>(std::string_view)>;

Result<Expr> build_tree(Arena::Impl& impl, const Tree& tree, const Lookup& lookup,
                        const TextReader& in) {
  if (tree.kind == Kind::Const) return impl.self.constant(tree.value);
  if (tree.kind == Kind::Var) {
    const std::optional<Expr> var = lookup(tree.name);
    if (!var) return in.error_here(str("unknown size or index '{}' in an expression", tree.name));
    return *var;
  }
  std::vector<Expr> operands;
  for (const Tree& c : tree.children) operands.push_back(COIL_TRY(build_tree(impl, c, lookup, in)));
  return impl.build(tree.kind, operands);
}

}  // namespace

std::string Arena::text(Expr e) const {
  Texts done;
  for (Expr x : impl_->reachable(e)) done.emplace(x, text_of(*this, x, done));
  return done.at(e).text;
}

Result<Expr> Arena::parse(TextReader& in, const Lookup& lookup) {
  const Tree tree = COIL_TRY(parse_tree(in));
  return build_tree(*impl_, tree, lookup, in);
}

}  // namespace coil::sym
