#include "lower/lower.h"

#include "base/check.h"
#include "graph/args.h"
#include "graph/builder.h"
#include "lower/context.h"
#include "lower/registry.h"

namespace coil {
namespace lowering {
namespace {

using ControlFn = Status (*)(Lowering&, const Node&);

/// coil's own ops.
ControlFn control_lowering(std::string_view op) {
  if (op == "update") return lower_update;
  if (op == "cond") return lower_cond;
  if (op == "while_loop") return lower_while;
  if (op == "scan") return lower_scan;
  return nullptr;
}

bool has_complex(const Lowering& l, const Node& node) {
  bool found = false;
  const auto look = [&](ValueId v) {
    found |= v.valid() && l.type(v).is_tensor() && is_complex(l.type(v).dtype);
  };
  each_value(node.args, look);
  for (ValueId out : node.outs) look(out);
  return found;
}

Status lower_node(Lowering& l, const Node& node) {
  try {
    if (const ControlFn lower = control_lowering(node.op)) return lower(l, node);
    const LowerFn lower = find_lowering(node.op);
    COIL_CHECK(lower != nullptr, "{} has no lowering", node.op);
    if (!takes_complex(lower) && has_complex(l, node)) return l.unsupported_case("complex tensors");
    return lower(l, node, Args(l.syms, node.op, node.args));
  } catch (const BuildError& problem) {
    return l.unsupported_case(problem.error.message);
  }
}

bool is_known(std::string_view op) { return control_lowering(op) || find_lowering(op); }

/// Every op of the graph and its subgraphs that has no row.
void find_unknown(const Graph& graph, Unsupported& unsupported) {
  for (NodeId n : graph.nodes.ids())
    if (!is_known(graph.nodes[n].op))
      unsupported.places[graph.nodes[n].op].push_back(describe(graph, n));
  for (const Graph& sub : graph.subgraphs) find_unknown(sub, unsupported);
}

constexpr std::size_t kPlacesShown = 4;

Error unsupported_error(const Unsupported& unsupported) {
  std::string text = str("{} op{} not supported:", unsupported.places.size(),
                         unsupported.places.size() == 1 ? " is" : "s are");
  for (const auto& [op, places] : unsupported.places) {
    text += str("\n  {}, {} time{}: ", op, places.size(), places.size() == 1 ? "" : "s");
    for (std::size_t k = 0; k < places.size() && k < kPlacesShown; ++k)
      text += str("{}{}", k ? ", " : "", places[k]);
    if (places.size() > kPlacesShown) text += ", ...";
  }
  return Error{text};
}

/// Results of a node that failed, so that the nodes after it can be looked at too.
void stand_in(Lowering& l, const Node& node) {
  for (ValueId out : node.outs)
    if (l.type(out).is_tensor() && !l.has(out)) l.result(out);
}

void lower_constants(Lowering& l) {
  for (u32 k = 0; k < l.program.constants.size(); ++k) {
    Constant& constant = l.program.constants[k];
    Buffer buffer = l.buffer_for(l.type(constant.value), l.name_of(constant.value));
    buffer.kind = constant.is_state ? BufferKind::State : BufferKind::Constant;
    buffer.source = k;
    constant.is_complex = is_complex(l.type(constant.value).dtype);
    const BufferId id = l.add_buffer(std::move(buffer));
    l.set(constant.value, l.whole(id));
  }
  l.program.storages = l.graph.storages;
}

}  // namespace

void lower_inputs(Lowering& l) {
  for (u32 k = 0; k < l.graph.inputs.size(); ++k) {
    const Input& input = l.graph.inputs[k];
    const Type& type = l.type(input.value);
    // Inside, numbers are known as the expressions that they are outside.
    if (l.is_inner && !type.is_tensor()) continue;
    ProgramInput out;
    out.name = input.name;
    switch (type.kind) {
      case TypeKind::Tensor: {
        Buffer buffer = l.buffer_for(type, l.name_of(input.value));
        buffer.kind = BufferKind::Input;
        out.is_complex = is_complex(type.dtype);
        buffer.source = static_cast<u32>(l.program.inputs.size());
        out.buffer = l.add_buffer(std::move(buffer));
        l.set(input.value, l.whole(out.buffer));
        break;
      }
      case TypeKind::Int:
      case TypeKind::Bool: out.size = type.expr; break;
      case TypeKind::Float:
        out.is_float = true;
        out.scalar = l.scalar(l.name_of(input.value));
        break;
      case TypeKind::None:
        out.is_fixed = true;
        out.fixed = input.fixed;
        break;
    }
    l.program.inputs.push_back(std::move(out));
  }
}

Status lower_nodes(Lowering& l) {
  std::optional<Error> failures;
  for (const Node& node : l.graph.nodes) {
    l.enter(node);
    const Status status = lower_node(l, node);
    if (status.ok()) continue;
    stand_in(l, node);
    if (failures)
      failures->message += "\n" + status.error().message;
    else
      failures = status.error();
  }
  if (failures) return *failures;
  return Ok{};
}

}  // namespace lowering

namespace {

/// What a caller sees of a program: sizes, arguments, constants.
void lower_interface(lowering::Lowering& l, std::vector<Constant> constants) {
  for (const SizeVar& size : l.graph.sizes) l.program.sizes.push_back({size.var, size.hint, {}});
  lowering::lower_inputs(l);
  l.program.constants = std::move(constants);
  lowering::lower_constants(l);
}

}  // namespace

LoopProgram lower_interface(const Graph& graph, std::vector<Constant> constants) {
  lowering::Unsupported unsupported;
  lowering::Lowering l(graph, graph.facts, unsupported);
  lower_interface(l, std::move(constants));
  for (const Output& given : graph.outputs) {
    ProgramOutput& output = l.program.outputs.emplace_back();
    output.kind = given.kind;
    output.target = given.target;
  }
  return std::move(l.program);
}

Result<LoopProgram> lower(const Graph& graph, const Options&) {
  lowering::Unsupported unsupported;
  lowering::find_unknown(graph, unsupported);
  if (!unsupported.places.empty()) return lowering::unsupported_error(unsupported);
  lowering::Lowering l(graph, graph.facts, unsupported);
  l.program.checks = graph.checks;
  lower_interface(l, graph.constants);
  COIL_TRY(lowering::lower_nodes(l));
  COIL_TRY(lowering::lower_outputs(l));
  lowering::mark_init(l.program);
  return std::move(l.program);
}

}  // namespace coil
