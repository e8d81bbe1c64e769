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
/// Contiguous, whatever the strides of what is added.
Values added_product(Composite& c, const std::string& op, ValueId a, ValueId b) {
  return {c.contiguous(scaled_sum(c, matrix_product(c, op, a, b)))};
}
Values addmm(Composite& c) { return added_product(c, "mm", c.tensor("mat1"), c.tensor("mat2")); }
Values baddbmm(Composite& c) {
  return added_product(c, "bmm", c.tensor("batch1"), c.tensor("batch2"));
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

/// The sum of both parts, which lie in a last dim that is not reduced. A mean divides it by a
/// complex number, which leaves no part of an infinity finite.
Values reduced_parts(Composite& c) {
  const ValueId v = converted(c);
  const bool has_dims = c.op() != c.base();
  Dims dims;
  for (i64 d = 0; d < c.ndim(v) && !has_dims; ++d) dims.push_back(d);
  if (has_dims) dims = c.dims("dim", v);
  const KeepDim keep = has_dims ? c.keep() : KeepDim::No;
  const bool is_mean = c.base() == "mean";
  if (!is_complex(c.dtype(v)))
    return {c.to(is_mean ? c.mean(v, dims, keep) : c.sum(v, dims, keep), c.dtype(v))};
  const bool is_scalar = c.ndim(v) == 0;  // its parts are no dim of it
  const ValueId sum =
      is_scalar ? c.call("clone", {v})
                : c.call("view_as_complex", {c.sum(c.call("view_as_real", {v}), dims, keep)});
  if (!is_mean) return {sum};
  sym::Expr count = c.n(1);
  for (i64 d : dims) count = is_scalar ? count : c.syms.mul(count, c.size(v, d));
  return {c.div(sum, count)};
}

Values cumsum(Composite& c) {
  const ValueId v = converted(c);
  const Arg dim = c.n(c.dim("dim", v));
  if (c.ndim(v) == 0) return {c.call("clone", {v})};
  if (!is_complex(c.dtype(v))) return {c.to(c.call("cumsum", {v, dim, None{}}), c.dtype(v))};
  const ValueId out = c.call("cumsum", {c.call("view_as_real", {v}), dim, None{}});
  return {c.call("view_as_complex", {out})};
}

/// Lowering takes these in complex numbers; those of a real dtype are converted first.
Values in_real_numbers(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = converted(c);
  return {c.call(c.op(), args)};
}

Values norm(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = c.call("abs", {converted(c)});
  args[4] = None{};
  return {c.call("linalg_vector_norm", args)};
}

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
    {"prod", in_real_numbers},
    {"prod.dim_int", in_real_numbers},
    {"cumprod", in_real_numbers},
    {"linalg_vector_norm", norm},
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
  bool has_complex = false, has_real_dtype = false;
  each_value(node.args, [&](ValueId v) {
    if (v.valid() && graph.type(v).is_tensor() && is_complex(graph.type(v).dtype))
      has_complex = true;
  });
  for (const Arg& arg : node.args) {
    const DType* dtype = std::get_if<DType>(&arg);
    has_complex |= std::holds_alternative<Complex>(arg) || (dtype && is_complex(*dtype));
    has_real_dtype |= dtype && !is_complex(*dtype);
  }
  if (!has_complex) return nullptr;
  for (std::span<const DecompositionRow> rows :
       {std::span<const DecompositionRow>(kRows), complex_part_decompositions()})
    for (const DecompositionRow& row : rows)
      if (row.op == node.op && (row.rewrite != in_real_numbers || has_real_dtype))
        return row.rewrite;
  return nullptr;
}

}  // namespace coil
