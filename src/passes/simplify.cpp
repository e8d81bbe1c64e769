// Uses what is there instead of computing it again: ops that change nothing, and equal nodes. No
// bit of any result changes.

#include <bit>
#include <unordered_map>

#include "base/check.h"
#include "graph/args.h"
#include "ops/schema.h"
#include "passes/passes.h"

namespace coil {
namespace {

/// Equal for nodes that compute the same: the op and its arguments, floats bit by bit.
class NodeKey {
 public:
  explicit NodeKey(const Node& node) : text_(node.op) {
    for (const Arg& arg : node.args) add(arg);
    for (const ViewStep& step : node.view) {
      add(step.op);
      for (const Arg& arg : step.args) add(arg);
    }
  }
  const std::string& text() const { return text_; }

 private:
  void add(const Arg& arg) {
    number(static_cast<i64>(arg.index()));
    std::visit([&](const auto& value) { add(value); }, arg);
  }
  void add(None) {}
  template <class Tag>
  void add(Id<Tag> id) {
    number(id.index);
  }
  void add(double d) { number(std::bit_cast<i64>(d)); }
  void add(bool b) { number(b); }
  void add(DType dtype) { number(static_cast<i64>(dtype)); }
  void add(MemoryFormat format) { number(static_cast<i64>(format)); }
  void add(const std::string& text) {
    number(static_cast<i64>(text.size()));
    text_ += text;
  }
  void add(const Device& device) { add(device.name); }
  void add(const Complex& c) {
    add(c.re);
    add(c.im);
  }
  template <class T>
  void add(const std::vector<T>& items) {
    number(static_cast<i64>(items.size()));
    for (const T& item : items) add(item);
  }
  void number(i64 n) { text_.append(reinterpret_cast<const char*>(&n), sizeof n); }

  std::string text_;
};

bool is_same_type(const Type& a, const Type& b) {
  return a.is_tensor() && b.is_tensor() && a.dtype == b.dtype && a.shape == b.shape &&
         a.strides == b.strides;
}

/// Whether each value of `narrow` is one of `wide`, so that the way there and back changes nothing.
bool holds_all(DType wide, DType narrow) {
  if (wide == narrow) return true;
  const auto digits = [](DType d) {
    switch (d) {
      case DType::f8e5m2: return 3;
      case DType::f8e4m3fn: return 4;
      case DType::bf16: return 8;
      case DType::f16: return 11;
      case DType::f32: return 24;
      case DType::f64: return 53;
      default: return 8 * size_of(d) - (class_of(d) == DTypeClass::Signed);
    }
  };
  if (is_complex(wide) || is_complex(narrow)) return false;
  if (is_bool(narrow)) return !is_bool(wide) && size_of(wide) > 0;
  if (is_bool(wide)) return false;
  if (is_float(wide)) {
    // bf16 has f32's exponents, which f16 lacks; the 8-bit floats fit into all others.
    const bool fits =
        wide == DType::f32 || wide == DType::f64 || (size_of(wide) == 2 && size_of(narrow) == 1);
    return fits && digits(wide) >= digits(narrow);
  }
  if (is_float(narrow)) return false;
  if (is_unsigned(wide) && !is_unsigned(narrow)) return false;
  return digits(wide) >= digits(narrow);
}

/// One graph, read front to back.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph)
      : graph_(graph), same_(graph.values.size()), is_kept_(graph.values.size(), false) {
    // A result may share memory with another one only where the program says so.
    for (const Output& output : graph.outputs)
      if (output.value.valid()) is_kept_[output.value] = true;
    for (const StateUpdate& update : graph.state_updates) is_kept_[update.value] = true;
    // as_strided counts in the memory of what it is given.
    for (NodeId id : graph.nodes.ids())
      if (graph.nodes[id].op == "as_strided")
        is_kept_[std::get<ValueId>(graph.nodes[id].args[0])] = true;
  }

  void run() {
    share_constants();
    for (NodeId id : graph_.nodes.ids()) visit(graph_.nodes[id]);
  }

 private:
  void redirect(ValueId& v) const {
    if (v.valid() && same_.get(v).valid()) v = same_.get(v);
  }
  void redirect(std::vector<Arg>& args) const {
    for (Arg& arg : args) {
      if (ValueId* v = std::get_if<ValueId>(&arg)) redirect(*v);
      if (auto* list = std::get_if<std::vector<ValueId>>(&arg))
        for (ValueId& v : *list) redirect(v);
    }
  }

  /// Weights that two modules share come as two constants over one storage.
  void share_constants() {
    std::unordered_map<u64, std::vector<ValueId>> by_place;
    for (const Constant& constant : graph_.constants) {
      if (constant.is_state || constant.is_complex) continue;
      std::vector<ValueId>& there =
          by_place[u64{constant.storage} << 40 ^ static_cast<u64>(constant.offset)];
      for (ValueId v : there)
        if (is_same_place(v, constant) && !is_kept_.get(constant.value)) same_[constant.value] = v;
      if (!same_.get(constant.value).valid()) there.push_back(constant.value);
    }
  }
  bool is_same_place(ValueId v, const Constant& constant) const {
    for (const Constant& other : graph_.constants)
      if (other.value == v)
        return other.storage == constant.storage && other.offset == constant.offset &&
               is_same_type(graph_.type(v), graph_.type(constant.value));
    COIL_UNREACHABLE();
  }

