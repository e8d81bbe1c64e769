#include "graph/rules.h"

#include <algorithm>
#include <map>

#include "graph/rule.h"
#include "graph/unify.h"

namespace coil {
namespace {

using Registry = std::map<std::string_view, Rule, std::less<>>;

const Registry& registry() {
  static const Registry kRules = [] {
    Registry rules;
    for (std::span<const RuleRow> family :
         {pointwise_rules(), view_rules(), reshape_rules(), reduce_rules(), create_rules(),
          copy_rules(), matrix_rules(), norm_rules(), pool_rules(), index_rules(),
          recurrence_rules(), linalg_rules(), fft_rules()}) {
      for (const RuleRow& row : family) {
        const bool added = rules.emplace(row.op, row.rule).second;
        COIL_CHECK(added, "two rules for {}", row.op);
      }
    }
    return rules;
  }();
  return kRules;
}

Status check_args(const Graph& graph, const Node& node, const ops::Schema& schema) {
  if (node.args.size() != schema.args.size())
    return error("{} takes {} arguments, not {}", node.op, schema.args.size(), node.args.size());
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    Status fits = check_arg(graph, schema.args[i], node.args[i]);
    if (!fits.ok()) return in_context(node.op, fits.error());
  }
  return Ok{};
}

Result<Types> derive(Graph& graph, const Node& node) {
  if (is_own_op(node.op)) return infer_own_op(graph, node);
  const std::optional<ops::Schema> schema = ops::find_schema(node.op);
  if (!schema) return error("unknown op {}", node.op);
  COIL_TRY(check_args(graph, node, *schema));
  const auto row = registry().find(node.op);
  if (row != registry().end()) return row->second(Call(graph, node, *schema));
  if (graph.composites != nullptr && graph.composites->handles(node.op))
    return graph.composites->types(graph, node);
  return error("unsupported op {}: coil has no shape rule for it", node.op);
}

}  // namespace

Result<Types> infer(Graph& graph, const Node& node) {
  Types types = COIL_TRY(derive(graph, node));
  for (const Type& type : types) {
    Status valid = check_type(*graph.syms, type);
    if (!valid.ok()) return in_context(node.op, valid.error());
  }
  return types;
}

bool has_rule(std::string_view op) { return is_own_op(op) || registry().contains(op); }

bool has_rule(const Graph& graph, std::string_view op) {
  return has_rule(op) || (graph.composites != nullptr && graph.composites->handles(op));
}

std::vector<std::string> ops_with_rules() {
  std::vector<std::string> ops;
  for (const auto& [op, rule] : registry()) ops.emplace_back(op);
  return ops;
}

bool is_view_op(std::string_view op) {
  return std::ranges::any_of(view_rules(), [&](const RuleRow& row) { return row.op == op; });
}

}  // namespace coil
