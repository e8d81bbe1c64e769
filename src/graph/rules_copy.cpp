// Ops that copy elements to other places: clone, cat, pad, flip, ...

#include <algorithm>
#include <ranges>

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

/// The layout of a new tensor like self.
Result<Types> preserved(const Call& call) {
  Type out = call.self();
  out.strides = strides_for(call.graph, out, MemoryFormat::Preserve);
  return Types{std::move(out)};
}

Result<Types> contiguous(const Call& call) {
  return Types{call.contiguous(call.self().dtype, call.self().shape)};
}

Result<Types> clone(const Call& call) {
  Type out = call.self();
  out.strides = strides_for(call.graph, out, call.format("memory_format", MemoryFormat::Preserve));
  return Types{std::move(out)};
}

Result<Types> to_copy(const Call& call) {
  Type out = call.self();
  out.dtype = call.dtype("dtype", out.dtype);
  out.strides = strides_for(call.graph, out, call.format("memory_format", MemoryFormat::Preserve));
  return Types{std::move(out)};
}

Result<Types> masked_fill(const Call& call) {
  const Type& self = call.self();
  if (!is_bool(call.tensor("mask").dtype))
    return call.fail("mask is {}", name(call.tensor("mask").dtype));
  if (call.op() == "masked_fill.Tensor" && call.tensor("value").ndim() != 0)
    return call.fail("value must have no dims, not {}", text(call.syms, call.tensor("value")));
  Sizes shape = COIL_TRY(call.named(broadcast(call.graph, self.shape, call.tensor("mask").shape)));
  return Types{call.contiguous(self.dtype, std::move(shape))};
}

/// `copy` writes all of `self`, whose layout it keeps.
Result<Types> copy(const Call& call) {
  const Sizes shape =
      COIL_TRY(call.named(broadcast(call.graph, call.self().shape, call.tensor("src").shape)));
  if (shape.size() != call.self().ndim())
    return call.fail("the source has more dims than the target");
  Type out = call.self();
  const bool overlaps =
      std::ranges::any_of(std::views::iota(std::size_t{0}, out.ndim()), [&](auto d) {
        return known_value(call.graph, out.strides[d], 0) &&
               !known_value(call.graph, out.shape[d], 1);
      });
  if (overlaps) out.strides = strides_for(call.graph, out, MemoryFormat::Preserve);
  return Types{std::move(out)};
}

/// Old releases let a 1-d tensor without elements stand beside tensors of any shape.
bool is_skipped(Graph& graph, const Type& type) {
  return type.ndim() == 1 && known_value(graph, type.shape[0], 0);
}

/// What cat makes of `parts`: images in channels_last stay so.
Type joined(const Call& call, DType dtype, const Types& parts, Sizes shape) {
  Type out = call.contiguous(dtype, std::move(shape));
  if (std::ranges::all_of(parts,
                          [&](const Type& t) { return suggests_channels_last(call.graph, t); }))
    out.strides = channels_last_strides(call.graph, out);
  return out;
}

Result<Types> cat(const Call& call) {
  Types all = call.tensors("tensors");
  if (all.empty()) return call.fail("needs at least one tensor");
  DType dtype = all[0].dtype;
  Promotion promotion;
  for (const Type& t : all) promotion.tensors.push_back(t);
  dtype = promote(promotion);
  Types parts;
  for (const Type& t : all)
    if (!is_skipped(call.graph, t)) parts.push_back(t);
  if (parts.empty()) return Types{call.contiguous(dtype, all[0].shape)};  // whatever the dim
  if (parts[0].ndim() == 0) return call.fail("tensors without dims cannot be concatenated");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", parts[0].ndim())));
  Sizes shape = parts[0].shape;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].ndim() != shape.size()) return call.fail("tensors differ in number of dims");
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d == dim) continue;
      COIL_TRY(call.sizes_agree(shape[d], parts[i].shape[d]));
    }
    shape[dim] = call.syms.add(shape[dim], parts[i].shape[dim]);
  }
  return Types{joined(call, dtype, parts, std::move(shape))};
}

