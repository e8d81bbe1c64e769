// cond, while_loop and scan: control nodes around sub-programs with whole buffers as operands.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// A whole buffer with the layout that `type` states: what a sub-program's input expects.
BufferId operand_buffer(Lowering& l, ValueId v, std::size_t number) {
  const Access from = l.access(v);
  const Buffer wanted = l.buffer_for(l.type(v), str("{}.in{}", l.name(), number));
  const Buffer& have = l.program.buffers[from.buffer];
  if (is_identity(from, have) && have.layout.entries == wanted.layout.entries) {
    l.program.buffers[from.buffer].layout.open = false;
    return from.buffer;
  }
  Buffer copied = wanted;
  const BufferId out = l.add_buffer(std::move(copied));
  l.copy(from, out, str("{}.in{}", l.name(), number));
  return out;
}

std::vector<ValueId> list(const Arg& arg) {
  if (const auto* one = std::get_if<ValueId>(&arg)) return {*one};
  if (const auto* all = std::get_if<std::vector<ValueId>>(&arg)) return *all;
  return {};
}

/// Tensors as buffers. An int is no operand: the subgraphs know it as the expression that it is.
/// `number` counts the inputs of the subgraphs.
Result<std::vector<BufferId>> operand_buffers(Lowering& l, const std::vector<ValueId>& values,
                                              std::size_t& number) {
  std::vector<BufferId> out;
  for (ValueId v : values) {
    const std::size_t place = number++;
    if (l.type(v).is_tensor()) {
      out.push_back(operand_buffer(l, v, place));
      continue;
    }
    for (u32 sub : l.node().subgraphs) {
      const Graph& graph = l.graph.subgraphs.at(sub);
      if (!l.type(v).expr.valid() ||
          graph.type(graph.inputs.at(place).value).expr != l.type(v).expr)
        return l.unsupported_case("a number as operand");
    }
  }
  return out;
}

Result<Control> begin_control(Lowering& l, const Node& node) {
  Control c;
  c.name = l.fresh_body_name(l.name());
  c.from = node.outs;
  c.locs = l.locs();
  for (u32 graph : node.subgraphs) c.programs.push_back(COIL_TRY(lower_subgraph(l, graph)));
  return c;
}

void finish_control(Lowering& l, Control c) {
  l.program.order.push_back(l.program.controls.add(std::move(c)));
}

void add_results(Lowering& l, const Node& node, Control& c) {
  for (ValueId out : node.outs) {
    const BufferId buffer = l.result(out);
    l.program.buffers[buffer].layout.open = false;
    c.results.push_back(buffer);
  }
}

}  // namespace

Status lower_cond(Lowering& l, const Node& node) {
  Control c = COIL_TRY(begin_control(l, node));
  If kind;
  const Arg& predicate = node.args.at(0);
  const auto* value = std::get_if<ValueId>(&predicate);
  std::size_t number = 0;
  if (value && l.type(*value).is_tensor()) {
    // A 0-d bool; a tensor of one element or of another dtype becomes one.
    const Access flag = reshape(l.syms, l.prover, l.access(*value), {});
    kind.predicate = flag.buffer;
    if (!is_bool(l.dtype_of(flag)) || !is_identity(flag, l.program.buffers[flag.buffer])) {
      kind.predicate = l.temp("predicate", DType::b8, {});
      l.copy(flag, kind.predicate, str("{}.predicate", l.name()));
    }
  } else if (value) {
    kind.condition = l.type(*value).expr;
  } else if (const auto* flag = std::get_if<bool>(&predicate)) {
    kind.condition = l.syms.constant(*flag);
  } else {
    kind.condition = std::get<Expr>(predicate);
  }
  c.kind = kind;
  c.operands = COIL_TRY(operand_buffers(l, list(node.args.at(1)), number));
  add_results(l, node, c);
  finish_control(l, std::move(c));
  return Ok{};
}

Status lower_while(Lowering& l, const Node& node) {
  Control c = COIL_TRY(begin_control(l, node));
  c.kind = While{};
  std::size_t number = 0;
  c.carried = COIL_TRY(operand_buffers(l, list(node.args.at(0)), number));
  c.operands = COIL_TRY(operand_buffers(l, list(node.args.at(1)), number));
  add_results(l, node, c);
  finish_control(l, std::move(c));
  return Ok{};
}

namespace {

/// The inputs of a scan's sub-program that stand for one slice each of xs become inputs for the
/// whole of xs, read at the step.
void read_slices(Lowering& l, LoopProgram& body, std::size_t first, const std::vector<BufferId>& xs,
                 Expr step) {
  for (std::size_t k = 0; k < xs.size(); ++k) {
    const BufferId slice = body.inputs.at(first + k).buffer;
    const Buffer whole = l.program.buffers[xs[k]];
    Buffer& input = body.buffers[slice];
    input.shape = whole.shape;
    input.layout = whole.layout;
    const auto at_step = [&](Exprs& index) { index.insert(index.begin(), step); };
    for (Body& b : body.bodies)
      for (Inst& inst : b.insts)
        if (inst.buffer == slice) at_step(inst.index);
    for (Structured& s : body.structured)
      for (Access& a : s.inputs)
        if (a.buffer == slice) at_step(a.index);
  }
}

/// Whether a slice is used otherwise than by loads: whole, by control flow, as a start or an
/// output.
bool used_whole(const LoopProgram& body, BufferId buffer) {
  for (const Control& c : body.controls)
    for (const auto* list : {&c.carried, &c.operands})
      for (BufferId b : *list)
        if (b == buffer) return true;
  for (const Buffer& b : body.buffers)
    if (b.starts == buffer) return true;
  for (const ProgramOutput& o : body.outputs)
    if (o.buffer == buffer) return true;
  return false;
}

}  // namespace

Status lower_scan(Lowering& l, const Node& node) {
  Control c = COIL_TRY(begin_control(l, node));
  const std::vector<ValueId> init = list(node.args.at(0)), xs = list(node.args.at(1));
  if (xs.empty()) return l.unsupported_case("a scan over nothing");
  std::size_t number = 0;
  const Expr extent = l.type(xs[0]).shape.at(0);
  const Expr step = fresh_var(l.syms, "t", sym::Role::Step, extent);
  c.kind = For{step, extent};
  c.carried = COIL_TRY(operand_buffers(l, init, number));
  c.operands = COIL_TRY(operand_buffers(l, xs, number));
  LoopProgram& body = l.program.subprograms.at(c.programs[0]);
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (used_whole(body, body.inputs.at(init.size() + k).buffer))
      return l.unsupported_case("a slice that is used whole inside");
  read_slices(l, body, init.size(), c.operands, step);
  for (BufferId extra : COIL_TRY(operand_buffers(l, list(node.args.at(2)), number)))
    c.operands.push_back(extra);
  add_results(l, node, c);
  finish_control(l, std::move(c));
  return Ok{};
}

}  // namespace coil::lowering
