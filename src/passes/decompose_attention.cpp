// Forms of attention, and single cells of recurrent layers.

#include <cmath>

#include "passes/composite.h"

namespace coil {
namespace {

double attention_scale(Composite& c, ValueId query) {
  if (c.has("scale")) return c.real("scale");
  const std::optional<i64> width = c.syms.as_const(c.size(query, -1));
  if (!width) c.fail("the head size must be fixed");
  return 1 / std::sqrt(static_cast<double>(*width));
}

/// Products of queries and keys, scaled and masked, in `dtype`.
ValueId attention_scores(Composite& c, DType dtype) {
  const ValueId query = c.tensor("query"), key = c.tensor("key");
  const double scale = attention_scale(c, query);
  ValueId scores =
      c.mul(matmul(c, c.to(query, dtype), c.transpose(c.to(key, dtype), -1, -2)), scale);
  if (c.flag("is_causal")) {
    const ValueId ones = c.filled({c.size(query, -2), c.size(key, -2)}, 1, DType::b8);
    const ValueId ahead = c.call("logical_not", {c.call("tril", {ones})});
    scores = c.call("masked_fill.Scalar", {scores, ahead, -INFINITY});
  }
  if (c.has("attn_mask")) scores = c.add(scores, c.to(c.tensor("attn_mask"), dtype));
  return scores;
}

/// The attention, and the logarithms of its rows' sums.
Values flash_attention(Composite& c) {
  const ValueId query = c.tensor("query");
  const ValueId out = c.call("scaled_dot_product_attention",
                             {query, c.tensor("key"), c.tensor("value"), c.arg("attn_mask"),
                              c.arg("dropout_p"), c.flag("is_causal"), c.arg("scale"), false});
  const ValueId scores = attention_scores(c, compute_dtype(c.dtype(query)));
  const ValueId sums = c.call("logsumexp", {scores, Exprs{c.n(-1)}});
  // A row that is masked as a whole has the sum 1 in eager's kernel.
  const ValueId finite = c.where(c.ne(sums, -INFINITY), sums, 0);
  const ValueId rows_outside =
      c.call("clone", {c.permute(finite, {0, 2, 1}), MemoryFormat::Contiguous});
  return {out, c.permute(rows_outside, {0, 2, 1})};
}

/// Gradients of query, key and value. The probabilities are made again from the scores and the
/// logarithms of their sums (Dao et al., FlashAttention, 2022, appendix B).
Values flash_attention_backward(Composite& c) {
  const DType narrow = c.dtype(c.tensor("query")), dtype = compute_dtype(narrow);
  const auto wide = [&](std::string_view name) { return c.to(c.tensor(name), dtype); };
  const auto turned = [&](ValueId v) { return c.transpose(v, -1, -2); };
  if (c.real("dropout_p") != 0) c.fail("dropout inside of attention is not supported");
  const double scale = attention_scale(c, c.tensor("query"));
  const ValueId gradient = wide("grad_out");
  const ValueId sums = c.unsqueeze(wide("logsumexp"), -1);
  const ValueId weights = c.call("exp", {c.sub(attention_scores(c, dtype), sums)});
  const ValueId of_value = matmul(c, turned(weights), gradient);
  const ValueId of_weights = matmul(c, gradient, turned(wide("value")));
  const ValueId mean = c.sum(c.mul(gradient, wide("out")), {-1}, KeepDim::Yes);
  const ValueId of_scores = c.mul(c.mul(weights, c.sub(of_weights, mean)), scale);
  const ValueId of_query = matmul(c, of_scores, wide("key"));
  const ValueId of_key = matmul(c, turned(of_scores), wide("query"));
  // Laid out as (batch, position, head, width).
  const auto finished = [&](ValueId v) {
    const ValueId rows = c.permute(c.to(v, narrow), {0, 2, 1, 3});
    return c.permute(c.call("clone", {rows, MemoryFormat::Contiguous}), {0, 2, 1, 3});
  };
  return {finished(of_query), finished(of_key), finished(of_value)};
}

struct Gates {
  ValueId from_input, from_state;
};

Gates gates(Composite& c, ValueId state) {
  return {linear(c, c.tensor("input"), c.tensor("w_ih"), c.tensor("b_ih")),
          linear(c, state, c.tensor("w_hh"), c.tensor("b_hh"))};
}

Values parts_of(Composite& c, ValueId v, i64 parts) {
  const sym::Expr each = c.syms.floordiv(c.size(v, -1), c.n(parts));
  return c.call_all("split_with_sizes",
                    {v, Exprs(static_cast<std::size_t>(parts), each), c.n(c.ndim(v) - 1)});
}

Values lstm_cell(Composite& c) {
  const Values state = c.tensors("hx");
  if (state.size() != 2) c.fail("hx must hold two tensors");
  const Gates all = gates(c, state.at(0));
  const Values g = parts_of(c, c.add(all.from_input, all.from_state), 4);
  const ValueId in = c.call("sigmoid", {g[0]}), forget = c.call("sigmoid", {g[1]});
  const ValueId cell = c.call("tanh", {g[2]}), out = c.call("sigmoid", {g[3]});
  const ValueId next = c.add(c.mul(forget, state.at(1)), c.mul(in, cell));
  return {c.mul(out, c.call("tanh", {next})), next};
}

Values gru_cell(Composite& c) {
  const ValueId state = c.tensor("hx");
  const Gates all = gates(c, state);
  const Values x = parts_of(c, all.from_input, 3), h = parts_of(c, all.from_state, 3);
  const ValueId reset = c.call("sigmoid", {c.add(h[0], x[0])});
  const ValueId update = c.call("sigmoid", {c.add(h[1], x[1])});
  const ValueId fresh = c.call("tanh", {c.add(x[2], c.mul(h[2], reset))});
  return {c.add(c.mul(c.sub(state, fresh), update), fresh)};
}

Values rnn_cell(Composite& c) {
  const Gates all = gates(c, c.tensor("hx"));
  const ValueId sum = c.add(all.from_state, all.from_input);
  return {c.call(c.op() == "rnn_tanh_cell" ? "tanh" : "relu", {sum})};
}

constexpr DecompositionRow kRows[] = {
    {"_scaled_dot_product_flash_attention_for_cpu_backward", flash_attention_backward},
    {"_scaled_dot_product_flash_attention_for_cpu", flash_attention},
    {"lstm_cell", lstm_cell},
    {"gru_cell", gru_cell},
    {"rnn_tanh_cell", rnn_cell},
    {"rnn_relu_cell", rnn_cell},
};

}  // namespace

std::span<const DecompositionRow> attention_decompositions() { return kRows; }

}  // namespace coil