/// Eager puts the tensors together along the dim, which it then splits; a new last dim they get
/// before.
Result<Types> stack(const Call& call) {
  Types parts = call.tensors("tensors");
  if (parts.empty()) return call.fail("needs at least one tensor");
  Promotion promotion;
  for (const Type& t : parts) promotion.tensors.push_back(t);
  Sizes shape = parts[0].shape;
  const i64 dim = COIL_TRY(call.dim("dim", shape.size() + 1));
  for (const Type& t : parts) {
    if (t.ndim() != shape.size()) return call.fail("tensors differ in number of dims");
    for (std::size_t d = 0; d < shape.size(); ++d) COIL_TRY(call.sizes_agree(shape[d], t.shape[d]));
  }
  const sym::Expr count = call.number(static_cast<i64>(parts.size()));
  Sizes together = shape;
  shape.insert(shape.begin() + dim, count);
  if (together.size() == static_cast<std::size_t>(dim)) {
    for (Type& t : parts) {
      t.shape.push_back(call.number(1));
      t.strides.push_back(call.number(1));
    }
    return Types{joined(call, promote(promotion), parts, std::move(shape))};
  }
  sym::Expr& along = together[static_cast<std::size_t>(dim)];
  along = call.syms.mul(along, count);
  Type out = joined(call, promote(promotion), parts, std::move(together));
  const std::optional<Sizes> strides = view_strides(call.graph, out, shape);
  out = call.contiguous(out.dtype, std::move(shape));
  if (strides) out.strides = *strides;
  return Types{std::move(out)};
}

/// `pad` holds (before, after) pairs from the last dim on.
Result<Types> padded(const Call& call, const Sizes& pad) {
  const Type& self = call.self();
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.ndim())
    return call.fail("{} pads do not fit {}", pad.size(), text(call.syms, self));
  Sizes shape = self.shape;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    sym::Expr& size = shape[shape.size() - 1 - i];
    size = call.syms.add(size, call.syms.add(pad[2 * i], pad[2 * i + 1]));
    if (known_less(call.graph, size, call.number(0)))
      return call.fail("padding leaves a size of {}", call.syms.text(size));
  }
  Type out = call.contiguous(self.dtype, std::move(shape));
  if (suggests_channels_last(call.graph, self))
    out.strides = channels_last_strides(call.graph, out);
  return Types{std::move(out)};
}

/// Where nothing is added, eager clones what is left.
Result<Types> constant_pad(const Call& call) {
  Types out = COIL_TRY(padded(call, call.sizes("pad")));
  const bool only_cuts = std::ranges::all_of(
      call.sizes("pad"), [&](sym::Expr e) { return call.syms.as_const(e).value_or(1) <= 0; });
  if (!only_cuts) return out;
  Type left = call.self();
  left.shape = out[0].shape;
  out[0].strides = strides_for(call.graph, left, MemoryFormat::Preserve);
  return out;
}
Result<Types> edge_pad(const Call& call) {
  if (call.sizes("padding").size() / 2 >= call.self().ndim())
    return call.fail("{} has too few dims", text(call.syms, call.self()));
  return padded(call, call.sizes("padding"));
}

Result<Types> repeat(const Call& call) {
  const Type& self = call.self();
  const Sizes& repeats = call.sizes("repeats");
  if (repeats.size() < self.ndim())
    return call.fail("{} repeats are given for {}", repeats.size(), text(call.syms, self));
  Sizes shape = repeats;
  const std::size_t lead = repeats.size() - self.ndim();
  for (std::size_t i = 0; i < self.ndim(); ++i)
    shape[lead + i] = call.syms.mul(repeats[lead + i], self.shape[i]);
  return Types{call.contiguous(self.dtype, std::move(shape))};
}

