// init: what depends on constants alone runs once, before the first call.

#include <algorithm>

#include "lower/context.h"

namespace coil::lowering {
namespace {

/// What the content of a buffer depends on, the strongest last.
enum class Depends : u8 { Nothing, Constants, Call };

class Marker {
 public:
  explicit Marker(LoopProgram& program)
      : p_(program), buffers_(program.buffers.size(), Depends::Nothing) {
    for (BufferId b : p_.buffers.ids()) {
      const BufferKind kind = p_.buffers[b].kind;
      if (kind == BufferKind::Constant) buffers_[b] = Depends::Constants;
      if (kind == BufferKind::Input || kind == BufferKind::State) buffers_[b] = Depends::Call;
    }
    // Results are handed out, and states committed, once a call.
    for (const ProgramOutput& o : p_.outputs) call_owns(o.buffer);
    for (const ProgramState& s : p_.states) call_owns(s.updated);
    for (const ProgramSize& s : p_.sizes) call_owns(s.from);
  }

  void run() {
    for (const Step& step : p_.order) std::visit([&](auto id) { forward(id); }, step);
    // A body that reads nothing is best run where it is used; it runs early if something early
    // reads it.
    for (auto step = p_.order.rbegin(); step != p_.order.rend(); ++step)
      std::visit([&](auto id) { backward(id); }, *step);
  }

 private:
  void call_owns(BufferId b) {
    if (b.valid()) buffers_[b] = Depends::Call;
  }
  bool fixed(Expr e) const {
    if (!e.valid()) return true;
    Exprs vars;
    p_.syms->variables(e, vars);
    return std::all_of(vars.begin(), vars.end(), [&](Expr v) {
      const sym::Role role = p_.syms->var(v).role;
      return role != sym::Role::Size && role != sym::Role::Step;
    });
  }
  Depends of(BufferId b) const {
    Depends d = buffers_.get(b);
    if (const BufferId start = p_.buffers[b].starts; start.valid()) d = std::max(d, of(start));
    return d;
  }

  Depends of_body(const Body& body) const {
    Depends d = Depends::Nothing;
    for (const Dim& dim : body.dims)
      if (!fixed(dim.extent) || computed(dim.extent)) d = Depends::Call;
    for (const Inst& inst : body.insts) {
      if (inst.kind == InstKind::Scalar || !fixed(inst.expr) || !fixed(inst.extent))
        d = Depends::Call;
      for (Expr e : inst.index)
        if (!fixed(e)) d = Depends::Call;
      if (inst.buffer.valid()) d = std::max(d, of(inst.buffer));
      if (inst.kind != InstKind::Index && inst.expr.valid() && computed(inst.expr))
        d = Depends::Call;
    }
    return d;
  }
  /// Whether an expression uses a size that the program computes from data.
  bool computed(Expr e) const {
    return std::any_of(p_.sizes.begin(), p_.sizes.end(), [&](const ProgramSize& s) {
      return s.from.valid() && p_.syms->uses(e, s.var);
    });
  }
  Depends of_structured(const Structured& s) const {
    Depends d = Depends::Nothing;
    for (const auto* list : {&s.inputs, &s.outputs})
      for (const Access& a : *list) {
        d = std::max(d, of(a.buffer));
        for (Expr e : a.extents)
          if (!fixed(e) || computed(e)) d = Depends::Call;
      }
    return d;
  }

  void forward(BodyId id) {
    const Depends d = of_body(p_.bodies[id]);
    p_.bodies[id].init = d == Depends::Constants;
    for (const Inst& inst : p_.bodies[id].insts)
      if (inst.kind == InstKind::Store) buffers_[inst.buffer] = std::max(buffers_[inst.buffer], d);
  }
  void forward(StructuredId id) {
    const Depends d = of_structured(p_.structured[id]);
    p_.structured[id].init = d == Depends::Constants;
    for (const Access& a : p_.structured[id].outputs)
      buffers_[a.buffer] = std::max(buffers_[a.buffer], d);
  }
  void forward(ControlId id) {
    for (BufferId b : p_.controls[id].results) buffers_[b] = Depends::Call;
  }

  void backward(BodyId id) {
    Body& body = p_.bodies[id];
    if (!body.init && of_body(body) == Depends::Nothing)
      body.init = std::any_of(body.insts.begin(), body.insts.end(), [&](const Inst& inst) {
        return inst.kind == InstKind::Store && needed_.get(inst.buffer);
      });
    if (!body.init) return;
    for (const Inst& inst : body.insts)
      if (inst.buffer.valid()) need(inst.buffer);
  }
  void backward(StructuredId id) {
    const Structured& s = p_.structured[id];
    if (!s.init) return;
    for (const Access& a : s.inputs) need(a.buffer);
  }
  void backward(ControlId) {}
  void need(BufferId b) {
    needed_[b] = true;
    if (p_.buffers[b].starts.valid()) need(p_.buffers[b].starts);
  }

  LoopProgram& p_;
  Side<BufferId, Depends> buffers_;
  Side<BufferId, char> needed_;
};

}  // namespace

void mark_init(LoopProgram& program) { Marker(program).run(); }

}  // namespace coil::lowering
