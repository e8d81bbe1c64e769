// Products of groups of rows, each group with a matrix of its own, as mixtures of experts have
// them: ATen's
// `_grouped_mm` and what transformers calls in its place. Group g holds the rows
// offs[g-1]..offs[g]-1; rows behind the last group give zeros.

#include "passes/composite.h"

namespace coil {
namespace {

/// The group of each of `count` rows, [rows] of i64, and how many groups there are.
struct Groups {
  ValueId of_row;
  sym::Expr count;
};

Groups groups_of(Composite& c, sym::Expr rows) {
  const ValueId ends = c.tensor("offs");
  if (!ends.valid()) c.fail("needs offs for matrices of 2 dims");
  return {starts_before(c, ends, rows), c.size(ends, 0)};
}

/// f32 for f16 and bf16: sums are rounded once.
ValueId widened(Composite& c, ValueId v) {
  return is_narrow_float(c.dtype(v)) ? c.to(v, DType::f32) : v;
}

/// rows[s] @ matrices[group of s]: [rows, k] and [groups, k, n] give [rows, n].
ValueId rows_times_matrices(Composite& c, ValueId rows, ValueId matrices) {
  const Groups groups = groups_of(c, c.size(rows, 0));
  const DType dtype = c.dtype(rows);
  if (c.is(groups.count, 0)) return c.filled({c.size(rows, 0), c.size(matrices, 2)}, 0, dtype);
  const ValueId last = c.call("clamp_max", {groups.of_row, c.syms.sub(groups.count, c.n(1))});
  const ValueId matrix = widened(c, c.call("index_select", {matrices, c.n(0), last}));
  const ValueId terms = c.mul(c.unsqueeze(widened(c, rows), 2), matrix);
  const ValueId is_in_a_group = c.call("lt.Scalar", {groups.of_row, groups.count});
  return c.to(c.where(c.unsqueeze(is_in_a_group, 1), c.sum(terms, {1}, KeepDim::No), 0), dtype);
}

/// left[.., the columns of group g] @ right[the rows of group g, ..]: [m, k] and [k, n] give
/// [groups, m, n].
ValueId sums_by_group(Composite& c, ValueId left, ValueId right) {
  const Groups groups = groups_of(c, c.size(right, 0));
  const ValueId line = c.call("arange.start_step", {c.n(0), groups.count, c.n(1), DType::i64});
  const ValueId is_member = c.eq(c.unsqueeze(line, 1), groups.of_row);  // [groups, k]
  const ValueId columns = c.where(c.unsqueeze(is_member, 1), c.unsqueeze(left, 0), 0);
  const ValueId rows = c.where(c.unsqueeze(is_member, 2), c.unsqueeze(right, 0), 0);
  return c.call("bmm", {columns, rows});
}

Values grouped_mm_fallback(Composite& c) {
  return {rows_times_matrices(c, c.tensor("input"), c.tensor("weight"))};
}

Values grouped_mm_fallback_backward(Composite& c) {
  const ValueId grad = c.tensor("grad_output");
  return {rows_times_matrices(c, grad, c.transpose(c.tensor("weight"), 1, 2)),
          sums_by_group(c, c.transpose(c.tensor("input"), 0, 1), grad)};
}

ValueId grouped_product(Composite& c, ValueId a, ValueId b) {
  if (c.ndim(a) == 3 && c.ndim(b) == 3) return c.call("bmm", {a, b});
  if (c.ndim(a) == 2 && c.ndim(b) == 3) return rows_times_matrices(c, a, b);
  if (c.ndim(a) == 2 && c.ndim(b) == 2) return sums_by_group(c, a, b);
  if (c.ndim(a) == 3 && c.ndim(b) == 2) {
    const ValueId columns = rows_times_matrices(c, c.transpose(b, 0, 1), c.transpose(a, 1, 2));
    return c.contiguous(c.transpose(columns, 0, 1));
  }
  c.fail("takes matrices and batches of matrices");
}

/// Rows of the result begin at multiples of 16 bytes.
ValueId with_aligned_rows(Composite& c, ValueId v) {
  const i64 step = 16 / size_of(c.dtype(v)), last = c.ndim(v) - 1;
  const sym::Expr size = c.size(v, last);
  const sym::Expr gap = c.syms.mod(c.syms.neg(size), c.n(step));
  if (c.is(gap, 0)) return v;
  return c.slice(c.call("constant_pad_nd", {v, Exprs{c.n(0), gap}}), last, c.n(0), size);
}

Values grouped_mm(Composite& c) {
  if (c.has("bias")) c.fail("a bias is not supported");
  const ValueId out = grouped_product(c, c.self(), c.tensor("mat2"));
  return {with_aligned_rows(c, c.to(out, c.dtype_or("out_dtype", c.dtype(c.self()))))};
}

}  // namespace

std::span<const DecompositionRow> grouped_decompositions() {
  static constexpr DecompositionRow kRows[] = {
      {"_grouped_mm", grouped_mm},
      {"transformers::grouped_mm_fallback", grouped_mm_fallback},
      {"transformers::grouped_mm_fallback_backward", grouped_mm_fallback_backward},
  };
  return kRows;
}

}  // namespace coil
