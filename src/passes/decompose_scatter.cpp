// Writes at places from data, in terms of scatter and index_put.

#include "passes/composite.h"

namespace coil {
namespace {

/// A 1-d index along `dim` as one over all dims of `like`.
ValueId spread_index(Composite& c, ValueId index, i64 dim, ValueId like) {
  if (c.ndim(like) == 0) return c.reshape(index, {});
  Exprs shape(static_cast<std::size_t>(c.ndim(like)), c.n(1));
  shape[static_cast<std::size_t>(dim)] = c.count(index);
  return c.expand(c.reshape(index, shape), c.shape(like));
}

Values index_reduce(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  const ValueId source = c.tensor("source");
  const ValueId index = spread_index(c, c.tensor("index"), dim, source);
  return {c.call("scatter_reduce.two",
                 {c.self(), c.n(dim), index, source, c.arg("reduce"), c.flag("include_self")})};
}

/// Coordinates in `shape` of row-major positions; negative ones count from the end.
Values coordinates(Composite& c, ValueId positions, const Exprs& shape) {
  const sym::Expr count = c.syms.product(shape);
  const ValueId behind = c.call("lt.Scalar", {positions, c.n(0)});
  ValueId rest = c.call("where.self", {behind, c.add(positions, count), positions});
  Values out(shape.size());
  for (std::size_t d = shape.size(); d-- > 1;) {
    out[d] = c.call("remainder.Scalar", {rest, shape[d]});
    rest = c.call("floor_divide.Scalar", {rest, shape[d]});
  }
  out[0] = rest;
  return out;
}

/// Elements at row-major positions replaced, or added to; laid out as the tensor was.
Values put(Composite& c) {
  const ValueId v = c.self();
  const ValueId index = c.reshape(c.tensor("index"), {c.count(c.tensor("index"))});
  const ValueId source = c.reshape(c.tensor("source"), {c.count(index)});
  if (!c.is_contiguous(v))
    return {
        c.call("index_put", {v, coordinates(c, index, c.shape(v)), source, c.flag("accumulate")})};
  const ValueId flat = c.view(v, {c.count(v)});
  const ValueId out = c.call("index_put", {flat, Values{index}, source, c.flag("accumulate")});
  return {c.view(out, c.shape(v))};
}

/// What masked_scatter took from each element of its source, which has `sizes`.
Values masked_scatter_backward(Composite& c) {
  const Values both = c.broadcast_all({c.self(), c.tensor("mask")});
  const ValueId grad = c.reshape(both[0], {c.n(-1)}), mask = c.reshape(both[1], {c.n(-1)});
  const Exprs sizes = c.integers("sizes");
  const sym::Expr count = c.syms.product(sizes);
  const ValueId rank = c.sub(c.call("cumsum", {c.to(mask, DType::i64), c.n(0)}), c.n(1));
  const ValueId place = c.call("where.ScalarOther", {mask, rank, count});
  const ValueId one_more = c.filled({c.syms.add(count, c.n(1))}, 0, c.dtype(grad));
  const ValueId taken = c.call("scatter.src", {one_more, c.n(0), place, grad});
  const ValueId out = c.call("clone", {c.slice(taken, 0, c.n(0), count), MemoryFormat::Contiguous});
  return {c.view(out, sizes)};
}

constexpr DecompositionRow kRows[] = {
    {"index_reduce", index_reduce},
    {"put", put},
    {"masked_scatter_backward", masked_scatter_backward},
};

}  // namespace

ValueId starts_before(Composite& c, ValueId starts, sym::Expr count) {
  starts = c.to(starts, DType::i64);
  Exprs shape = c.shape(starts);
  const ValueId ones = c.filled(shape, 1, DType::i64);
  shape.back() = c.syms.add(count, c.n(1));
  const ValueId zeros = c.filled(shape, 0, DType::i64);
  const ValueId marks = c.call("scatter_add", {zeros, c.n(-1), starts, ones});
  return c.slice(c.call("cumsum", {marks, c.n(-1)}), -1, c.n(0), count);
}

std::span<const DecompositionRow> scatter_decompositions() { return kRows; }

}  // namespace coil
