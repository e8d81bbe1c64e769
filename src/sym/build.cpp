// Building of everything that is not a sum or a product.

#include <algorithm>

#include "sym/arena.h"
#include "sym/tree.h"

namespace coil::sym {
namespace {

i64 floor_quotient(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// Of the sign of b; never overflows, as b times the quotient may.
i64 floor_remainder(i64 a, i64 b) {
  const i64 rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// The greatest common divisor of all coefficients but the constant; 0 without any.
u64 content(const Poly& p) {
  u64 g = 0;
  for (const auto& [m, c] : p) {
    if (m.empty()) continue;
    u64 x = c < 0 ? 0 - static_cast<u64>(c) : static_cast<u64>(c);
    while (x != 0) {
      const u64 rest = g % x;
      g = x;
      x = rest;
    }
  }
  return g;
}

/// The terms of p without its constant: positive ones, and the negatives of the others.
struct Sides {
  Poly positive;
  Poly negative;
};
std::optional<Sides> split_signs(const Poly& p) {
  Sides out;
  for (const auto& [m, c] : p) {
    if (m.empty()) continue;
    if (c == INT64_MIN) return std::nullopt;
    (c > 0 ? out.positive : out.negative).emplace(m, c > 0 ? c : -c);
  }
  return out;
}

}  // namespace

Expr Arena::floordiv(Expr a, Expr b) {
  const std::optional<i64> x = as_const(a);
  const std::optional<i64> y = as_const(b);
  const Expr operands[] = {a, b};
  if (y == 0 || (x == INT64_MIN && y == -1)) return impl_->intern(Kind::FloorDiv, operands);
  if (x && y) return constant(floor_quotient(*x, *y));
  if (std::optional<Expr> e = impl_->rewrite(Kind::FloorDiv, operands)) return *e;
  return impl_->settle(impl_->intern(Kind::FloorDiv, operands));
}

Expr Arena::ceildiv(Expr a, Expr b) {
  // With ceil(a/b) == -floor(-a/b), which holds for either sign of b.
  return neg(floordiv(neg(a), b));
}

Expr Arena::mod(Expr a, Expr b) {
  const std::optional<i64> x = as_const(a);
  const std::optional<i64> y = as_const(b);
  const Expr operands[] = {a, b};
  if (y == 0) return impl_->intern(Kind::Mod, operands);
  if (y == 1 || y == -1) return constant(0);
  if (x && y) return constant(floor_remainder(*x, *y));
  if (std::optional<Expr> e = impl_->rewrite(Kind::Mod, operands)) return *e;
  return impl_->settle(impl_->intern(Kind::Mod, operands));
}

/// Min, Max, And, Or: flat, sorted, without duplicates, and no two operands that a row merges.
Expr Arena::Impl::fold_list(Kind kind, std::vector<Expr> operands) {
  std::vector<Expr> items;
  for (Expr o : operands) {
    if (this->kind(o) != kind) {
      items.push_back(o);
    } else {
      const std::span<const Expr> inner = this->operands(o);
      items.insert(items.end(), inner.begin(), inner.end());
    }
  }
  sort(items);
  items.erase(std::ranges::unique(items).begin(), items.end());
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t j = 0; j < items.size(); ++j) {
      if (i == j) continue;
      const Expr pair[] = {items[i], items[j]};
      const std::optional<Expr> merged = rewrite(kind, pair);
      if (!merged) continue;
      items[i] = *merged;
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(j));
      return fold_list(kind, std::move(items));
    }
  }
  return items.size() == 1 ? items[0] : settle(intern(kind, items));
}

Expr Arena::min(Expr a, Expr b) { return impl_->fold_list(Kind::Min, {a, b}); }
Expr Arena::max(Expr a, Expr b) { return impl_->fold_list(Kind::Max, {a, b}); }

/// Lt and Le both say p >= 0 for a polynomial p. Its terms are divided by what is common to them,
/// negative ones go to the left, positive ones to the right, and the constant to where it is not
/// negative: `i0 < s0`, `i0 + r0 < 5`, `2 <= s0`.
Expr Arena::Impl::compare_with(Kind kind, Expr a, Expr b) {
  const std::optional<Poly> difference = poly_add(poly(b), poly(a), -1);
  Poly p = difference.value_or(Poly{});
  bool ok = difference.has_value() && (kind == Kind::Le || add_term(p, {}, -1));
  const u64 g = ok ? content(p) : 0;
  if (ok && g == 0) return self.constant(constant_term(p) >= 0);
  const std::optional<Sides> sides = ok && g <= INT64_MAX ? split_signs(p) : std::nullopt;
  i64 left = 0;
  i64 right = 0;
  Kind form = Kind::Le;
  if (sides) {
    const i64 k = floor_quotient(constant_term(p), static_cast<i64>(g));
    const bool right_only = sides->negative.empty();
    if (right_only || k == INT64_MIN || k == INT64_MAX) {  // p + k >= 0
      ok = !__builtin_sub_overflow(0, k, &left);
    } else if (k == 0 && !sides->positive.empty()) {
      form = Kind::Le;
    } else {
      form = Kind::Lt;
      const bool on_right = k >= 0 || sides->positive.empty();
      (on_right ? right : left) = on_right ? k + 1 : -k - 1;
    }
    auto side = [&](Poly terms, i64 constant) {
      for (auto& [m, c] : terms) c /= static_cast<i64>(g);
      if (constant != 0) terms[{}] = constant;
      return from_poly(std::move(terms));
    };
    if (ok) {
      kind = form;
      a = side(sides->negative, left);
      b = side(sides->positive, right);
    }
  }
  const Expr operands[] = {a, b};
  if (std::optional<Expr> e = rewrite(kind, operands)) return *e;
  return settle(intern(kind, operands));
}

