// Ops that alias their argument where strides allow it, and copy elsewhere.

#include "graph/rule.h"

namespace coil {
namespace {

/// What reshape gives: a view where one exists, else a contiguous copy.
Result<Types> reshaped(const Call& call, Sizes target) {
  const Type& self = call.self();
  Sizes shape = COIL_TRY(call.named(complete_shape(call.graph, self.shape, std::move(target))));
  std::optional<Sizes> strides = view_strides(call.graph, self, shape);
  if (!strides) return Types{call.contiguous(self.dtype, std::move(shape))};
  return Types{call.strided(self.dtype, std::move(shape), std::move(*strides))};
}

Result<Types> reshape(const Call& call) { return reshaped(call, call.sizes("shape")); }
Result<Types> reshape_as(const Call& call) { return reshaped(call, call.tensor("other").shape); }
Result<Types> ravel(const Call& call) {
  return Types{call.contiguous(call.self().dtype, {numel(call.syms, call.self().shape)})};
}

/// Itself where it changes nothing.
Result<Types> positive(const Call& call) { return Types{call.self()}; }

Result<Types> flatten(const Call& call) {
  const Type& self = call.self();
  const i64 start = COIL_TRY(call.dim("start_dim", self.ndim()));
  const i64 end = COIL_TRY(call.dim("end_dim", self.ndim()));
  if (start > end) return call.fail("start_dim lies behind end_dim");
  if (self.ndim() == 0) return reshaped(call, {call.number(1)});
  if (start == end) return Types{self};
  Sizes shape(self.shape.begin(), self.shape.begin() + start);
  const std::span<const sym::Expr> merged =
      std::span(self.shape)
          .subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start + 1));
  shape.push_back(numel(call.syms, merged));
  shape.insert(shape.end(), self.shape.begin() + end + 1, self.shape.end());
  return reshaped(call, std::move(shape));
}

Result<Types> unflatten(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() == 0) return call.fail("a tensor without dims cannot be unflattened");
  const i64 dim = COIL_TRY(call.dim("dim", self.ndim()));
  const sym::Expr size = self.shape[static_cast<std::size_t>(dim)];
  const Sizes parts =
      COIL_TRY(call.named(complete_shape(call.graph, std::span(&size, 1), call.sizes("sizes"))));
  Sizes shape(self.shape.begin(), self.shape.begin() + dim);
  shape.insert(shape.end(), parts.begin(), parts.end());
  shape.insert(shape.end(), self.shape.begin() + dim + 1, self.shape.end());
  return reshaped(call, std::move(shape));
}

Result<Types> view_as(const Call& call) {
  const Sizes& shape = call.tensor("other").shape;
  if (!view_strides(call.graph, call.self(), shape))
    return call.fail("{} cannot be viewed as {} without a copy: use reshape",
                     text(call.syms, call.self()), call.shape_text(shape));
  return reshaped(call, shape);
}

bool has_format(Graph& graph, const Type& type, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: return is_contiguous(graph, type);
    case MemoryFormat::Preserve: return true;
    case MemoryFormat::ChannelsLast: return type.ndim() == 4 && is_channels_last(graph, type);
    case MemoryFormat::ChannelsLast3d: return type.ndim() == 5 && is_channels_last(graph, type);
  }
  COIL_UNREACHABLE();
}

Result<Types> contiguous(const Call& call) {
  const Type& self = call.self();
  const MemoryFormat format = call.format("memory_format", MemoryFormat::Contiguous);
  if (has_format(call.graph, self, format)) return Types{self};
  return Types{call.strided(self.dtype, self.shape, strides_for(call.graph, self, format))};
}

Result<Types> converted(const Call& call, DType dtype, bool copies) {
  const Type& self = call.self();
  MemoryFormat format = MemoryFormat::Preserve;
  if (call.schema.arg_index("memory_format") >= 0) format = call.format("memory_format", format);
  if (!copies && dtype == self.dtype && has_format(call.graph, self, format)) return Types{self};
  return Types{call.strided(dtype, self.shape, strides_for(call.graph, self, format))};
}

Result<Types> to_dtype(const Call& call) {
  return converted(call, call.dtype("dtype", call.self().dtype), call.flag("copy"));
}
Result<Types> to_other(const Call& call) {
  return converted(call, call.tensor("other").dtype, call.flag("copy"));
}
Result<Types> type_as(const Call& call) {
  return converted(call, call.tensor("other").dtype, false);
}

constexpr RuleRow kRules[] = {
    {"reshape", reshape},    {"reshape_as", reshape_as},      {"ravel", ravel},
    {"positive", positive},  {"flatten.using_ints", flatten}, {"unflatten.int", unflatten},
    {"view_as", view_as},    {"contiguous", contiguous},      {"to.dtype", to_dtype},
    {"to.device", to_dtype}, {"to.dtype_layout", to_dtype},   {"to.other", to_other},
    {"type_as", type_as},
};

}  // namespace

std::span<const RuleRow> reshape_rules() { return kRules; }

}  // namespace coil
