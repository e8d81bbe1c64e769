#include "ops/complex_combine.h"

#include <limits>

#include "ops/combine_builder.h"

namespace coil::ops {

Combine complex_prod(DType part) {
  using enum ScalarOp;
  CombineBuilder b("", {part, part});
  const auto product = [&](u32 left, u32 right) {
    return b.add(mul, part, {b.left(left), b.right(right)});
  };
  const u32 squares = product(0, 0), minus = product(1, 1);
  const u32 outer = product(0, 1), inner = product(1, 0);
  const u32 real = b.add(sub, part, {squares, minus});
  const u32 imaginary = b.add(add, part, {outer, inner});
  return b.finish({Scalar::of_float(part, 1), Scalar::of_float(part, 0)}, {real, imaginary});
}

Combine complex_sum_of_exp(DType part) {
  using enum ScalarOp;
  CombineBuilder b("", {part, part, part});
  const u32 top = b.add(max, part, {b.left(0), b.right(0)});
  const u32 infinite = b.test(isinf, {top});
  const u32 zero = b.constant(Scalar::of_float(part, 0));
  const u32 origin = b.add(where, part, {infinite, zero, top});
  const auto factor = [&](u32 of) { return b.add(exp, part, {b.add(sub, part, {of, origin})}); };
  const u32 left = factor(b.left(0)), right = factor(b.right(0));
  const auto sum = [&](u32 value) {
    const u32 mine = b.add(mul, part, {b.left(value), left});
    return b.add(add, part, {mine, b.add(mul, part, {b.right(value), right})});
  };
  const u32 real = sum(1), imaginary = sum(2);
  const Scalar none = Scalar::of_float(part, 0);
  return b.finish({Scalar::of_float(part, -std::numeric_limits<double>::infinity()), none, none},
                  {top, real, imaginary});
}

namespace {

struct Parts {
  u32 re, im;
};

/// Arithmetic of one dtype in a region.
class Writer {
 public:
  explicit Writer(DType part) : b_("", {part, part}), part_(part) {}

  Parts left() const { return {b_.left(0), b_.left(1)}; }
  Parts right() const { return {b_.right(0), b_.right(1)}; }
  u32 op(ScalarOp op, std::vector<u32> operands) { return b_.add(op, part_, std::move(operands)); }
  u32 test(ScalarOp op, u32 x, u32 y) { return b_.test(op, {x, y}); }
  u32 number(double x) { return b_.constant(Scalar::of_float(part_, x)); }
  Parts where(u32 condition, Parts x, Parts y) {
    return {op(ScalarOp::where, {condition, x.re, y.re}),
            op(ScalarOp::where, {condition, x.im, y.im})};
  }
  Parts add(Parts x, Parts y) {
    return {op(ScalarOp::add, {x.re, y.re}), op(ScalarOp::add, {x.im, y.im})};
  }
  Parts sub(Parts x, Parts y) {
    return {op(ScalarOp::sub, {x.re, y.re}), op(ScalarOp::sub, {x.im, y.im})};
  }
  /// size (cos angle + i sin angle)
  Parts polar(u32 size, u32 angle) {
    return {op(ScalarOp::mul, {size, op(ScalarOp::cos, {angle})}),
            op(ScalarOp::mul, {size, op(ScalarOp::sin, {angle})})};
  }
  Parts logarithm(Parts z) {
    const u32 size = op(ScalarOp::hypot, {z.re, z.im});
    return {op(ScalarOp::log, {size}), op(ScalarOp::atan2, {z.im, z.re})};
  }
  /// As lower/complex_math has it.
  Parts log1p(Parts z) {
    using enum ScalarOp;
    const u32 half = number(0.5);
    const u32 twice = op(ScalarOp::add, {number(2), z.re});
    const u32 square = op(ScalarOp::add, {op(mul, {z.re, twice}), op(mul, {z.im, z.im})});
    const u32 near = op(mul, {half, op(ScalarOp::log1p, {square})});
    const Parts far = logarithm({op(ScalarOp::add, {number(1), z.re}), z.im});
    const u32 is_near = test(lt, op(hypot, {z.re, z.im}), half);
    return {op(ScalarOp::where, {is_near, near, far.re}), far.im};
  }
  Combine finish(std::vector<Scalar> identity, Parts result) {
    return b_.finish(std::move(identity), {result.re, result.im});
  }

 private:
  CombineBuilder b_;
  DType part_;
};

}  // namespace

Combine complex_log_add_exp(DType part) {
  using enum ScalarOp;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Writer w(part);
  const Parts x = w.left(), y = w.right();
  const u32 falls = w.test(lt, y.re, x.re);
  const Parts high = w.where(falls, x, y), low = w.where(falls, y, x);
  const Parts distance = w.sub(low, high);
  const Parts ratio = w.polar(w.op(exp, {distance.re}), distance.im);
  Parts sum = w.add(w.log1p(ratio), high);
  // Both infinite: exp(inf + iy) is inf (cos y + i sin y).
  const u32 inf = w.number(kInf), none = w.number(-kInf);
  const Parts huge = w.logarithm(w.add(w.polar(x.re, x.im), w.polar(y.re, y.im)));
  sum = w.where(w.test(eq, low.re, inf), huge, sum);
  // exp(-inf + iy) is 0, whatever y.
  sum = w.where(w.test(eq, low.re, none), high, sum);
  sum = w.where(w.test(eq, high.re, none), x, sum);
  u32 is_nan = w.test(ne, x.re, x.re);
  for (u32 part_value : {x.im, y.re, y.im})
    is_nan = w.test(bits_or, is_nan, w.test(ne, part_value, part_value));
  const u32 nan = w.number(std::numeric_limits<double>::quiet_NaN());
  sum = w.where(is_nan, {nan, nan}, sum);
  return w.finish({Scalar::of_float(part, -kInf), Scalar::of_float(part, 0)}, sum);
}

}  // namespace coil::ops
