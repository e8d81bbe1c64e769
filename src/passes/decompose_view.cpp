// Ops that only rearrange: composites of view, permute, expand, slice.Tensor, select.int, ...

#include <algorithm>
#include <numeric>

#include "graph/rule.h"
#include "graph/rules.h"
#include "passes/composite.h"

namespace coil {
namespace {

Values same(Composite& c) { return {c.self()}; }

Values transpose(Composite& c) {
  const std::string prefix = c.base() == "swapaxes" ? "axis" : "dim";
  return {c.transpose(c.self(), c.fixed(prefix + "0"), c.fixed(prefix + "1"))};
}

Values transpose_last(Composite& c) {
  if (is_complex(c.dtype(c.self())) &&
      (c.op() == "mH" || c.op() == "adjoint" || c.op() == "matrix_H"))
    c.fail("complex tensors are not supported here");
  return {c.ndim(c.self()) < 2 ? c.self() : c.transpose(c.self(), -1, -2)};
}

Values reverse_dims(Composite& c) {
  Dims order(static_cast<std::size_t>(c.ndim(c.self())));
  std::iota(order.rbegin(), order.rend(), i64{0});
  return {c.permute(c.self(), order)};
}

Values movedim(Composite& c) {
  const i64 ndim = c.ndim(c.self());
  if (ndim == 0) return {c.self()};
  Dims from, to;
  if (c.op().ends_with(".int")) {
    from = {c.dim("source", c.self())};
    to = {c.dim("destination", c.self())};
  } else {
    for (i64 d : c.all_fixed("source")) from.push_back(c.wrap(d, ndim));
    for (i64 d : c.all_fixed("destination")) to.push_back(c.wrap(d, ndim));
  }
  if (from.size() != to.size()) c.fail("source and destination must be as many");
  Dims order(static_cast<std::size_t>(ndim), -1);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  i64 next = 0;
  for (i64& d : order) {
    if (d >= 0) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    d = next++;
  }
  return {c.permute(c.self(), order)};
}

Values reshape(Composite& c) {
  const std::string_view name = c.op() == "reshape" ? "shape" : "size";
  return {c.reshape(c.self(), c.integers(name))};
}
Values reshape_copy(Composite& c) {
  const ValueId copy = c.call("clone", {c.self(), MemoryFormat::Contiguous});
  return {c.reshape(copy, c.integers("size"))};
}
Values reshape_like(Composite& c) { return {c.reshape(c.self(), c.shape(c.tensor("other")))}; }
Values ravel(Composite& c) { return {c.reshape(c.self(), {c.count(c.self())})}; }

Values flatten(Composite& c) {
  if (c.ndim(c.self()) == 0) return {c.reshape(c.self(), {c.n(1)})};
  const i64 start = c.dim("start_dim", c.self()), end = c.dim("end_dim", c.self());
  if (start > end) c.fail("start_dim lies behind end_dim");
  const Exprs from = c.shape(c.self());
  Exprs shape(from.begin(), from.begin() + start);
  shape.push_back(
      c.product(from, static_cast<std::size_t>(start), static_cast<std::size_t>(end) + 1));
  shape.insert(shape.end(), from.begin() + end + 1, from.end());
  return {c.reshape(c.self(), shape)};
}

Values unflatten(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  Exprs shape = c.shape(c.self()), sizes = c.integers("sizes");
  const sym::Expr whole = shape[static_cast<std::size_t>(dim)];
  sym::Expr known = c.n(1);
  for (sym::Expr size : sizes)
    if (!c.syms.is_const(size, -1)) known = c.syms.mul(known, size);
  for (sym::Expr& size : sizes)
    if (c.syms.is_const(size, -1)) size = c.syms.floordiv(whole, known);
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
  return {c.reshape(c.self(), shape)};
}

Values expand_like(Composite& c) { return {c.expand(c.self(), c.shape(c.tensor("other")))}; }
Values broadcast_to(Composite& c) { return {c.call("expand", {c.self(), c.integers("size")})}; }
Values broadcast_tensors(Composite& c) { return c.broadcast_all(c.tensors("tensors")); }

Values meshgrid(Composite& c) {
  const Values tensors = c.tensors("tensors");
  const bool swaps =
      c.op() == "meshgrid.indexing" && c.word("indexing") == "xy" && tensors.size() > 1;
  Exprs shape;
  for (ValueId v : tensors) shape.push_back(c.count(v));
  if (swaps) std::swap(shape[0], shape[1]);
  Values out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t at = swaps && i < 2 ? 1 - i : i;
    Exprs own(tensors.size(), c.n(1));
    own[at] = shape[at];
    out.push_back(c.expand(c.view(tensors[i], own), shape));
  }
  return out;
}

Values squeeze_all(Composite& c) {
  Dims dims;
  for (i64 d = 0; d < c.ndim(c.self()); ++d)
    if (c.is(c.size(c.self(), d), 1)) dims.push_back(d);
  return {dims.empty() ? c.self() : c.squeeze(c.self(), dims)};
}
Values squeeze_dim(Composite& c) {
  if (c.ndim(c.self()) == 0) return {c.self()};
  return {c.squeeze(c.self(), {c.dim("dim", c.self())})};
}

Values narrow(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  sym::Expr start = c.integer("start");
  if (std::optional<i64> fixed = c.syms.as_const(start); fixed && *fixed < 0)
    start = c.syms.add(start, c.size(c.self(), dim));
  return {c.slice(c.self(), dim, start, c.syms.add(start, c.integer("length")))};
}

Values contiguous(Composite& c) {
  const Arg& format = c.arg("memory_format");
  const MemoryFormat* wanted = std::get_if<MemoryFormat>(&format);
  if (wanted == nullptr || *wanted == MemoryFormat::Contiguous) return {c.contiguous(c.self())};
  const ValueId copy = c.call("clone", {c.self(), *wanted});
  return {c.type(copy).strides == c.type(c.self()).strides ? c.self() : copy};
}

i64 dims_of_name(const Composite& c) {
  return c.base() == "atleast_1d" ? 1 : c.base() == "atleast_2d" ? 2 : 3;
}

Values at_least_one(Composite& c) { return {at_least(c, c.self(), dims_of_name(c))}; }
Values at_least_each(Composite& c) {
  Values out = c.tensors("tensors");
  for (ValueId& v : out) v = at_least(c, v, dims_of_name(c));
  return out;
}

Values tile(Composite& c) {
  Exprs times = c.integers("dims");
  const std::size_t ndim = static_cast<std::size_t>(c.ndim(c.self()));
  if (times.size() < ndim) times.insert(times.begin(), ndim - times.size(), c.n(1));
  return {c.call("repeat", {c.self(), times})};
}

Values repeat_interleave(Composite& c) {
  ValueId v = c.self();
  i64 dim = 0;
  if (c.has("dim"))
    dim = c.dim("dim", v);
  else
    v = c.reshape(v, {c.count(v)});
  if (c.ndim(v) == 0) v = c.reshape(v, {c.n(1)});
  Exprs wide = c.shape(v), shape = wide;
  wide.insert(wide.begin() + dim + 1, c.integer("repeats"));
  shape[static_cast<std::size_t>(dim)] =
      c.syms.mul(shape[static_cast<std::size_t>(dim)], c.integer("repeats"));
  const ValueId copy =
      c.call("clone", {c.expand(c.unsqueeze(v, dim + 1), wide), MemoryFormat::Contiguous});
  return {c.view(copy, shape)};
}

/// (.., C*r*r, H, W) to (.., C, H*r, W*r), and back: a copy in the layout that the input suggests.
Values pixel_shuffle(Composite& c) {
  const bool grows = c.op() == "pixel_shuffle";
  const sym::Expr factor = c.integer(grows ? "upscale_factor" : "downscale_factor");
  const Exprs from = c.shape(c.self());
  if (from.size() < 3) c.fail("the input must have at least 3 dims");
  const std::size_t lead = from.size() - 3;
  const sym::Expr channels = from[lead], height = from[lead + 1], width = from[lead + 2];
  Exprs split(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(lead)), shape = split;
  std::vector<Dims> parts;  // the dims of `split` that each dim of the result holds
  const i64 n = static_cast<i64>(lead);
  for (i64 d = 0; d < n; ++d) parts.push_back({d});
  sym::Arena& s = c.syms;
  if (grows) {
    const sym::Expr out = s.floordiv(channels, s.mul(factor, factor));
    split.insert(split.end(), {out, factor, factor, height, width});
    parts.insert(parts.end(), {{n}, {n + 3, n + 1}, {n + 4, n + 2}});
    shape.insert(shape.end(), {out, s.mul(height, factor), s.mul(width, factor)});
  } else {
    const sym::Expr rows = s.floordiv(height, factor), columns = s.floordiv(width, factor);
    split.insert(split.end(), {channels, rows, factor, columns, factor});
    parts.insert(parts.end(), {{n, n + 2, n + 4}, {n + 1}, {n + 3}});
    shape.insert(shape.end(), {s.mul(channels, s.mul(factor, factor)), rows, columns});
  }
  Dims memory(shape.size()), back(shape.size()), order;
  std::iota(memory.begin(), memory.end(), i64{0});
  if (suggests_channels_last(c.builder.graph(), c.type(c.self())))
    std::rotate(memory.begin() + 1, memory.begin() + 2, memory.end());
  Exprs stored;
  for (std::size_t k = 0; k < memory.size(); ++k) {
    const std::size_t d = static_cast<std::size_t>(memory[k]);
    back[d] = static_cast<i64>(k);
    stored.push_back(shape[d]);
    order.insert(order.end(), parts[d].begin(), parts[d].end());
  }
  const ValueId moved = c.permute(c.reshape(c.self(), split), order);
  return {c.permute(c.view(c.call("clone", {moved, MemoryFormat::Contiguous}), stored), back)};
}

Values channel_shuffle(Composite& c) {
  const Exprs shape = c.shape(c.self());
  if (shape.size() < 3) c.fail("the input must have at least 3 dims");
  Exprs split = shape;
  split[1] = c.syms.floordiv(shape[1], c.integer("groups"));
  split.insert(split.begin() + 1, c.integer("groups"));
  Dims order(split.size());
  std::iota(order.begin(), order.end(), i64{0});
  std::swap(order[1], order[2]);
  const ValueId turned = c.permute(c.reshape(c.self(), split), order);
  const ValueId out = c.view(c.call("clone", {turned, MemoryFormat::Contiguous}), shape);
  if (!suggests_channels_last(c.builder.graph(), Type(c.type(c.self())))) return {out};
  const bool is_image = shape.size() == 4;
  return {
      c.call("clone", {out, is_image ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d})};
}

Values rot90(Composite& c) {
  const Dims dims = c.dims("dims", c.self());
  if (dims.size() != 2 || dims[0] == dims[1]) c.fail("dims must be two different ones");
  const auto flip = [&](ValueId v, Dims over) { return c.call("flip", {v, c.as_exprs(over)}); };
  const auto turned = [&](ValueId v) { return c.transpose(v, dims[0], dims[1]); };
  switch (((c.fixed("k") % 4) + 4) % 4) {
    case 1: return {turned(flip(c.self(), {dims[1]}))};
    case 2: return {flip(c.self(), dims)};
    case 3: return {turned(flip(c.self(), {dims[0]}))};
    default: return {c.call("clone", {c.self(), MemoryFormat::Contiguous})};
  }
}

Values flip_rows_or_columns(Composite& c) {
  if (c.ndim(c.self()) < (c.op() == "fliplr" ? 2 : 1)) c.fail("the tensor has too few dims");
  return {c.call("flip", {c.self(), c.as_exprs({c.op() == "fliplr" ? 1 : 0})})};
}

Values linalg_diagonal(Composite& c) {
  return {c.call("diagonal", {c.self(), c.arg("offset"), c.arg("dim1"), c.arg("dim2")})};
}

/// The op of the same name without "_copy" ("select.int" of "select_copy.int"), or "".
std::string without_copy(std::string_view op) {
  constexpr std::string_view kCopy = "_copy";
  const std::string_view base = base_name(op);
  if (!base.ends_with(kCopy)) return "";
  return std::string(base.substr(0, base.size() - kCopy.size())) +
         std::string(op.substr(base.size()));
}

/// Copies of what the op of the same name without "_copy" views. A copy of another shape needs no
/// strides that allow a view.
Values view_copy(Composite& c) {
  if (c.op() == "view_copy")
    return {c.call("clone", {c.reshape(c.self(), c.integers("size")), MemoryFormat::Contiguous})};
  Values out = c.call_all(without_copy(c.op()), c.args());
  for (ValueId& v : out) v = c.call("clone", {v, MemoryFormat::Contiguous});
  return out;
}

constexpr DecompositionRow kRows[] = {
    {"alias", same},
    {"detach", same},
    {"lift", same},
    {"lift_fresh", same},
    {"data", same},
    {"resolve_conj", same},
    {"resolve_neg", same},
    {"t", transpose_last},
    {"mT", transpose_last},
    {"mH", transpose_last},
    {"adjoint", transpose_last},
    {"matrix_H", transpose_last},
    {"numpy_T", reverse_dims},
    {"transpose.int", transpose},
    {"swapaxes", transpose},
    {"swapdims", transpose},
    {"movedim.int", movedim},
    {"movedim.intlist", movedim},
    {"moveaxis.int", movedim},
    {"moveaxis.intlist", movedim},
    {"reshape", reshape},
    {"_unsafe_view", reshape},
    {"_reshape_alias", reshape},
    {"reshape_as", reshape_like},
    {"view_as", reshape_like},
    {"ravel", ravel},
    {"flatten.using_ints", flatten},
    {"unflatten.int", unflatten},
    {"expand_as", expand_like},
    {"broadcast_to", broadcast_to},
    {"broadcast_tensors", broadcast_tensors},
    {"meshgrid", meshgrid},
    {"meshgrid.indexing", meshgrid},
    {"squeeze", squeeze_all},
    {"squeeze.dim", squeeze_dim},
    {"narrow", narrow},
    {"contiguous", contiguous},
    {"atleast_1d", at_least_one},
    {"atleast_2d", at_least_one},
    {"atleast_3d", at_least_one},
    {"atleast_1d.Sequence", at_least_each},
    {"atleast_2d.Sequence", at_least_each},
    {"atleast_3d.Sequence", at_least_each},
    {"tile", tile},
    {"repeat_interleave.self_int", repeat_interleave},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_shuffle},
    {"channel_shuffle", channel_shuffle},
    {"native_channel_shuffle", channel_shuffle},
    {"rot90", rot90},
    {"fliplr", flip_rows_or_columns},
    {"flipud", flip_rows_or_columns},
    {"linalg_diagonal", linalg_diagonal},
    {"_reshape_alias_copy", view_copy},
    {"_reshape_copy", reshape_copy},
};

}  // namespace

ValueId at_least(Composite& c, ValueId v, i64 dims) {
  if (c.ndim(v) >= dims) return v;
  if (c.ndim(v) == 0) return c.view(v, Exprs(static_cast<std::size_t>(dims), c.n(1)));
  if (dims == 2) return c.unsqueeze(v, 0);
  return c.ndim(v) == 1 ? c.unsqueeze(c.unsqueeze(v, 0), -1) : c.unsqueeze(v, -1);
}

Decomposition view_copy_of(std::string_view op) {
  const std::string viewed = without_copy(op);
  return !viewed.empty() && is_view_op(viewed) && ops::find_schema(op) ? view_copy : nullptr;
}

std::span<const DecompositionRow> view_decompositions() { return kRows; }

}  // namespace coil
