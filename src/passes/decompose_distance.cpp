// Distances between rows, and their gradients.

#include <cmath>

#include "passes/composite.h"

namespace coil {
namespace {

/// The p-norm over the last dim.
ValueId norm_of(Composite& c, ValueId difference) {
  return c.call("linalg_vector_norm", {difference, c.arg("p"), Exprs{c.n(-1)}});
}

/// Distances between all pairs of rows.
Values cdist(Composite& c) {
  const ValueId difference =
      c.sub(c.unsqueeze(c.tensor("x1"), -2), c.unsqueeze(c.tensor("x2"), -3));
  return {norm_of(c, difference)};
}

/// x where the distance is not 0, else 0.
ValueId unless_zero(Composite& c, ValueId distance, ValueId x) {
  const ValueId zero = c.filled({}, 0, c.dtype(x));
  return c.call("where.self", {c.eq(distance, 0.0), zero, x});
}

/// The gradient of a difference whose p-norm is `distance`: with x = |difference|,
/// sign * (x / distance)^(p - 1), which is 0 where the distance is.
ValueId difference_gradient(Composite& c, ValueId difference, ValueId distance, ValueId gradient) {
  const double p = c.real("p");
  const ValueId sign = c.call("sign", {difference}), size = c.call("abs", {difference});
  if (p == 0) return c.mul(c.mul(sign, 0.0), gradient);
  if (p == 1) return c.mul(sign, gradient);
  if (std::isinf(p)) {
    const ValueId largest = c.to(c.eq(size, distance), c.dtype(size));
    return c.mul(c.mul(sign, largest), gradient);
  }
  if (p == 2) return unless_zero(c, distance, c.div(c.mul(difference, gradient), distance));
  const ValueId power = c.call("pow.Tensor_Scalar", {c.div(size, distance), p - 1});
  const ValueId slope = c.mul(c.mul(sign, power), gradient);
  return unless_zero(c, c.mul(distance, size), slope);
}

Values cdist_backward(Composite& c) {
  const ValueId difference =
      c.sub(c.unsqueeze(c.tensor("x1"), -2), c.unsqueeze(c.tensor("x2"), -3));
  const ValueId gradient = c.unsqueeze(c.tensor("grad_output"), -1);
  const ValueId slope =
      difference_gradient(c, difference, c.unsqueeze(c.tensor("cdist"), -1), gradient);
  return {c.sum(slope, {c.ndim(slope) - 2}, KeepDim::No)};
}

/// The rows of all pairs i < j, in row-major order.
struct Pairs {
  ValueId first, second;  // numbers of rows
  ValueId difference;
};
Pairs pairs_of(Composite& c, ValueId rows) {
  if (c.ndim(rows) != 2) c.fail("the rows are a tensor of {} dims, not of 2", c.ndim(rows));
  const sym::Expr count = c.size(rows, 0);
  const ValueId numbers = c.call("triu_indices", {count, count, c.n(1)});
  Pairs p{c.select(numbers, 0, c.n(0)), c.select(numbers, 0, c.n(1)), ValueId()};
  const auto row = [&](ValueId number) { return c.call("index_select", {rows, c.n(0), number}); };
  p.difference = c.sub(row(p.first), row(p.second));
  return p;
}

/// Without a number in them, rows are of any dtype: no pairs, or distances of 0.
Values pdist(Composite& c) {
  const ValueId rows = c.self();
  if (c.ndim(rows) == 2 &&
      (c.is(c.size(rows, 0), 0) || c.is(c.size(rows, 0), 1) || c.is(c.size(rows, 1), 0))) {
    const sym::Expr count = c.size(rows, 0), others = c.syms.sub(count, c.n(1));
    return {c.filled({c.syms.floordiv(c.syms.mul(count, others), c.n(2))}, 0, c.dtype(rows))};
  }
  return {norm_of(c, pairs_of(c, rows).difference)};
}

Values pdist_backward(Composite& c) {
  const ValueId rows = c.tensor("self");
  const Pairs p = pairs_of(c, rows);
  const ValueId slope = difference_gradient(c, p.difference, c.unsqueeze(c.tensor("pdist"), -1),
                                            c.unsqueeze(c.tensor("grad_output"), -1));
  const ValueId zeros = c.filled(c.shape(rows), 0, c.dtype(rows));
  const ValueId firsts = c.call("index_add", {zeros, c.n(0), p.first, slope});
  return {c.call("index_add", {firsts, c.n(0), p.second, c.call("neg", {slope})})};
}

constexpr DecompositionRow kRows[] = {
    {"cdist", cdist},
    {"_cdist_forward", cdist},
    {"_cdist_backward", cdist_backward},
    {"_pdist_forward", pdist},
    {"_pdist_backward", pdist_backward},
};

}  // namespace

std::span<const DecompositionRow> distance_decompositions() { return kRows; }

}  // namespace coil
