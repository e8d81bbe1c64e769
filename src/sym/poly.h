#pragma once
// Polynomials over atoms: what sums and products are between being taken apart and interned.
// An atom is any expression that is not a sum, product or constant (or one left unfolded).

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sym/expr.h"

namespace coil::sym {

/// Atoms with repetition, sorted by id; empty for the constant term.
using Monomial = std::vector<Expr>;
/// Coefficients, none of them 0. All operations give nothing on i64 overflow.
using Poly = std::map<Monomial, i64>;

Poly poly_constant(i64 value);
i64 constant_term(const Poly& p);
/// The value, if there is no other term.
std::optional<i64> poly_as_const(const Poly& p);

[[nodiscard]] bool add_term(Poly& p, const Monomial& m, i64 coefficient);
/// a + b*scale.
std::optional<Poly> poly_add(const Poly& a, const Poly& b, i64 scale = 1);
std::optional<Poly> poly_mul(const Poly& a, const Poly& b);

Monomial monomial_mul(const Monomial& a, const Monomial& b);
/// a / b, if every atom of b is in a.
std::optional<Monomial> monomial_div(const Monomial& a, const Monomial& b);
Monomial monomial_gcd(const Monomial& a, const Monomial& b);

/// p == quotient*divisor + remainder, for all values. By a single term every multiple of it is
/// taken out (of a constant, the floor); by a sum a few steps of long division are kept if that
/// helps.
struct Division {
  Poly quotient;
  Poly remainder;
};
std::optional<Division> poly_div(const Poly& p, const Poly& divisor);

/// p == atom*factor + rest, with neither holding `atom` as a factor; nothing for higher powers.
struct Linear {
  Poly factor;
  Poly rest;
};
std::optional<Linear> linear_in(const Poly& p, Expr atom);

}  // namespace coil::sym
