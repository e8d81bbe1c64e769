#pragma once
// Arithmetic and elementary functions of complex numbers, as instructions on their two parts.

#include <optional>
#include <string_view>

#include "lower/body_builder.h"

namespace coil::lowering {

struct Parts {
  Val re, im;
};

/// All values are of the dtype `real`.
class ComplexMath {
 public:
  ComplexMath(BodyBuilder& b, DType real) : b_(b), real_(real) {}

  Val number(double x) { return b_.constant(real_, x); }

  Parts add(Parts x, Parts y) { return {b_.add(x.re, y.re), b_.add(x.im, y.im)}; }
  Parts sub(Parts x, Parts y) { return {b_.sub(x.re, y.re), b_.sub(x.im, y.im)}; }
  Parts mul(Parts x, Parts y);
  Parts div(Parts x, Parts y);
  Parts neg(Parts x) { return {b_.neg(x.re), b_.neg(x.im)}; }
  Parts conj(Parts x) { return {x.re, b_.neg(x.im)}; }
  Val abs(Parts x);
  Val angle(Parts x);

  /// The function or operator that formulas call by this name (lower/formula.h), with a complex
  /// result; nothing where there is none of complex numbers.
  std::optional<Parts> unary(std::string_view name, Parts x);
  std::optional<Parts> binary(std::string_view name, Parts x, Parts y);

 private:
  struct Unary {
    std::string_view name;
    Parts (ComplexMath::*function)(Parts);
  };

  Val op(ops::ScalarOp which, Val x) { return b_.op(which, {x}); }
  Parts scaled(Parts x, double by) {
    const Val factor = number(by);
    return {b_.mul(x.re, factor), b_.mul(x.im, factor)};
  }
  /// i x and -i x.
  Parts turned(Parts x) { return {b_.neg(x.im), x.re}; }
  Parts turned_back(Parts x) { return {x.im, b_.neg(x.re)}; }
  /// 1 + x and 1 - x.
  Parts one_plus(Parts x) { return {b_.add(number(1), x.re), x.im}; }
  Parts one_minus(Parts x) { return {b_.sub(number(1), x.re), b_.neg(x.im)}; }

  Val is_odd(Val x);
  Val is_infinite(Parts x);
  Val is_zero(Val x);
  Val both(Val a, Val b);
  /// A number with the sign of x.
  Val signed_as(double size, Val x);
  Parts where(Val condition, Parts yes, Parts no);

  Parts reciprocal(Parts x) { return div({number(1), number(0)}, x); }
  Parts sign(Parts x);
  Parts exp(Parts x);
  Parts exp2(Parts x) { return exp(scaled(x, 0.69314718055994531)); }
  Parts expm1(Parts x);
  Parts log(Parts x);
  Parts log2(Parts x) { return scaled(log(x), 1.4426950408889634); }
  Parts log10(Parts x) { return scaled(log(x), 0.43429448190325183); }
  Parts log1p(Parts x);
  Parts sqrt(Parts x);
  Parts rsqrt(Parts x) { return reciprocal(sqrt(x)); }
  Parts pow(Parts x, Parts y);
  Parts sin(Parts x) { return turned_back(sinh(turned(x))); }
  Parts cos(Parts x) { return cosh(turned(x)); }
  Parts tan(Parts x) { return turned_back(tanh(turned(x))); }
  Parts sinh(Parts x);
  Parts cosh(Parts x);
  Parts tanh(Parts x);
  Parts asin(Parts x);
  Parts acos(Parts x);
  Parts atan(Parts x) { return turned_back(atanh(turned(x))); }
  Parts asinh(Parts x) { return turned_back(asin(turned(x))); }
  Parts acosh(Parts x);
  Parts atanh(Parts x);

  BodyBuilder& b_;
  DType real_;
};

}  // namespace coil::lowering
