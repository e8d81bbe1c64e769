// Core ops of complex tensors in terms of ops of real ones. Elementwise ops are not here: their
// formulas (ops/pointwise.def) hold for complex numbers too.

#include "graph/args.h"
#include "passes/composite.h"

namespace coil {
namespace {

ValueId re(Composite& c, ValueId v) { return c.call("real", {v}); }
ValueId im(Composite& c, ValueId v) { return c.call("imag", {v}); }
ValueId pair(Composite& c, ValueId re, ValueId im) { return c.call("complex", {re, im}); }

/// A bilinear op of real tensors as that of complex ones.
template <class F>
ValueId bilinear(Composite& c, ValueId a, ValueId b, F product) {
  const ValueId ar = re(c, a), ai = im(c, a), br = re(c, b), bi = im(c, b);
  return pair(c, c.sub(product(ar, br), product(ai, bi)), c.add(product(ar, bi), product(ai, br)));
}

ValueId matrix_product(Composite& c, const std::string& op, ValueId a, ValueId b) {
  return bilinear(c, a, b, [&](ValueId x, ValueId y) { return c.call(op, {x, y}); });
}
Values product(Composite& c) { return {matrix_product(c, c.op(), c.self(), c.tensor("mat2"))}; }
Values addmm(Composite& c) {
  return {scaled_sum(c, matrix_product(c, "mm", c.tensor("mat1"), c.tensor("mat2")))};
}
Values baddbmm(Composite& c) {
  return {scaled_sum(c, matrix_product(c, "bmm", c.tensor("batch1"), c.tensor("batch2")))};
}

Values convolution(Composite& c) {
  const std::vector<Arg> args = c.args();
  const auto conv = [&](ValueId x, ValueId w) {
    std::vector<Arg> inner = args;
    inner[0] = x;
    inner[1] = w;
    inner[2] = None{};
    return c.call("convolution", inner);
  };
  const ValueId weight = c.tensor("weight");
  ValueId out = bilinear(c, c.self(), weight, conv);
  if (!c.has("bias")) return {out};
  Exprs shape(static_cast<std::size_t>(c.ndim(weight)), c.n(1));
  shape[1] = c.size(c.tensor("bias"), 0);
  return {c.add(out, c.reshape(c.tensor("bias"), shape))};
}

/// The operand in the dtype that a reduction was asked for.
ValueId converted(Composite& c) {
  return c.has("dtype") ? c.to(c.self(), c.dtype_or("dtype", c.dtype(c.self()))) : c.self();
}

/// sum and mean: of both parts, which lie in a last dim that is not reduced.
Values reduced_parts(Composite& c) {
  const ValueId v = converted(c);
  const bool has_dims = c.op() != c.base();
  Dims dims;
  for (i64 d = 0; d < c.ndim(v) && !has_dims; ++d) dims.push_back(d);
  if (has_dims) dims = c.dims("dim", v);
  const KeepDim keep = has_dims ? c.keep() : KeepDim::No;
  const auto reduced = [&](ValueId of) {
    return c.base() == "sum" ? c.sum(of, dims, keep) : c.mean(of, dims, keep);
  };
  if (dims.empty()) return {c.call("clone", {v})};
  if (!is_complex(c.dtype(v))) return {reduced(v)};
  return {c.call("view_as_complex", {reduced(c.call("view_as_real", {v}))})};
}

Values cumsum(Composite& c) {
  const ValueId v = converted(c);
  const Arg dim = c.n(c.dim("dim", v));
  if (!is_complex(c.dtype(v)) || c.ndim(v) == 0) return {c.call("cumsum", {v, dim, None{}})};
  const ValueId out = c.call("cumsum", {c.call("view_as_real", {v}), dim, None{}});
  return {c.call("view_as_complex", {out})};
}

Values norm(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = c.call("abs", {converted(c)});
  args[4] = None{};
  return {c.call("linalg_vector_norm", args)};
}

Values constant_pad(Composite& c) {
  const Complex* value = std::get_if<Complex>(&c.arg("value"));
  const auto padded = [&](ValueId part, Arg fill) {
    return c.call("constant_pad_nd", {part, c.arg("pad"), std::move(fill)});
  };
  const Arg real = value ? Arg(value->re) : c.arg("value");
  const Arg imaginary = value ? value->im : 0.0;
  const ValueId first = padded(re(c, c.self()), real);
  return {pair(c, first, padded(im(c, c.self()), imaginary))};
}

/// Elements picked along a dim: their parts lie in a last dim that is not indexed.
Values index_select(Composite& c) {
  const ValueId parts = c.call("view_as_real", {c.self()});
  const sym::Expr dim = c.n(c.dim("dim", c.self()));
  if (c.ndim(c.self()) == 0) return {c.call("clone", {c.self()})};
  return {c.call("view_as_complex", {c.call("index_select", {parts, dim, c.tensor("index")})})};
}

enum class Part : u8 { Real, Imaginary };

/// The op's arguments with one part of each complex tensor and number.
std::vector<Arg> part_of_arguments(Composite& c, Part part) {
  std::vector<Arg> args = c.args();
  for (Arg& a : args) {
    const ValueId* v = std::get_if<ValueId>(&a);
    if (v != nullptr && v->valid() && is_complex(c.dtype(*v)))
      a = part == Part::Real ? re(c, *v) : im(c, *v);
  }
  return args;
}

/// Ops that move elements, or add them up: each part goes the same way.
Values by_parts(Composite& c) {
  const ValueId real = c.call(c.op(), part_of_arguments(c, Part::Real));
  return {pair(c, real, c.call(c.op(), part_of_arguments(c, Part::Imaginary)))};
}

/// The same with a number to write, the last argument.
Values by_parts_of_value(Composite& c) {
  std::vector<Arg> real = part_of_arguments(c, Part::Real);
  std::vector<Arg> imaginary = part_of_arguments(c, Part::Imaginary);
  const Complex* value = std::get_if<Complex>(&c.arg("value"));
  if (value != nullptr) real.back() = Arg(value->re);
  imaginary.back() = value != nullptr ? value->im : 0.0;
  return {pair(c, c.call(c.op(), real), c.call(c.op(), imaginary))};
}

/// Where an element is not 0.
Values nonzero(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = c.ne(c.self(), c.n(0));
  return {c.call(c.op(), args)};
}

Values refused(Composite& c) { c.fail("complex tensors are not supported"); }

/// any and all: of whether an element is not 0.
Values truth(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = c.ne(c.self(), c.n(0));
  return {c.call(c.op(), args)};
}

/// The variance of a complex number is the sum of those of its parts.
Values variance(Composite& c) {
  const auto of = [&](ValueId part) {
    std::vector<Arg> args = c.args();
    args[0] = part;
    return c.call("var.correction", args);
  };
  ValueId out = c.add(of(re(c, c.self())), of(im(c, c.self())));
  if (c.base().starts_with("std")) out = c.call("sqrt", {out});
  if (c.base().find("mean") == std::string_view::npos) return {out};
  return {out, c.mean(c.self(), c.dims("dim", c.self()), c.keep())};
}

constexpr DecompositionRow kRows[] = {
    {"mm", product},
    {"bmm", product},
    {"addmm", addmm},
    {"baddbmm", baddbmm},
    {"convolution", convolution},
    {"sum", reduced_parts},
    {"sum.dim_IntList", reduced_parts},
    {"mean", reduced_parts},
    {"mean.dim", reduced_parts},
    {"cumsum", cumsum},
    {"linalg_vector_norm", norm},
    {"constant_pad_nd", constant_pad},
    {"index_select", index_select},
    {"gather", by_parts},
    {"embedding", by_parts},
    {"scatter.src", by_parts},
    {"scatter.value", by_parts_of_value},
    {"scatter.reduce", refused},
    {"scatter.value_reduce", refused},
    {"scatter_reduce.two", refused},
    {"scatter_add", by_parts},
    {"index_add", by_parts},
    {"index_copy", by_parts},
    {"index_fill.int_Scalar", by_parts_of_value},
    {"index_fill.int_Tensor", by_parts},
    {"nonzero", nonzero},
    {"nonzero_static", nonzero},
    {"reflection_pad1d", by_parts},
    {"reflection_pad2d", by_parts},
    {"reflection_pad3d", by_parts},
    {"replication_pad1d", by_parts},
    {"replication_pad2d", by_parts},
    {"replication_pad3d", by_parts},
    {"any", truth},
    {"any.dim", truth},
    {"any.dims", truth},
    {"all", truth},
    {"all.dim", truth},
    {"all.dims", truth},
    {"var.correction", variance},
    {"std.correction", variance},
    {"var_mean.correction", variance},
    {"std_mean.correction", variance},
};

}  // namespace

Decomposition find_complex_decomposition(const Graph& graph, const Node& node) {
  bool has_complex = false;
  each_value(node.args, [&](ValueId v) {
    if (v.valid() && graph.type(v).is_tensor() && is_complex(graph.type(v).dtype))
      has_complex = true;
  });
  if (!has_complex) return nullptr;
  for (const DecompositionRow& row : kRows)
    if (row.op == node.op) return row.rewrite;
  return nullptr;
}

}  // namespace coil
