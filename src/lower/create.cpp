// Tensors from nothing.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/pointwise.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// A body that stores `make(b, at)` at every element of the result.
template <class Make>
Status fill(Lowering& l, Make make) {
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  b.store(out, at, make(b, at));
  b.finish();
  return Ok{};
}

/// Whether a Scalar argument is an int (or an expression of ints).
bool is_integral(const Arg& arg) {
  return std::holds_alternative<Expr>(arg) || std::holds_alternative<bool>(arg);
}

Val real_or_imaginary(BodyBuilder& b, const Complex& z, Expr part, DType dtype) {
  const Val is_real = b.test(b.syms().eq(part, b.syms().constant(0)));
  return b.where(is_real, b.constant(dtype, z.re), b.constant(dtype, z.im));
}

}  // namespace

Status lower_full(Lowering& l, const Node& node, const Args& args) {
  const DType result = l.type(node.outs[0]).dtype;
  const Arg value = args[args.schema().arg_index("fill_value") >= 0 ? "fill_value" : "s"];
  return fill(l, [&](BodyBuilder& b, const Exprs& at) {
    if (is_complex(result)) {
      Complex z;
      if (const auto* c = std::get_if<Complex>(&value))
        z = *c;
      else
        z.re = args.number(args.schema().arg_index("fill_value") >= 0 ? "fill_value" : "s");
      return real_or_imaginary(b, z, at.back(), real_of(result));
    }
    if (const auto* x = std::get_if<double>(&value); x && is_int(result))
      return b.integer(result, static_cast<i64>(*x));
    if (const auto* x = std::get_if<double>(&value); x && is_bool(result))
      return b.integer(result, *x != 0);
    if (const auto* e = std::get_if<Expr>(&value); e && is_bool(result))
      if (const auto fixed = l.syms.as_const(*e)) return b.integer(result, *fixed != 0);
    return scalar_value(b, value, compute_dtype(result));
  });
}

/// What eager leaves undefined is zero.
Status lower_empty(Lowering& l, const Node&, const Args&) {
  l.fill(l.result(), 0, l.name());
  return Ok{};
}

/// start + i * step: in integers for integer results, whose arguments lose their fractions, and for
/// integer arguments; else in f64, as eager.
Status lower_arange(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const DType result = l.type(node.outs[0]).dtype;
  const Arg one = syms.constant(1), zero = syms.constant(0);
  const Arg& start = args.has("start") ? args["start"] : zero;
  const Arg& step = args.has("step") ? args["step"] : one;
  return fill(l, [&](BodyBuilder& b, const Exprs& at) {
    const auto as_expr = [&](const Arg& arg) {
      const auto* flag = std::get_if<bool>(&arg);
      const auto* number = std::get_if<double>(&arg);
      if (flag || number) return syms.constant(flag ? *flag : static_cast<i64>(*number));
      return std::get<Expr>(arg);
    };
    if (is_int(result) || (is_integral(start) && is_integral(step))) {
      return b.value(syms.add(as_expr(start), syms.mul(at[0], as_expr(step))),
                     compute_dtype(result));
    }
    const Val position = b.value(at[0], DType::f64);
    const Val moved = b.mul(scalar_value(b, step, DType::f64), position);
    return b.cast(b.add(scalar_value(b, start, DType::f64), moved), compute_dtype(result));
  });
}

/// An end of a range of integers as a double: what their dtype holds of it, so without its
/// fraction, and of u8 what is left of a number below 0.
Val end_of_range(BodyBuilder& b, const Arg& arg, DType result) {
  const Val end = scalar_value(b, arg, is_integral(arg) ? result : DType::f64);
  return b.cast(b.cast(end, result), DType::f64);
}

/// Counted from the nearer end, as eager, so that both ends are exact. Integers are what
/// is left of an f64 without its fraction, and that is rounded once.
Status lower_linspace(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const DType result = compute_dtype(l.type(node.outs[0]).dtype);
  const DType dtype = is_float(result) ? result : DType::f64;
  const Expr steps = args.size("steps");
  return fill(l, [&](BodyBuilder& b, const Exprs& at) {
    const bool whole = is_int(result);
    const Val start =
        whole ? end_of_range(b, args["start"], result) : scalar_value(b, args["start"], dtype);
    const Val end =
        whole ? end_of_range(b, args["end"], result) : scalar_value(b, args["end"], dtype);
    if (syms.is_const(steps, 1)) return b.cast(start, result);
    const Expr last = syms.sub(steps, syms.constant(1));
    const Val step = b.div(b.sub(end, start), b.value(last, dtype));
    const auto moved = [&](Val from, Val by, Val count) {
      return whole ? b.op(ScalarOp::fma, {by, count, from}) : b.add(from, b.mul(by, count));
    };
    const Val back = b.op(ScalarOp::neg, {step});
    const Val from_start = moved(start, step, b.value(at[0], dtype));
    const Val from_end = moved(end, back, b.value(syms.sub(last, at[0]), dtype));
    const Val first_half = b.test(syms.lt(at[0], syms.floordiv(steps, syms.constant(2))));
    return b.cast(b.where(first_half, from_start, from_end), result);
  });
}

/// One 64-bit draw an element.
Status lower_random_bits(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access key = l.access(args.tensor("random_key"));
  const Expr stream = args.size("stream");
  return fill(l, [&](BodyBuilder& b, const Exprs& at) {
    Expr position = syms.constant(0);
    for (Expr var : at) position = syms.add(syms.mul(position, syms.var(var).extent), var);
    const Expr zero[] = {syms.constant(0)}, one[] = {syms.constant(1)};
    const Val seed = b.load(key, zero);
    const Val start = b.load(key, one);
    return b.op(ScalarOp::philox, {seed, b.add(start, b.value(stream)), b.value(position)});
  });
}

Status lower_eye(Lowering& l, const Node& node, const Args&) {
  const DType dtype = l.type(node.outs[0]).dtype;
  return fill(l, [&](BodyBuilder& b, const Exprs& at) {
    return b.cast(b.test(l.syms.eq(at[0], at[1])), compute_dtype(dtype));
  });
}

}  // namespace coil::lowering
