#include "graph/graph.h"

#include <charconv>

namespace coil {
namespace {

/// What a dim counts for in the strides of the dims before it: at least 1, as in torch. Dynamic
/// sizes are taken as they are, since the strides of a tensor without elements do not matter; sizes
/// that depend on data are not, since the exporter writes them so.
sym::Expr stride_factor(sym::Arena& syms, sym::Expr size) {
  if (std::optional<i64> value = syms.as_const(size)) return *value == 0 ? syms.constant(1) : size;
  if (syms.range(size).lo >= 1) return size;
  std::vector<sym::Expr> variables;
  syms.variables(size, variables);
  for (sym::Expr v : variables)
    if (syms.var(v).role == sym::Role::Value) return syms.max(syms.constant(1), size);
  return size;
}

/// `base` and N of a name `base_N`, or the whole name and 0.
std::pair<std::string_view, i64> split_suffix(std::string_view name) {
  const std::size_t at = name.rfind('_');
  i64 number = 0;
  if (at == std::string_view::npos || at + 1 == name.size() || name[at + 1] == '-')
    return {name, 0};
  const auto [end, problem] =
      std::from_chars(name.data() + at + 1, name.data() + name.size(), number);
  if (problem != std::errc{} || end != name.data() + name.size()) return {name, 0};
  return {name.substr(0, at), number};
}

}  // namespace

ValueId Graph::add_value(std::string name, Type type) {
  return values.add(Value{std::move(name), std::move(type), NodeId(), 0});
}

std::string Graph::fresh_name(const std::string& base) {
  for (; names.seen < values.size(); ++names.seen) {
    const std::string& name = values[ValueId(names.seen)].name;
    names.uses[name].taken = true;
    const auto [stem, number] = split_suffix(name);
    Names::Use& use = names.uses[std::string(stem)];
    use.largest = std::max(use.largest, number);
  }
  const auto found = names.uses.find(base);
  const bool taken = found != names.uses.end() && found->second.taken;
  return taken ? str("{}_{}", base, found->second.largest + 1) : base;
}

LocId Graph::intern(const Loc& loc) {
  for (std::size_t i = locs.size(); i-- > 0;)
    if (locs[LocId(i)] == loc) return LocId(i);
  return locs.add(loc);
}

std::string_view base_name(std::string_view op) { return op.substr(0, op.find('.')); }

std::vector<sym::Expr> contiguous_strides(sym::Arena& syms, std::span<const sym::Expr> shape) {
  std::vector<sym::Expr> strides(shape.size());
  sym::Expr next = syms.constant(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = next;
    next = syms.mul(next, stride_factor(syms, shape[i]));
  }
  return strides;
}

sym::Expr numel(sym::Arena& syms, std::span<const sym::Expr> shape) { return syms.product(shape); }

std::string text(sym::Arena& syms, const Type& type) {
  const auto expr_text = [&](sym::Expr e) { return syms.text(e); };
  switch (type.kind) {
    case TypeKind::Int: return "int " + syms.text(type.expr);
    case TypeKind::Bool: return "bool " + syms.text(type.expr);
    case TypeKind::Float: return "float";
    case TypeKind::None: return "none";
    case TypeKind::Tensor: break;
  }
  std::string out = str("{}[{}]", name(type.dtype), join(type.shape, ", ", expr_text));
  if (type.strides != contiguous_strides(syms, type.shape))
    out += str(" strides [{}]", join(type.strides, ", ", expr_text));
  return out;
}

std::string describe(const Graph& graph, NodeId node) {
  // Messages of the verifier name nodes whose ids may be wrong.
  const Node& n = graph.nodes[node];
  const bool is_named =
      !n.outs.empty() && n.outs[0].valid() && n.outs[0].index < graph.values.size();
  const bool is_placed = n.loc.valid() && n.loc.index < graph.locs.size();
  std::string out = is_named ? graph.values[n.outs[0]].name : n.op;
  if (is_placed && !graph.locs[n.loc].frame.empty()) out += " (" + graph.locs[n.loc].frame + ")";
  return out;
}

}  // namespace coil
