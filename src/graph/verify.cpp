#include "graph/verify.h"

#include <algorithm>
#include <set>

#include "graph/args.h"
#include "graph/rules.h"
#include "graph/text_names.h"
#include "graph/unify.h"
#include "ops/schema.h"

namespace coil {
namespace {

class Verifier {
 public:
  /// Rules add checks to the graph that they are asked about, so that they get a copy.
  /// `known`: variables that the graphs around this one get from data.
  Verifier(const Graph& graph, std::set<sym::Expr> known)
      : graph_(graph),
        copy_(graph),
        unifier_(copy_),
        defined_(graph.values.size(), false),
        known_(std::move(known)) {}

  Status run(bool is_top) {
    COIL_TRY(check_names());
    for (ValueId v : graph_.values.ids()) defined_[v.index] = is_number(v);
    COIL_TRY(check_inputs());
    COIL_TRY(check_constants(is_top));
    for (NodeId n : graph_.nodes.ids()) {
      Status status = check_node(n);
      if (!status.ok()) return in_context("node " + describe(graph_, n), status.error());
    }
    for (ValueId v : graph_.values.ids())
      if (!defined_[v.index]) return error("%{} is defined by nothing", graph_.values[v].name);
    COIL_TRY(check_outputs());
    COIL_TRY(check_state_updates());
    if (is_top) COIL_TRY(check_variables(graph_));
    for (const Graph& sub : graph_.subgraphs) COIL_TRY(check_subgraph(sub));
    return Ok{};
  }

 private:
  std::string name_of(ValueId v) const { return "%" + graph_.values[v].name; }

  bool is_value(ValueId v) const { return v.valid() && v.index < graph_.values.size(); }

  Status check_names() const {
    if (!is_word(graph_.name)) return error("'{}' is no name of a graph", graph_.name);
    std::set<std::string_view> names;
    for (const Value& value : graph_.values) {
      if (!is_word(value.name)) return error("'{}' is no name of a value", value.name);
      if (!names.insert(value.name).second) return error("two values are named %{}", value.name);
    }
    return Ok{};
  }

  Status define(ValueId v) {
    if (!is_value(v)) return error("a value does not exist");
    if (defined_[v.index]) return error("{} is defined twice", name_of(v));
    defined_[v.index] = true;
    const Type& type = graph_.type(v);
    if (type.is_tensor() && type.strides.size() != type.shape.size())
      return error("{} has {} sizes and {} strides", name_of(v), type.shape.size(),
                   type.strides.size());
    Status valid = check_type(*graph_.syms, type);
    if (!valid.ok()) return in_context(name_of(v), valid.error());
    unifier_.define(type);
    return Ok{};
  }

  /// An expression is a value without a node that computes it.
  bool is_number(ValueId v) const {
    const Value& value = graph_.values[v];
    const bool is_input = std::ranges::find(graph_.inputs, v, &Input::value) != graph_.inputs.end();
    return !value.def.valid() && !is_input && value.type.expr.valid();
  }

  /// What comes from data is used after the node that reads it.
  Status check_data(sym::Expr e) const {
    std::vector<sym::Expr> variables;
    if (e.valid()) graph_.syms->variables(e, variables);
    for (sym::Expr v : variables)
      if (graph_.syms->var(v).role == sym::Role::Value && !known_.contains(v))
        return error("{} is used before a node defines it", graph_.syms->var(v).name);
    return Ok{};
  }

  Status check_data(const Type& type) const {
    for (sym::Expr e : type.shape) COIL_TRY(check_data(e));
    for (sym::Expr e : type.strides) COIL_TRY(check_data(e));
    return check_data(type.expr);
  }

  Status check_data(const std::vector<Arg>& args) const {
    for (const Arg& arg : args) {
      if (const sym::Expr* e = std::get_if<sym::Expr>(&arg)) COIL_TRY(check_data(*e));
      if (const auto* list = std::get_if<std::vector<sym::Expr>>(&arg))
        for (sym::Expr e : *list) COIL_TRY(check_data(e));
    }
    return Ok{};
  }

