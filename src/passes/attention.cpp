// Attention that a model spells out as two products around a softmax.

#include <cmath>
#include <map>

#include "base/check.h"
#include "graph/args.h"
#include "graph/builder.h"
#include "passes/passes.h"

namespace coil {
namespace {

using Sizes = std::vector<sym::Expr>;

/// What is added to the scores, and the shape of the scores where it is.
struct Term {
  ValueId value;
  Sizes shape;
};

/// Scores that are -inf where a condition says so.
struct Choice {
  ValueId condition;
  bool keeps = false;  // the scores stay where it is true, not where it is false
};

struct Spelling {
  ValueId query, turned_key, value;  // operands of the products, [b, m, d], [b, d, n], [b, n, e]
  Sizes scores;                      // the shape that softmax sees, [.., m, n]
  double scale = 1;
  std::vector<Term> terms;
  std::optional<Choice> choice;  // with it there are no terms: one op takes one mask
};

class Recognizer {
 public:
  explicit Recognizer(Graph& graph) : graph_(graph), uses_(graph.values.size(), 0) {
    for (const Node& node : graph.nodes) each_value(node.args, [&](ValueId v) { ++uses_[v]; });
    for (const Output& output : graph.outputs)
      if (output.value.valid()) ++uses_[output.value];
    for (const StateUpdate& update : graph.state_updates) ++uses_[update.value];
  }

  void run() {
    const std::size_t count = graph_.nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const NodeId id(i);
      if (const std::optional<Spelling> found = match(graph_.nodes[id])) rewrite(id, *found);
    }
    if (!made_.empty()) put_in_order(count);
  }

 private:
  /// The node that makes `v`, if it is read once: then no one misses it.
  const Node* only_for_this(ValueId v) const {
    const NodeId def = graph_.values[v].def;
    return def.valid() && uses_.get(v) == 1 ? &graph_.nodes[def] : nullptr;
  }

  static bool is_reshape(const Node& node) {
    return node.op == "view" || node.op == "_unsafe_view" || node.op == "reshape";
  }
  static ValueId operand(const Node& node, std::size_t index) {
    const ValueId* v = std::get_if<ValueId>(&node.args.at(index));
    return v ? *v : ValueId();
  }
  std::optional<double> number(const Arg& arg) const {
    if (const double* d = std::get_if<double>(&arg)) return *d;
    const sym::Expr* e = std::get_if<sym::Expr>(&arg);
    const std::optional<i64> n = e ? graph_.syms->as_const(*e) : std::nullopt;
    return n ? std::optional<double>(static_cast<double>(*n)) : std::nullopt;
  }
  bool same_rows(const Sizes& a, const Sizes& b) const {
    return a.size() > 1 && b.size() > 1 && std::equal(a.end() - 2, a.end(), b.end() - 2);
  }

  /// From the second product upwards.
  std::optional<Spelling> match(const Node& product) const {
    if (product.op != "bmm") return std::nullopt;
    Spelling found;
    found.value = operand(product, 1);
    const Type& weights = graph_.type(operand(product, 0));
    if (weights.dtype != DType::f32 && weights.dtype != DType::f64) return std::nullopt;
    const Node* node = only_for_this(operand(product, 0));
    while (node && is_reshape(*node)) node = only_for_this(operand(*node, 0));
    if (!node || node->op != "_softmax") return std::nullopt;
    const ValueId scores = operand(*node, 0);
    found.scores = graph_.type(scores).shape;
    const i64 ndim = static_cast<i64>(found.scores.size());
    const std::optional<double> dim = number(node->args.at(1));
    const bool on_last = dim && (*dim == -1 || *dim == static_cast<double>(ndim - 1));
    if (!on_last || ndim < 3 || ndim > 4 || graph_.type(scores).dtype != weights.dtype)
      return std::nullopt;
    if (!same_rows(found.scores, weights.shape) || !match_scores(scores, found))
      return std::nullopt;
    // The products go over the same batches, in the same order.
    if (graph_.type(found.query).shape[0] != weights.shape[0]) return std::nullopt;
    return found;
  }

  /// From the softmax upwards: masks and scales down to the product of queries and keys.
  bool match_scores(ValueId v, Spelling& found) const {
    const Node* node = only_for_this(v);
    if (!node) return false;
    const Type& type = graph_.type(v);
    if (node->op == "bmm") {
      found.query = operand(*node, 0);
      found.turned_key = operand(*node, 1);
      return true;
    }
    if (is_reshape(*node)) {
      const ValueId from = operand(*node, 0);
      return same_rows(graph_.type(from).shape, type.shape) && match_scores(from, found);
    }
    if (node->op == "mul.Scalar" || node->op == "div.Scalar") {
      const ValueId from = operand(*node, 0);
      const std::optional<double> factor = number(node->args.at(1));
      if (!from.valid() || !factor || graph_.type(from).dtype != type.dtype) return false;
      found.scale = node->op == "mul.Scalar" ? found.scale * *factor : found.scale / *factor;
      return match_scores(from, found);
    }
    // scale * (scores + mask) has its mask scaled, which no form of attention has.
    if (found.scale != 1) return false;
    if (node->op.starts_with("where.") || node->op.starts_with("masked_fill."))
      return match_choice(*node, type, found);
    if (node->op != "add.Tensor" || number(node->args.at(2)) != 1.0) return false;
    return match_term(*node, type, found);
  }

