// Reductions in terms of sum, var.correction, linalg_vector_norm, sort, ...

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/composite.h"

namespace coil {
namespace {

/// var, std, var_mean and std_mean with `unbiased` as their forms with a correction.
Values with_correction(Composite& c) {
  const Arg dim = c.op().ends_with(".dim") ? c.arg("dim") : Arg(None{});
  const bool keeps = c.op().ends_with(".dim") && c.flag("keepdim");
  const sym::Expr correction = c.n(c.flag("unbiased") ? 1 : 0);
  return c.call_all(std::string(c.base()) + ".correction", {c.self(), dim, correction, keeps});
}

Values norm(Composite& c) {
  const Arg order = c.has("p") ? c.arg("p") : Arg(c.n(2));
  const bool has_dim = c.op().find("_dim") != std::string::npos;
  const bool has_dtype = c.op().ends_with("_dtype");
  Arg dim = None{};
  if (has_dim && !c.integers("dim").empty()) dim = c.arg("dim");
  return {c.call("linalg_vector_norm", {c.self(), order, dim, has_dim && c.flag("keepdim"),
                                        has_dtype ? c.arg("dtype") : Arg(None{})})};
}

Values frobenius_norm(Composite& c) {
  return {c.call("linalg_vector_norm", {c.self(), c.n(2), c.arg("dim"), c.flag("keepdim")})};
}

/// The largest ("amax") or smallest number along a dim; where there is none, the largest is 0.
ValueId extreme(Composite& c, std::string_view op, ValueId v, i64 dim, KeepDim keep) {
  if (op == "amax" && c.is(c.size(v, dim), 0)) return c.sum(v, {dim}, keep);
  return c.call(std::string(op), {v, c.as_exprs({dim}), keep == KeepDim::Yes});
}

/// Norms over singular values: their sum (nuc), the largest (2) or the smallest (-2).
ValueId spectral_norm(Composite& c, std::string_view op, i64 rows, i64 columns, bool keeps,
                      ValueId v) {
  Dims order;
  for (i64 d = 0; d < c.ndim(v); ++d)
    if (d != rows && d != columns) order.push_back(d);
  order.insert(order.end(), {rows, columns});
  const ValueId matrix = c.permute(v, order);
  const ValueId values = c.call_all("_linalg_svd", {matrix, false, false})[1];
  const i64 last = c.ndim(values) - 1;
  ValueId out =
      op == "sum" ? c.sum(values, {last}, KeepDim::No) : extreme(c, op, values, last, KeepDim::No);
  for (i64 d : {std::min(rows, columns), std::max(rows, columns)})
    if (keeps) out = c.unsqueeze(out, d);
  return out;
}

ValueId matrix_norm(Composite& c, const Arg& order, i64 rows, i64 columns, bool keeps, ValueId v) {
  if (const std::string* name = std::get_if<std::string>(&order)) {
    if (*name == "nuc") return spectral_norm(c, "sum", rows, columns, keeps, v);
    if (*name != "fro") c.fail("the {} norm of matrices is not supported", *name);
    return c.call("linalg_vector_norm", {v, c.n(2), c.as_exprs({rows, columns}), keeps});
  }
  const double p = c.real("ord");
  if (std::abs(p) == 2) return spectral_norm(c, p > 0 ? "amax" : "amin", rows, columns, keeps, v);
  const bool over_columns = std::isinf(p);
  if (!over_columns && std::abs(p) != 1)
    c.fail("the norm of order {} of matrices is not supported", p);
  const i64 summed = over_columns ? columns : rows;
  i64 chosen = over_columns ? rows : columns;
  const KeepDim keep = keeps ? KeepDim::Yes : KeepDim::No;
  const ValueId sums = c.sum(c.call("abs", {v}), {summed}, keep);
  if (!keeps && chosen > summed) --chosen;
  return extreme(c, p > 0 ? "amax" : "amin", sums, chosen, keep);
}

Values linalg_matrix_norm(Composite& c) {
  const Dims dims = c.dims("dim", c.self());
  if (dims.size() != 2) c.fail("a matrix norm needs two dims");
  const ValueId v = c.to(c.self(), c.dtype_or("dtype", c.dtype(c.self())));
  const Arg order = c.op() == "linalg_matrix_norm.str_ord" ? Arg(c.word("ord")) : c.arg("ord");
  return {matrix_norm(c, order, dims[0], dims[1], c.flag("keepdim"), v)};
}

Values linalg_norm(Composite& c) {
  const ValueId v = c.to(c.self(), c.dtype_or("dtype", c.dtype(c.self())));
  const bool keeps = c.flag("keepdim");
  const std::size_t count = c.has("dim") ? c.integers("dim").size() : 0;
  const bool is_matrix = c.has("ord") && (count == 2 || (count == 0 && c.ndim(v) == 2));
  if (is_matrix) {
    const Dims dims = c.dims("dim", v);
    return {matrix_norm(c, c.arg("ord"), dims[0], dims[1], keeps, v)};
  }
  const Arg order = c.has("ord") ? c.arg("ord") : Arg(c.n(2));
  if (std::holds_alternative<std::string>(order)) c.fail("this norm needs two dims");
  return {c.call("linalg_vector_norm", {v, order, c.arg("dim"), keeps})};
}

Values count_nonzero(Composite& c) {
  const ValueId nonzero =
      is_bool(c.dtype(c.self())) ? c.self() : c.ne(c.self(), c.scalar(0, c.dtype(c.self())));
  if (!c.has("dim")) return {c.sum(nonzero)};
  return {c.sum(nonzero, c.dims("dim", c.self()), KeepDim::No)};
}

ValueId zero_for_nan(Composite& c, ValueId v) {
  if (!is_float(c.dtype(v))) return v;
  return c.call("masked_fill.Scalar", {v, c.call("isnan", {v}), 0.0});
}

Values nansum(Composite& c) {
  return {c.call("sum.dim_IntList",
                 {zero_for_nan(c, c.self()), c.arg("dim"), c.flag("keepdim"), c.arg("dtype")})};
}

Values nanmean(Composite& c) {
  const ValueId total = c.call("sum.dim_IntList", {zero_for_nan(c, c.self()), c.arg("dim"),
                                                   c.flag("keepdim"), c.arg("dtype")});
  const ValueId numbers = c.call("logical_not", {c.call("isnan", {c.self()})});
  return {c.div(total, c.call("sum.dim_IntList", {numbers, c.arg("dim"), c.flag("keepdim")}))};
}

Values aminmax(Composite& c) {
  const Exprs dims = c.has("dim") ? c.as_exprs({c.dim("dim", c.self())}) : Exprs();
  const bool keeps = c.flag("keepdim");
  return {c.call("amin", {c.self(), dims, keeps}), c.call("amax", {c.self(), dims, keeps})};
}

Values argsort(Composite& c) {
  const bool stable = c.op() == "argsort.stable" && c.flag("stable");
  if (!stable) return {c.call_all("sort", {c.self(), c.arg("dim"), c.arg("descending")}).at(1)};
  return {c.call_all("sort.stable", {c.self(), true, c.arg("dim"), c.arg("descending")}).at(1)};
}

Values logsumexp(Composite& c) {
  return {c.call("logsumexp", {c.self(), c.arg("dim"), c.flag("keepdim")})};
}

Values trace(Composite& c) { return {c.sum(c.call("diagonal", {c.self()}))}; }

Values dist(Composite& c) {
  return {c.call("linalg_vector_norm", {c.sub(c.self(), c.tensor("other")), c.arg("p")})};
}

struct Ordered {
  ValueId values, indices;
};

Ordered sorted(Composite& c, ValueId v, i64 dim) {
  const Values out = c.call_all("sort.stable", {v, true, c.n(dim), false});
  return {out[0], out[1]};
}

/// Value and index at `position` of the sorted order (one position for each row).
Values at_position(Composite& c, const Ordered& order, ValueId position, i64 dim, KeepDim keep) {
  Values out = {c.call("gather", {order.values, c.n(dim), position}),
                c.call("gather", {order.indices, c.n(dim), position})};
  if (keep == KeepDim::No)
    for (ValueId& v : out) v = c.squeeze(v, {dim});
  return out;
}

Values kthvalue(Composite& c) {
  if (c.ndim(c.self()) == 0) return {c.self(), c.filled({}, 0, DType::i64)};
  const i64 dim = c.dim("dim", c.self());
  const Ordered order = sorted(c, c.self(), dim);
  const sym::Expr index = c.syms.sub(c.integer("k"), c.n(1));
  Values out;
  for (ValueId v : {order.values, order.indices})
    out.push_back(c.keep() == KeepDim::Yes ? c.slice(v, dim, index, c.syms.add(index, c.n(1)))
                                           : c.select(v, dim, index));
  for (ValueId& v : out) v = c.call("clone", {v, MemoryFormat::Contiguous});
  return out;
}

/// Where the lower median of each row is among its sorted elements. NaNs sort behind all numbers:
/// median takes the first NaN of a row that has one, nanmedian the median of the numbers.
ValueId median_position(Composite& c, ValueId v, i64 dim) {
  const bool skips_nan = c.base() == "nanmedian";
  const sym::Expr size = c.size(v, dim);
  const ValueId present = is_float(c.dtype(v)) ? c.call("logical_not", {c.call("isnan", {v})})
                                               : c.call("full_like", {v, true, DType::b8});
  const ValueId numbers = c.sum(present, {dim}, KeepDim::Yes);
  if (skips_nan) {
    const ValueId behind = c.call("clamp_min", {c.sub(numbers, c.n(1)), c.n(0)});
    return c.call("div.Scalar_mode", {behind, c.n(2), std::string("floor")});
  }
  const sym::Expr middle = c.syms.floordiv(c.syms.sub(size, c.n(1)), c.n(2));
  const ValueId complete = c.call("eq.Scalar", {numbers, size});
  return c.call("where.ScalarSelf", {complete, middle, numbers});
}

/// Of nothing it is NaN, in integers what a NaN becomes: that value lies behind the sorted elements
/// where there may be none.
Values median(Composite& c) {
  const sym::Expr count = c.count(c.self());
  const ValueId row = c.reshape(c.self(), {count});
  const DType dtype = c.dtype(row);
  const auto nan = [&](Exprs shape) {
    const double value = std::numeric_limits<double>::quiet_NaN();
    return c.to(c.filled(std::move(shape), value, is_float(dtype) ? dtype : DType::f32), dtype);
  };
  if (c.is(count, 0)) return {nan({})};
  ValueId values = sorted(c, row, 0).values;
  ValueId position = median_position(c, row, 0);
  if (!c.syms.as_const(count)) {
    values = c.cat({values, nan({c.n(1)})}, 0);
    position = c.call("clamp_min", {position, c.n(0)});
  }
  return {c.squeeze(c.call("gather", {values, c.n(0), position}), {0})};
}

Values median_dim(Composite& c) {
  const ValueId v = c.self();
  if (c.ndim(v) == 0) return {v, c.filled({}, 0, DType::i64)};
  const i64 dim = c.dim("dim", v);
  if (c.is(c.size(v, dim), 0)) c.fail("dim {} has no elements to take the median of", dim);
  const Ordered order = sorted(c, v, dim);
  return at_position(c, order, median_position(c, v, dim), dim, c.keep());
}

/// How much each observation counts, or nothing where all count once.
ValueId observation_weights(Composite& c) {
  ValueId weights;
  for (const char* name : {"fweights", "aweights"})
    if (c.has(name)) weights = weights.valid() ? c.mul(weights, c.tensor(name)) : c.tensor(name);
  return weights;
}

/// What products of weighted observations are divided by: how many there are, less the correction.
ValueId weighted_divisor(Composite& c, ValueId weights, ValueId total) {
  ValueId correction = c.filled({}, c.real("correction"), DType::i64);
  if (c.has("aweights") && c.real("correction") != 0)
    correction = c.div(c.mul(c.sum(c.mul(weights, c.tensor("aweights"))), correction), total);
  return c.call("clamp_min", {c.sub(total, correction), c.n(0)});
}

/// Covariances of rows of observations. Sums of integers wrap, as eager's do.
Values cov(Composite& c) {
  if (c.ndim(c.self()) > 2) c.fail("the observations are a tensor of {} dims", c.ndim(c.self()));
  const bool is_matrix = c.ndim(c.self()) == 2;
  const ValueId rows = is_matrix ? c.self() : c.reshape(c.self(), {c.n(1), c.count(c.self())});
  const bool is_one = !is_matrix || c.is(c.size(rows, 0), 1);
  const ValueId weights = observation_weights(c);
  ValueId centred, other, divisor;
  if (weights.valid()) {
    const ValueId total = c.sum(weights);
    const ValueId sums = c.sum(c.mul(rows, weights), {1}, KeepDim::Yes);
    centred = c.sub(rows, c.div(sums, total));
    other = c.mul(centred, weights);
    divisor = weighted_divisor(c, weights, total);
  } else {
    const sym::Expr count = c.size(rows, 1);
    centred = other = c.sub(rows, c.div(c.sum(rows, {1}, KeepDim::Yes), count));
    const ValueId total = c.call("full", {Exprs{}, count, DType::f64});
    divisor = c.call("clamp_min", {c.sub(total, c.real("correction")), 0.0});
  }
  ValueId turned = c.transpose(other, 0, 1);
  if (is_complex(c.dtype(turned))) turned = c.call("conj_physical", {turned});
  const ValueId out = c.div(c.call("mm", {centred, turned}), divisor);
  return {is_one ? c.reshape(out, {}) : out};
}

Values vecdot(Composite& c) {
  const ValueId x = c.tensor("x");
  const ValueId first = is_complex(c.dtype(x)) ? c.call("conj_physical", {x}) : x;
  const ValueId product = c.mul(first, c.tensor("y"));
  return {c.sum(product, {c.dim("dim", product)}, KeepDim::No)};
}

constexpr DecompositionRow kRows[] = {
    {"var", with_correction},
    {"var.dim", with_correction},
    {"std", with_correction},
    {"std.dim", with_correction},
    {"var_mean", with_correction},
    {"var_mean.dim", with_correction},
    {"std_mean", with_correction},
    {"std_mean.dim", with_correction},
    {"norm.Scalar", norm},
    {"norm.ScalarOpt_dim", norm},
    {"norm.ScalarOpt_dtype", norm},
    {"norm.ScalarOpt_dim_dtype", norm},
    {"frobenius_norm.dim", frobenius_norm},
    {"linalg_matrix_norm", linalg_matrix_norm},
    {"linalg_matrix_norm.str_ord", linalg_matrix_norm},
    {"linalg_norm", linalg_norm},
    {"linalg_norm.ord_str", linalg_norm},
    {"count_nonzero", count_nonzero},
    {"count_nonzero.dim_IntList", count_nonzero},
    {"nansum", nansum},
    {"nanmean", nanmean},
    {"aminmax", aminmax},
    {"argsort", argsort},
    {"argsort.stable", argsort},
    {"special_logsumexp", logsumexp},
    {"trace", trace},
    {"dist", dist},
    {"kthvalue", kthvalue},
    {"median", median},
    {"median.dim", median_dim},
    {"nanmedian", median},
    {"nanmedian.dim", median_dim},
    {"cov", cov},
    {"linalg_vecdot", vecdot},
};

}  // namespace

std::span<const DecompositionRow> reduce_decompositions() { return kRows; }

}  // namespace coil
