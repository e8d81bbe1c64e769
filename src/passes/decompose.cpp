// Walks a graph and rewrites composite ops, round by round, until only core ops are left.

#include <algorithm>
#include <map>
#include <unordered_set>

#include "graph/rule.h"
#include "passes/composite.h"
#include "passes/passes.h"

namespace coil {
namespace {

/// Rows use rows at most this deep: instance_norm, batch_norm, ... A deeper chain is a cycle.
constexpr int kMaxRounds = 8;

/// What stands in the way of a round.
struct Problems {
  struct Use {
    int count = 0;
    std::string place;
  };
  std::map<std::string, Use> unsupported;  // by the op's name as torch prints it
  std::optional<Error> failure;            // of the first row that failed
};

std::string torch_name(const std::string& op) {
  return "aten." + op + (op.find('.') == std::string::npos ? ".default" : "");
}

std::string place_of(const Graph& graph, const Node& node) {
  if (!node.loc.valid()) return "";
  const Loc& loc = graph.locs[node.loc];
  return loc.frame.empty() ? loc.module : loc.frame;
}

Error unsupported_error(const Problems& problems) {
  const std::size_t count = problems.unsupported.size();
  const std::string list = join(problems.unsupported, ", ", [](const auto& entry) {
    const auto& [op, use] = entry;
    return use.place.empty() ? str("{} ({}x)", op, use.count)
                             : str("{} ({}x, first at {})", op, use.count, use.place);
  });
  return error("{} not supported: {}", count == 1 ? "1 op is" : str("{} ops are", count), list);
}

/// Whether there is nothing to compute, nor to check: no operand has an element, and no result.
bool makes_nothing(Graph& graph, const Node& node, const std::vector<Type>& results) {
  if (is_view_op(node.op) || is_own_op(node.op) || ops::is_random(node.op)) return false;
  if (!node.subgraphs.empty() || results.empty()) return false;
  // A size that the data says is the op's to define.
  const auto is_data = [&](sym::Expr e) {
    return graph.syms->kind(e) == sym::Kind::Var && graph.syms->var(e).role == sym::Role::Value;
  };
  const auto is_nothing = [&](const Type& t) {
    return t.is_tensor() && known_empty(graph, t) && std::ranges::none_of(t.shape, is_data);
  };
  bool all = true, any = false;
  each_value(node.args, [&](ValueId v) {
    any = true;
    all = all && is_nothing(graph.type(v));
  });
  // Later nodes may ask for a size that this op finds.
  const auto is_found = [&](sym::Expr size) {
    const sym::Arena& syms = *graph.syms;
    return syms.kind(size) == sym::Kind::Var && syms.var(size).role == sym::Role::Value;
  };
  return any && all && std::ranges::all_of(results, [&](const Type& t) {
           return is_nothing(t) && std::ranges::none_of(t.shape, is_found);
         });
}

/// Tensors without elements, of the op's types: of any dtype, whatever the op computes in others.
Values nothing(Composite& c) {
  Node node;
  node.op = c.op();
  node.args = c.args();
  Result<std::vector<Type>> types = infer(c.builder.graph(), node);
  if (!types.ok()) throw BuildError{types.error()};
  Values out;
  for (const Type& t : *types)
    out.push_back(c.call("empty_strided", {Exprs(t.shape), Exprs(t.strides), t.dtype}));
  return out;
}

/// One round over one graph.
class Round {
 public:
  Round(const Graph& from, const sym::Facts& facts, Problems& problems)
      : from_(from), problems_(problems), moved_(from.values.size()) {
    to_.facts = facts;
  }

  Graph run();
  bool changed() const { return changed_; }

 private:
  ValueId moved(ValueId v) const { return v.valid() ? moved_.get(v) : v; }
  Arg moved(const Arg& arg) const;
  Node moved(const Node& node) const;
  void copy_frame();
  void copy_rest();
  void visit(NodeId id);
  void copy(NodeId id, Node node);
  void rewrite(NodeId id, const Node& node, Decomposition row);
  bool fits(NodeId id, const Values& results);
  void adopt_sizes(NodeId id, const Values& results, NodeId first);
  void name_results(NodeId id, const Values& results, NodeId first, ValueId first_value);
  bool has_changed_operand(const Node& node) const;
  void fail(NodeId id, const Error& e);
  std::string free_name(const std::string& wanted);

