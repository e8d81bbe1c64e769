// Strides of results: TensorIterator's, those of memory formats, and those of views.

#include <algorithm>
#include <numeric>

#include "graph/rule.h"

namespace coil {

int compare_strides(Graph& graph, sym::Expr a, sym::Expr b) {
  if (known_equal(graph, a, b)) return 0;
  const sym::Prover prover(*graph.syms, graph.facts);
  if (prover.less(a, b) == sym::Answer::Yes) return -1;
  if (prover.less(b, a) == sym::Answer::Yes) return 1;
  if (prover.divides(a, b) == sym::Answer::Yes) return -1;
  if (prover.divides(b, a) == sym::Answer::Yes) return 1;
  return 0;
}

namespace {

/// Strides of `operand` seen in the broadcast `shape`: 0 where it has no dim, or one of size 1.
Sizes broadcast_strides(Graph& graph, const Type& operand, std::span<const sym::Expr> shape) {
  Sizes strides(shape.size(), graph.syms->constant(0));
  const std::size_t lead = shape.size() - operand.ndim();
  for (std::size_t i = 0; i < operand.ndim(); ++i) {
    const bool spread =
        known_value(graph, operand.shape[i], 1) && !known_value(graph, shape[lead + i], 1);
    if (!spread) strides[lead + i] = operand.strides[i];
  }
  return strides;
}

/// Above 0 if dim `outer` should be inside of dim `inner`, below 0 if not, 0 if no operand tells.
int should_swap(Graph& graph, const std::vector<Sizes>& strides, std::span<const sym::Expr> shape,
                std::size_t inner, std::size_t outer) {
  for (const Sizes& of : strides) {
    if (known_value(graph, of[inner], 0) || known_value(graph, of[outer], 0)) continue;
    const int order = compare_strides(graph, of[inner], of[outer]);
    if (order != 0) return order;
    if (known_less(graph, shape[outer], shape[inner])) return 1;
  }
  return 0;
}

/// Dims from the innermost to the outermost: an insertion sort, in which ambiguous pairs are
/// passed.
std::vector<std::size_t> dim_order(Graph& graph, const std::vector<Sizes>& strides,
                                   std::span<const sym::Expr> shape) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int swap = should_swap(graph, strides, shape, order[j], order[moving]);
      if (swap < 0) break;
      if (swap == 0) continue;
      std::swap(order[j], order[moving]);
      moving = j;
    }
  }
  return order;
}

Sizes strides_in_order(sym::Arena& syms, std::span<const std::size_t> order,
                       std::span<const sym::Expr> shape) {
  Sizes permuted;
  for (std::size_t i = order.size(); i-- > 0;) permuted.push_back(shape[order[i]]);
  const Sizes contiguous = contiguous_strides(syms, permuted);
  Sizes strides(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    strides[order[i]] = contiguous[order.size() - 1 - i];
  return strides;
}

/// Channels innermost, then the spatial dims from the last to the first, then the batch.
std::vector<std::size_t> channels_last_order(std::size_t ndim) {
  std::vector<std::size_t> order = {1};
  for (std::size_t i = ndim; i-- > 2;) order.push_back(i);
  order.push_back(0);
  return order;
}

/// Whether strides are those of dense memory walked in this order, sizes of 1 apart.
bool is_dense_in_order(Graph& graph, const Type& type, std::span<const std::size_t> order) {
  sym::Expr expected = graph.syms->constant(1);
  for (std::size_t d : order) {
    if (known_value(graph, type.shape[d], 0)) return true;
    if (known_value(graph, type.shape[d], 1)) continue;
    if (!known_equal(graph, type.strides[d], expected)) return false;
    expected = graph.syms->mul(expected, type.shape[d]);
  }
  return true;
}

bool same_shape(const Type& type, std::span<const sym::Expr> shape) {
  return std::ranges::equal(type.shape, shape);
}

}  // namespace

