#include "check_undecided.h"

#include <algorithm>
#include <cmath>

#include "check_close.h"
#include "check_judge.h"
#include "graph/args.h"
#include "ops/schema.h"

namespace coil::cli {
namespace {

using runtime::Tensor;

/// Ops whose floats are some of the operands' floats, or whole numbers: nothing is rounded.
constexpr std::string_view kExact[] = {"view",
                                       "permute",
                                       "expand",
                                       "select",
                                       "slice",
                                       "unsqueeze",
                                       "squeeze",
                                       "diagonal",
                                       "unfold",
                                       "as_strided",
                                       "split_with_sizes",
                                       "unbind",
                                       "view_as_real",
                                       "view_as_complex",
                                       "real",
                                       "imag",
                                       "alias",
                                       "detach",
                                       "clone",
                                       "copy",
                                       "cat",
                                       "constant_pad_nd",
                                       "flip",
                                       "roll",
                                       "repeat",
                                       "reflection_pad1d",
                                       "reflection_pad2d",
                                       "reflection_pad3d",
                                       "replication_pad1d",
                                       "replication_pad2d",
                                       "replication_pad3d",
                                       "tril",
                                       "triu",
                                       "index_select",
                                       "full",
                                       "full_like",
                                       "scalar_tensor",
                                       "empty",
                                       "eye",
                                       "embedding",
                                       "index",
                                       "index_put",
                                       "gather",
                                       "scatter",
                                       "index_copy",
                                       "index_fill",
                                       "masked_scatter",
                                       "slice_scatter",
                                       "select_scatter",
                                       "update",
                                       "where",
                                       "masked_fill",
                                       "relu",
                                       "relu6",
                                       "clamp",
                                       "clamp_min",
                                       "clamp_max",
                                       "hardtanh",
                                       "threshold",
                                       "maximum",
                                       "minimum",
                                       "fmax",
                                       "fmin",
                                       "neg",
                                       "abs",
                                       "amax",
                                       "amin",
                                       "max",
                                       "min",
                                       "sort",
                                       "topk",
                                       "cummax",
                                       "cummin",
                                       "sign",
                                       "floor",
                                       "ceil",
                                       "trunc",
                                       "round",
                                       "heaviside",
                                       "max_pool2d_with_indices",
                                       "max_pool3d_with_indices",
                                       "adaptive_max_pool2d",
                                       "cond"};

bool holds_floats(const Type& type) {
  if (type.kind == TypeKind::Float) return true;
  return type.is_tensor() && (is_float(type.dtype) || is_complex(type.dtype));
}

bool keeps_bits(const Graph& graph, const Node& node) {
  if (node.op == "_to_copy") {  // whole numbers; the plain run differs where they are too large
    const auto* from = std::get_if<ValueId>(&node.args[0]);
    return from && !holds_floats(graph.type(*from));
  }
  return std::find(std::begin(kExact), std::end(kExact), base_name(node.op)) != std::end(kExact);
}

/// One operation of IEEE 754, in f32 or f64.
bool is_correctly_rounded(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.outs[0]).dtype;
  const std::string_view base = base_name(node.op);
  return (dtype == DType::f32 || dtype == DType::f64) &&
         (base == "mul" || base == "sqrt" || base == "reciprocal" || node.op == "div.Tensor" ||
          node.op == "div.Scalar");
}

/// Values of a node's arguments, those behind its symbolic integers included.
template <class Use>
void each_source(const Graph& graph, const Side<sym::Expr, ValueId>& data, const Node& node,
                 Use use) {
  const auto use_expr = [&](sym::Expr e) {
    std::vector<sym::Expr> variables;
    graph.syms->variables(e, variables);
    for (sym::Expr v : variables)
      if (data.get(v).valid()) use(data.get(v));
  };
  const auto use_args = [&](const std::vector<Arg>& args) {
    each_value(args, use);
    for (const Arg& arg : args) {
      if (const auto* e = std::get_if<sym::Expr>(&arg)) use_expr(*e);
      if (const auto* list = std::get_if<std::vector<sym::Expr>>(&arg))
        for (sym::Expr e : *list) use_expr(e);
    }
  };
  use_args(node.args);
  for (const ViewStep& step : node.view) use_args(step.args);
  for (ValueId out : node.outs)
    if (out.valid())
      for (sym::Expr e : graph.type(out).shape) use_expr(e);
}

/// The place among the arguments of `where` and its kin: condition, and the values it chooses from.
struct Choice {
  std::string_view condition, yes, no;
};
std::optional<Choice> choice_of(std::string_view op) {
  if (op == "where.self") return Choice{"condition", "self", "other"};
  if (op.starts_with("where.Scalar")) return Choice{"condition", "self", "other"};
  if (op.starts_with("masked_fill.")) return Choice{"mask", "value", "self"};
  return std::nullopt;
}

const Arg* argument(const Node& node, std::string_view name) {
  const std::optional<ops::Schema> schema = ops::find_schema(node.op);
  const int at = schema ? schema->arg_index(name) : -1;
  return at >= 0 && static_cast<std::size_t>(at) < node.args.size()
             ? &node.args[static_cast<std::size_t>(at)]
             : nullptr;
}

/// A decision inside of a subgraph cannot be looked at from outside.
bool decides_inside(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    bool floats = false;
    each_value(node.args, [&](ValueId v) { floats |= holds_floats(graph.type(v)); });
    if (!floats) continue;
    if (is_jump(node.op)) return true;
    for (ValueId out : node.outs)
      if (out.valid() && !holds_floats(graph.type(out)) && graph.type(out).kind != TypeKind::None)
        return true;
    for (u32 s : node.subgraphs)
      if (decides_inside(graph.subgraphs[s])) return true;
  }
  return false;
}

}  // namespace