  Status check_inputs() {
    std::set<std::string_view> names;
    for (const Input& input : graph_.inputs) {
      COIL_TRY(define(input.value));
      const Status sizes = check_data(graph_.type(input.value));
      if (!sizes.ok()) return in_context("input " + name_of(input.value), sizes.error());
      if (graph_.values[input.value].def.valid())
        return error("input {} is the result of a node", name_of(input.value));
      if (!names.insert(input.name).second) return error("two inputs are named '{}'", input.name);
    }
    return Ok{};
  }

  Status check_constants(bool is_top) {
    if (!is_top && !graph_.constants.empty())
      return error("subgraph {} has constants", graph_.name);
    for (const Constant& constant : graph_.constants) {
      COIL_TRY(define(constant.value));
      const Type& type = graph_.type(constant.value);
      Result<i64> extent = storage_extent(*graph_.syms, type, constant.offset);
      if (!extent.ok()) return in_context(name_of(constant.value), extent.error());
      if (constant.storage >= graph_.storages.size())
        return error("{} has no storage", name_of(constant.value));
      const Storage& storage = graph_.storages[constant.storage];
      if (storage.data != nullptr && *extent * size_of(type.dtype) > storage.bytes)
        return error("{} reaches past the {} bytes of its storage", name_of(constant.value),
                     storage.bytes);
    }
    return Ok{};
  }

  void add_known(const Type& type) {
    std::vector<sym::Expr> variables;
    for (sym::Expr e : type.shape) graph_.syms->variables(e, variables);
    if (type.expr.valid()) graph_.syms->variables(type.expr, variables);
    known_.insert(variables.begin(), variables.end());
  }

  Status check_uses(const std::vector<Arg>& args) const {
    Status status = Ok{};
    each_value(args, [&](ValueId v) {
      if (!status.ok()) return;
      if (!is_value(v)) {
        status = error("uses a value that does not exist");
      } else if (!defined_[v.index]) {
        status = error("uses {} before it is defined", name_of(v));
      }
    });
    return status;
  }

  Status check_node(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (node.loc.valid() && node.loc.index >= graph_.locs.size()) return error("has no such place");
    if (!node.view.empty() && node.op != "update") return error("only update has a view");
    COIL_TRY(check_uses(node.args));
    COIL_TRY(check_data(node.args));
    for (const ViewStep& step : node.view) {
      COIL_TRY(check_uses(step.args));
      COIL_TRY(check_data(step.args));
    }
    const std::vector<Type> types = COIL_TRY(infer(copy_, node));
    if (types.size() != node.outs.size())
      return error("{} has {} results, not {}", node.op, types.size(), node.outs.size());
    unifier_.next_node();
    for (std::size_t i = 0; i < types.size(); ++i) {
      const ValueId out = node.outs[i];
      if (!is_value(out)) return error("result {} does not exist", i);
      const Value& value = graph_.values[out];
      if (value.def != id || value.out_index != i)
        return error("{} does not name this node as its definition", name_of(out));
      if (!unifier_.match(types[i], value.type))
        return error("{} is {}, but the rules derive {}", name_of(out),
                     text(*graph_.syms, value.type), text(*graph_.syms, types[i]));
    }
    for (ValueId out : node.outs) {
      COIL_TRY(define(out));
      add_known(graph_.type(out));
    }
    return Ok{};
  }

  bool same_layoutless(const Type& a, const Type& b) const {
    return a.kind == b.kind && (!a.is_tensor() || a.dtype == b.dtype) && a.shape == b.shape;
  }

