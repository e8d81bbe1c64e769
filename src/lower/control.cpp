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

/// Buffers of which a sub-program sees one slice each, at `step`: as its inputs from `first` on.
struct Slices {
  std::size_t first = 0;
  std::vector<BufferId> of;
  Expr step;
};

/// The inputs that stand for slices become inputs for the whole buffers, seen at the step.
void see_slices(Lowering& inner, const Table<BufferId, Buffer>& outer, const Slices& slices) {
  for (std::size_t k = 0; k < slices.of.size(); ++k) {
    const ValueId value = inner.graph.inputs.at(slices.first + k).value;
    Access slice = inner.access(value);
    Buffer& input = inner.program.buffers[slice.buffer];
    input.shape = outer[slices.of[k]].shape;
    input.layout = outer[slices.of[k]].layout;
    slice.index.insert(slice.index.begin(), slices.step);
    inner.set(value, std::move(slice));
  }
}

/// Lowers a subgraph and appends it to `l.program.subprograms`; gives its number.
Result<u32> lower_subgraph(Lowering& l, u32 subgraph, const Slices& slices) {
  Lowering inner(l.graph.subgraphs.at(subgraph), l.facts, l.unsupported);
  inner.is_inner = true;
  lower_inputs(inner);
  see_slices(inner, l.program.buffers, slices);
  COIL_TRY(lower_nodes(inner));
  COIL_TRY(lower_outputs(inner));
  l.program.subprograms.push_back(std::move(inner.program));
  return static_cast<u32>(l.program.subprograms.size() - 1);
}

Result<Control> begin_control(Lowering& l, const Node& node, const Slices& slices = {}) {
  Control c;
  c.name = l.fresh_body_name(l.name());
  c.from = node.outs;
  c.locs = l.locs();
  for (u32 graph : node.subgraphs) c.programs.push_back(COIL_TRY(lower_subgraph(l, graph, slices)));
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

Status lower_scan(Lowering& l, const Node& node) {
  const std::vector<ValueId> init = list(node.args.at(0)), xs = list(node.args.at(1));
  if (xs.empty()) return l.unsupported_case("a scan over nothing");
  std::size_t number = 0;
  const Expr extent = l.type(xs[0]).shape.at(0);
  const Expr step = fresh_var(l.syms, "t", sym::Role::Step, extent);
  const std::vector<BufferId> carried = COIL_TRY(operand_buffers(l, init, number));
  const std::vector<BufferId> sliced = COIL_TRY(operand_buffers(l, xs, number));
  Control c = COIL_TRY(begin_control(l, node, {init.size(), sliced, step}));
  c.kind = For{step, extent};
  c.carried = carried;
  c.operands = sliced;
  for (BufferId extra : COIL_TRY(operand_buffers(l, list(node.args.at(2)), number)))
    c.operands.push_back(extra);
  add_results(l, node, c);
  finish_control(l, std::move(c));
  return Ok{};
}

}  // namespace coil::lowering
