// Products of matrices and vectors as mm, bmm, addmm and baddbmm.

#include <algorithm>
#include <set>

#include "graph/rules.h"
#include "passes/composite.h"

namespace coil {
namespace {

bool holds(Composite& c, const Arg& factor, double value) {
  if (const double* number = std::get_if<double>(&factor)) return *number == value;
  if (const sym::Expr* number = std::get_if<sym::Expr>(&factor))
    return c.syms.is_const(*number, static_cast<i64>(value));
  const bool* flag = std::get_if<bool>(&factor);
  return flag != nullptr && *flag == (value != 0);
}

/// alpha or beta as a number of the product's kind: for integers, without its fraction.
Arg factor_of(Composite& c, std::string_view name, DType dtype) {
  const Arg& given = c.arg(name);
  if (is_bool(dtype)) return !holds(c, given, 0);
  const double* number = std::get_if<double>(&given);
  if (number == nullptr || !is_int(dtype)) return given;
  return c.n(static_cast<i64>(*number));
}

/// Whether an alpha of 0 drops even operands that are not finite: so where eager calls BLAS.
bool drops_product(Composite& c, DType dtype) {
  if (is_narrow_float(dtype)) return false;
  return c.op() == "addmm" || c.op() == "addbmm" || (c.op() == "addmv" && !is_complex(dtype));
}

}  // namespace

ValueId scaled_sum(Composite& c, ValueId product) {
  const DType dtype = c.dtype(product);
  const Arg alpha = factor_of(c, "alpha", dtype), beta = factor_of(c, "beta", dtype);
  const bool drops = holds(c, alpha, 0) && drops_product(c, dtype);
  if (drops) product = c.filled(c.shape(product), 0, dtype);
  if (!drops && !holds(c, alpha, 1)) product = c.mul(product, alpha);
  if (holds(c, beta, 0)) return product;
  ValueId self = c.tensor("self");
  if (!holds(c, beta, 1)) self = c.mul(self, beta);
  return drops ? c.contiguous(c.expand(self, c.shape(product))) : c.add(self, product);
}

namespace {

/// Whether matmul multiplies `larger` as one matrix of all its rows. As in eager, a copy of it is
/// not worth that, but where `smaller` is a weight the export's gradient mode folds anyway.
bool folds(Composite& c, ValueId larger, ValueId smaller, bool larger_is_first) {
  if (c.ndim(larger) < 3 || c.ndim(smaller) > 2) return false;
  if (!larger_is_first && c.ndim(smaller) == 2) return false;
  const Type type = c.type(larger);
  for (std::size_t i = 0; i + 2 < type.ndim(); ++i)
    if (!c.same(type.strides[i], c.syms.mul(type.strides[i + 1], type.shape[i + 1]))) return false;
  return true;
}

/// larger (.., k) times a matrix (k, n) or vector (k).
ValueId folded_product(Composite& c, ValueId larger, ValueId smaller) {
  Exprs shape = c.shape(larger);
  const sym::Expr k = shape.back();
  shape.pop_back();
  const ValueId rows = c.reshape(larger, {c.product(shape, 0, shape.size()), k});
  if (c.ndim(smaller) == 1) {
    const ValueId column = c.call("mm", {rows, c.unsqueeze(smaller, 1)});
    return c.view(c.squeeze(column, {1}), shape);
  }
  shape.push_back(c.size(smaller, 1));
  return c.view(c.call("mm", {rows, smaller}), shape);
}

/// `v` with its batch dims expanded to `batch` and merged.
ValueId batched(Composite& c, ValueId v, const Exprs& batch, sym::Expr merged, sym::Expr rows,
                sym::Expr columns) {
  Exprs shape = batch;
  shape.insert(shape.end(), {rows, columns});
  return c.reshape(c.expand(v, shape), {merged, rows, columns});
}

/// Both operands as stacks of matrices.
ValueId batched_product(Composite& c, ValueId a, ValueId b) {
  const Exprs a_shape = c.shape(a), b_shape = c.shape(b);
  const bool row = a_shape.size() == 1, column = b_shape.size() == 1;
  const sym::Expr one = c.n(1);
  const sym::Expr rows = row ? one : a_shape[a_shape.size() - 2];
  const sym::Expr inner = column ? b_shape[0] : b_shape[b_shape.size() - 2];
  const sym::Expr columns = column ? one : b_shape.back();
  const Exprs a_batch(a_shape.begin(), a_shape.end() - (row ? 1 : 2));
  const Exprs b_batch(b_shape.begin(), b_shape.end() - (column ? 1 : 2));
  Result<std::vector<sym::Expr>> batch = broadcast(c.builder.graph(), a_batch, b_batch);
  if (!batch.ok()) throw BuildError{batch.error()};
  const sym::Expr merged = c.product(*batch, 0, batch->size());
  if (row) a = c.unsqueeze(a, 0);
  if (column) b = c.unsqueeze(b, 1);
  const ValueId left = batched(c, a, *batch, merged, rows, a_shape.back());
  const ValueId right = batched(c, b, *batch, merged, inner, columns);
  ValueId out = c.call("bmm", {left, right});
  Exprs shape = *batch;
  if (!row) shape.push_back(rows);
  if (!column) shape.push_back(columns);
  return c.view(out, shape);
}

ValueId mv(Composite& c, ValueId matrix, ValueId vector) {
  return c.squeeze(c.call("mm", {matrix, c.unsqueeze(vector, 1)}), {1});
}

ValueId dot(Composite& c, ValueId a, ValueId b) {
  return c.view(c.call("mm", {c.unsqueeze(a, 0), c.unsqueeze(b, 1)}), {});
}

Values linear_row(Composite& c) {
  return {linear(c, c.tensor("input"), c.tensor("weight"), c.tensor("bias"))};
}
Values matmul_row(Composite& c) { return {matmul(c, c.self(), c.tensor("other"))}; }
Values mv_row(Composite& c) { return {mv(c, c.self(), c.tensor("vec"))}; }
Values dot_row(Composite& c) {
  const bool conjugates = c.op() == "vdot" && is_complex(c.dtype(c.self()));
  const ValueId first = conjugates ? c.call("conj_physical", {c.self()}) : c.self();
  return {dot(c, first, c.tensor(c.op() == "vdot" ? "other" : "tensor"))};
}
Values addmv_row(Composite& c) { return {scaled_sum(c, mv(c, c.tensor("mat"), c.tensor("vec")))}; }

Values outer_row(Composite& c) {
  const ValueId other = c.tensor("vec2");
  return {c.mul(c.unsqueeze(c.self(), 1), other)};
}

Values addr_row(Composite& c) {
  const ValueId a = c.tensor("vec1"), b = c.tensor("vec2");
  const DType dtype = promote(c.dtype(c.self()), promote(c.dtype(a), c.dtype(b)));
  return {scaled_sum(c, c.mul(c.unsqueeze(c.to(a, dtype), 1), c.to(b, dtype)))};
}

/// The sum in the operand's own dtype: those of integers wrap.
ValueId own_sum(Composite& c, ValueId v, const Dims& dims) {
  return c.to(c.sum(v, dims, KeepDim::No), c.dtype(v));
}

Values addbmm_row(Composite& c) {
  const ValueId product = c.call("bmm", {c.tensor("batch1"), c.tensor("batch2")});
  return {scaled_sum(c, own_sum(c, product, {0}))};
}

/// All dims but the last as one; there may be no element to tell their size from.
ValueId merged_rows(Composite& c, ValueId v) {
  const Exprs shape = c.shape(v);
  return c.reshape(v, {c.product(shape, 0, shape.size() - 1), shape.back()});
}

Values inner_row(Composite& c) {
  const ValueId a = c.self(), b = c.tensor("other");
  if (c.ndim(a) == 0 || c.ndim(b) == 0) return {c.mul(a, b)};
  Exprs shape = c.shape(a);
  shape.pop_back();
  const Exprs b_shape = c.shape(b);
  shape.insert(shape.end(), b_shape.begin(), b_shape.end() - 1);
  const ValueId left = merged_rows(c, a), right = merged_rows(c, b);
  return {c.view(c.call("mm", {left, c.transpose(right, 0, 1)}), shape)};
}

/// `v` with its dim `d` summed to one element, beside an operand that has one there.
ValueId summed_to_one(Composite& c, ValueId v, i64 d) {
  return c.to(c.sum(v, {d}, KeepDim::Yes), c.dtype(v));
}

Values tensordot_row(Composite& c) {
  ValueId a = c.self(), b = c.tensor("other");
  Dims a_sum, b_sum;
  for (i64 d : c.all_fixed("dims_self")) a_sum.push_back(c.wrap(d, c.ndim(a)));
  for (i64 d : c.all_fixed("dims_other")) b_sum.push_back(c.wrap(d, c.ndim(b)));
  if (a_sum.size() != b_sum.size()) c.fail("dims of both operands must be as many");
  for (std::size_t i = 0; i < a_sum.size(); ++i) {
    const bool a_is_one = c.is(c.size(a, a_sum[i]), 1), b_is_one = c.is(c.size(b, b_sum[i]), 1);
    if (a_is_one && !b_is_one) b = summed_to_one(c, b, b_sum[i]);
    if (b_is_one && !a_is_one) a = summed_to_one(c, a, a_sum[i]);
  }
  Dims a_order, b_order = b_sum;
  Exprs shape, inner;
  for (i64 d = 0; d < c.ndim(a); ++d) {
    if (std::ranges::find(a_sum, d) != a_sum.end()) continue;
    a_order.push_back(d);
    shape.push_back(c.size(a, d));
  }
  const sym::Expr rows = c.product(shape, 0, shape.size());
  for (i64 d : a_sum) {
    a_order.push_back(d);
    inner.push_back(c.size(a, d));
  }
  const std::size_t first_of_b = shape.size();
  for (i64 d = 0; d < c.ndim(b); ++d) {
    if (std::ranges::find(b_sum, d) != b_sum.end()) continue;
    b_order.push_back(d);
    shape.push_back(c.size(b, d));
  }
  const sym::Expr k = c.product(inner, 0, inner.size());
  const sym::Expr columns = c.product(shape, first_of_b, shape.size());
  const ValueId left = c.reshape(c.permute(a, a_order), {rows, k});
  const ValueId right = c.reshape(c.permute(b, b_order), {k, columns});
  return {c.view(c.call("mm", {left, right}), shape)};
}

Values kron_row(Composite& c) {
  ValueId a = c.self(), b = c.tensor("other");
  const i64 dims = std::max(c.ndim(a), c.ndim(b));
  Exprs a_shape, b_shape, shape;
  for (i64 d = 0; d < dims; ++d) {
    const i64 at_a = d - (dims - c.ndim(a)), at_b = d - (dims - c.ndim(b));
    const sym::Expr a_size = at_a < 0 ? c.n(1) : c.size(a, at_a);
    const sym::Expr b_size = at_b < 0 ? c.n(1) : c.size(b, at_b);
    a_shape.insert(a_shape.end(), {a_size, c.n(1)});
    b_shape.insert(b_shape.end(), {c.n(1), b_size});
    shape.push_back(c.syms.mul(a_size, b_size));
  }
  return {c.reshape(c.mul(c.reshape(a, a_shape), c.reshape(b, b_shape)), shape)};
}

Values multi_dot_row(Composite& c) {
  Values factors = c.tensors("tensors");
  ValueId product = factors.at(0);
  for (std::size_t i = 1; i < factors.size(); ++i) product = matmul(c, product, factors[i]);
  return {product};
}

Values bilinear_row(Composite& c) {
  const ValueId a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight");
  Exprs shape = c.shape(a);
  const ValueId left = c.reshape(a, {c.n(-1), c.size(a, -1)});
  shape.back() = c.size(weight, 0);
  const ValueId right = c.reshape(b, {c.n(-1), c.size(b, -1)});
  // (rows, 1, 1, in1) x (out, in1, in2), then the sum over in2 of that times input2.
  const ValueId half = matmul(c, c.unsqueeze(c.unsqueeze(left, 1), 1), weight);
  const ValueId product = c.mul(c.squeeze(half, {2}), c.unsqueeze(right, 1));
  ValueId out = c.reshape(own_sum(c, product, {2}), shape);
  if (c.has("bias")) out = c.add(out, c.tensor("bias"));
  return {out};
}

/// The places of dims of size 1 that an operand of `_trilinear` gets, of the result's dims.
std::set<i64> new_dims(Composite& c, std::string_view name, ValueId i) {
  const Dims places = c.all_fixed(name);
  std::set<i64> rising;
  for (i64 d : places)
    if (!rising.insert(c.wrap(d, c.ndim(i) + static_cast<i64>(places.size()))).second)
      c.fail("dim {} appears more than once in {}", d, name);
  return rising;
}
ValueId with_dims(Composite& c, ValueId i, const std::set<i64>& places) {
  for (i64 d : places) i = c.unsqueeze(i, d);
  return i;
}

/// The sum over some dims of the product of three tensors. That of `bilinear` is one of matrices.
Values trilinear_row(Composite& c) {
  const ValueId a = c.tensor("i1"), weight = c.tensor("i2"), b = c.tensor("i3");
  using Places = std::set<i64>;
  const Places dims[] = {new_dims(c, "expand1", a), new_dims(c, "expand2", weight),
                         new_dims(c, "expand3", b)};
  const Dims over = c.all_fixed("sumdim");
  if (dims[0] == Places{1, 3} && dims[1] == Places{0} && dims[2] == Places{1, 2} &&
      over == Dims{2, 3})
    return {c.call("bilinear", {a, b, weight, None{}})};
  for (i64 d : dims[0])
    if (dims[1].contains(d) && dims[2].contains(d)) c.fail("no operand has the dim {}", d);
  const ValueId product = c.mul(c.mul(with_dims(c, a, dims[0]), with_dims(c, weight, dims[1])),
                                with_dims(c, b, dims[2]));
  return {over.empty() ? product : own_sum(c, product, over)};
}

constexpr DecompositionRow kRows[] = {
    {"_trilinear", trilinear_row},
    {"linear", linear_row},
    {"matmul", matmul_row},
    {"linalg_matmul", matmul_row},
    {"mv", mv_row},
    {"dot", dot_row},
    {"vdot", dot_row},
    {"linalg_multi_dot", multi_dot_row},
    {"addmv", addmv_row},
    {"outer", outer_row},
    {"ger", outer_row},
    {"addr", addr_row},
    {"addbmm", addbmm_row},
    {"inner", inner_row},
    {"tensordot", tensordot_row},
    {"kron", kron_row},
    {"bilinear", bilinear_row},
};

}  // namespace

ValueId matmul(Composite& c, ValueId a, ValueId b) {
  const i64 a_dims = c.ndim(a), b_dims = c.ndim(b);
  if (a_dims == 0 || b_dims == 0) c.fail("both operands must have at least 1 dim");
  if (a_dims == 1 && b_dims == 1) return dot(c, a, b);
  if (a_dims == 2 && b_dims == 1) return mv(c, a, b);
  if (a_dims == 1 && b_dims == 2) return c.squeeze(c.call("mm", {c.unsqueeze(a, 0), b}), {0});
  if (a_dims == 2 && b_dims == 2) return c.call("mm", {a, b});
  if (a_dims >= b_dims && folds(c, a, b, true)) return folded_product(c, a, b);
  if (a_dims == 1) {
    const ValueId turned = c.transpose(b, -1, -2);
    if (folds(c, turned, a, false)) return folded_product(c, turned, a);
  }
  return batched_product(c, a, b);
}

ValueId linear(Composite& c, ValueId input, ValueId weight, ValueId bias) {
  const bool is_matrix = c.ndim(weight) == 2;
  const ValueId turned = is_matrix ? c.permute(weight, {1, 0}) : weight;
  if (is_matrix && c.ndim(input) == 2 && bias.valid())
    return c.call("addmm", {bias, input, turned});
  if (is_matrix && c.ndim(input) > 2 && bias.valid() && c.is_contiguous(input)) {
    Exprs shape = c.shape(input);
    const ValueId rows = c.reshape(input, {c.product(shape, 0, shape.size() - 1), shape.back()});
    shape.back() = c.size(weight, 0);
    return c.view(c.call("addmm", {bias, rows, turned}), shape);
  }
  // The weight requires a gradient in an export, and so eager folds the batch dims of any input.
  const bool folds_rows = is_matrix && c.ndim(input) > 2;
  const ValueId out = folds_rows ? folded_product(c, input, turned) : matmul(c, input, turned);
  return bias.valid() ? c.add(out, bias) : out;
}

std::span<const DecompositionRow> matrix_decompositions() { return kRows; }

}  // namespace coil