  Status check_output(std::size_t i, bool& after_mutations, std::set<u32>& mutated) const {
    const Output& output = graph_.outputs[i];
    const bool has_value = output.kind != OutputKind::Constant && output.kind != OutputKind::None;
    if (has_value && !is_value(output.value)) return error("returns a value that does not exist");
    if (has_value) COIL_TRY(check_data(graph_.type(output.value)));
    COIL_TRY(check_data(std::vector<Arg>{output.constant}));
    if (has_value && (output.kind == OutputKind::Int) == graph_.type(output.value).is_tensor())
      return error("{} is returned as the wrong kind", name_of(output.value));
    switch (output.kind) {
      case OutputKind::MutatedInput: {
        if (after_mutations) return error("mutated inputs must stand before other outputs");
        if (output.target >= graph_.inputs.size())
          return error("mutates an input that does not exist");
        if (!mutated.insert(output.target).second) return error("mutates one input twice");
        const ValueId input = graph_.inputs[output.target].value;
        if (!same_layoutless(graph_.type(input), graph_.type(output.value)))
          return error("{} cannot be written into input {}", name_of(output.value), name_of(input));
        return Ok{};
      }
      case OutputKind::AliasOfInput:
        if (output.target >= graph_.inputs.size()) return error("is an alias of no input");
        break;
      case OutputKind::AliasOfOutput:
        if (output.target >= i) return error("is an alias of no output before it");
        break;
      case OutputKind::Constant:
        if (std::holds_alternative<ValueId>(output.constant)) return error("is no constant");
        break;
      case OutputKind::Value:
      case OutputKind::Int:
      case OutputKind::None: break;
    }
    after_mutations = true;
    return Ok{};
  }

  Status check_outputs() const {
    bool after_mutations = false;
    std::set<u32> mutated;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      Status status = check_output(i, after_mutations, mutated);
      if (!status.ok()) return in_context(str("output {}", i), status.error());
    }
    return Ok{};
  }

  Status check_state_updates() const {
    std::set<u32> updated;
    for (const StateUpdate& update : graph_.state_updates) {
      if (update.constant >= graph_.constants.size() || !is_value(update.value))
        return error("a state update names what does not exist");
      const Constant& state = graph_.constants[update.constant];
      if (!state.is_state) return error("{} is updated, but is no state", name_of(state.value));
      if (!updated.insert(update.constant).second)
        return error("{} is updated twice", name_of(state.value));
      if (!same_layoutless(graph_.type(state.value), graph_.type(update.value)))
        return error("{} cannot replace {}", name_of(update.value), name_of(state.value));
    }
    return Ok{};
  }

  /// Loops over tensors name their dims and indices so: a letter and a number.
  static bool is_name_of_loops(std::string_view name) {
    return name.size() > 1 && std::string_view("irncd").find(name[0]) != std::string_view::npos &&
           std::all_of(name.begin() + 1, name.end(),
                       [](char c) { return c == '_' || (c >= '0' && c <= '9'); });
  }

  /// Every dynamic size in a type must be one of the graph's, since nothing else gives it a value.
  Status check_variables(const Graph& of) const {
    std::vector<sym::Expr> variables;
    for (const Value& value : of.values) {
      for (sym::Expr e : value.type.shape) graph_.syms->variables(e, variables);
      for (sym::Expr e : value.type.strides) graph_.syms->variables(e, variables);
      if (value.type.expr.valid()) graph_.syms->variables(value.type.expr, variables);
    }
    for (const Check& check : of.checks) {
      graph_.syms->variables(check.condition, variables);
      COIL_TRY(check_data(check.condition));
    }
    for (sym::Expr v : variables) {
      const sym::Variable& var = graph_.syms->var(v);
      if (is_name_of_loops(var.name))
        return error("{} cannot name a size: loops take such names", var.name);
      if (var.role == sym::Role::Value) continue;
      if (std::ranges::find(graph_.sizes, v, &SizeVar::var) == graph_.sizes.end())
        return error("{} is no size of the graph", var.name);
    }
    for (const Graph& sub : of.subgraphs) COIL_TRY(check_variables(sub));
    return Ok{};
  }

  Status check_subgraph(const Graph& sub) const {
    if (sub.syms != graph_.syms) return error("subgraph {} has symbols of its own", sub.name);
    if (!sub.checks.empty() || !sub.sizes.empty() || !sub.state_updates.empty())
      return error("subgraph {} has checks, sizes or states of its own", sub.name);
    Status status = Verifier(sub, known_).run(false);
    if (!status.ok()) return in_context("subgraph " + sub.name, status.error());
    return Ok{};
  }

  const Graph& graph_;
  Graph copy_;
  Unifier unifier_;
  std::vector<bool> defined_;
  std::set<sym::Expr> known_;  // variables that nodes so far get from data
};

}  // namespace

Status verify(const Graph& graph) { return Verifier(graph, {}).run(true); }

}  // namespace coil
