// Recurrent layers, which stay whole until they are lowered.

#include "graph/rule.h"

namespace coil {
namespace {

/// Outputs of all steps, then the last states. Eager walks steps outside of the batch, whichever of
/// them comes first in the shape.
Result<Types> recurrence(const Call& call) {
  const Type& input = call.tensor("input");
  const bool is_lstm = call.base() == "lstm";
  const Types states = is_lstm ? call.tensors("hx") : Types{call.tensor("hx")};
  if (states.size() != (is_lstm ? 2u : 1u)) return call.fail("hx must hold two tensors");
  if (input.ndim() != 3) return call.fail("input must have 3 dims, not {}", text(call.syms, input));
  const i64 layers = COIL_TRY(call.constant("num_layers"));
  const i64 directions = call.flag("bidirectional") ? 2 : 1;
  const bool batch_first = call.flag("batch_first");
  const sym::Expr steps = input.shape[batch_first ? 1 : 0];
  const sym::Expr batch = input.shape[batch_first ? 0 : 1];
  for (const Type& state : states) {
    if (state.ndim() != 3) return call.fail("a state is {}", text(call.syms, state));
    for (const auto& [have, want] : {std::pair(state.shape[0], call.number(layers * directions)),
                                     std::pair(state.shape[1], batch)}) {
      Status fits = require_equal(call.graph, have, want, "sizes");
      if (!fits.ok()) return call.fail("{}", fits.error().message);
    }
  }
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