Result<Types> flip(const Call& call) {
  COIL_TRY(call.dims("dims", call.self().ndim()));
  return preserved(call);
}

/// Rolled along dims, eager joins two parts for each with cat, which keeps channels_last where both
/// parts suggest it.
Type rolled(const Call& call) {
  const Type& self = call.self();
  Type out = call.contiguous(self.dtype, self.shape);
  const auto dims = call.dims("dims", self.ndim());
  if (self.ndim() == 0 || !dims.ok() || dims->empty()) return out;
  for (std::size_t i = 0; i < dims->size(); ++i) {
    const std::size_t d = static_cast<std::size_t>((*dims)[i]);
    const sym::Expr first = call.syms.mod(call.sizes("shifts")[i], self.shape[d]);
    for (const sym::Expr size : {first, call.syms.sub(self.shape[d], first)}) {
      Type part = self;
      part.shape[d] = size;
      if (!suggests_channels_last(call.graph, part)) return out;
    }
  }
  out.strides = channels_last_strides(call.graph, out);
  return out;
}

Result<Types> roll(const Call& call) {
  const std::size_t dims = COIL_TRY(call.dims("dims", call.self().ndim())).size();
  if (call.sizes("shifts").size() != std::max<std::size_t>(dims, 1))
    return call.fail("{} shifts are given for {} dims", call.sizes("shifts").size(), dims);
  return Types{rolled(call)};
}

Result<Types> triangle(const Call& call) {
  if (call.self().ndim() < 2)
    return call.fail("needs a matrix, not {}", text(call.syms, call.self()));
  return contiguous(call);
}

Result<Types> pixel_shuffle(const Call& call) {
  Type out = call.self();
  const bool up = call.op() == "pixel_shuffle";
  const i64 factor = COIL_TRY(call.constant(up ? "upscale_factor" : "downscale_factor"));
  if (out.ndim() < 3 || factor < 1 || factor > 46340)
    return call.fail("does not take {} by {}", text(call.syms, out), factor);
  const sym::Expr r = call.number(factor);
  const sym::Expr squared = call.number(factor * factor);
  sym::Expr& channels = out.shape[out.ndim() - 3];
  channels = up ? call.syms.floordiv(channels, squared) : call.syms.mul(channels, squared);
  for (std::size_t i = out.ndim() - 2; i < out.ndim(); ++i)
    out.shape[i] = up ? call.syms.mul(out.shape[i], r) : call.syms.floordiv(out.shape[i], r);
  const bool channels_last = suggests_channels_last(call.graph, call.self());
  out.strides = channels_last ? channels_last_strides(call.graph, out)
                              : contiguous_strides(call.syms, out.shape);
  return Types{std::move(out)};
}

constexpr RuleRow kRules[] = {
    {"clone", clone},
    {"_to_copy", to_copy},
    {"lift_fresh_copy", contiguous},
    {"lift", preserved},
    {"copy", copy},
    {"fill.Scalar", preserved},
    {"fill.Tensor", preserved},
    {"zero", preserved},
    {"masked_fill.Scalar", masked_fill},
    {"masked_fill.Tensor", masked_fill},
    {"cat", cat},
    {"concat", cat},
    {"concatenate", cat},
    {"stack", stack},
    {"constant_pad_nd", constant_pad},
    {"reflection_pad1d", edge_pad},
    {"reflection_pad2d", edge_pad},
    {"reflection_pad3d", edge_pad},
    {"replication_pad1d", edge_pad},
    {"replication_pad2d", edge_pad},
    {"replication_pad3d", edge_pad},
    {"repeat", repeat},
    {"flip", flip},
    {"roll", roll},
    {"tril", triangle},
    {"triu", triangle},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_shuffle},
};

}  // namespace

std::span<const RuleRow> copy_rules() { return kRules; }

}  // namespace coil
