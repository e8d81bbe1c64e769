// Cutting tensors into parts and putting parts together.

#include <algorithm>

#include "graph/rule.h"
#include "passes/composite.h"

namespace coil {
namespace {

Values split_with_sizes(Composite& c, const Exprs& sizes, i64 dim) {
  return c.call_all("split_with_sizes", {c.self(), sizes, c.n(dim)});
}

i64 fixed_size(Composite& c, i64 dim) {
  const sym::Expr size = c.size(c.self(), dim);
  if (std::optional<i64> fixed = c.syms.as_const(size)) return *fixed;
  c.fail("the size of dim {} is {}, but must be fixed, to know how many parts there are", dim,
         c.syms.text(size));
}

/// Parts of `each` elements and a rest.
Values split_evenly(Composite& c, i64 each, i64 dim) {
  const i64 size = fixed_size(c, dim);
  if (each <= 0 && size > 0) c.fail("parts must have at least one element");
  constexpr i64 kMost = 65536;
  if (size > 0 && size / each > kMost)
    c.fail("{} parts of {} elements are too many", size / each, each);
  Exprs sizes;
  for (i64 at = 0; at < size; at += each) sizes.push_back(c.n(std::min(each, size - at)));
  if (sizes.empty()) sizes.push_back(c.n(0));
  return split_with_sizes(c, sizes, dim);
}

/// Whether `size` is a known multiple of `each`: how many parts there are.
std::optional<i64> part_count(Composite& c, sym::Expr size, sym::Expr each) {
  return c.syms.as_const(c.syms.ceildiv(size, each));
}

Values split(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  const sym::Expr size = c.size(c.self(), dim), each = c.integer("split_size");
  if (std::optional<i64> fixed = c.syms.as_const(each); fixed && c.syms.as_const(size))
    return split_evenly(c, *fixed, dim);
  const std::optional<i64> parts = part_count(c, size, each);
  constexpr i64 kMost = 65536;
  if (!parts || *parts < 1 || *parts > kMost)
    c.fail("the number of parts of size {} must be fixed", c.syms.text(each));
  Exprs sizes(static_cast<std::size_t>(*parts) - 1, each);
  sizes.push_back(c.syms.sub(size, c.syms.mul(each, c.n(*parts - 1))));
  return split_with_sizes(c, sizes, dim);
}

Values split_sizes(Composite& c) {
  const std::string_view name = c.op() == "split.sizes" ? "split_size" : "split_sizes";
  return split_with_sizes(c, c.integers(name), c.dim("dim", c.self()));
}

Values chunk(Composite& c) {
  const i64 dim = c.dim("dim", c.self()), chunks = c.count_of("chunks");
  if (chunks <= 0) c.fail("chunks must be above 0");
  const sym::Expr size = c.size(c.self(), dim);
  if (std::optional<i64> fixed = c.syms.as_const(size)) {
    const i64 each = *fixed / chunks + (*fixed % chunks != 0 ? 1 : 0);
    if (each == 0) return split_with_sizes(c, Exprs(static_cast<std::size_t>(chunks), c.n(0)), dim);
    return split_evenly(c, each, dim);
  }
  const sym::Expr each = c.syms.ceildiv(size, c.n(chunks));
  Exprs sizes(static_cast<std::size_t>(chunks) - 1, each);
  sizes.push_back(c.syms.sub(size, c.syms.mul(each, c.n(chunks - 1))));
  return split_with_sizes(c, sizes, dim);
}

/// numpy's array_split: the first size % sections parts are one longer.
Values sections(Composite& c, i64 parts, i64 dim) {
  if (parts <= 0) c.fail("sections must be above 0");
  const sym::Expr size = c.size(c.self(), dim);
  const sym::Expr each = c.syms.floordiv(size, c.n(parts)), longer = c.syms.mod(size, c.n(parts));
  Exprs sizes;
  for (i64 i = 0; i < parts; ++i) {
    const sym::Expr extra = c.syms.select(c.syms.lt(c.n(i), longer), c.n(1), c.n(0));
    sizes.push_back(c.syms.add(each, extra));
  }
  return split_with_sizes(c, sizes, dim);
}

/// Parts that end at the indices, and the rest.
Values cut_at(Composite& c, const Exprs& indices, i64 dim) {
  Values out;
  sym::Expr begin = c.n(0);
  for (sym::Expr end : indices) {
    out.push_back(c.slice(c.self(), dim, begin, end));
    begin = end;
  }
  out.push_back(c.slice(c.self(), dim, begin, c.size(c.self(), dim)));
  return out;
}

Values tensor_split(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  if (c.op() == "tensor_split.indices") return cut_at(c, c.integers("indices"), dim);
  return sections(c, c.count_of("sections"), dim);
}

Values axis_split(Composite& c) {
  const i64 ndim = c.ndim(c.self());
  const i64 dim = c.base() == "vsplit" ? 0 : c.base() == "dsplit" ? 2 : ndim == 1 ? 0 : 1;
  if (dim >= ndim || (c.base() == "vsplit" && ndim < 2)) c.fail("the tensor has too few dims");
  if (c.op().ends_with(".array")) return cut_at(c, c.integers("indices"), dim);
  return sections(c, c.count_of("sections"), dim);
}

/// Below their last dim eager puts the tensors together and splits the dim, which counts where cat
/// keeps images in channels_last.
Values stack(Composite& c) {
  Values parts = c.tensors("tensors");
  const i64 ndim = c.ndim(parts.at(0)), dim = c.wrap(c.fixed("dim"), ndim + 1);
  const bool are_images = std::ranges::all_of(
      parts, [&](ValueId v) { return suggests_channels_last(c.builder.graph(), Type(c.type(v))); });
  if (are_images && dim < ndim) {
    Exprs shape = c.shape(parts[0]);
    shape.insert(shape.begin() + dim, c.n(static_cast<i64>(parts.size())));
    return {c.view(c.cat(parts, dim), std::move(shape))};
  }
  for (ValueId& v : parts) v = c.unsqueeze(v, dim);
  return {c.cat(parts, dim)};
}

Values cat_alias(Composite& c) { return {c.call("cat", {c.tensors("tensors"), c.arg("dim")})}; }

/// hstack, vstack, dstack: the tensors with at least 1, 2 or 3 dims, put together along one of
/// them.
Values axis_stack(Composite& c) {
  const i64 wanted = c.base() == "hstack" ? 1 : c.base() == "dstack" ? 3 : 2;
  Values parts = c.tensors("tensors");
  for (ValueId& v : parts) v = at_least(c, v, wanted);
  const i64 dim = c.base() == "hstack"   ? (c.ndim(parts.at(0)) == 1 ? 0 : 1)
                  : c.base() == "dstack" ? 2
                                         : 0;
  return {c.cat(parts, dim)};
}

Values column_stack(Composite& c) {
  Values parts = c.tensors("tensors");
  for (ValueId& v : parts)
    if (c.ndim(v) <= 1) v = c.reshape(v, {c.count(v), c.n(1)});
  return {c.cat(parts, 1)};
}

Values block_diag(Composite& c) {
  Values parts = c.tensors("tensors");
  const DType dtype = c.common_dtype(parts);
  sym::Expr width = c.n(0), before = c.n(0);
  for (ValueId& v : parts) {
    v = c.to(at_least(c, v, 2), dtype);
    width = c.syms.add(width, c.size(v, 1));
  }
  for (ValueId& v : parts) {
    const sym::Expr own = c.size(v, 1);
    const sym::Expr after = c.syms.sub(width, c.syms.add(before, own));
    v = c.call("constant_pad_nd", {v, Exprs{before, after}, c.n(0)});
    before = c.syms.add(before, own);
  }
  return {c.cat(parts, 0)};
}

Values cartesian_prod(Composite& c) {
  const Values parts = c.tensors("tensors");
  if (parts.size() == 1) return {parts[0]};
  Exprs shape;
  for (ValueId v : parts) shape.push_back(c.count(v));
  Values columns;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Exprs own(parts.size(), c.n(1));
    own[i] = shape[i];
    const ValueId grid = c.reshape(c.expand(c.view(parts[i], own), shape), {c.n(-1)});
    columns.push_back(c.unsqueeze(grid, 1));
  }
  return {c.cat(columns, 1)};
}

constexpr DecompositionRow kRows[] = {
    {"split.Tensor", split},
    {"unsafe_split.Tensor", split},
    {"split.sizes", split_sizes},
    {"unsafe_split_with_sizes", split_sizes},
    {"chunk", chunk},
    {"unsafe_chunk", chunk},
    {"tensor_split.sections", tensor_split},
    {"tensor_split.indices", tensor_split},
    {"hsplit.int", axis_split},
    {"hsplit.array", axis_split},
    {"vsplit.int", axis_split},
    {"vsplit.array", axis_split},
    {"dsplit.int", axis_split},
    {"dsplit.array", axis_split},
    {"stack", stack},
    {"concat", cat_alias},
    {"concatenate", cat_alias},
    {"hstack", axis_stack},
    {"vstack", axis_stack},
    {"row_stack", axis_stack},
    {"dstack", axis_stack},
    {"column_stack", column_stack},
    {"block_diag", block_diag},
    {"cartesian_prod", cartesian_prod},
};

}  // namespace

std::span<const DecompositionRow> split_decompositions() { return kRows; }

}  // namespace coil