/// Reads observed values of one call.
class Closeness {
 public:
  Closeness(const Decisions& d, const Oracle& oracle, std::size_t call)
      : d_(d), oracle_(oracle), call_(call) {}

  std::optional<Operand> value(ValueId v) const {
    const u32 at = d_.at_.get(v);
    if (at == 0) return std::nullopt;
    const std::size_t row = d_.first_ + at - 1;
    const auto* p = std::get_if<Tensor>(&oracle_.plain[call_].at(row));
    const auto* w = std::get_if<Tensor>(&oracle_.wide[call_].at(row));
    if (!p || !w || p->shape != w->shape || is_complex(p->dtype)) return std::nullopt;
    return operand_of(*p, *w, d_.rounded_.get(v));
  }
  std::optional<Operand> argument_value(const Node& node, std::string_view name) const {
    const Arg* arg = argument(node, name);
    if (!arg) return std::nullopt;
    if (const auto* v = std::get_if<ValueId>(arg)) return value(*v);
    if (const auto* f = std::get_if<double>(arg)) return operand_of(*f);
    if (const auto* b = std::get_if<bool>(arg)) return operand_of(*b ? 1.0 : 0.0);
    if (const auto* e = std::get_if<sym::Expr>(arg))
      if (const auto i = d_.graph_.syms->as_const(*e)) return operand_of(static_cast<double>(*i));
    return std::nullopt;
  }
  Operands operands(const Node& node) const {
    return [this, &node](std::string_view name) { return argument_value(node, name); };
  }
  /// Both runs hold the same.
  bool agrees(ValueId v) const {
    const u32 at = d_.at_.get(v);
    if (at == 0) return true;
    const std::size_t row = d_.first_ + at - 1;
    return identical(oracle_.plain[call_].at(row), oracle_.wide[call_].at(row));
  }

 private:
  const Decisions& d_;
  const Oracle& oracle_;
  std::size_t call_;
};

