// What a program returns: windows on its buffers where eager's strides allow it, copies elsewhere.

#include <map>
#include <set>

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/context.h"

namespace coil::lowering {
namespace {

/// The strides and the offset of a tensor in its buffer, in elements of the level 0 dtype.
struct Window {
  Exprs strides;
  Expr offset;
};

std::optional<Window> window_of(Lowering& l, const Access& a, const Type& type) {
  sym::Arena& syms = l.syms;
  const Layout& layout = l.program.buffers[a.buffer].layout;
  const Expr zero = syms.constant(0), two = syms.constant(2);
  const bool parts = is_complex(type.dtype);
  Expr place = address(syms, layout, a.index);
  if (parts) {
    const auto step = syms.stride(place, a.vars.back());
    if (!step || !syms.is_const(*step, 1)) return std::nullopt;
    place = syms.substitute(place, {{a.vars.back(), zero}});
  }
  Window w;
  std::vector<std::pair<Expr, Expr>> origin;
  for (std::size_t k = 0; k < type.ndim(); ++k) {
    const bool single = syms.is_const(a.extents[k], 1);
    const auto step = syms.stride(place, a.vars[k]);
    if (!step && !single) return std::nullopt;
    // A dim of one element has the stride that eager says.
    w.strides.push_back(single ? type.strides[k] : parts ? syms.floordiv(*step, two) : *step);
    origin.push_back({a.vars[k], zero});
  }
  w.offset = syms.substitute(place, origin);
  if (parts) w.offset = syms.floordiv(w.offset, two);
  return w;
}

bool same_strides(const Lowering& l, const Window& w, const Type& type) {
  for (std::size_t k = 0; k < type.ndim(); ++k)
    if (!l.prover.is_equal(w.strides[k], type.strides[k])) return false;
  return true;
}

}  // namespace

bool lies_as_typed(Lowering& l, const Access& a, const Type& type) {
  const std::optional<Window> w = window_of(l, a, type);
  return w && same_strides(l, *w, type);
}

namespace {

/// Writes the rows of LoopProgram::outputs and ::states.
class Outputs {
 public:
  explicit Outputs(Lowering& l) : l_(l) {}

  void state(const StateUpdate& update) {
    const Constant& constant = l_.graph.constants.at(update.constant);
    const BufferId state = l_.access(constant.value).buffer;
    const Access& from = l_.access(update.value);
    BufferId updated = from.buffer;
    const Buffer& have = l_.program.buffers[updated];
    const bool fits = have.kind == BufferKind::Temp && is_identity(from, have) &&
                      have.layout.entries == l_.program.buffers[state].layout.entries &&
                      !taken_.contains(updated);
    if (!fits) updated = copy(update.value, l_.type(constant.value));
    take(updated);
    l_.program.states.push_back({state, updated});
  }

  ProgramOutput output(const Output& output) {
    ProgramOutput out;
    out.kind = output.kind;
    out.target = output.target;
    out.constant = output.constant;
    switch (output.kind) {
      case OutputKind::Constant:
      case OutputKind::None: break;
      case OutputKind::Int: number(out, output.value); break;
      case OutputKind::Value: fresh(out, output.value); break;
      case OutputKind::MutatedInput:
        mutated_[output.target] = output.value;
        mutated(out, output.value);
        break;
      case OutputKind::AliasOfInput:
      case OutputKind::AliasOfOutput: alias(out, output.value); break;
    }
    return out;
  }

 private:
  void take(BufferId b) {
    taken_.insert(b);
    l_.program.buffers[b].layout.open = false;
  }

  /// A new buffer of `type` with the elements of the value.
  BufferId copy(ValueId value, const Type& type) {
    Buffer buffer = l_.buffer_for(type, str("{}.out", l_.name_of(value)));
    const BufferId to = l_.add_buffer(std::move(buffer));
    enter_definition(value);
    l_.copy(l_.access(value), to, l_.program.buffers[to].name);
    return to;
  }
  /// The copy belongs to the node that made the value.
  void enter_definition(ValueId value) {
    const NodeId def = l_.graph.values[value].def;
    copy_node_ = Node{};
    copy_node_.outs = {value};
    if (def.valid()) copy_node_.loc = l_.graph.nodes[def].loc;
    l_.enter(copy_node_);
  }

  void place(ProgramOutput& out, BufferId buffer, const Type& type, Window window) {
    out.buffer = buffer;
    out.dtype = type.dtype;
    out.shape = type.shape;
    out.strides = std::move(window.strides);
    out.offset = window.offset;
  }
  void place_copy(ProgramOutput& out, ValueId value) {
    const Type& type = l_.type(value);
    const BufferId buffer = copy(value, type);
    take(buffer);
    place(out, buffer, type, {type.strides, l_.syms.constant(0)});
  }

