#include "import/host_number.h"

#include <cmath>

namespace coil {

std::optional<HostNumber> HostMath::real(double value) const {
  constexpr int kMaxShift = 20;
  for (int shift = 0; shift <= kMaxShift; ++shift) {
    const double scaled = std::ldexp(value, shift);
    // Products with sizes stay exact in double while both fit in 53 bits together.
    if (std::fabs(scaled) > 0x1p30) return std::nullopt;
    if (scaled == std::trunc(scaled))
      return HostNumber{syms_.constant(static_cast<i64>(scaled)), syms_.constant(i64{1} << shift),
                        true};
  }
  return std::nullopt;
}

std::optional<sym::Expr> HostMath::as_integer(const HostNumber& a) const {
  if (!syms_.is_const(a.den, 1)) return std::nullopt;
  return a.num;
}

std::optional<double> HostMath::as_constant(const HostNumber& a) const {
  const std::optional<i64> num = syms_.as_const(a.num), den = syms_.as_const(a.den);
  if (!num || !den) return std::nullopt;
  return static_cast<double>(*num) / static_cast<double>(*den);
}

std::optional<HostNumber> HostMath::add(const HostNumber& a, const HostNumber& b) const {
  const bool is_float = a.is_float || b.is_float;
  if (a.den == b.den) return HostNumber{syms_.add(a.num, b.num), a.den, is_float};
  const std::optional<HostNumber> left = mul(a, {b.den, b.den, false});
  const std::optional<HostNumber> right = mul(b, {a.den, a.den, false});
  if (!left || !right) return std::nullopt;
  return HostNumber{syms_.add(left->num, right->num), left->den, is_float};
}

bool HostMath::is_short(const HostNumber& a) const {
  constexpr std::size_t kMaxTerms = 4096;
  return syms_.terms(a.num) + syms_.terms(a.den) <= kMaxTerms;
}

std::size_t HostMath::summands(sym::Expr e) const {
  return syms_.kind(e) == sym::Kind::Add ? syms_.operands(e).size() : 1;
}

std::optional<HostNumber> HostMath::mul(const HostNumber& a, const HostNumber& b) const {
  // Products of sums are multiplied out, and powers have powers: a hostile file could make them
  // enormous.
  constexpr std::size_t kMaxSummands = 1024;
  if (summands(a.num) * summands(b.num) > kMaxSummands ||
      summands(a.den) * summands(b.den) > kMaxSummands)
    return std::nullopt;
  if (!is_short(a) || !is_short(b)) return std::nullopt;
  return HostNumber{syms_.mul(a.num, b.num), syms_.mul(a.den, b.den), a.is_float || b.is_float};
}

std::optional<HostNumber> HostMath::truediv(const HostNumber& a, const HostNumber& b) const {
  if (std::optional<i64> by = syms_.as_const(b.num); by && *by < 0 && *by != INT64_MIN)
    return truediv(neg(a), neg(b));
  // Sizes may be 0, and then Python raises: the quotient has no value either way.
  if (syms_.range(b.num).lo < 0 || syms_.is_const(b.num, 0)) return std::nullopt;
  return HostNumber{syms_.mul(a.num, b.den), syms_.mul(a.den, b.num), true};
}

std::optional<HostNumber> HostMath::floordiv(const HostNumber& a, const HostNumber& b) const {
  const bool is_float = a.is_float || b.is_float;
  HostNumber out = integer(syms_.floordiv(syms_.mul(a.num, b.den), syms_.mul(a.den, b.num)));
  out.is_float = is_float;
  return out;
}

std::optional<HostNumber> HostMath::mod(const HostNumber& a, const HostNumber& b) const {
  if (!as_integer(a) || !as_integer(b)) return std::nullopt;
  HostNumber out = integer(syms_.mod(a.num, b.num));
  out.is_float = a.is_float || b.is_float;
  return out;
}

std::optional<HostNumber> HostMath::pow(const HostNumber& a, const HostNumber& b) const {
  const std::optional<sym::Expr> exponent = as_integer(b);
  const std::optional<i64> count = exponent ? syms_.as_const(*exponent) : std::nullopt;
  constexpr i64 kMaxPower = 16;
  if (!count || *count < 0 || *count > kMaxPower) return std::nullopt;
  HostNumber out = integer(1);
  for (i64 i = 0; i < *count; ++i) {
    const std::optional<HostNumber> next = mul(out, a);
    if (!next) return std::nullopt;
    out = *next;
  }
  out.is_float = a.is_float || b.is_float;
  return out;
}

std::optional<HostNumber> HostMath::min(const HostNumber& a, const HostNumber& b) const {
  if (a.den != b.den) return std::nullopt;
  return HostNumber{syms_.min(a.num, b.num), a.den, a.is_float || b.is_float};
}

std::optional<HostNumber> HostMath::max(const HostNumber& a, const HostNumber& b) const {
  if (a.den != b.den) return std::nullopt;
  return HostNumber{syms_.max(a.num, b.num), a.den, a.is_float || b.is_float};
}

HostNumber HostMath::neg(const HostNumber& a) const {
  return {syms_.neg(a.num), a.den, a.is_float};
}

HostNumber HostMath::trunc(const HostNumber& a) const {
  if (as_integer(a)) return integer(a.num);
  const sym::Expr down = syms_.floordiv(a.num, a.den);
  if (syms_.range(a.num).lo >= 0) return integer(down);
  const sym::Expr up = syms_.neg(syms_.floordiv(syms_.neg(a.num), a.den));
  return integer(syms_.select(syms_.le(syms_.constant(0), a.num), down, up));
}

HostNumber HostMath::floor(const HostNumber& a) const {
  return integer(syms_.floordiv(a.num, a.den));
}

HostNumber HostMath::ceil(const HostNumber& a) const {
  return integer(syms_.ceildiv(a.num, a.den));
}

HostNumber HostMath::to_float(HostNumber a) const {
  a.is_float = true;
  return a;
}

HostNumber HostMath::compare(std::string_view op, const HostNumber& a, const HostNumber& b) const {
  const sym::Expr left = a.den == b.den ? a.num : syms_.mul(a.num, b.den);
  const sym::Expr right = a.den == b.den ? b.num : syms_.mul(b.num, a.den);
  if (op == "==") return integer(syms_.eq(left, right));
  if (op == "!=") return integer(syms_.ne(left, right));
  if (op == "<") return integer(syms_.lt(left, right));
  if (op == "<=") return integer(syms_.le(left, right));
  if (op == ">") return integer(syms_.lt(right, left));
  COIL_CHECK(op == ">=", "comparison {}", op);
  return integer(syms_.le(right, left));
}

}  // namespace coil