bool is_contiguous(Graph& graph, const Type& type) {
  std::vector<std::size_t> order(type.ndim());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return known_empty(graph, type) || is_dense_in_order(graph, type, order);
}

bool is_channels_last(Graph& graph, const Type& type) {
  if (type.ndim() != 4 && type.ndim() != 5) return false;
  return is_dense_in_order(graph, type, channels_last_order(type.ndim()));
}

bool is_dense(Graph& graph, const Type& type) {
  std::vector<bool> used(type.ndim(), false);
  sym::Expr expected = graph.syms->constant(1);
  const auto next = [&] {
    for (std::size_t i = 0; i < type.ndim(); ++i) {
      if (used[i]) continue;
      used[i] = known_value(graph, type.shape[i], 1);
      if (used[i]) continue;
      if (!known_equal(graph, type.strides[i], expected)) continue;
      used[i] = true;
      expected = graph.syms->mul(expected, type.shape[i]);
      return true;
    }
    return false;
  };
  if (known_empty(graph, type)) return true;
  while (next()) {
  }
  return std::ranges::all_of(used, [](bool u) { return u; });
}

bool suggests_channels_last(Graph& graph, const Type& type) {
  if (type.ndim() != 4 && type.ndim() != 5) return false;
  if (known_value(graph, type.strides[1], 0)) return false;
  const sym::Prover prover(*graph.syms, graph.facts);
  sym::Expr least = graph.syms->constant(0);
  for (std::size_t d : channels_last_order(type.ndim())) {
    const sym::Expr stride = type.strides[d];
    if (known_value(graph, type.shape[d], 0)) return false;
    const bool is_multiple =
        !known_value(graph, stride, 0) && prover.divides(least, stride) == sym::Answer::Yes;
    const bool fits = is_multiple || known_less_equal(graph, least, stride);
    if (!fits || (d == 0 && known_equal(graph, least, type.strides[1]))) return false;
    least = stride;
    if (!known_value(graph, type.shape[d], 1)) least = graph.syms->mul(least, type.shape[d]);
  }
  return true;
}

Sizes channels_last_strides(Graph& graph, const Type& type) {
  if (type.ndim() != 4 && type.ndim() != 5) return contiguous_strides(*graph.syms, type.shape);
  return strides_in_order(*graph.syms, channels_last_order(type.ndim()), type.shape);
}

Sizes pointwise_strides(Graph& graph, std::span<const Type> operands,
                        std::span<const sym::Expr> shape) {
  Types tensors;
  for (const Type& t : operands)
    if (t.is_tensor()) tensors.push_back(t);
  const auto all = [&](auto holds) { return std::ranges::all_of(tensors, holds); };
  if (tensors.empty()) return contiguous_strides(*graph.syms, shape);
  if (all([&](const Type& t) { return same_shape(t, shape); })) {
    // Where sizes of 1 let a layout be both, the strides themselves tell.
    if (all([&](const Type& t) {
          return suggests_channels_last(graph, t) && is_channels_last(graph, t);
        }))
      return strides_in_order(*graph.syms, channels_last_order(shape.size()), shape);
    if (all([&](const Type& t) { return is_contiguous(graph, t); }))
      return contiguous_strides(*graph.syms, shape);
    if (all([&](const Type& t) { return is_channels_last(graph, t); }))
      return strides_in_order(*graph.syms, channels_last_order(shape.size()), shape);
    if (all([&](const Type& t) { return t.strides == tensors[0].strides && is_dense(graph, t); }))
      return tensors[0].strides;
  }
  std::vector<Sizes> strides;
  for (const Type& t : tensors) strides.push_back(broadcast_strides(graph, t, shape));
  return strides_in_order(*graph.syms, dim_order(graph, strides, shape), shape);
}

Sizes strides_for(Graph& graph, const Type& like, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: break;
    case MemoryFormat::Preserve:
      if (is_dense(graph, like)) return like.strides;
      return pointwise_strides(graph, std::span(&like, 1), like.shape);
    case MemoryFormat::ChannelsLast:
    case MemoryFormat::ChannelsLast3d:
      if (like.ndim() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) break;
      return strides_in_order(*graph.syms, channels_last_order(like.ndim()), like.shape);
  }
  return contiguous_strides(*graph.syms, like.shape);
}

