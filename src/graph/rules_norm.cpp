// Normalisations with their statistics.

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

/// Like the input, in channels_last if the input is.
Type normalised(const Call& call) {
  const Type& input = call.tensor("input");
  Type out = call.contiguous(input.dtype, input.shape);
  if (suggests_channels_last(call.graph, input))
    out.strides = channels_last_strides(call.graph, out);
  return out;
}

/// Each of the named arguments that is there has this shape.
Status check_parameters(const Call& call, std::initializer_list<std::string_view> names,
                        const Sizes& shape) {
  for (std::string_view name : names) {
    if (!call.has(name)) continue;
    const Type& t = call.tensor(name);
    if (t.ndim() != shape.size())
      return call.fail("{} is {}, not {}", name, text(call.syms, t), call.shape_text(shape));
    for (std::size_t i = 0; i < shape.size(); ++i) {
      Status fits = require_equal(call.graph, t.shape[i], shape[i], "sizes");
      if (!fits.ok()) return call.fail("{}: {}", name, fits.error().message);
    }
  }
  return Ok{};
}

Result<Types> layer_norm(const Call& call) {
  const Type& input = call.tensor("input");
  const Sizes& over = call.sizes("normalized_shape");
  if (over.empty() || over.size() > input.ndim())
    return call.fail("normalized_shape has {} dims, the input is {}", over.size(),
                     text(call.syms, input));
  const std::size_t lead = input.ndim() - over.size();
  for (std::size_t i = 0; i < over.size(); ++i)
    COIL_TRY(call.sizes_agree(input.shape[lead + i], over[i]));
  COIL_TRY(check_parameters(call, {"weight", "bias"}, over));
  Sizes rows = input.shape;
  for (std::size_t i = lead; i < rows.size(); ++i) rows[i] = call.number(1);
  // Statistics are in the parameters' dtype, where bf16 rows meet f32 parameters.
  const DType stats = call.has("weight") ? call.tensor("weight").dtype : input.dtype;
  return Types{call.contiguous(input.dtype, input.shape), call.contiguous(stats, rows),
               call.contiguous(stats, rows)};
}

Result<Types> group_norm(const Call& call) {
  const Type& input = call.tensor("input");
  const i64 groups = COIL_TRY(call.constant("group"));
  if (input.ndim() < 2 || groups < 1) return call.fail("does not take {}", text(call.syms, input));
  const sym::Expr channels = input.shape[1];
  sym::Expr points = call.number(1);
  for (std::size_t i = 2; i < input.ndim(); ++i) points = call.syms.mul(points, input.shape[i]);
  const std::tuple<sym::Expr, sym::Expr, std::string_view> sizes[] = {
      {call.integer("N"), input.shape[0], "N"},
      {call.integer("C"), channels, "C"},
      {call.integer("HxW"), points, "HxW"},
      {call.syms.mod(channels, call.number(groups)), call.number(0), "channels left over"}};
  for (const auto& [given, wanted, name] : sizes)
    COIL_TRY(call.named(require_equal(call.graph, given, wanted, name)));
  COIL_TRY(check_parameters(call, {"weight", "bias"}, {channels}));
  const Sizes rows = {call.integer("N"), call.number(groups)};
  const DType stats = call.has("weight") ? call.tensor("weight").dtype : input.dtype;
  return Types{normalised(call), call.contiguous(stats, rows), call.contiguous(stats, rows)};
}

/// As in eager, weight and bias have an element a channel in any shape, statistics in one dim.
Status check_channels(const Call& call) {
  const Type& input = call.tensor("input");
  if (input.ndim() < 2) return call.fail("does not take {}", text(call.syms, input));
  const sym::Expr channels = input.shape[1];
  for (std::string_view name : {"weight", "bias"}) {
    if (!call.has(name)) continue;
    Status fits = require_equal(call.graph, numel(call.syms, call.tensor(name).shape), channels,
                                "element counts");
    if (!fits.ok()) return call.fail("{}: {}", name, fits.error().message);
  }
  return check_parameters(call, {"running_mean", "running_var"}, {channels});
}

/// Statistics are in the parameters' dtype, where narrow images meet f32 parameters.
DType statistics_dtype(const Call& call) {
  for (std::string_view name : {"weight", "running_mean"})
    if (call.schema.arg_index(name) >= 0 && call.has(name)) return call.tensor(name).dtype;
  return call.tensor("input").dtype;
}

template <bool training>
Result<Types> batch_norm(const Call& call) {
  COIL_TRY(check_channels(call));
  const Type& input = call.tensor("input");
  if (training && std::ranges::any_of(input.shape, [&](sym::Expr size) {
        return known_value(call.graph, size, 0);
      }))
    return call.fail("has no elements to take statistics of");
  const Type stats =
      call.contiguous(statistics_dtype(call), {training ? input.shape[1] : call.number(0)});
  Types out = {normalised(call), stats, stats};
  if (call.op() == "_native_batch_norm_legit_functional") {
    out.push_back(call.tensor("running_mean"));
    out.push_back(call.tensor("running_var"));
  }
  return out;
}

/// Weights, and in training statistics, as arguments of one op for both modes.
Result<Types> batch_norm_both(const Call& call) {
  return call.flag("training") ? batch_norm<true>(call) : batch_norm<false>(call);
}

constexpr RuleRow kRules[] = {
    {"native_layer_norm", layer_norm},
    {"native_group_norm", group_norm},
    {"_native_batch_norm_legit_no_training", batch_norm<false>},
    {"_native_batch_norm_legit.no_stats", batch_norm<true>},
    {"_native_batch_norm_legit_functional", batch_norm_both},
};

}  // namespace

std::span<const RuleRow> norm_rules() { return kRules; }

}  // namespace coil
