#include "sym/poly.h"

#include <algorithm>
#include <iterator>

namespace coil::sym {

Poly poly_constant(i64 value) {
  Poly p;
  if (value != 0) p[{}] = value;
  return p;
}

i64 constant_term(const Poly& p) {
  auto it = p.find({});
  return it == p.end() ? 0 : it->second;
}

std::optional<i64> poly_as_const(const Poly& p) {
  if (p.empty()) return 0;
  if (p.size() == 1 && p.begin()->first.empty()) return p.begin()->second;
  return std::nullopt;
}

bool add_term(Poly& p, const Monomial& m, i64 coefficient) {
  if (coefficient == 0) return true;
  auto [it, is_new] = p.try_emplace(m, coefficient);
  if (is_new) return true;
  if (__builtin_add_overflow(it->second, coefficient, &it->second)) return false;
  if (it->second == 0) p.erase(it);
  return true;
}

std::optional<Poly> poly_add(const Poly& a, const Poly& b, i64 scale) {
  Poly out = a;
  for (const auto& [m, c] : b) {
    i64 scaled;
    if (__builtin_mul_overflow(c, scale, &scaled) || !add_term(out, m, scaled)) return std::nullopt;
  }
  return out;
}

std::optional<Poly> poly_mul(const Poly& a, const Poly& b) {
  Poly out;
  for (const auto& [ma, ca] : a) {
    for (const auto& [mb, cb] : b) {
      i64 c;
      if (__builtin_mul_overflow(ca, cb, &c) || !add_term(out, monomial_mul(ma, mb), c))
        return std::nullopt;
    }
  }
  return out;
}

Monomial monomial_mul(const Monomial& a, const Monomial& b) {
  Monomial out;
  out.reserve(a.size() + b.size());
  std::ranges::merge(a, b, std::back_inserter(out));
  return out;
}

std::optional<Monomial> monomial_div(const Monomial& a, const Monomial& b) {
  if (!std::ranges::includes(a, b)) return std::nullopt;
  Monomial out;
  std::ranges::set_difference(a, b, std::back_inserter(out));
  return out;
}

Monomial monomial_gcd(const Monomial& a, const Monomial& b) {
  Monomial out;
  std::ranges::set_intersection(a, b, std::back_inserter(out));
  return out;
}

namespace {

/// The floor of a / b where b divides a or a is a constant term; b is not 0.
std::optional<i64> coefficient_quotient(i64 a, i64 b, bool floor) {
  if (b == -1) return a == INT64_MIN ? std::nullopt : std::optional<i64>(-a);
  if (a % b == 0) return a / b;
  if (!floor) return std::nullopt;
  return a / b - ((a < 0) != (b < 0) ? 1 : 0);
}

std::optional<Division> divide_by_term(const Poly& p, const Monomial& dm, i64 dc) {
  Division out;
  for (const auto& [m, c] : p) {
    const std::optional<Monomial> qm = monomial_div(m, dm);
    const std::optional<i64> qc =
        qm ? coefficient_quotient(c, dc, m.empty() && dm.empty()) : std::nullopt;
    if (!qc || *qc == 0) {
      if (!add_term(out.remainder, m, c)) return std::nullopt;
      continue;
    }
    i64 rest;
    if (__builtin_mul_overflow(*qc, dc, &rest) || __builtin_sub_overflow(c, rest, &rest))
      return std::nullopt;
    if (!add_term(out.quotient, *qm, *qc) || !add_term(out.remainder, m, rest)) return std::nullopt;
  }
  return out;
}

std::optional<Division> divide_by_sum(const Poly& p, const Poly& divisor) {
  const auto lead = std::ranges::max_element(
      divisor, [](const auto& a, const auto& b) { return a.first.size() < b.first.size(); });
  constexpr int kMaxSteps = 16;
  Division out{{}, p};
  for (int step = 0; step < kMaxSteps; ++step) {
    std::optional<Monomial> qm;
    i64 qc = 0;
    for (const auto& [m, c] : out.remainder) {
      qm = monomial_div(m, lead->first);
      const std::optional<i64> q = qm ? coefficient_quotient(c, lead->second, false) : std::nullopt;
      qc = q.value_or(0);
      if (qc != 0) break;
    }
    if (qc == 0) break;
    const Poly term{{*qm, qc}};
    const std::optional<Poly> product = poly_mul(term, divisor);
    const std::optional<Poly> rest = product ? poly_add(out.remainder, *product, -1) : std::nullopt;
    if (!rest || !add_term(out.quotient, *qm, qc)) return std::nullopt;
    out.remainder = *rest;
  }
  if (out.remainder.size() >= p.size()) return Division{{}, p};
  return out;
}

}  // namespace

std::optional<Division> poly_div(const Poly& p, const Poly& divisor) {
  if (divisor.empty()) return std::nullopt;
  if (divisor.size() == 1)
    return divide_by_term(p, divisor.begin()->first, divisor.begin()->second);
  return divide_by_sum(p, divisor);
}

std::optional<Linear> linear_in(const Poly& p, Expr atom) {
  Linear out;
  for (const auto& [m, c] : p) {
    const std::optional<Monomial> factor = monomial_div(m, {atom});
    if (!factor) {
      out.rest.emplace(m, c);
      continue;
    }
    if (std::ranges::binary_search(*factor, atom)) return std::nullopt;
    out.factor.emplace(*factor, c);
  }
  return out;
}

}  // namespace coil::sym