namespace {

/// Places the dims of the view, from the last on, in runs of dims that lie densely in each other.
std::optional<Sizes> placed_view(Graph& graph, const Type& of, std::span<const sym::Expr> shape) {
  sym::Arena& syms = *graph.syms;
  Sizes strides(shape.size());
  std::size_t view = shape.size();  // dims of the view that are not yet placed
  sym::Expr base = of.strides.back();
  sym::Expr chunk = syms.constant(1);  // elements of the run of dims that lie densely in each other
  for (std::size_t d = of.ndim(); d-- > 0;) {
    chunk = syms.mul(chunk, of.shape[d]);
    const bool ends = d == 0 || (!known_value(graph, of.shape[d - 1], 1) &&
                                 !known_equal(graph, of.strides[d - 1], syms.mul(chunk, base)));
    if (!ends) continue;
    sym::Expr covered = syms.constant(1);
    while (view > 0 &&
           (!known_equal(graph, covered, chunk) || known_value(graph, shape[view - 1], 1))) {
      --view;
      strides[view] = syms.mul(covered, base);
      covered = syms.mul(covered, shape[view]);
    }
    if (!known_equal(graph, covered, chunk)) return std::nullopt;
    if (d > 0) base = of.strides[d - 1];
    chunk = syms.constant(1);
  }
  if (view > 0) return std::nullopt;
  return strides;
}

}  // namespace

std::optional<Sizes> view_strides(Graph& graph, const Type& of, std::span<const sym::Expr> shape) {
  const bool is_same = same_shape(of, shape);
  if (of.ndim() == 0 || known_empty(graph, of))
    return is_same ? of.strides : contiguous_strides(*graph.syms, shape);
  // Also of the same shape: dims of size 1 get the strides of their run.
  if (std::optional<Sizes> strides = placed_view(graph, of, shape)) return strides;
  if (is_same) return of.strides;
  // Counts of symbolic elements may agree without a proof: complete_shape has made a check of it.
  if (is_contiguous(graph, of)) return contiguous_strides(*graph.syms, shape);
  return std::nullopt;
}

Result<Sizes> complete_shape(Graph& graph, std::span<const sym::Expr> of, Sizes shape) {
  sym::Arena& syms = *graph.syms;
  std::optional<std::size_t> open;
  Sizes given;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!known_value(graph, shape[i], -1)) {
      given.push_back(shape[i]);
      continue;
    }
    if (open) return error("only one size can be -1");
    open = i;
  }
  const sym::Expr total = numel(syms, of);
  const sym::Expr rest = syms.product(given);
  if (open) {
    if (known_value(graph, rest, 0)) return error("a size of -1 is ambiguous beside a size of 0");
    shape[*open] = syms.floordiv(total, rest);
  }
  Status fits = require_equal(graph, total, numel(syms, shape), "element counts");
  if (!fits.ok()) return fits.error();
  return shape;
}

Result<Sizes> broadcast(Graph& graph, std::span<const sym::Expr> a, std::span<const sym::Expr> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Sizes out(a.begin(), a.end());
  const std::size_t lead = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    sym::Expr& size = out[lead + i];
    if (known_value(graph, b[i], 1)) continue;
    if (known_value(graph, size, 1)) {
      size = b[i];
      continue;
    }
    COIL_TRY(require_equal(graph, size, b[i], "sizes"));
    if (graph.syms->as_const(b[i])) size = b[i];
  }
  return out;
}

Result<Sizes> broadcast(Graph& graph, std::span<const Type> operands) {
  Sizes out;
  for (const Type& t : operands)
    if (t.is_tensor()) out = COIL_TRY(broadcast(graph, out, t.shape));
  return out;
}

}  // namespace coil