/// Eq and Ne say p == 0 or not: divided by what is common, and the first term in order on the left.
Expr Arena::Impl::equality(Kind kind, Expr a, Expr b) {
  const std::optional<Poly> difference = poly_add(poly(a), poly(b), -1);
  const u64 g = difference ? content(*difference) : 1;
  if (g == 0) return self.constant((constant_term(*difference) == 0) == (kind == Kind::Eq));
  const std::optional<Sides> sides =
      difference && g <= INT64_MAX ? split_signs(*difference) : std::nullopt;
  const i64 k = difference ? constant_term(*difference) : 0;
  if (sides && k != INT64_MIN) {
    if (k % static_cast<i64>(g) != 0) return self.constant(kind == Kind::Ne);
    Poly left = sides->positive;
    Poly right = sides->negative;
    for (Poly* side : {&left, &right})
      for (auto& [m, c] : *side) c /= static_cast<i64>(g);
    const i64 constant = k / static_cast<i64>(g);
    if (right.empty()) {  // left + constant == 0
      right = poly_constant(-constant);
    } else if (left.empty()) {
      left.swap(right);
      right = poly_constant(constant);
    } else if (constant != 0) {
      (constant < 0 ? right : left)[{}] = constant < 0 ? -constant : constant;
    }
    a = from_poly(std::move(left));
    b = from_poly(std::move(right));
    if (compare(b, a) < 0) std::swap(a, b);
  }
  const Expr operands[] = {a, b};
  if (std::optional<Expr> e = rewrite(kind, operands)) return *e;
  return settle(intern(kind, operands));
}

Expr Arena::eq(Expr a, Expr b) { return impl_->equality(Kind::Eq, a, b); }
Expr Arena::ne(Expr a, Expr b) { return impl_->equality(Kind::Ne, a, b); }
Expr Arena::lt(Expr a, Expr b) { return impl_->compare_with(Kind::Lt, a, b); }
Expr Arena::le(Expr a, Expr b) { return impl_->compare_with(Kind::Le, a, b); }

Expr Arena::Impl::as_boolean(Expr e) {
  const Range r = range(e);
  return is_boolean(kind(e)) || (r.lo >= 0 && r.hi <= 1) ? e : self.ne(e, self.constant(0));
}

Expr Arena::logical_and(Expr a, Expr b) {
  return impl_->fold_list(Kind::And, {impl_->as_boolean(a), impl_->as_boolean(b)});
}

Expr Arena::logical_or(Expr a, Expr b) {
  return impl_->fold_list(Kind::Or, {impl_->as_boolean(a), impl_->as_boolean(b)});
}

Expr Arena::logical_not(Expr a) {
  a = impl_->as_boolean(a);
  if (const std::optional<i64> value = as_const(a)) return constant(*value == 0);
  const Expr operands[] = {a};
  if (std::optional<Expr> e = impl_->rewrite(Kind::Not, operands)) return *e;
  if (kind(a) == Kind::And || kind(a) == Kind::Or) {  // De Morgan
    std::vector<Expr> inner;
    for (Expr o : this->operands(a)) inner.push_back(logical_not(o));
    return impl_->fold_list(kind(a) == Kind::And ? Kind::Or : Kind::And, std::move(inner));
  }
  return impl_->settle(impl_->intern(Kind::Not, operands));
}

Expr Arena::select(Expr condition, Expr yes, Expr no) {
  const Expr operands[] = {impl_->as_boolean(condition), yes, no};
  if (const std::optional<i64> value = as_const(operands[0])) return *value != 0 ? yes : no;
  if (std::optional<Expr> e = impl_->rewrite(Kind::Select, operands)) return *e;
  return impl_->settle(impl_->intern(Kind::Select, operands));
}

Expr Arena::Impl::build(Kind kind, std::span<const Expr> operands) {
  auto fold = [&](auto op) {
    Expr out = operands[0];
    for (Expr o : operands.subspan(1)) out = op(out, o);
    return out;
  };
  switch (kind) {
    case Kind::Add: return self.sum(operands);
    case Kind::Mul: return self.product(operands);
    case Kind::FloorDiv: return self.floordiv(operands[0], operands[1]);
    case Kind::Mod: return self.mod(operands[0], operands[1]);
    case Kind::Min:
    case Kind::Max: return fold_list(kind, {operands.begin(), operands.end()});
    case Kind::Eq: return self.eq(operands[0], operands[1]);
    case Kind::Ne: return self.ne(operands[0], operands[1]);
    case Kind::Lt: return self.lt(operands[0], operands[1]);
    case Kind::Le: return self.le(operands[0], operands[1]);
    case Kind::And: return fold([this](Expr a, Expr b) { return self.logical_and(a, b); });
    case Kind::Or: return fold([this](Expr a, Expr b) { return self.logical_or(a, b); });
    case Kind::Not: return self.logical_not(operands[0]);
    case Kind::Select: return self.select(operands[0], operands[1], operands[2]);
    case Kind::Const:
    case Kind::Var: break;
  }
  COIL_UNREACHABLE();
}

}  // namespace coil::sym
