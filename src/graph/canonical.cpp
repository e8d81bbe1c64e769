#include "graph/canonical.h"

#include <algorithm>
#include <bit>

#include "base/packed.h"
#include "sym/code.h"

namespace coil {
namespace {

class Canonical {
 public:
  explicit Canonical(const sym::Arena& syms) : syms_(syms) {}

  void graph(const Graph& g) {
    list(g.values, [&](const Value& v) { type(v.type); });
    list(g.sizes, [&](const SizeVar& size) {
      expr(size.var);
      number(size.hint.has_value());
      number(size.hint.value_or(0));
    });
    list(g.inputs, [&](const Input& input) {
      id(input.value);
      argument(input.fixed);
    });
    list(g.constants, [&](const Constant& constant) {
      id(constant.value);
      number(constant.is_state);
    });
    list(g.facts.conditions(), [&](sym::Expr e) { expr(e); });
    list(g.checks, [&](const Check& check) { expr(check.condition); });
    list(g.subgraphs, [&](const Graph& sub) { graph(sub); });
    list(g.nodes, [&](const Node& n) { node(n); });
    list(g.state_updates, [&](const StateUpdate& update) {
      number(update.constant);
      id(update.value);
    });
    list(g.outputs, [&](const Output& output) {
      number(output.kind);
      id(output.value);
      number(output.target);
      argument(output.constant);
    });
  }

  std::string finish() {
    for (sym::Expr e : variables_) {
      const sym::Variable& v = syms_.var(e);
      number(v.role);
      number(v.range.lo);
      number(v.range.hi);
    }
    std::vector<std::size_t> by_name(variables_.size());
    for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
    std::stable_sort(by_name.begin(), by_name.end(), [&](std::size_t a, std::size_t b) {
      return syms_.var(variables_[a]).name < syms_.var(variables_[b]).name;
    });
    list(by_name, [&](std::size_t i) { number(i); });
    return out_.take();
  }

 private:
  template <class N>
  void number(N n) {
    out_.number(static_cast<i64>(n));
  }
  void real(double d) { number(std::bit_cast<i64>(d)); }
  template <class Id>
  void id(Id id) {
    number(id.valid() ? static_cast<i64>(id.index) : -1);
  }
  template <class List, class F>
  void list(const List& items, F f) {
    number(items.size());
    for (const auto& item : items) f(item);
  }

  void type(const Type& t) {
    number(t.kind);
    number(t.dtype);
    argument(t.shape);
    argument(t.strides);
    expr(t.expr);
  }

  void node(const Node& n) {
    out_.text(n.op);
    list(n.args, [&](const Arg& arg) { argument(arg); });
    list(n.outs, [&](ValueId v) { id(v); });
    list(n.view, [&](const ViewStep& step) {
      out_.text(step.op);
      list(step.args, [&](const Arg& arg) { argument(arg); });
    });
    list(n.subgraphs, [&](u32 sub) { number(sub); });
  }

  void argument(const Arg& arg) {
    number(arg.index());
    std::visit([&](const auto& value) { argument(value); }, arg);
  }
  void argument(None) {}
  void argument(ValueId v) { id(v); }
  void argument(sym::Expr e) { expr(e); }
  void argument(double d) { real(d); }
  void argument(bool b) { number(b); }
  void argument(const std::string& text) { out_.text(text); }
  void argument(DType dtype) { number(dtype); }
  void argument(MemoryFormat format) { number(format); }
  void argument(const Device& device) { out_.text(device.name); }
  void argument(const Complex& c) {
    real(c.re);
    real(c.im);
  }
  template <class T>
  void argument(const std::vector<T>& items) {
    number(items.size());
    for (const T& item : items) argument(item);
  }

  /// The code of an expression the first time, then the number of that.
  void expr(sym::Expr e) {
    enum Form : u8 { kNone, kConstant, kKnown, kCode, kText };
    if (!e.valid()) return number(kNone);
    if (const std::optional<i64> c = syms_.as_const(e)) {
      number(kConstant);
      return number(*c);
    }
    const auto [at, fresh] = known_.emplace(e, known_.size());
    if (!fresh) {
      number(kKnown);
      return number(at->second);
    }
    const Result<runtime::ExprCode> code =
        sym::compile(syms_, e, [&](sym::Expr v) { return std::optional<u32>(slot(v)); });
    number(code.ok() ? kCode : kText);
    if (code.ok())
      list(*code, [&](i64 word) { number(word); });
    else
      out_.text(syms_.text(e));  // longer than code may be: then with its names
  }

  u32 slot(sym::Expr variable) {
    const auto [at, fresh] = slots_.emplace(variable, static_cast<u32>(variables_.size()));
    if (fresh) variables_.push_back(variable);
    return at->second;
  }

  const sym::Arena& syms_;
  PackedWriter out_;
  std::unordered_map<sym::Expr, std::size_t> known_;
  std::unordered_map<sym::Expr, u32> slots_;
  std::vector<sym::Expr> variables_;  // by slot
};

}  // namespace

std::string canonical_bytes(const Graph& graph) {
  Canonical canonical(*graph.syms);
  canonical.graph(graph);
  return canonical.finish();
}

}  // namespace coil