  /// A copy of all of a buffer that a written input took: several results may be views of it, and
  /// where in it they begin is seen outside.
  BufferId whole_copy(ValueId value) {
    const BufferId from = l_.access(value).buffer;
    Buffer buffer = l_.program.buffers[from];
    buffer.name = str("{}.out", l_.name_of(value));
    buffer.starts = {};
    const BufferId to = l_.add_buffer(std::move(buffer));
    enter_definition(value);
    l_.copy(l_.whole(from), to, l_.program.buffers[to].name);
    take(to);
    copied_from_[to] = from;
    return to;
  }

  /// A result that shares memory with nothing.
  void fresh(ProgramOutput& out, ValueId value) {
    const Type& type = l_.type(value);
    const Access& from = l_.access(value);
    const Buffer& have = l_.program.buffers[from.buffer];
    const bool own = have.kind == BufferKind::Temp && !taken_.contains(from.buffer);
    // A sub-program's results are whole buffers.
    const auto window = window_of(l_, from, type);
    if (taken_.contains(from.buffer) && have.kind == BufferKind::Temp && window && !l_.is_inner &&
        !is_identity(from, have))
      return place(out, whole_copy(value), type, *window);
    if (!own || !window || !same_strides(l_, *window, type) ||
        (l_.is_inner && !is_identity(from, have)))
      return place_copy(out, value);
    take(from.buffer);
    place(out, from.buffer, type, *window);
  }

  /// What an input holds afterwards: any layout does, since it is written from there.
  void mutated(ProgramOutput& out, ValueId value) {
    const Access& from = l_.access(value);
    const auto window = window_of(l_, from, l_.type(value));
    if (!window || l_.program.buffers[from.buffer].kind != BufferKind::Temp)
      return place_copy(out, value);
    take(from.buffer);
    place(out, from.buffer, l_.type(value), *window);
  }

  /// Whether a buffer is an input's, or what the input holds when the call ends, in its layout.
  bool becomes_input(BufferId buffer, u32 target) const {
    const BufferId input = l_.program.inputs[target].buffer;
    if (buffer == input) return true;
    for (const ProgramOutput& o : l_.program.outputs)
      if (o.kind == OutputKind::MutatedInput && o.target == target && o.buffer == buffer) {
        const Buffer& now = l_.program.buffers[buffer];
        const Access& whole = l_.access(mutated_.at(target));
        return whole.buffer == buffer && is_identity(whole, now) &&
               now.layout.entries == l_.program.buffers[input].layout.entries;
      }
    return false;
  }

  void alias(ProgramOutput& out, ValueId value) {
    const Access& from = l_.access(value);
    if (out.kind == OutputKind::AliasOfInput && !becomes_input(from.buffer, out.target)) {
      out.kind = OutputKind::Value;
      return fresh(out, value);
    }
    const auto window = window_of(l_, from, l_.type(value));
    // A view of a written input lies in the input, which holds the new values by then.
    const bool of_input = out.kind == OutputKind::AliasOfInput;
    const BufferId memory = of_input ? l_.program.inputs.at(out.target).buffer
                                     : l_.program.outputs.at(out.target).buffer;
    // The output that it shares memory with may have become a copy of itself alone.
    const auto copied = copied_from_.find(memory);
    const bool is_there = of_input || memory == from.buffer ||
                          (copied != copied_from_.end() && copied->second == from.buffer);
    if (!window || !is_there) {
      out.kind = OutputKind::Value;
      return place_copy(out, value);
    }
    take(memory);
    place(out, memory, l_.type(value), *window);
  }

  void number(ProgramOutput& out, ValueId value) {
    const Type& type = l_.type(value);
    if (type.kind != TypeKind::Float) {
      out.expr = type.expr;
      return;
    }
    // A float comes from data: it is returned out of its 0-d buffer.
    if (l_.has(value)) out.buffer = l_.access(value).buffer;
  }

  Lowering& l_;
  std::set<BufferId> taken_;
  std::map<BufferId, BufferId> copied_from_;  // by whole copy: the buffer
  std::map<u32, ValueId> mutated_;            // by input: what it holds at the end
  Node copy_node_;
};

}  // namespace

Status lower_outputs(Lowering& l) {
  Outputs outputs(l);
  for (const StateUpdate& update : l.graph.state_updates) outputs.state(update);
  for (const Output& output : l.graph.outputs) l.program.outputs.push_back(outputs.output(output));
  return Ok{};
}

}  // namespace coil::lowering
