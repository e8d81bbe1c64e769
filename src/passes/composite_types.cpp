// Types of composite ops: those that their decompositions give in a scratch graph.

#include <algorithm>

#include "graph/rule.h"
#include "passes/composite.h"
#include "passes/passes.h"

namespace coil {
namespace {

/// The node with its operands as inputs of `scratch`.
Node node_over_inputs(const Graph& graph, const Node& node, Graph& scratch) {
  const auto input = [&](ValueId v) {
    if (!v.valid()) return v;
    return scratch.add_value(str("a{}", scratch.values.size()), graph.type(v));
  };
  Node out = node;
  out.outs.clear();
  out.loc = LocId();
  for (Arg& arg : out.args) {
    if (ValueId* v = std::get_if<ValueId>(&arg)) *v = input(*v);
    if (Values* list = std::get_if<Values>(&arg))
      for (ValueId& v : *list) v = input(v);
  }
  return out;
}

/// Conditions that the row found, but for those on what it computes itself: they come again, with
/// their nodes, when the op is rewritten.
void adopt_checks(Graph& graph, Graph& scratch, std::size_t inputs) {
  sym::Arena& syms = *graph.syms;
  std::vector<sym::Expr> known;
  for (std::size_t i = 0; i < inputs; ++i)
    for (sym::Expr e : scratch.type(ValueId(i)).shape) syms.variables(e, known);
  for (std::size_t i = graph.checks.size(); i < scratch.checks.size(); ++i) {
    std::vector<sym::Expr> used;
    syms.variables(scratch.checks[i].condition, used);
    const bool is_own = std::ranges::any_of(used, [&](sym::Expr v) {
      return syms.var(v).role == sym::Role::Value && std::ranges::find(known, v) == known.end();
    });
    if (!is_own) graph.checks.push_back(std::move(scratch.checks[i]));
  }
}

/// Variables of data-dependent sizes got their names in the scratch graph; in `graph` they need
/// names of their own.
void adopt_variables(Graph& graph, const Graph& scratch, std::size_t inputs,
                     std::vector<Type>& types) {
  sym::Arena& syms = *graph.syms;
  std::vector<sym::Expr> known, seen;
  for (std::size_t i = 0; i < inputs; ++i)
    for (sym::Expr e : scratch.type(ValueId(i)).shape) syms.variables(e, known);
  for (const Type& type : types)
    for (sym::Expr e : type.shape) syms.variables(e, seen);
  std::vector<std::pair<sym::Expr, sym::Expr>> from_to;
  for (sym::Expr v : seen) {
    if (syms.var(v).role != sym::Role::Value || std::ranges::find(known, v) != known.end())
      continue;
    from_to.emplace_back(v, data_variable(graph, syms.var(v).range));
  }
  if (from_to.empty()) return;
  for (Type& type : types) {
    for (sym::Expr& e : type.shape) e = syms.substitute(e, from_to);
    for (sym::Expr& e : type.strides) e = syms.substitute(e, from_to);
  }
}

bool handles(std::string_view op) { return find_decomposition(op) != nullptr; }

Result<std::vector<Type>> types_of(Graph& graph, const Node& node) {
  const Decomposition row = find_decomposition(node.op);
  COIL_CHECK(row != nullptr, "no decomposition of {}", node.op);
  Graph scratch;
  scratch.syms = graph.syms;
  scratch.facts = graph.facts;
  scratch.sizes = graph.sizes;
  scratch.checks = graph.checks;
  scratch.composites = &composite_rules();
  const Node inner = node_over_inputs(graph, node, scratch);
  const std::size_t inputs = scratch.values.size();
  GraphBuilder builder(scratch, LocId(), "v");
  Result<Values> results = run_builder([&] {
    Composite composite(builder, inner);
    return row(composite);
  });
  if (!results.ok()) return in_context(node.op, results.error());
  adopt_checks(graph, scratch, inputs);
  std::vector<Type> types;
  for (ValueId v : *results) types.push_back(scratch.type(v));
  adopt_variables(graph, scratch, inputs, types);
  return types;
}

}  // namespace

const CompositeRules& composite_rules() {
  static constexpr CompositeRules kRules = {handles, types_of};
  return kRules;
}

}  // namespace coil
