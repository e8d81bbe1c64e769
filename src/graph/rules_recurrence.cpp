// Recurrent layers, which stay whole until they are lowered.

#include "graph/rule.h"

namespace coil {
namespace {

Status sizes_are(const Call& call, const Type& type, const Sizes& shape) {
  if (type.dtype != call.tensor("input").dtype)
    return call.fail("a weight is {}, the input {}", name(type.dtype),
                     name(call.tensor("input").dtype));
  if (type.ndim() != shape.size())
    return call.fail("a weight is {}, not {}", text(call.syms, type), call.shape_text(shape));
  for (std::size_t d = 0; d < shape.size(); ++d)
    COIL_TRY(call.sizes_agree(type.shape[d], shape[d]));
  return Ok{};
}

/// Per layer and direction w_ih [g*h, in], w_hh [g*h, h] and, with biases, two of [g*h].
/// Projections bring more of them, which lowering refuses.
Status check_weights(const Call& call, i64 layers, i64 directions, sym::Expr width,
                     sym::Expr hidden) {
  const Types weights = call.tensors("params");
  const i64 gates = call.base() == "lstm" ? 4 : call.base() == "gru" ? 3 : 1;
  const std::size_t group = call.flag("has_biases") ? 4 : 2;
  if (weights.size() != static_cast<std::size_t>(layers * directions) * group) return Ok{};
  const sym::Expr rows = call.syms.mul(hidden, call.number(gates));
  for (std::size_t w = 0; w < weights.size(); w += group) {
    const bool is_first = w < group * static_cast<std::size_t>(directions);
    const sym::Expr in = is_first ? width : call.syms.mul(hidden, call.number(directions));
    COIL_TRY(sizes_are(call, weights[w], {rows, in}));
    COIL_TRY(sizes_are(call, weights[w + 1], {rows, hidden}));
    for (std::size_t bias = 2; bias < group; ++bias)
      COIL_TRY(sizes_are(call, weights[w + bias], {rows}));
  }
  return Ok{};
}

/// Outputs of all steps, then the last states. Eager walks steps outside of the batch, whichever of
/// them comes first in the shape.
Result<Types> recurrence(const Call& call) {
  const Type& input = call.tensor("input");
  const bool is_lstm = call.base() == "lstm";
  const Types states = is_lstm ? call.tensors("hx") : Types{call.tensor("hx")};
  if (states.size() != (is_lstm ? 2u : 1u)) return call.fail("hx must hold two tensors");
  if (input.ndim() != 3) return call.fail("input must have 3 dims, not {}", text(call.syms, input));
  const i64 layers = COIL_TRY(call.constant("num_layers"));
  constexpr i64 kMaxLayers = 1024;
  if (layers < 1 || layers > kMaxLayers) return call.fail("does not take {} layers", layers);
  const i64 directions = call.flag("bidirectional") ? 2 : 1;
  const bool batch_first = call.flag("batch_first");
  const sym::Expr steps = input.shape[batch_first ? 1 : 0];
  const sym::Expr batch = input.shape[batch_first ? 0 : 1];
  for (const Type& state : states) {
    if (state.ndim() != 3) return call.fail("a state is {}", text(call.syms, state));
    for (const auto& [have, want] : {std::pair(state.shape[0], call.number(layers * directions)),
                                     std::pair(state.shape[1], batch)}) {
      COIL_TRY(call.sizes_agree(have, want));
    }
  }
  COIL_TRY(check_weights(call, layers, directions, input.shape[2], states[0].shape[2]));
  const sym::Expr width = call.syms.mul(states[0].shape[2], call.number(directions));
  Type out = call.contiguous(input.dtype, {steps, batch, width});
  if (batch_first) {
    std::swap(out.shape[0], out.shape[1]);
    std::swap(out.strides[0], out.strides[1]);
  }
  Types results = {std::move(out)};
  for (const Type& state : states) results.push_back(call.contiguous(input.dtype, state.shape));
  return results;
}

constexpr RuleRow kRules[] = {
    {"lstm.input", recurrence},
    {"gru.input", recurrence},
    {"rnn_tanh.input", recurrence},
    {"rnn_relu.input", recurrence},
};

}  // namespace

std::span<const RuleRow> recurrence_rules() { return kRules; }

}  // namespace coil