  void visit(Node& node) {
    redirect(node.args);
    for (ViewStep& step : node.view) redirect(step.args);
    if (node.outs.empty() || !node.subgraphs.empty()) return;
    for (ValueId out : node.outs)
      if (is_kept_.get(out)) return remember(node);
    if (const ValueId v = unchanged(node); v.valid()) {
      same_[node.outs[0]] = v;
      return;
    }
    const auto [at, fresh] = seen_.emplace(NodeKey(node).text(), node.outs);
    if (!fresh && has_types_of(node, at->second))
      for (std::size_t i = 0; i < node.outs.size(); ++i) same_[node.outs[i]] = at->second[i];
  }

  /// Others may read a result of the program; it is not replaced itself.
  void remember(const Node& node) { seen_.emplace(NodeKey(node).text(), node.outs); }

  bool has_types_of(const Node& node, const std::vector<ValueId>& outs) const {
    for (std::size_t i = 0; i < outs.size(); ++i)
      if (!is_same_type(graph_.type(node.outs[i]), graph_.type(outs[i]))) return false;
    return outs.size() == node.outs.size();
  }

  // ---- ops that change nothing ----

  /// The operand that the node's one result equals, element for element in the same layout; invalid
  /// where none is known to.
  ValueId unchanged(const Node& node) const {
    struct Row {
      std::string_view op;
      ValueId (Simplifier::*same)(const Node&) const;
    };
    static constexpr Row kRows[] = {
        {"alias", &Simplifier::first},          {"detach", &Simplifier::first},
        {"clone", &Simplifier::first},          {"view", &Simplifier::first},
        {"_unsafe_view", &Simplifier::first},   {"reshape", &Simplifier::first},
        {"expand", &Simplifier::first},         {"permute", &Simplifier::first},
        {"slice.Tensor", &Simplifier::first},   {"_to_copy", &Simplifier::before_cast},
        {"cat", &Simplifier::only_part},        {"constant_pad_nd", &Simplifier::unpadded},
        {"mul.Scalar", &Simplifier::times_one}, {"div.Scalar", &Simplifier::times_one},
        {"add.Scalar", &Simplifier::plus_zero}, {"sub.Scalar", &Simplifier::plus_zero},
    };
    if (node.outs.size() != 1) return {};
    for (const Row& row : kRows) {
      if (row.op != node.op) continue;
      const ValueId v = (this->*row.same)(node);
      if (v.valid() && is_same_type(graph_.type(v), graph_.type(node.outs[0]))) return v;
    }
    return {};
  }

  const Arg& arg(const Node& node, std::string_view name) const {
    const std::optional<ops::Schema> schema = ops::find_schema(node.op);
    const int index = schema ? schema->arg_index(name) : -1;
    COIL_CHECK(index >= 0, "{} has no argument {}", node.op, name);
    return node.args.at(static_cast<std::size_t>(index));
  }

  /// A view with the type of what it views is the same elements: its shape and strides say where
  /// they are, and none of these ops begins elsewhere unless it leaves some out.
  ValueId first(const Node& node) const {
    const ValueId* v = std::get_if<ValueId>(&node.args.at(0));
    return v ? *v : ValueId();
  }

  /// A cast to the same dtype, or back from one that holds all values of it.
  ValueId before_cast(const Node& node) const {
    const ValueId from = first(node);
    const DType dtype = graph_.type(node.outs[0]).dtype;
    if (graph_.type(from).dtype == dtype || !graph_.values[from].def.valid()) return from;
    const Node& inner = graph_.nodes[graph_.values[from].def];
    if (inner.op != "_to_copy" || !holds_all(graph_.type(from).dtype, dtype)) return {};
    return first(inner);
  }

  ValueId only_part(const Node& node) const {
    const auto* parts = std::get_if<std::vector<ValueId>>(&node.args.at(0));
    return parts && parts->size() == 1 ? parts->front() : ValueId();
  }

  ValueId unpadded(const Node& node) const {
    const auto* pads = std::get_if<std::vector<sym::Expr>>(&arg(node, "pad"));
    if (!pads) return {};
    for (sym::Expr pad : *pads)
      if (!graph_.syms->is_const(pad, 0)) return {};
    return first(node);
  }

  bool is_number(const Arg& arg, i64 n) const {
    if (const sym::Expr* e = std::get_if<sym::Expr>(&arg)) return graph_.syms->is_const(*e, n);
    const double* d = std::get_if<double>(&arg);
    return d && std::bit_cast<i64>(*d) == std::bit_cast<i64>(static_cast<double>(n));
  }

  ValueId times_one(const Node& node) const {
    if (is_complex(graph_.type(node.outs[0]).dtype)) return {};  // inf * 0i is NaN
    return is_number(arg(node, "other"), 1) ? first(node) : ValueId();
  }

  /// x - 0.0 is x for every float; -0.0 + 0.0 is 0.0.
  ValueId plus_zero(const Node& node) const {
    const DType dtype = graph_.type(node.outs[0]).dtype;
    const bool is_exact = is_int(dtype) || (is_float(dtype) && node.op.starts_with("sub"));
    return is_exact && is_number(arg(node, "other"), 0) && is_number(arg(node, "alpha"), 1)
               ? first(node)
               : ValueId();
  }

  Graph& graph_;
  Side<ValueId, ValueId> same_;  // the value that stands for this one, which has none itself
  Side<ValueId, bool> is_kept_;  // results of the program
  std::unordered_map<std::string, std::vector<ValueId>> seen_;  // by NodeKey: results
};

}  // namespace

void simplify(Graph& graph) {
  for (Graph& subgraph : graph.subgraphs) simplify(subgraph);
  Simplifier(graph).run();
}

}  // namespace coil
