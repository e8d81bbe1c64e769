// Complex tensors: real buffers with a trailing dim of 2, so each op stores two parts.

#include <cmath>

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/pointwise.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

struct Parts {
  Val re, im;
};

class ComplexBody {
 public:
  ComplexBody(Lowering& l, const std::string& name, DType real, const Exprs& shape)
      : l_(l), b(l, name), real_(real), at_(b.dims(shape)) {}

  Val number(double x) { return b.constant(real_, x); }

  /// A complex or real tensor, or a scalar argument.
  Parts operand(const Arg& arg) {
    if (const auto* z = std::get_if<Complex>(&arg)) return {number(z->re), number(z->im)};
    const auto* v = std::get_if<ValueId>(&arg);
    if (!v || !l_.has(*v)) return {scalar_value(b, arg, real_), number(0)};
    const Access& tensor = l_.access(*v);
    Exprs shape;
    for (Expr var : at_) shape.push_back(l_.syms.var(var).extent);
    if (!is_complex(l_.type(*v).dtype))
      return {b.cast(b.load(broadcast_to(l_.syms, tensor, shape), at_), real_), number(0)};
    shape.push_back(l_.syms.constant(2));
    const Access both = broadcast_to(l_.syms, tensor, shape);
    return {part(both, 0), part(both, 1)};
  }
  void store(BufferId out, Parts z) {
    b.store(out, at_part(0), z.re);
    b.store(out, at_part(1), z.im);
  }
  void store_real(BufferId out, Val v) { b.store(out, at_, v); }

  Parts add(Parts x, Parts y) { return {b.add(x.re, y.re), b.add(x.im, y.im)}; }
  Parts sub(Parts x, Parts y) { return {b.sub(x.re, y.re), b.sub(x.im, y.im)}; }
  Parts mul(Parts x, Parts y) {
    return {b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im)),
            b.add(b.mul(x.re, y.im), b.mul(x.im, y.re))};
  }
  /// Smith, "Algorithm 116: complex division" (1962): scaled by the larger part of the divisor.
  Parts div(Parts x, Parts y) {
    const Val re_size = b.op(ScalarOp::abs, {y.re}), im_size = b.op(ScalarOp::abs, {y.im});
    const Val by_re = b.op(ScalarOp::ge, {re_size, im_size});
    const Val large = b.where(by_re, y.re, y.im), small = b.where(by_re, y.im, y.re);
    const Val ratio = b.div(small, large);
    const Val divisor = b.add(large, b.mul(small, ratio));
    const Val re = b.where(by_re, b.add(x.re, b.mul(x.im, ratio)), b.add(b.mul(x.re, ratio), x.im));
    const Val im = b.where(by_re, b.sub(x.im, b.mul(x.re, ratio)), b.sub(b.mul(x.im, ratio), x.re));
    return {b.div(re, divisor), b.div(im, divisor)};
  }
  Parts exp(Parts x) {
    const Val size = b.op(ScalarOp::exp, {x.re});
    return {b.mul(size, b.op(ScalarOp::cos, {x.im})), b.mul(size, b.op(ScalarOp::sin, {x.im}))};
  }

 private:
  Exprs at_part(i64 which) const {
    Exprs at = at_;
    at.push_back(l_.syms.constant(which));
    return at;
  }
  Val part(const Access& both, i64 which) { return b.cast(b.load(both, at_part(which)), real_); }

  Lowering& l_;

 public:
  BodyBuilder b;

 private:
  DType real_;
  Exprs at_;
};

bool is_one(const sym::Arena& syms, const Arg& arg) {
  if (const auto* e = std::get_if<Expr>(&arg)) return syms.is_const(*e, 1);
  if (const auto* x = std::get_if<double>(&arg)) return *x == 1;
  return std::holds_alternative<None>(arg);
}

