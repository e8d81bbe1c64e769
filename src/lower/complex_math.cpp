// Inverse functions and square roots follow Kahan, "Branch cuts for complex elementary functions"
// (1987), without its care for overflow. What is not finite is as annex G of the C standard says.

#include "lower/complex_math.h"

#include <limits>
#include <numbers>

namespace coil::lowering {

using ops::ScalarOp;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kQuarterTurn = std::numbers::pi / 2;
}  // namespace

Parts ComplexMath::mul(Parts x, Parts y) {
  return {b_.sub(b_.mul(x.re, y.re), b_.mul(x.im, y.im)),
          b_.add(b_.mul(x.re, y.im), b_.mul(x.im, y.re))};
}

/// Smith, "Algorithm 116: complex division" (1962): scaled by the larger part of the divisor. By 0
/// each part is divided by 0.
Parts ComplexMath::div(Parts x, Parts y) {
  const Val by_re = b_.op(ScalarOp::ge, {op(ScalarOp::abs, y.re), op(ScalarOp::abs, y.im)});
  const Val large = b_.where(by_re, y.re, y.im), small = b_.where(by_re, y.im, y.re);
  const Val ratio = b_.div(small, large);
  const Val divisor = b_.add(large, b_.mul(small, ratio));
  const Val re =
      b_.where(by_re, b_.add(x.re, b_.mul(x.im, ratio)), b_.add(b_.mul(x.re, ratio), x.im));
  const Val im =
      b_.where(by_re, b_.sub(x.im, b_.mul(x.re, ratio)), b_.sub(b_.mul(x.im, ratio), x.re));
  const Val zero = op(ScalarOp::abs, large);
  const Val by_zero = both(is_zero(y.re), is_zero(y.im));
  return {b_.where(by_zero, b_.div(x.re, zero), b_.div(re, divisor)),
          b_.where(by_zero, b_.div(x.im, zero), b_.div(im, divisor))};
}

Val ComplexMath::abs(Parts x) { return b_.op(ScalarOp::hypot, {x.re, x.im}); }
Val ComplexMath::angle(Parts x) { return b_.op(ScalarOp::atan2, {x.im, x.re}); }

Parts ComplexMath::sign(Parts x) {
  const Val size = abs(x), zero = number(0);
  const Val is_zero = b_.op(ScalarOp::eq, {size, zero});
  return {b_.where(is_zero, zero, b_.div(x.re, size)), b_.where(is_zero, zero, b_.div(x.im, size))};
}

/// Whether a number is infinite or NaN.
Val ComplexMath::is_odd(Val x) { return op(ScalarOp::isnan, b_.sub(x, x)); }
Val ComplexMath::is_infinite(Parts x) {
  return b_.op(ScalarOp::bits_or, {op(ScalarOp::isinf, x.re), op(ScalarOp::isinf, x.im)});
}
Val ComplexMath::both(Val a, Val b) { return b_.op(ScalarOp::bits_and, {a, b}); }
Val ComplexMath::is_zero(Val x) { return b_.op(ScalarOp::eq, {x, number(0)}); }
Val ComplexMath::signed_as(double size, Val x) {
  return b_.op(ScalarOp::copysign, {number(size), x});
}
Parts ComplexMath::where(Val condition, Parts yes, Parts no) {
  return {b_.where(condition, yes.re, no.re), b_.where(condition, yes.im, no.im)};
}

/// An infinite size has a part that is not finite where the angle is not; at an angle of 0 the
/// imaginary part is 0.
Parts ComplexMath::exp(Parts x) {
  const Val size = op(ScalarOp::exp, x.re);
  const Val lost = both(op(ScalarOp::isinf, x.re), is_odd(x.im));
  const Val gone = both(lost, is_zero(size));
  const Val im = b_.where(gone, number(0), b_.mul(size, op(ScalarOp::sin, x.im)));
  return {b_.where(lost, size, b_.mul(size, op(ScalarOp::cos, x.im))),
          b_.where(is_zero(x.im), x.im, im)};
}

/// exp(x) - 1 as expm1(re) cos(im) - 2 sin(im / 2)^2, which cancels nothing near 0.
Parts ComplexMath::expm1(Parts x) {
  const Val half = op(ScalarOp::sin, b_.mul(x.im, number(0.5)));
  const Val re = b_.sub(b_.mul(op(ScalarOp::expm1, x.re), op(ScalarOp::cos, x.im)),
                        b_.mul(number(2), b_.mul(half, half)));
  return {re, b_.mul(op(ScalarOp::exp, x.re), op(ScalarOp::sin, x.im))};
}

Parts ComplexMath::log(Parts x) { return {op(ScalarOp::log, abs(x)), angle(x)}; }