  const Graph& from_;
  Problems& problems_;
  Graph to_;
  Side<ValueId, ValueId> moved_;
  std::unordered_set<std::string> names_;
  std::map<std::string, int> suffixes_;
  bool changed_ = false;
};

Arg Round::moved(const Arg& arg) const {
  if (const ValueId* v = std::get_if<ValueId>(&arg)) return moved(*v);
  if (const Values* list = std::get_if<Values>(&arg)) {
    Values out;
    for (ValueId v : *list) out.push_back(moved(v));
    return out;
  }
  return arg;
}

Node Round::moved(const Node& node) const {
  Node out = node;
  for (Arg& arg : out.args) arg = moved(arg);
  for (ViewStep& step : out.view)
    for (Arg& arg : step.args) arg = moved(arg);
  return out;
}

/// Inputs and constants: the values that no node defines.
void Round::copy_frame() {
  to_.name = from_.name;
  to_.syms = from_.syms;
  to_.locs = from_.locs;
  to_.sizes = from_.sizes;
  to_.storages = from_.storages;
  to_.checks = from_.checks;
  to_.composites = &composite_rules();
  for (ValueId v : from_.values.ids()) {
    names_.insert(from_.values[v].name);
    if (from_.values[v].def.valid()) continue;
    moved_[v] = to_.add_value(from_.values[v].name, from_.type(v));
  }
  to_.inputs = from_.inputs;
  for (Input& input : to_.inputs) input.value = moved(input.value);
  to_.constants = from_.constants;
  for (Constant& constant : to_.constants) constant.value = moved(constant.value);
}

void Round::copy_rest() {
  to_.state_updates = from_.state_updates;
  for (StateUpdate& update : to_.state_updates) update.value = moved(update.value);
  to_.outputs = from_.outputs;
  for (Output& output : to_.outputs) output.value = moved(output.value);
}

Graph Round::run() {
  copy_frame();
  for (const Graph& subgraph : from_.subgraphs) {
    Round inner(subgraph, to_.facts, problems_);
    Graph out = inner.run();
    // Conditions on sizes were added when the graph was made; a branch has none of its own.
    out.checks = subgraph.checks;
    out.facts = subgraph.facts;
    changed_ |= inner.changed();
    to_.subgraphs.push_back(std::move(out));
  }
  for (NodeId id : from_.nodes.ids()) visit(id);
  copy_rest();
  to_.names = {};  // values have other names now
  return std::move(to_);
}

void Round::fail(NodeId id, const Error& e) {
  if (!problems_.failure) problems_.failure = in_context(describe(from_, id), e);
  // So that the round can go on to find all ops that are not supported.
  for (ValueId out : from_.nodes[id].outs)
    moved_[out] = to_.add_value(from_.values[out].name, from_.type(out));
}

void Round::visit(NodeId id) {
  const Node& original = from_.nodes[id];
  Node node = moved(original);
  std::vector<Type> types;
  for (ValueId out : original.outs) types.push_back(from_.type(out));
  if (makes_nothing(to_, node, types)) return rewrite(id, node, nothing);
  if (const Decomposition row = find_complex_decomposition(to_, node))
    return rewrite(id, node, row);
  const bool is_special =
      indexes_by_mask(to_, node) || computes_in_f32(to_, node) || drops_attention(node);
  if (is_core_op(node.op) && !is_special) return copy(id, std::move(node));
  if (const Decomposition row = find_decomposition(node.op)) return rewrite(id, node, row);
  Problems::Use& use = problems_.unsupported[torch_name(node.op)];
  if (use.count++ == 0) use.place = place_of(from_, original);
  for (ValueId out : original.outs)
    moved_[out] = to_.add_value(from_.values[out].name, from_.type(out));
}

bool Round::has_changed_operand(const Node& node) const {
  bool differs = false;
  each_value(node.args, [&](ValueId v) {
    const Type& before = from_.type(v);
    const Type& now = to_.type(moved(v));
    differs |= before.shape != now.shape || before.strides != now.strides;
  });
  return differs;
}

/// A core op. Where an operand came out in another layout, so may the results.
void Round::copy(NodeId id, Node node) {
  const Node& original = from_.nodes[id];
  std::vector<Type> types;
  for (ValueId out : original.outs) types.push_back(from_.type(out));
  if (has_changed_operand(original)) {
    Result<std::vector<Type>> found = infer(to_, node);
    if (!found.ok()) return fail(id, found.error());
    if (found->size() == types.size())
      for (std::size_t i = 0; i < types.size(); ++i)
        if (types[i].is_tensor()) types[i].strides = (*found)[i].strides;
  }
  node.outs.clear();
  const NodeId made = to_.nodes.add(std::move(node));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueId out = to_.add_value(from_.values[original.outs[i]].name, std::move(types[i]));
    to_.values[out].def = made;
    to_.values[out].out_index = static_cast<u32>(i);
    to_.nodes[made].outs.push_back(out);
    moved_[original.outs[i]] = out;
  }
}

void Round::rewrite(NodeId id, const Node& node, Decomposition row) {
  changed_ = true;
  const NodeId first_node(to_.nodes.size());
  const ValueId first_value(to_.values.size());
  GraphBuilder builder(to_, node.loc, "new");
  Result<Values> results = run_builder([&] {
    Composite composite(builder, node);
    return row(composite);
  });
  if (!results.ok()) return fail(id, results.error());
  if (!fits(id, *results)) return;
  adopt_sizes(id, *results, first_node);
  name_results(id, *results, first_node, first_value);
  for (std::size_t i = 0; i < results->size(); ++i) moved_[from_.nodes[id].outs[i]] = (*results)[i];
}

/// Whether there are as many results as the op has, of its dtypes and ranks: else the row is wrong.
bool Round::fits(NodeId id, const Values& results) {
  const Values& outs = from_.nodes[id].outs;
  bool agrees = results.size() == outs.size();
  for (std::size_t i = 0; agrees && i < outs.size(); ++i) {
    const Type& wanted = from_.type(outs[i]);
    const Type& found = to_.type(results[i]);
    if (wanted.kind == found.kind && wanted.dtype == found.dtype && wanted.ndim() == found.ndim())
      continue;
    fail(id, error("the decomposition of {} gives {}, but the graph says {}", from_.nodes[id].op,
                   text(*to_.syms, found), text(*to_.syms, wanted)));
    return false;
  }
  if (!agrees)
    fail(id, error("the decomposition of {} has {} results, but the graph says {}",
                   from_.nodes[id].op, results.size(), outs.size()));
  return agrees;
}

/// Sizes that depend on data got new variables: the graph's own ones are put in their place.
void Round::adopt_sizes(NodeId id, const Values& results, NodeId first) {
  sym::Arena& syms = *to_.syms;
  std::vector<std::pair<sym::Expr, sym::Expr>> from_to;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Type& wanted = from_.type(from_.nodes[id].outs[i]);
    const Type& found = to_.type(results[i]);
    for (std::size_t d = 0; d < wanted.ndim(); ++d) {
      const sym::Expr size = found.shape[d];
      if (size == wanted.shape[d] || syms.kind(size) != sym::Kind::Var) continue;
      if (syms.var(size).role == sym::Role::Value) from_to.emplace_back(size, wanted.shape[d]);
    }
  }
  if (from_to.empty()) return;
  const auto renamed = [&](sym::Expr& e) {
    if (e.valid()) e = syms.substitute(e, from_to);
  };
  for (std::size_t n = first.index; n < to_.nodes.size(); ++n) {
    Node& node = to_.nodes[NodeId(n)];
    for (Arg& arg : node.args) {
      if (sym::Expr* e = std::get_if<sym::Expr>(&arg)) renamed(*e);
      if (auto* list = std::get_if<std::vector<sym::Expr>>(&arg))
        for (sym::Expr& e : *list) renamed(e);
    }
    for (ValueId out : node.outs) {
      Type& type = to_.values[out].type;
      for (sym::Expr& e : type.shape) renamed(e);
      for (sym::Expr& e : type.strides) renamed(e);
      renamed(type.expr);
    }
  }
}

