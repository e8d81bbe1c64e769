// Ops that have no schema: update, and control flow over subgraphs.

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

const ValueId* value_arg(const Node& node, std::size_t i) {
  return i < node.args.size() ? std::get_if<ValueId>(&node.args[i]) : nullptr;
}

const std::vector<ValueId>* list_arg(const Node& node, std::size_t i) {
  return i < node.args.size() ? std::get_if<std::vector<ValueId>>(&node.args[i]) : nullptr;
}

/// The type of what the steps view, starting from `base`. They run in a graph of their own, so that
/// their intermediate values stay out of this one.
Result<Type> viewed(Graph& graph, const Type& base, std::span<const ViewStep> steps) {
  Graph scratch;
  scratch.syms = graph.syms;
  scratch.facts = graph.facts;
  ValueId at = scratch.add_value("base", base);
  for (const ViewStep& step : steps) {
    if (!is_view_op(step.op)) return error("update: {} is not a view", step.op);
    const std::optional<ops::Schema> schema = ops::find_schema(step.op);
    if (!schema || schema->results[0].list) return error("update: {} views several parts", step.op);
    Node node;
    node.op = step.op;
    node.args = {at};
    node.args.insert(node.args.end(), step.args.begin(), step.args.end());
    Types types = COIL_TRY(infer(scratch, node));
    at = scratch.add_value("view", std::move(types.at(0)));
  }
  for (Check& check : scratch.checks) graph.checks.push_back(std::move(check));
  return scratch.type(at);
}

Result<Types> update(Graph& graph, const Node& node) {
  const ValueId* base = value_arg(node, 0);
  const ValueId* value = value_arg(node, 1);
  if (base == nullptr || value == nullptr || node.args.size() != 2 ||
      !graph.type(*base).is_tensor() || !graph.type(*value).is_tensor())
    return error("update takes two tensors");
  const Type view = COIL_TRY(viewed(graph, graph.type(*base), node.view));
  const Type& with = graph.type(*value);
  const auto mismatch = [&] {
    return error("update: the value {} does not fit the view {}", text(*graph.syms, with),
                 text(*graph.syms, view));
  };
  if (view.dtype != with.dtype || view.ndim() != with.ndim()) return mismatch();
  for (std::size_t i = 0; i < view.ndim(); ++i)
    if (!require_equal(graph, view.shape[i], with.shape[i], "sizes").ok()) return mismatch();
  return Types{graph.type(*base)};
}

Result<const Graph*> subgraph(const Graph& graph, const Node& node, std::size_t i,
                              std::size_t count) {
  if (node.subgraphs.size() != count)
    return error("{} takes {} subgraphs, not {}", node.op, count, node.subgraphs.size());
  if (node.subgraphs[i] >= graph.subgraphs.size()) return error("{} names no subgraph", node.op);
  return &graph.subgraphs[node.subgraphs[i]];
}

Result<Types> output_types(const Node& node, const Graph& sub) {
  Types out;
  for (const Output& output : sub.outputs) {
    Type type;
    switch (output.kind) {
      case OutputKind::Value:
      case OutputKind::AliasOfInput:
      case OutputKind::AliasOfOutput:
      case OutputKind::Int: type = sub.type(output.value); break;
      case OutputKind::None: type.kind = TypeKind::None; break;
      case OutputKind::MutatedInput:
        return error("{}: subgraph {} writes an input", node.op, sub.name);
      case OutputKind::Constant: {
        const sym::Expr* number = std::get_if<sym::Expr>(&output.constant);
        if (number == nullptr) return error("{}: a subgraph returns a constant", node.op);
        type.kind = TypeKind::Int;
        type.expr = *number;
        break;
      }
    }
    out.push_back(std::move(type));
  }
  return out;
}

Status check_inputs(const Graph& graph, const Node& node, const Graph& sub, const Types& given) {
  if (sub.inputs.size() != given.size())
    return error("{}: subgraph {} takes {} inputs, not {}", node.op, sub.name, sub.inputs.size(),
                 given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Type& want = sub.type(sub.inputs[i].value);
    if (want.kind != given[i].kind || want.ndim() != given[i].ndim() ||
        (want.is_tensor() && want.dtype != given[i].dtype))
      return error("{}: input %{} of subgraph {} is {}, not {}", node.op, sub.inputs[i].name,
                   sub.name, text(*graph.syms, want), text(*graph.syms, given[i]));
  }
  return Ok{};
}

Types types_of(const Graph& graph, const std::vector<ValueId>& values) {
  Types out;
  for (ValueId v : values)
    out.push_back(v.valid() ? graph.type(v) : Type{TypeKind::None, {}, {}, {}, {}});
  return out;
}

/// One type for the results of both branches; sizes that differ depend on which one ran.
Result<Type> merged(Graph& graph, const Type& yes, const Type& no) {
  if (yes.kind != no.kind || yes.ndim() != no.ndim() || (yes.is_tensor() && yes.dtype != no.dtype))
    return error("cond: its branches return {} and {}", text(*graph.syms, yes),
                 text(*graph.syms, no));
  Type out = yes;
  const auto fresh = [&](sym::Expr a, sym::Expr b) {
    const sym::Range x = graph.syms->range(a);
    const sym::Range y = graph.syms->range(b);
    return data_variable(graph, {std::min(x.lo, y.lo), std::max(x.hi, y.hi)});
  };
  if (out.expr.valid() && out.expr != no.expr) out.expr = fresh(yes.expr, no.expr);
  bool same = true;
  for (std::size_t i = 0; i < out.ndim(); ++i) {
    if (known_equal(graph, yes.shape[i], no.shape[i])) continue;
    out.shape[i] = fresh(yes.shape[i], no.shape[i]);
    same = false;
  }
  if (!same) out.strides = contiguous_strides(*graph.syms, out.shape);
  return out;
}