Decisions::Decisions(const Graph& graph) : graph_(graph) {
  for (ValueId v : graph.values.ids()) {
    const Type& type = graph.type(v);
    if (!type.is_tensor() && type.expr.valid() && graph.syms->kind(type.expr) == sym::Kind::Var &&
        graph.values[v].def.valid())
      data_[type.expr] = v;
  }
  for (const Node& node : graph.nodes)
    each_source(graph, data_, node, [&](ValueId v) { ++uses_[v]; });
  for (const Output& out : graph.outputs)
    if (out.value.valid()) ++uses_[out.value];
  for (const StateUpdate& update : graph.state_updates) ++uses_[update.value];
  find_rounded();
  find_decisions();
}

Rounding Decisions::rounding_of(const Node& node) const {
  bool rounded = false, floats = false;
  each_source(graph_, data_, node,
              [&](ValueId v) { rounded |= rounded_.get(v) != Rounding::None; });
  for (ValueId out : node.outs)
    if (out.valid()) floats |= holds_floats(graph_.type(out));
  if (rounded) return Rounding::Many;
  if (!floats || keeps_bits(graph_, node)) return Rounding::None;
  return is_correctly_rounded(graph_, node) ? Rounding::Once : Rounding::Many;
}

void Decisions::find_rounded() {
  // A state that takes a rounded value is rounded from the second call on.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Node& node : graph_.nodes)
      for (ValueId out : node.outs)
        if (out.valid()) rounded_[out] = rounding_of(node);
    for (const StateUpdate& update : graph_.state_updates) {
      const ValueId state = graph_.constants[update.constant].value;
      if (rounded_.get(update.value) == Rounding::None || rounded_.get(state) != Rounding::None)
        continue;
      rounded_[state] = Rounding::Many;
      changed = true;
    }
  }
}

void Decisions::observe(ValueId v) {
  if (!v.valid() || !graph_.type(v).is_tensor() || at_.get(v) != 0) return;
  observed_.push_back(v);
  at_[v] = static_cast<u32>(observed_.size());
}

void Decisions::find_decisions() {
  for (NodeId id : graph_.nodes.ids()) {
    const Node& node = graph_.nodes[id];
    bool from_rounded = false;
    each_value(node.args, [&](ValueId v) {
      from_rounded |= rounded_.get(v) != Rounding::None && holds_floats(graph_.type(v));
    });
    if (!from_rounded) continue;
    bool used_exact = false;
    for (ValueId out : node.outs)
      if (out.valid() && uses_.get(out) > 0 && !holds_floats(graph_.type(out))) used_exact = true;
    const bool inside = std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                                    [&](u32 s) { return decides_inside(graph_.subgraphs[s]); });
    if (!used_exact && !is_jump(node.op) && !inside) continue;
    decisions_.push_back(id);
    each_value(node.args, [&](ValueId v) { observe(v); });
    for (ValueId out : node.outs)
      if (out.valid() && !holds_floats(graph_.type(out)) && uses_.get(out) > 0) observe(out);
  }
  for (const Node& node : graph_.nodes) {
    const std::optional<Choice> choice = choice_of(node.op);
    if (!choice) continue;
    const Arg* condition = argument(node, choice->condition);
    const auto* c = condition ? std::get_if<ValueId>(condition) : nullptr;
    if (!c || at_.get(*c) == 0) continue;  // its condition is exact
    each_value(node.args, [&](ValueId v) { observe(v); });
  }
}

std::string Decisions::own_reason(NodeId id, const Oracle& oracle) const {
  const Node& node = graph_.nodes[id];
  const std::string who = str("%{}, {}", describe(graph_, id), node.op);
  for (u32 s : node.subgraphs)
    if (decides_inside(graph_.subgraphs[s]))
      return who + ": it decides on floats inside, which cannot be looked at";
  for (std::size_t call = 0; call < oracle.plain.size(); ++call) {
    const Closeness values(*this, oracle, call);
    for (ValueId out : node.outs)
      if (out.valid() && !values.agrees(out))
        return who + ": the interpreter decides otherwise in double";
    if (const auto close = close_elements(graph_, node, values.operands(node));
        close && std::find(close->begin(), close->end(), true) != close->end())
      return str("{}: {} of {} decisions on floats are closer than the floats are known", who,
                 std::count(close->begin(), close->end(), true), close->size());
    if (has_close_order(graph_, node, values.operands(node)))
      return who + ": elements are so close that their order is open";
  }
  return "";
}