/// Near 0 half the log1p of |1 + x|^2 - 1; elsewhere the logarithm of 1 + x, which that square may
/// be too large for.
Parts ComplexMath::log1p(Parts x) {
  const Parts sum = one_plus(x);
  const Val square = b_.add(b_.mul(x.re, b_.add(number(2), x.re)), b_.mul(x.im, x.im));
  const Val near = b_.mul(number(0.5), op(ScalarOp::log1p, square));
  const Val is_near = b_.op(ScalarOp::lt, {abs(x), number(0.5)});
  return {b_.where(is_near, near, op(ScalarOp::log, abs(sum))), angle(sum)};
}

Parts ComplexMath::sqrt(Parts x) {
  const Val size = op(ScalarOp::abs, x.re), zero = number(0);
  const Val large = op(ScalarOp::sqrt, b_.mul(number(0.5), b_.add(size, abs(x))));
  const Val other = b_.div(x.im, b_.mul(number(2), large));
  const Val small = b_.where(b_.op(ScalarOp::eq, {large, zero}), x.im, other);
  const Val left = b_.op(ScalarOp::lt, {x.re, zero});
  const Parts root{b_.where(left, op(ScalarOp::abs, small), large),
                   b_.where(left, b_.op(ScalarOp::copysign, {large, x.im}), small)};
  const Val far = op(ScalarOp::isinf, x.im);
  return where(far, {op(ScalarOp::abs, x.im), x.im}, root);
}

/// exp(y log x); 0 to a power with a positive real part is 0.
Parts ComplexMath::pow(Parts x, Parts y) {
  const Parts power = exp(mul(y, log(x)));
  const Val zero = number(0);
  const Val is_zero = b_.op(
      ScalarOp::bits_and, {b_.op(ScalarOp::eq, {abs(x), zero}), b_.op(ScalarOp::gt, {y.re, zero})});
  return {b_.where(is_zero, zero, power.re), b_.where(is_zero, zero, power.im)};
}

Parts ComplexMath::sinh(Parts x) {
  const Val odd = is_odd(x.im);
  const Val re = b_.mul(op(ScalarOp::sinh, x.re), op(ScalarOp::cos, x.im));
  const Val im = b_.mul(op(ScalarOp::cosh, x.re), op(ScalarOp::sin, x.im));
  const Val is_far = op(ScalarOp::isinf, x.re);
  const Val keeps = b_.op(ScalarOp::bits_or, {is_zero(x.re), is_far});
  const Val kept = b_.where(is_far, op(ScalarOp::abs, x.re), x.re);
  return {b_.where(both(odd, keeps), kept, re), b_.where(is_zero(x.im), x.im, im)};
}
Parts ComplexMath::cosh(Parts x) {
  const Val lost = both(is_odd(x.im), op(ScalarOp::isinf, x.re));
  const Val re = b_.mul(op(ScalarOp::cosh, x.re), op(ScalarOp::cos, x.im));
  const Val im = b_.mul(op(ScalarOp::sinh, x.re), op(ScalarOp::sin, x.im));
  const Val on_axis = b_.op(ScalarOp::bits_or, {is_zero(x.re), is_zero(x.im)});
  const Val nothing = b_.mul(signed_as(0, x.re), signed_as(1, x.im));
  return {b_.where(lost, op(ScalarOp::abs, x.re), re),
          b_.where(both(on_axis, op(ScalarOp::isnan, im)), nothing, im)};
}

/// With t = tan(im), s = sinh(re), c = cosh(re): (s c (1 + t^2) + i t) / (1 + (1 + t^2) s^2), and
/// where s^2 would be too large for that, +-1 + 4 i sin(im) cos(im) exp(-2 |re|).
Parts ComplexMath::tanh(Parts x) {
  const Val one = number(1);
  const Val t = op(ScalarOp::tan, x.im);
  const Val s = op(ScalarOp::sinh, x.re), c = op(ScalarOp::cosh, x.re);
  const Val beta = b_.add(one, b_.mul(t, t));
  const Val divisor = b_.add(one, b_.mul(beta, b_.mul(s, s)));
  const Val size = op(ScalarOp::abs, x.re), odd = is_odd(x.im);
  const Parts near{
      b_.where(both(is_zero(x.re), odd), x.re, b_.div(b_.mul(beta, b_.mul(s, c)), divisor)),
      b_.where(is_zero(x.im), x.im, b_.div(t, divisor))};
  const Val turn = b_.mul(op(ScalarOp::sin, x.im), op(ScalarOp::cos, x.im));
  const Val rest = b_.mul(b_.mul(number(4), turn), op(ScalarOp::exp, b_.mul(number(-2), size)));
  const Val lost = both(odd, op(ScalarOp::isinf, x.re));
  const Val is_far = both(b_.op(ScalarOp::gt, {size, number(22)}), is_zero(b_.sub(x.im, x.im)));
  const Parts far{signed_as(1, x.re), b_.where(lost, signed_as(0, x.im), rest)};
  return where(b_.op(ScalarOp::bits_or, {is_far, lost}), far, near);
}