  bool match_term(const Node& node, const Type& type, Spelling& found) const {
    if (found.choice) return false;
    for (const std::size_t side : {0, 1}) {
      const ValueId scores = operand(node, side), term = operand(node, 1 - side);
      if (!scores.valid() || !term.valid() || graph_.type(scores).shape != type.shape ||
          graph_.type(scores).dtype != type.dtype || graph_.type(term).dtype != type.dtype)
        continue;
      Spelling tried = found;
      tried.terms.push_back({term, type.shape});
      if (!match_scores(scores, tried)) continue;
      found = std::move(tried);
      return true;
    }
    return false;
  }

  bool is_minus_infinity(const Arg& arg) const {
    const ValueId* v = std::get_if<ValueId>(&arg);
    if (!v) return number(arg) == -INFINITY;
    const NodeId def = graph_.values[*v].def;
    if (!def.valid()) return false;
    const Node& node = graph_.nodes[def];
    if (node.op == "scalar_tensor") return number(node.args.at(0)) == -INFINITY;
    return node.op == "full" && number(node.args.at(1)) == -INFINITY;
  }

  /// where(condition, scores, -inf) and its kin. With another number the weights of a row of which
  /// nothing is kept would be equal, and with a mask added to it -inf might meet inf.
  bool match_choice(const Node& node, const Type& type, Spelling& found) const {
    if (found.choice || !found.terms.empty()) return false;
    const bool fills = node.op.starts_with("masked_fill.");  // (scores, condition, number)
    const Arg& condition = node.args.at(fills ? 1 : 0);
    const bool keeps = !fills && is_minus_infinity(node.args.at(2));
    const Arg& scores = node.args.at(fills ? 0 : keeps ? 1 : 2);
    const Arg& number = node.args.at(fills ? 2 : keeps ? 2 : 1);
    const ValueId* from = std::get_if<ValueId>(&scores);
    const ValueId* choice = std::get_if<ValueId>(&condition);
    if (!from || !choice || !is_minus_infinity(number) || graph_.type(*from).shape != type.shape ||
        graph_.type(*from).dtype != type.dtype || !is_bool(graph_.type(*choice).dtype) ||
        type.shape != found.scores)
      return false;
    found.choice = Choice{*choice, keeps};
    return match_scores(*from, found);
  }

  // ---- the op instead ----

  /// `v` with its elements in the same order under another shape: as it had it before a reshape.
  ValueId shaped(GraphBuilder& b, ValueId v, const Sizes& shape) const {
    for (ValueId at = v; at.valid();) {
      if (graph_.type(at).shape == shape) return at;
      const NodeId def = graph_.values[at].def;
      at = def.valid() && is_reshape(graph_.nodes[def]) ? operand(graph_.nodes[def], 0) : ValueId();
    }
    return b.call("reshape", {v, shape});
  }

  ValueId mask(GraphBuilder& b, const Spelling& s) const {
    if (s.choice)
      return s.choice->keeps ? s.choice->condition : b.call("logical_not", {s.choice->condition});
    ValueId sum;
    for (const Term& term : s.terms) {
      ValueId here = term.value;
      if (term.shape != s.scores)
        here = b.call("reshape", {b.call("expand", {here, term.shape}), s.scores});
      sum = sum.valid() ? b.call("add.Tensor", {sum, here}) : here;
    }
    return sum;
  }

  void rewrite(NodeId id, const Spelling& s) {
    const std::size_t first = graph_.nodes.size();
    const ValueId result = graph_.nodes[id].outs[0];
    GraphBuilder b(graph_, graph_.nodes[id].loc, graph_.values[result].name + "_attention");
    const Result<ValueId> made = run_builder([&] {
      const auto lead = [&](ValueId v) {
        const Sizes& shape = graph_.type(v).shape;
        Sizes out(s.scores.begin(), s.scores.end() - 2);
        out.insert(out.end(), shape.end() - 2, shape.end());
        return out;
      };
      const ValueId query = shaped(b, s.query, lead(s.query));
      const ValueId turned = shaped(b, s.turned_key, lead(s.turned_key));
      const sym::Expr last = b.integer(-1), before = b.integer(-2);
      const ValueId key = b.call("transpose.int", {turned, before, last});
      const ValueId value = shaped(b, s.value, lead(s.value));
      const ValueId added = mask(b, s);
      return b.call("softmax_attention",
                    {query, key, value, added.valid() ? Arg(added) : None{}, s.scale});
    });
    COIL_CHECK(made.ok(), "attention at {}: {}", graph_.values[result].name,
               made.ok() ? "" : made.error().message);
    Node& product = graph_.nodes[id];
    product.op = "view";
    product.args = {*made, graph_.type(result).shape};
    made_.emplace(id, first);
  }

  /// The nodes that were made stand at the end: they go before those for which they were.
  void put_in_order(std::size_t count) {
    Table<NodeId, Node> from = std::move(graph_.nodes);
    graph_.nodes = {};
    const auto take = [&](std::size_t i) {
      const NodeId to = graph_.nodes.add(std::move(from[NodeId(i)]));
      for (ValueId out : graph_.nodes[to].outs) graph_.values[out].def = to;
    };
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto at = made_.find(NodeId(i)); at != made_.end()) {
        const auto next = std::next(at);
        const std::size_t end = next == made_.end() ? from.size() : next->second;
        for (std::size_t n = at->second; n < end; ++n) take(n);
      }
      take(i);
    }
  }

  Graph& graph_;
  Side<ValueId, int> uses_;
  std::map<NodeId, std::size_t> made_;  // for a node that was rewritten: the first one made for it
};

}  // namespace

void recognize_attention(Graph& graph) {
  for (Graph& subgraph : graph.subgraphs) recognize_attention(subgraph);
  Recognizer(graph).run();
}

}  // namespace coil