/// Where the condition is open, both values are the same within their tolerance.
bool Decisions::is_smooth_choice(const Node& node, const Oracle& oracle) const {
  const std::optional<Choice> choice = choice_of(node.op);
  if (!choice) return false;
  const Arg* condition = argument(node, choice->condition);
  const ValueId c = condition && std::holds_alternative<ValueId>(*condition)
                        ? std::get<ValueId>(*condition)
                        : ValueId();
  if (!c.valid() || !graph_.values[c].def.valid()) return false;
  const Node& comparison = graph_.nodes[graph_.values[c].def];
  bool only_condition = true;
  each_value(node.args, [&](ValueId v) { only_condition &= v == c || reasons_.get(v).empty(); });
  if (!only_condition) return false;
  for (std::size_t call = 0; call < oracle.plain.size(); ++call) {
    const Closeness values(*this, oracle, call);
    const auto close = close_elements(graph_, comparison, values.operands(comparison));
    const std::optional<Operand> mask = values.value(c);
    const std::optional<Operand> yes = values.argument_value(node, choice->yes),
                                 no = values.argument_value(node, choice->no);
    if (!close || !mask || !yes || !no || !values.agrees(c) || close->size() != mask->values.size())
      return false;
    const std::vector<i64> shape =
        broadcast_shape(mask->shape, broadcast_shape(yes->shape, no->shape));
    const std::vector<double> open(close->begin(), close->end());
    const std::vector<double> at = broadcast(open, mask->shape, shape);
    const std::vector<double> a = broadcast(yes->values, yes->shape, shape),
                              b = broadcast(no->values, no->shape, shape);
    // Around the cut the two sides may differ by as much as the comparison's operands are unsure.
    const std::optional<Operand> x = values.argument_value(comparison, "self");
    const double slack = 2 * (yes->most + no->most + (x ? x->most : 0));
    for (std::size_t i = 0; i < at.size(); ++i)
      if (at[i] != 0 && !(std::fabs(a[i] - b[i]) <= slack)) return false;
  }
  return true;
}

bool Decisions::propagate(const Oracle& oracle) {
  for (NodeId id : graph_.nodes.ids()) {
    const Node& node = graph_.nodes[id];
    std::string behind;
    each_source(graph_, data_, node, [&](ValueId v) {
      if (behind.empty()) behind = reasons_.get(v);
    });
    if (!behind.empty() && is_smooth_choice(node, oracle)) behind.clear();
    const std::string& own = own_.get(id);
    for (ValueId out : node.outs) {
      if (!out.valid()) continue;
      const bool decides = !holds_floats(graph_.type(out)) || is_jump(node.op) ||
                           !node.subgraphs.empty() || base_name(node.op) == "nonzero";
      if (reasons_.get(out).empty())
        reasons_[out] = !behind.empty() ? behind : decides ? own : std::string();
    }
  }
  bool changed = false;
  if (oracle.plain.size() > 1)
    for (const StateUpdate& update : graph_.state_updates) {
      const ValueId state = graph_.constants[update.constant].value;
      if (reasons_.get(update.value).empty() || !reasons_.get(state).empty()) continue;
      reasons_[state] = reasons_.get(update.value);
      changed = true;
    }
  return changed;
}

void Decisions::settle(const Oracle& oracle, std::size_t first) {
  first_ = first;
  for (NodeId id : decisions_) own_[id] = own_reason(id, oracle);
  while (propagate(oracle)) continue;
}

}  // namespace coil::cli