Parts ComplexMath::asin(Parts x) {
  const Parts low = sqrt(one_minus(x)), high = sqrt(one_plus(x));
  const Parts near{b_.op(ScalarOp::atan2, {x.re, mul(low, high).re}),
                   op(ScalarOp::asinh, mul(conj(low), high).im)};
  const Parts far{b_.op(ScalarOp::atan2, {x.re, op(ScalarOp::abs, x.im)}),
                  signed_as(kInfinity, x.im)};
  const Parts out = where(is_infinite(x), far, near);
  return {b_.where(is_zero(x.re), x.re, out.re), out.im};
}
Parts ComplexMath::acos(Parts x) {
  const Parts low = sqrt(one_minus(x)), high = sqrt(one_plus(x));
  const Parts near{b_.mul(number(2), b_.op(ScalarOp::atan2, {low.re, high.re})),
                   op(ScalarOp::asinh, mul(conj(high), low).im)};
  const Parts far{b_.op(ScalarOp::atan2, {op(ScalarOp::abs, x.im), x.re}),
                  signed_as(kInfinity, b_.neg(x.im))};
  const Parts out = where(is_infinite(x), far, near);
  return {b_.where(is_zero(x.re), number(kQuarterTurn), out.re), out.im};
}
Parts ComplexMath::acosh(Parts x) {
  const Parts low = sqrt(sub(x, {number(1), number(0)})), high = sqrt(one_plus(x));
  const Parts near{op(ScalarOp::asinh, mul(conj(low), high).re),
                   b_.mul(number(2), b_.op(ScalarOp::atan2, {low.im, high.re}))};
  const Parts far{number(kInfinity), angle(x)};
  const Parts out = where(is_infinite(x), far, near);
  return {out.re, b_.where(is_zero(x.re), signed_as(kQuarterTurn, x.im), out.im)};
}
/// The real part is odd in re: with |re| the logarithm's argument is at least 1 and cancels
/// nothing.
Parts ComplexMath::atanh(Parts x) {
  const Val size = op(ScalarOp::abs, x.re);
  const Val minus = b_.sub(number(1), size), plus = b_.add(number(1), size);
  const Val distance = b_.op(ScalarOp::hypot, {minus, x.im});
  const Val ratio = b_.div(b_.div(b_.mul(number(4), size), distance), distance);
  const Val re = b_.mul(number(0.25), op(ScalarOp::log1p, ratio));
  const Val is_flat = b_.op(ScalarOp::bits_or, {is_zero(x.re), is_infinite(x)});
  const Val along = b_.sub(b_.mul(minus, plus), b_.mul(x.im, x.im));
  const Val im = b_.mul(number(0.5), b_.op(ScalarOp::atan2, {b_.mul(number(2), x.im), along}));
  const Val turned = both(is_infinite(x), b_.op(ScalarOp::eq, {x.im, x.im}));
  return {b_.op(ScalarOp::copysign, {b_.where(is_flat, number(0), re), x.re}),
          b_.where(turned, signed_as(kQuarterTurn, x.im), im)};
}

std::optional<Parts> ComplexMath::unary(std::string_view name, Parts x) {
  static constexpr Unary kFunctions[] = {
      {"neg", &ComplexMath::neg},     {"conj", &ComplexMath::conj},
      {"sign", &ComplexMath::sign},   {"exp", &ComplexMath::exp},
      {"exp2", &ComplexMath::exp2},   {"expm1", &ComplexMath::expm1},
      {"log", &ComplexMath::log},     {"log2", &ComplexMath::log2},
      {"log10", &ComplexMath::log10}, {"log1p", &ComplexMath::log1p},
      {"sqrt", &ComplexMath::sqrt},   {"rsqrt", &ComplexMath::rsqrt},
      {"sin", &ComplexMath::sin},     {"cos", &ComplexMath::cos},
      {"tan", &ComplexMath::tan},     {"sinh", &ComplexMath::sinh},
      {"cosh", &ComplexMath::cosh},   {"tanh", &ComplexMath::tanh},
      {"asin", &ComplexMath::asin},   {"acos", &ComplexMath::acos},
      {"atan", &ComplexMath::atan},   {"asinh", &ComplexMath::asinh},
      {"acosh", &ComplexMath::acosh}, {"atanh", &ComplexMath::atanh},
  };
  for (const Unary& row : kFunctions)
    if (row.name == name) return (this->*row.function)(x);
  return std::nullopt;
}

std::optional<Parts> ComplexMath::binary(std::string_view name, Parts x, Parts y) {
  if (name == "+") return add(x, y);
  if (name == "-") return sub(x, y);
  if (name == "*") return mul(x, y);
  if (name == "/") return div(x, y);
  if (name == "pow") return pow(x, y);
  return std::nullopt;
}

}  // namespace coil::lowering