std::string Round::free_name(const std::string& wanted) {
  std::string name = wanted;
  for (int& suffix = suffixes_[wanted]; !names_.insert(name).second;)
    name = str("{}_{}", wanted, ++suffix);
  return name;
}

/// Results that the row made take the names of the node's results; inner values are called after
/// the first of these and their own op.
void Round::name_results(NodeId id, const Values& results, NodeId first, ValueId first_value) {
  const Values& outs = from_.nodes[id].outs;
  const std::string prefix = outs.empty() ? "new" : from_.values[outs[0]].name;
  std::unordered_set<u32> named;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] < first_value || !named.insert(results[i].index).second) continue;
    to_.values[results[i]].name = from_.values[outs[i]].name;
  }
  for (std::size_t n = first.index; n < to_.nodes.size(); ++n) {
    const Node& node = to_.nodes[NodeId(n)];
    for (ValueId out : node.outs)
      if (!named.contains(out.index))
        to_.values[out].name = free_name(str("{}_{}", prefix, base_name(node.op)));
  }
}

}  // namespace

Result<Graph> decompose(const Graph& graph) {
  Graph current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    Problems problems;
    Round step(current, current.facts, problems);
    Graph next = step.run();
    if (!problems.unsupported.empty()) return unsupported_error(problems);
    if (problems.failure) return *problems.failure;
    current = std::move(next);
    if (!step.changed()) return current;
  }
  COIL_CHECK(false, "decompositions refer to each other in a cycle");
  COIL_UNREACHABLE();
}

}  // namespace coil