/// A complex result of the op, or nothing where coil has no formula for it.
std::optional<Parts> complex_result(ComplexBody& c, const Lowering& l, const std::string& op,
                                    const Args& args) {
  const auto self = [&] { return c.operand(args["self"]); };
  const auto other = [&] { return c.operand(args["other"]); };
  const auto scaled = [&](Parts z) {
    return is_one(l.syms, args["alpha"]) ? z : c.mul(c.operand(args["alpha"]), z);
  };
  const std::string name(base_name(op));
  if (name == "add") return c.add(self(), scaled(other()));
  if (name == "sub") return c.sub(self(), scaled(other()));
  if (name == "rsub") return c.sub(other(), scaled(self()));
  if (name == "mul") return c.mul(self(), other());
  if (op == "div.Tensor" || op == "div.Scalar") return c.div(self(), other());
  if (name == "reciprocal") return c.div({c.number(1), c.number(0)}, self());
  if (name == "square") {
    const Parts x = self();
    return c.mul(x, x);
  }
  if (name == "exp") return c.exp(self());
  if (name == "neg") return Parts{c.b.neg(self().re), c.b.neg(self().im)};
  if (name == "conj_physical" || name == "_conj") return Parts{self().re, c.b.neg(self().im)};
  if (name == "clone" || name == "_to_copy" || name == "resolve_conj" || name == "positive")
    return self();
  if (name == "copy") return c.operand(args["src"]);
  if (op == "where.self") {
    const Val mask = c.b.cast(c.operand(args["condition"]).re, DType::b8);
    const Parts x = self(), y = other();
    return Parts{c.b.where(mask, x.re, y.re), c.b.where(mask, x.im, y.im)};
  }
  return std::nullopt;
}

/// A real or bool result of a complex operand.
Val real_result(ComplexBody& c, const std::string& op, const Args& args) {
  const Parts x = c.operand(args["self"]);
  if (op == "abs") return c.b.op(ScalarOp::hypot, {x.re, x.im});
  if (op == "angle") return c.b.op(ScalarOp::atan2, {x.im, x.re});
  const std::string name(base_name(op));
  if (name == "eq" || name == "ne") {
    const Parts y = c.operand(args["other"]);
    const ScalarOp test = name == "eq" ? ScalarOp::eq : ScalarOp::ne;
    const ScalarOp join = name == "eq" ? ScalarOp::bits_and : ScalarOp::bits_or;
    return c.b.op(join, {c.b.op(test, {x.re, y.re}), c.b.op(test, {x.im, y.im})});
  }
  return {};
}

DType widest_real(const Lowering& l, const Node& node) {
  DType real = DType::f32;
  const auto widen = [&](ValueId v) {
    const DType d = l.type(v).dtype;
    const DType part = is_complex(d) ? real_of(d) : d;
    if (part == DType::f64) real = DType::f64;
  };
  widen(node.outs[0]);
  for (const Arg& arg : node.args)
    if (const auto* v = std::get_if<ValueId>(&arg); v && v->valid() && l.has(*v)) widen(*v);
  return real;
}

}  // namespace

Status lower_complex(Lowering& l, const Node& node, const Args& args) {
  const Type type = l.type(node.outs[0]);
  ComplexBody c(l, l.name(), widest_real(l, node), type.shape);
  if (is_complex(type.dtype)) {
    const auto z = complex_result(c, l, node.op, args);
    if (!z) return l.unsupported_case("complex operands");
    c.store(l.result(), *z);
  } else {
    const Val v = real_result(c, node.op, args);
    if (!v.valid()) return l.unsupported_case("complex operands");
    c.store_real(l.result(), v);
  }
  c.b.finish();
  return Ok{};
}

Status lower_complex_make(Lowering& l, const Node& node, const Args& args) {
  const Type type = l.type(node.outs[0]);
  ComplexBody c(l, l.name(), compute_dtype(real_of(type.dtype)), type.shape);
  c.store(l.result(), {c.operand(args["real"]).re, c.operand(args["imag"]).re});
  c.b.finish();
  return Ok{};
}

Status lower_polar(Lowering& l, const Node& node, const Args& args) {
  const Type type = l.type(node.outs[0]);
  ComplexBody c(l, l.name(), compute_dtype(real_of(type.dtype)), type.shape);
  const Val size = c.operand(args["abs"]).re, angle = c.operand(args["angle"]).re;
  c.store(l.result(), {c.b.mul(size, c.b.op(ScalarOp::cos, {angle})),
                       c.b.mul(size, c.b.op(ScalarOp::sin, {angle}))});
  c.b.finish();
  return Ok{};
}

}  // namespace coil::lowering
