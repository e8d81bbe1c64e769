// einsum as permutes, sums and bmm, in the order and with the layouts of eager.

#include <algorithm>

#include "graph/einsum.h"
#include "passes/composite.h"

namespace coil {
namespace {

/// The operand with one dim for each label of the equation, of size 1 where it has no such label.
ValueId placed(Composite& c, const EinsumOperand& how, ValueId operand) {
  for (const auto& [first, second] : how.diagonals)
    operand = c.call("diagonal", {operand, c.n(0), c.n(first), c.n(second)});
  Dims order = how.order;
  for (i64& d : order) {
    if (d >= 0) continue;
    d = c.ndim(operand);
    operand = c.unsqueeze(operand, d);
  }
  return c.permute(operand, order);
}

/// The product of two operands of equal rank, summed over `summed` (kept as dims of size 1): one
/// bmm.
ValueId pair_product(Composite& c, ValueId left, ValueId right, const Dims& summed) {
  if (summed.empty()) return c.mul(left, right);
  Dims both, left_only, right_only;
  for (i64 d = 0; d < c.ndim(left); ++d) {
    const bool in_left = !c.is(c.size(left, d), 1), in_right = !c.is(c.size(right, d), 1);
    if (std::ranges::find(summed, d) != summed.end()) {
      if (in_left && !in_right) left = c.sum(left, {d}, KeepDim::Yes);
      if (in_right && !in_left) right = c.sum(right, {d}, KeepDim::Yes);
    } else if (in_left && in_right) {
      both.push_back(d);
    } else {
      (in_left ? left_only : right_only).push_back(d);
    }
  }
  const auto sizes = [&](ValueId v, const Dims& dims) {
    Exprs out;
    for (i64 d : dims) out.push_back(c.size(v, d));
    return out;
  };
  const auto merged = [&](ValueId v, const Dims& dims) { return c.syms.product(sizes(v, dims)); };
  const auto joined = [](std::initializer_list<const Dims*> parts) {
    Dims out;
    for (const Dims* part : parts) out.insert(out.end(), part->begin(), part->end());
    return out;
  };
  Exprs shape = sizes(left, both);
  for (sym::Expr size : sizes(left, left_only)) shape.push_back(size);
  shape.insert(shape.end(), summed.size(), c.n(1));
  for (sym::Expr size : sizes(right, right_only)) shape.push_back(size);
  const sym::Expr batch = merged(left, both), inner = merged(left, summed);
  const ValueId a = c.reshape(c.permute(left, joined({&both, &left_only, &summed, &right_only})),
                              {batch, merged(left, left_only), inner});
  const ValueId b = c.reshape(c.permute(right, joined({&both, &summed, &right_only, &left_only})),
                              {batch, inner, merged(right, right_only)});
  const Dims order = joined({&both, &left_only, &summed, &right_only});
  Dims back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<i64>(i);
  return c.permute(c.view(c.call("bmm", {a, b}), shape), back);
}

/// Contracts two operands. Their last dims are those that are summed over; `counts` says in how
/// many operands each of these is not 1.
ValueId contract(Composite& c, ValueId a, ValueId b, std::span<int> counts) {
  Dims summed, a_sums, b_sums;
  const i64 first = c.ndim(a) - static_cast<i64>(counts.size());
  for (i64 d = first; d < c.ndim(a); ++d) {
    int& count = counts[static_cast<std::size_t>(d - first)];
    const bool in_a = !c.is(c.size(a, d), 1), in_b = !c.is(c.size(b, d), 1);
    if (in_a && in_b) {
      if (--count != 1) continue;
      summed.push_back(d);
      count = 0;
    } else if (count == 1 && (in_a || in_b)) {
      (in_a ? a_sums : b_sums).push_back(d);
      count = 0;
    }
  }
  if (!a_sums.empty()) a = c.sum(a, a_sums, KeepDim::Yes);
  if (!b_sums.empty()) b = c.sum(b, b_sums, KeepDim::Yes);
  return pair_product(c, a, b, summed);
}

Values einsum_row(Composite& c) {
  Values operands = c.tensors("tensors");
  const std::size_t given = operands.size();
  std::vector<std::size_t> ranks;
  for (ValueId v : operands) ranks.push_back(c.type(v).ndim());
  const Einsum e = value_or_throw(parse_einsum(c.word("equation"), ranks));
  std::vector<int> counts(static_cast<std::size_t>(e.dims - e.result_dims), 0);
  for (std::size_t i = 0; i < given; ++i) {
    operands[i] = placed(c, e.operands[i], operands[i]);
    for (i64 d = e.result_dims; d < e.dims; ++d)
      if (!c.is(c.size(operands[i], d), 1)) ++counts[static_cast<std::size_t>(d - e.result_dims)];
  }
  const Dims path = c.has("path") ? c.all_fixed("path") : Dims();
  for (std::size_t step = 0; operands.size() > 1; ++step) {
    std::size_t i = 0, j = 1;
    if (c.has("path")) {
      if (2 * step + 1 >= path.size()) c.fail("the path is too short");
      i = static_cast<std::size_t>(std::min(path[2 * step], path[2 * step + 1]));
      j = static_cast<std::size_t>(std::max(path[2 * step], path[2 * step + 1]));
      if (i == j || j >= operands.size()) c.fail("the path does not fit the operands");
    }
    const ValueId a = operands[i], b = operands[j];
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    operands.insert(c.has("path") ? operands.end() : operands.begin(), contract(c, a, b, counts));
  }
  if (e.dims == e.result_dims) return {operands[0]};
  Dims rest;
  for (i64 d = e.result_dims; d < e.dims; ++d) rest.push_back(d);
  if (given == 1) return {c.sum(operands[0], rest, KeepDim::No)};
  return {c.squeeze(operands[0], rest)};
}

constexpr DecompositionRow kRows[] = {{"einsum", einsum_row}};

}  // namespace

std::span<const DecompositionRow> einsum_decompositions() { return kRows; }

}  // namespace coil
