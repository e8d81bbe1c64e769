// Removes what has no effect on outputs, state or checks.

#include <algorithm>
#include <map>

#include "graph/args.h"
#include "passes/passes.h"

namespace coil {
namespace {

/// Finds what is needed, from the outputs backwards. A node needs its operands and the nodes that
/// define the data-dependent variables in its arguments and types.
class Liveness {
 public:
  explicit Liveness(const Graph& graph)
      : graph_(graph), nodes_(graph.nodes.size(), false), values_(graph.values.size(), false) {
    for (NodeId id : graph.nodes.ids())
      for (ValueId out : graph.nodes[id].outs) define(graph.type(out), id);
    for (const Output& output : graph.outputs)
      if (output.value.valid()) use(output.value);
    for (const StateUpdate& update : graph.state_updates) {
      use(update.value);
      use(graph.constants[update.constant].value);
    }
    for (const Check& check : graph.checks) use(check.condition);
    for (std::size_t i = graph.nodes.size(); i-- > 0;)
      if (nodes_.get(NodeId(i))) visit(graph.nodes[NodeId(i)]);
  }

  bool node(NodeId id) const { return nodes_.get(id); }
  bool value(ValueId v) const { return values_.get(v); }

 private:
  void define(const Type& type, NodeId id) {
    std::vector<sym::Expr> found;
    for (sym::Expr e : type.shape) graph_.syms->variables(e, found);
    if (type.expr.valid()) graph_.syms->variables(type.expr, found);
    for (sym::Expr v : found)
      if (graph_.syms->var(v).role == sym::Role::Value) definitions_.emplace(v, id);
  }

  void use(ValueId v) {
    values_[v] = true;
    if (graph_.values[v].def.valid()) nodes_[graph_.values[v].def] = true;
  }

  void use(sym::Expr e) {
    if (!e.valid()) return;
    std::vector<sym::Expr> found;
    graph_.syms->variables(e, found);
    for (sym::Expr v : found)
      if (auto at = definitions_.find(v); at != definitions_.end()) nodes_[at->second] = true;
  }

  void use(const Type& type) {
    for (sym::Expr e : type.shape) use(e);
    for (sym::Expr e : type.strides) use(e);
    use(type.expr);
  }

  void use_exprs(const std::vector<Arg>& args) {
    for (const Arg& arg : args) {
      if (const sym::Expr* e = std::get_if<sym::Expr>(&arg)) use(*e);
      if (const auto* list = std::get_if<std::vector<sym::Expr>>(&arg))
        for (sym::Expr e : *list) use(e);
    }
  }

  /// Sizes of the surrounding graph that a branch mentions.
  void use_exprs(const Graph& subgraph) {
    for (const Value& value : subgraph.values) use(value.type);
    for (const Node& node : subgraph.nodes) use_exprs(node.args);
    for (const Graph& inner : subgraph.subgraphs) use_exprs(inner);
  }

  void visit(const Node& node) {
    each_value(node.args, [&](ValueId v) { use(v); });
    use_exprs(node.args);
    for (const ViewStep& step : node.view) use_exprs(step.args);
    for (ValueId out : node.outs) {
      values_[out] = true;
      use(graph_.type(out));
    }
    for (u32 index : node.subgraphs) use_exprs(graph_.subgraphs[index]);
  }

  const Graph& graph_;
  Side<NodeId, bool> nodes_;
  Side<ValueId, bool> values_;
  std::map<sym::Expr, NodeId> definitions_;  // of variables of role Value: the first node with it
};

/// Takes over what is live, with new ids.
class Compaction {
 public:
  Compaction(Graph& graph, const Liveness& live)
      : graph_(graph), live_(live), moved_(graph.values.size()) {}

  void run() {
    Table<ValueId, Value> values = std::move(graph_.values);
    Table<NodeId, Node> nodes = std::move(graph_.nodes);
    std::vector<bool> is_input(values.size(), false);
    for (const Input& input : graph_.inputs) is_input[input.value.index] = true;
    graph_.values = {};
    graph_.nodes = {};
    for (ValueId v : values.ids())
      if (live_.value(v) || is_input[v.index]) moved_[v] = graph_.values.add(std::move(values[v]));
    std::vector<u32> subgraphs = keep_subgraphs(nodes);
    for (NodeId id : nodes.ids())
      if (live_.node(id)) take(std::move(nodes[id]), subgraphs);
    for (Input& input : graph_.inputs) input.value = moved_.get(input.value);
    for (Output& output : graph_.outputs)
      if (output.value.valid()) output.value = moved_.get(output.value);
    keep_constants();
  }

 private:
  void take(Node node, const std::vector<u32>& subgraphs) {
    const auto move = [&](ValueId& v) {
      if (v.valid()) v = moved_.get(v);
    };
    for (Arg& arg : node.args) {
      if (ValueId* v = std::get_if<ValueId>(&arg)) move(*v);
      if (auto* list = std::get_if<std::vector<ValueId>>(&arg))
        for (ValueId& v : *list) move(v);
    }
    for (ValueId& out : node.outs) move(out);
    for (u32& index : node.subgraphs) index = subgraphs[index];
    const NodeId id = graph_.nodes.add(std::move(node));
    for (ValueId out : graph_.nodes[id].outs) graph_.values[out].def = id;
  }

  /// Drops subgraphs of dead nodes; the result maps old indices to new ones.
  std::vector<u32> keep_subgraphs(const Table<NodeId, Node>& nodes) {
    std::vector<bool> used(graph_.subgraphs.size(), false);
    for (NodeId id : nodes.ids())
      if (live_.node(id))
        for (u32 index : nodes[id].subgraphs) used[index] = true;
    std::vector<u32> indices(used.size(), 0);
    std::vector<Graph> kept;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      indices[i] = static_cast<u32>(kept.size());
      kept.push_back(std::move(graph_.subgraphs[i]));
    }
    graph_.subgraphs = std::move(kept);
    return indices;
  }

  void keep_constants() {
    std::vector<u32> indices(graph_.constants.size(), 0);
    std::vector<Constant> kept;
    for (std::size_t i = 0; i < graph_.constants.size(); ++i) {
      Constant& constant = graph_.constants[i];
      if (!live_.value(constant.value)) continue;
      indices[i] = static_cast<u32>(kept.size());
      constant.value = moved_.get(constant.value);
      kept.push_back(std::move(constant));
    }
    graph_.constants = std::move(kept);
    for (StateUpdate& update : graph_.state_updates) {
      update.constant = indices[update.constant];
      update.value = moved_.get(update.value);
    }
  }

  Graph& graph_;
  const Liveness& live_;
  Side<ValueId, ValueId> moved_;
};

}  // namespace

void remove_dead_code(Graph& graph) {
  for (Graph& subgraph : graph.subgraphs) remove_dead_code(subgraph);
  const Liveness live(graph);
  Compaction(graph, live).run();
}

}  // namespace coil
