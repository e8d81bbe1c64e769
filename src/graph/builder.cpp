#include "graph/builder.h"

#include "graph/args.h"
#include "graph/rules.h"
#include "ops/schema.h"

namespace coil {
GraphBuilder::GraphBuilder(Graph& graph, LocId loc, std::string prefix)
    : graph_(graph), loc_(loc), prefix_(std::move(prefix)) {}

std::vector<ValueId> GraphBuilder::call_all(const std::string& op, std::vector<Arg> args) {
  const std::optional<ops::Schema> schema = ops::find_schema(op);
  if (!schema) throw BuildError{error("unknown op {}", op)};
  Node node;
  node.op = op;
  node.args = value_or_throw(complete_args(graph_, *schema, std::move(args)));
  return append(std::move(node));
}

ValueId GraphBuilder::call(const std::string& op, std::vector<Arg> args) {
  const std::vector<ValueId> outs = call_all(op, std::move(args));
  COIL_CHECK(outs.size() == 1, "{} has {} results", op, outs.size());
  return outs[0];
}

ValueId GraphBuilder::update(ValueId base, std::vector<ViewStep> view, ValueId value) {
  Node node;
  node.op = "update";
  node.args = {base, value};
  node.view = std::move(view);
  return append(std::move(node)).at(0);
}

std::vector<ValueId> GraphBuilder::append(Node node) {
  node.loc = loc_;
  node.outs.clear();
  std::vector<Type> types = value_or_throw(infer(graph_, node));
  const NodeId id = graph_.nodes.add(std::move(node));
  std::vector<ValueId> outs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueId out = graph_.add_value(graph_.fresh_name(prefix_), std::move(types[i]));
    graph_.values[out].def = id;
    graph_.values[out].out_index = static_cast<u32>(i);
    outs.push_back(out);
  }
  graph_.nodes[id].outs = outs;
  return outs;
}

sym::Expr GraphBuilder::size(ValueId v, i64 dim) const {
  const std::vector<sym::Expr>& shape = graph_.type(v).shape;
  const i64 at = dim < 0 ? dim + static_cast<i64>(shape.size()) : dim;
  if (at < 0 || at >= static_cast<i64>(shape.size()))
    throw BuildError{error("needs dim {} of {}", dim, text(*graph_.syms, graph_.type(v)))};
  return shape[static_cast<std::size_t>(at)];
}

std::vector<sym::Expr> GraphBuilder::integers(std::initializer_list<i64> v) {
  std::vector<sym::Expr> out;
  for (i64 value : v) out.push_back(integer(value));
  return out;
}

}  // namespace coil
