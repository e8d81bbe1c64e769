// The verifier of level 1: programs, their declarations and outputs.

#include <algorithm>

#include "loop/text_marks.h"
#include "loop/verifier.h"

namespace coil {
namespace loop_verify {

namespace {

constexpr int kMaxDepth = 50;

bool is_constant_kind(const Buffer& buffer) {
  return buffer.kind == BufferKind::Constant || buffer.kind == BufferKind::State;
}

}  // namespace

ProgramVerifier::ProgramVerifier(const LoopProgram& program, Vars outer, int depth)
    : program_(program),
      syms_(*program.syms),
      sizes_(std::move(outer)),
      given_(sizes_),
      depth_(depth) {}

Status ProgramVerifier::verify() {
  if (depth_ > kMaxDepth) return error("programs are nested too deeply");
  if (!is_word(program_.name)) return error("a program's name is '{}', not a word", program_.name);
  COIL_TRY(verify_sizes());
  COIL_TRY(verify_tables());
  COIL_TRY(verify_inputs());
  COIL_TRY(collect_writes());
  for (const Step& step : program_.order) COIL_TRY(verify_step(step));
  return verify_outputs();
}

Status ProgramVerifier::verify_sizes() {
  std::set<std::string> names;
  for (sym::Expr v : sizes_) names.insert(syms_.var(v).name);
  for (const ProgramSize& size : program_.sizes) {
    if (!size.var.valid() || size.var.index >= syms_.size() ||
        syms_.kind(size.var) != sym::Kind::Var)
      return error("a size is no variable");
    const sym::Variable& var = syms_.var(size.var);
    if (!is_word(var.name) || !names.insert(var.name).second)
      return error("size '{}' needs a name of its own", var.name);
    if (var.role != sym::Role::Size && var.role != sym::Role::Value)
      return error("size {} has the role of a dim", var.name);
    sizes_.insert(size.var);
    if (!size.from.valid()) given_.insert(size.var);
  }
  std::set<std::string> scalars;
  for (const std::string& name : program_.scalars)
    if (!is_name(name) || !scalars.insert(name).second)
      return error("scalar '{}' needs a name of its own", name);
  return Ok{};
}

Status ProgramVerifier::verify_tables() const {
  std::set<std::string> names;
  for (BufferId id : program_.buffers.ids()) {
    const Buffer& buffer = program_.buffers[id];
    if (!is_name(buffer.name) || !names.insert(buffer.name).second)
      return error("buffer '{}' needs a name of its own", buffer.name);
    const Status s = verify_buffer(id);
    if (!s.ok()) return in_context("buffer " + name_of(id), s.error());
  }
  for (const ProgramSize& size : program_.sizes) {
    if (!size.from.valid()) continue;
    COIL_TRY(check_buffer(size.from));
    const Buffer& buffer = program_.buffers[size.from];
    if (buffer.dtype != DType::i64 || !buffer.shape.empty())
      return error("size {} comes from {}, which is no 0-d i64", syms_.var(size.var).name,
                   name_of(size.from));
  }
  for (const Check& check : program_.checks) COIL_TRY(check_expr(check.condition, sizes_));
  return Ok{};
}

Status ProgramVerifier::verify_buffer(BufferId id) const {
  const Buffer& buffer = program_.buffers[id];
  if (is_complex(buffer.dtype))
    return error("complex elements are pairs of {} in level 1", name(real_of(buffer.dtype)));
  const Vars& vars = buffer.kind == BufferKind::Temp ? sizes_ : given_;
  COIL_TRY(check_exprs(buffer.shape, vars));
  std::set<std::pair<u32, i64>> entries;
  for (const LayoutEntry& entry : buffer.layout.entries) {
    if (entry.dim >= buffer.shape.size()) return error("its layout names dim {}", entry.dim);
    if (entry.factor < 1 || !entries.insert({entry.dim, entry.factor}).second)
      return error("its layout has factor {} of dim {} twice or wrong", entry.factor, entry.dim);
    COIL_TRY(check_expr(entry.stride, vars));
  }
  // Factors of a dim divide each other, from 1 on, so that the parts make up the index.
  for (const auto& [dim, factor] : entries) {
    const auto next = entries.upper_bound({dim, factor});
    if (next != entries.end() && next->first == dim && next->second % factor != 0)
      return error("factor {} of dim {} does not divide {}", factor, dim, next->second);
  }
  for (u32 d = 0; d < buffer.shape.size(); ++d)
    if (!entries.contains({d, 1})) return error("its layout leaves out dim {}", d);
  if (buffer.layout.offset.valid()) COIL_TRY(check_expr(buffer.layout.offset, vars));
  if (buffer.starts.valid()) {
    COIL_TRY(check_buffer(buffer.starts));
    const Buffer& base = program_.buffers[buffer.starts];
    if (buffer.starts >= id) return error("it starts as a later buffer");
    if (base.dtype != buffer.dtype || base.shape != buffer.shape)
      return error("it starts as {}, of another dtype or shape", name_of(buffer.starts));
    // It may take over the other's memory, or gets a copy of its bytes.
    if (base.layout.entries != buffer.layout.entries || base.layout.offset != buffer.layout.offset)
      return error("it starts as {}, of another layout", name_of(buffer.starts));
    if (buffer.kind != BufferKind::Temp) return error("only temporaries start as another buffer");
  }
  if (buffer.kind == BufferKind::Input &&
      (buffer.source >= program_.inputs.size() || program_.inputs[buffer.source].buffer != id))
    return error("it is no input");
  if (is_constant_kind(buffer)) return verify_constant(buffer);
  return Ok{};
}

Status ProgramVerifier::verify_constant(const Buffer& buffer) const {
  if (depth_ > 0) return error("programs inside others have no constants");
  if (buffer.source >= program_.constants.size()) return error("it has no constant");
  const Constant& constant = program_.constants[buffer.source];
  if (constant.storage >= program_.storages.size()) return error("its storage does not exist");
  if (constant.offset < 0) return error("its offset is negative");
  for (sym::Expr extent : buffer.shape)
    if (!syms_.as_const(extent)) return error("the shape of a constant depends on a size");
  for (const LayoutEntry& entry : buffer.layout.entries)
    if (!syms_.as_const(entry.stride)) return error("the layout of a constant depends on a size");
  return Ok{};
}

Status ProgramVerifier::verify_inputs() const {
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const ProgramInput& input = program_.inputs[i];
    const std::string where = str("input {} ({})", i, input.name);
    if (input.buffer.valid()) {
      if (input.buffer.index >= program_.buffers.size()) return error("{}: no such buffer", where);
      const Buffer& buffer = program_.buffers[input.buffer];
      if (buffer.kind != BufferKind::Input || buffer.source != i)
        return error("{}: {} is no input buffer of its own", where, name_of(input.buffer));
    } else if (input.is_fixed) {
      if (const auto* e = std::get_if<sym::Expr>(&input.fixed)) COIL_TRY(check_expr(*e, {}));
    } else if (input.is_float) {
      if (input.scalar >= program_.scalars.size()) return error("{}: no such scalar", where);
    } else if (const Status s = check_expr(input.size, given_); !s.ok()) {
      return in_context(where, s.error());
    }
  }
  return Ok{};
}

Status ProgramVerifier::check_buffer(BufferId id) const {
  if (!id.valid() || id.index >= program_.buffers.size()) return error("no such buffer");
  return Ok{};
}

Status ProgramVerifier::check_expr(sym::Expr e, const Vars& vars) const {
  if (!e.valid() || e.index >= syms_.size()) return error("an expression is missing");
  std::vector<sym::Expr> used;
  syms_.variables(e, used);
  for (sym::Expr v : used)
    if (!vars.contains(v))
      return error("'{}' uses {}, which has no value here", syms_.text(e), syms_.var(v).name);
  return Ok{};
}

Status ProgramVerifier::check_exprs(std::span<const sym::Expr> items, const Vars& vars) const {
  for (sym::Expr e : items) COIL_TRY(check_expr(e, vars));
  return Ok{};
}

Status ProgramVerifier::check_read(BufferId id) const {
  COIL_TRY(check_buffer(id));
  if (program_.buffers[id].kind != BufferKind::Temp || defined_.get(id)) return Ok{};
  return error("{} is read before it is defined", name_of(id));
}

Status ProgramVerifier::check_init(BufferId id) const {
  if (program_.buffers[id].kind == BufferKind::Constant || init_.get(id)) return Ok{};
  return error("runs before the first call and reads {}, which it cannot know", name_of(id));
}

namespace {

/// Calls `f(buffer, is_write)` for each buffer that a step touches.
template <class F>
void for_each_buffer(const LoopProgram& program, const Step& step, F f) {
  if (const auto* id = std::get_if<BodyId>(&step)) {
    for (const Inst& inst : program.bodies[*id].insts) {
      if (inst.kind == InstKind::Load) f(inst.buffer, false);
      if (inst.kind == InstKind::Store) f(inst.buffer, true);
    }
  } else if (const auto* id = std::get_if<StructuredId>(&step)) {
    for (const Access& access : program.structured[*id].inputs) f(access.buffer, false);
    for (const Access& access : program.structured[*id].outputs) f(access.buffer, true);
  } else {
    const Control& control = program.controls[std::get<ControlId>(step)];
    for (BufferId b : control.carried) f(b, false);
    for (BufferId b : control.operands) f(b, false);
    for (BufferId b : control.results) f(b, true);
  }
}

}  // namespace

/// Every step stands in the order once and every buffer is written by one step.
Status ProgramVerifier::collect_writes() {
  std::set<std::pair<std::size_t, u32>> seen;
  Side<BufferId, u32> writer(program_.buffers.size(), ~u32{0});
  for (u32 i = 0; i < program_.order.size(); ++i) {
    const Step& step = program_.order[i];
    const u32 id = std::visit([](auto s) { return s.index; }, step);
    const std::size_t count = step.index() == 0   ? program_.bodies.size()
                              : step.index() == 1 ? program_.structured.size()
                                                  : program_.controls.size();
    if (id >= count) return error("step {} does not exist", i);
    if (!seen.insert({step.index(), id}).second) return error("step {} stands twice", i);
    Status status = Ok{};
    for_each_buffer(program_, step, [&](BufferId b, bool is_write) {
      if (status.ok() && !check_buffer(b).ok()) status = error("step {}: no such buffer", i);
      if (!status.ok() || !is_write) return;
      if (program_.buffers[b].kind != BufferKind::Temp)
        status = error("step {} writes {}, which is no temporary", i, name_of(b));
      else if (writer.get(b) != ~u32{0} && writer.get(b) != i)
        status = error("{} is written by two steps", name_of(b));
      writer[b] = i;
      written_[b] = true;
    });
    COIL_TRY(status);
  }
  if (seen.size() != program_.bodies.size() + program_.structured.size() + program_.controls.size())
    return error("a body or node is not in the order");
  for (BufferId b : program_.buffers.ids())
    if (program_.buffers[b].starts.valid() && !written_.get(b))
      return error("{} starts as {} and is never written: nothing gives it its content", name_of(b),
                   name_of(program_.buffers[b].starts));
  return Ok{};
}

Status ProgramVerifier::verify_step(const Step& step) {
  if (const auto* id = std::get_if<BodyId>(&step)) COIL_TRY(verify_body(program_.bodies[*id]));
  if (const auto* id = std::get_if<StructuredId>(&step))
    COIL_TRY(verify_structured(program_.structured[*id]));
  if (const auto* id = std::get_if<ControlId>(&step))
    COIL_TRY(verify_control(program_.controls[*id]));
  Status status = Ok{};
  for_each_buffer(program_, step, [&](BufferId b, bool is_write) {
    if (!is_write || !status.ok() || defined_.get(b)) return;
    const BufferId base = program_.buffers[b].starts;
    if (base.valid()) status = check_read(base);
    defined_[b] = true;
  });
  return status;
}

Status ProgramVerifier::verify_body(const Body& body) {
  COIL_TRY(BodyVerifier(*this, body).verify());
  if (!body.init) return Ok{};
  for (const Inst& inst : body.insts) {
    if (inst.kind == InstKind::Load)
      if (const Status s = check_init(inst.buffer); !s.ok())
        return in_context("body " + body.name, s.error());
    if (inst.kind == InstKind::Store) init_[inst.buffer] = true;
  }
  return Ok{};
}

Status ProgramVerifier::verify_outputs() const {
  for (std::size_t i = 0; i < program_.outputs.size(); ++i)
    if (const Status s = verify_output(program_.outputs[i]); !s.ok())
      return in_context(str("output {}", i), s.error());
  for (const ProgramState& state : program_.states) {
    COIL_TRY(check_buffer(state.state));
    const Buffer& buffer = program_.buffers[state.state];
    if (buffer.kind != BufferKind::State) return error("{} is no state", name_of(state.state));
    COIL_TRY(check_read(state.updated));
    const Buffer& updated = program_.buffers[state.updated];
    if (buffer.dtype != updated.dtype || buffer.shape != updated.shape)
      return error("state {} becomes {}, of another dtype or shape", name_of(state.state),
                   name_of(state.updated));
  }
  return Ok{};
}

Status ProgramVerifier::verify_output(const ProgramOutput& output) const {
  switch (output.kind) {
    case OutputKind::None: return Ok{};
    case OutputKind::Constant: {
      const bool fits = std::holds_alternative<sym::Expr>(output.constant) ||
                        std::holds_alternative<double>(output.constant) ||
                        std::holds_alternative<bool>(output.constant) ||
                        std::holds_alternative<std::string>(output.constant) ||
                        std::holds_alternative<None>(output.constant);
      if (!fits) return error("a constant output is an int, a float, a bool or a string");
      if (const auto* e = std::get_if<sym::Expr>(&output.constant)) return check_expr(*e, sizes_);
      return Ok{};
    }
    case OutputKind::Int:
      return output.expr.valid() ? check_expr(output.expr, sizes_) : check_read(output.buffer);
    case OutputKind::AliasOfInput:
    case OutputKind::MutatedInput:
      if (output.target >= program_.inputs.size() || !program_.inputs[output.target].buffer.valid())
        return error("no tensor is input {}", output.target);
      break;
    case OutputKind::AliasOfOutput:
      if (output.target >= program_.outputs.size() ||
          program_.outputs[output.target].kind == OutputKind::AliasOfOutput ||
          program_.outputs[output.target].buffer != output.buffer)
        return error("output {} does not hold its memory", output.target);
      break;
    case OutputKind::Value: break;
  }
  COIL_TRY(check_read(output.buffer));
  const DType held = program_.buffers[output.buffer].dtype;
  if (is_complex(output.dtype) ? real_of(output.dtype) != held : output.dtype != held)
    return error("{} of a buffer of {}", name(output.dtype), name(held));
  if (output.shape.size() != output.strides.size())
    return error("{} dims, {} strides", output.shape.size(), output.strides.size());
  COIL_TRY(check_exprs(output.shape, sizes_));
  COIL_TRY(check_exprs(output.strides, sizes_));
  if (output.offset.valid()) COIL_TRY(check_expr(output.offset, sizes_));
  const Buffer& buffer = program_.buffers[output.buffer];
  if (!loop_text::is_strided(buffer.layout, buffer.shape.size()) || buffer.layout.open)
    return error("the layout of {} must be strided and fixed", name_of(output.buffer));
  return Ok{};
}

}  // namespace loop_verify

Status verify(const LoopProgram& program) {
  if (program.syms == nullptr) return error("a program without expressions");
  return loop_verify::ProgramVerifier(program, {}, 0).verify();
}

}  // namespace coil
