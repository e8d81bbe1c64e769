// frexp: x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1, from the bits of x.

#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// Where the parts of a float stand in its bits.
struct FloatFormat {
  DType bits;
  i64 mantissa_width, exponent_mask, half_exponent;  // the last: of numbers in 1/2..1
  double smallest_normal;
};
constexpr FloatFormat kF32 = {DType::i32, 23, 0xff, 126, 0x1p-126};
constexpr FloatFormat kF64 = {DType::i64, 52, 0x7ff, 1022, 0x1p-1022};
constexpr i64 kRaise = 60;  // subnormal numbers are multiplied by 2^60 first

}  // namespace

Status lower_frexp(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  const DType dtype = compute_dtype(l.dtype_of(in));
  const FloatFormat& f = dtype == DType::f64 ? kF64 : kF32;
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  const auto integer = [&](i64 value) { return b.integer(f.bits, value); };
  const Val x = b.cast(b.load(in, at), dtype), zero = b.constant(dtype, 0);
  const Val size = b.op(ScalarOp::abs, {x});
  const Val small = b.op(ScalarOp::lt, {size, b.constant(dtype, f.smallest_normal)});
  const Val raised = b.where(small, b.mul(x, b.constant(dtype, 0x1p60)), x);
  const Val bits = b.bitcast(raised, f.bits);
  const Val field =
      b.op(ScalarOp::bits_and,
           {b.op(ScalarOp::shr, {bits, integer(f.mantissa_width)}), integer(f.exponent_mask)});
  const Val bias = b.where(small, integer(f.half_exponent + kRaise), integer(f.half_exponent));
  const i64 field_mask = f.exponent_mask << f.mantissa_width;
  const Val rest = b.op(ScalarOp::bits_and, {bits, integer(~field_mask)});
  const Val half = integer(f.half_exponent << f.mantissa_width);
  const Val mantissa = b.bitcast(b.op(ScalarOp::bits_or, {rest, half}), dtype);
  // Zeros, infinities and NaN are their own mantissa.
  const Val finite = b.op(ScalarOp::lt, {b.sub(size, size), b.constant(dtype, 1)});
  const Val ordinary = b.op(ScalarOp::bits_and, {finite, b.op(ScalarOp::ne, {x, zero})});
  b.store(l.result(node.outs[0]), at, b.where(ordinary, mantissa, x));
  b.store(l.result(node.outs[1]), at, b.where(ordinary, b.sub(field, bias), integer(0)));
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