Result<Types> cond(Graph& graph, const Node& node) {
  const std::vector<ValueId>* operands = list_arg(node, 1);
  if (operands == nullptr || node.args.size() != 2) return error("cond takes (pred, [operands])");
  const Arg& pred = node.args[0];
  const ValueId* tensor = std::get_if<ValueId>(&pred);
  if (tensor == nullptr && !std::holds_alternative<sym::Expr>(pred) &&
      !std::holds_alternative<bool>(pred))
    return error("cond: the predicate is {}", kind_text(pred));
  const Graph* yes = COIL_TRY(subgraph(graph, node, 0, 2));
  const Graph* no = COIL_TRY(subgraph(graph, node, 1, 2));
  const Types given = types_of(graph, *operands);
  COIL_TRY(check_inputs(graph, node, *yes, given));
  COIL_TRY(check_inputs(graph, node, *no, given));
  const Types a = COIL_TRY(output_types(node, *yes));
  const Types b = COIL_TRY(output_types(node, *no));
  if (a.size() != b.size())
    return error("cond: its branches return {} and {} values", a.size(), b.size());
  Types out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(COIL_TRY(merged(graph, a[i], b[i])));
  return out;
}

Result<Types> while_loop(Graph& graph, const Node& node) {
  const std::vector<ValueId>* carried = list_arg(node, 0);
  const std::vector<ValueId>* extra = list_arg(node, 1);
  if (carried == nullptr || extra == nullptr || node.args.size() != 2)
    return error("while_loop takes ([carried], [extra])");
  const Graph* condition = COIL_TRY(subgraph(graph, node, 0, 2));
  const Graph* body = COIL_TRY(subgraph(graph, node, 1, 2));
  Types given = types_of(graph, *carried);
  const std::size_t count = given.size();
  const Types more = types_of(graph, *extra);
  given.insert(given.end(), more.begin(), more.end());
  COIL_TRY(check_inputs(graph, node, *condition, given));
  COIL_TRY(check_inputs(graph, node, *body, given));
  if (condition->outputs.size() != 1)
    return error("while_loop: the condition must return one value");
  Types out = COIL_TRY(output_types(node, *body));
  if (out.size() != count)
    return error("while_loop: the body returns {} values for {} carried ones", out.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    if (out[i].kind != given[i].kind || out[i].ndim() != given[i].ndim() ||
        (out[i].is_tensor() && out[i].dtype != given[i].dtype))
      return error("while_loop: carried value {} turns from {} to {}", i,
                   text(*graph.syms, given[i]), text(*graph.syms, out[i]));
  }
  return out;
}

Result<Types> scan(Graph& graph, const Node& node) {
  const std::vector<ValueId>* init = list_arg(node, 0);
  const std::vector<ValueId>* xs = list_arg(node, 1);
  const std::vector<ValueId>* extra = list_arg(node, 2);
  if (init == nullptr || xs == nullptr || extra == nullptr || node.args.size() != 3)
    return error("scan takes ([init], [xs], [extra])");
  const Graph* combine = COIL_TRY(subgraph(graph, node, 0, 1));
  Types given = types_of(graph, *init);
  sym::Expr length;
  for (Type slice : types_of(graph, *xs)) {
    if (slice.ndim() == 0)
      return error("scan: nothing to scan over in {}", text(*graph.syms, slice));
    if (!length.valid()) length = slice.shape[0];
    COIL_TRY(require_equal(graph, length, slice.shape[0], "scanned sizes"));
    slice.shape.erase(slice.shape.begin());
    slice.strides.erase(slice.strides.begin());
    given.push_back(std::move(slice));
  }
  if (!length.valid()) return error("scan: there is nothing to scan over");
  const Types more = types_of(graph, *extra);
  given.insert(given.end(), more.begin(), more.end());
  COIL_TRY(check_inputs(graph, node, *combine, given));
  Types out = COIL_TRY(output_types(node, *combine));
  if (out.size() < init->size()) return error("scan: {} returns too few values", combine->name);
  for (std::size_t i = init->size(); i < out.size(); ++i) {
    if (!out[i].is_tensor()) return error("scan: {} stacks what is no tensor", combine->name);
    out[i].shape.insert(out[i].shape.begin(), length);
    out[i].strides = contiguous_strides(*graph.syms, out[i].shape);
  }
  return out;
}

struct Row {
  std::string_view op;
  Result<Types> (*rule)(Graph&, const Node&);
};
constexpr Row kRows[] = {
    {"update", update}, {"cond", cond}, {"while_loop", while_loop}, {"scan", scan}};

}  // namespace

bool is_own_op(std::string_view op) {
  return std::ranges::any_of(kRows, [&](const Row& row) { return row.op == op; });
}

Result<Types> infer_own_op(Graph& graph, const Node& node) {
  for (const Row& row : kRows)
    if (row.op == node.op) return row.rule(graph, node);
  COIL_UNREACHABLE();
}

}  // namespace coil
