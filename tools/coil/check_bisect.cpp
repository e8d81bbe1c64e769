#include "check_bisect.h"

#include <algorithm>

#include "check_judge.h"

namespace coil::cli {
namespace {

/// A value that was made an output, and how a message names it.
struct Suspect {
  std::string name;
};

constexpr std::string_view kViews[] = {
    "view",   "permute",    "expand",           "select",
    "slice",  "unsqueeze",  "squeeze",          "diagonal",
    "unfold", "as_strided", "split_with_sizes", "unbind",
    "alias",  "detach",     "view_as_real",     "view_as_complex",
    "real",   "imag"};

bool is_view(std::string_view op) {
  return std::find(std::begin(kViews), std::end(kViews), base_name(op)) != std::end(kViews);
}

std::vector<ValueId> values_of(const Graph& graph, const Decisions* decisions,
                               std::vector<Suspect>& names) {
  std::vector<ValueId> out;
  for (NodeId id : graph.nodes.ids()) {
    const Node& node = graph.nodes[id];
    if (is_view(node.op)) continue;
    const std::string& frame = node.loc.valid() ? graph.locs[node.loc].frame : std::string();
    for (ValueId v : node.outs) {
      if (!v.valid() || !graph.type(v).is_tensor()) continue;
      if (decisions && !decisions->reason(v).empty()) continue;
      out.push_back(v);
      names.push_back(
          {str("%{}{} {}", graph.values[v].name, frame.empty() ? "" : " (" + frame + ")",
               node.subgraphs.empty() && node.op != "update" ? "aten." + node.op : node.op)});
    }
  }
  return out;
}

/// Temporaries in the order in which steps write them, each with the name of its writer.
std::vector<BufferId> buffers_of(const LoopProgram& program, std::vector<Suspect>& names) {
  std::vector<BufferId> out;
  Side<BufferId, bool> seen;
  for (const ProgramOutput& o : program.outputs)
    if (o.buffer.valid()) seen[o.buffer] = true;
  const auto add = [&](BufferId b, const std::string& by, std::span<const LocId> locs) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.kind != BufferKind::Temp || seen.get(b)) return;
    seen[b] = true;
    out.push_back(b);
    const std::string& frame = locs.empty() ? std::string() : program.locs[locs[0]].frame;
    names.push_back({str("%{}{} of {}", buffer.name, frame.empty() ? "" : " (" + frame + ")", by)});
  };
  for (const Step& step : program.order) {
    if (const auto* body = std::get_if<BodyId>(&step)) {
      const Body& b = program.bodies[*body];
      for (const Inst& i : b.insts)
        if (i.kind == InstKind::Store) add(i.buffer, "body " + b.name, b.locs);
    } else if (const auto* node = std::get_if<StructuredId>(&step)) {
      const Structured& s = program.structured[*node];
      for (const Access& a : s.outputs) add(a.buffer, s.name, s.locs);
    } else {
      const Control& c = program.controls[std::get<ControlId>(step)];
      for (BufferId b : c.results) add(b, c.name, c.locs);
    }
  }
  return out;
}

}  // namespace

Result<std::string> bisect(const Suspects& suspects) {
  std::vector<Suspect> names;
  LoadedModel observed;
  std::size_t outputs = 0;  // of the model itself, before the added ones
  const auto count_outputs = [&](const auto& list) {
    outputs = static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](const auto& o) {
      return o.kind != OutputKind::MutatedInput;
    }));
  };
  if (const auto* graph = std::get_if<Graph>(&suspects.model.program)) {
    count_outputs(graph->outputs);
    observed = with_outputs(suspects.model, values_of(*graph, suspects.decisions, names));
  } else {
    const LoopProgram& program = std::get<LoopProgram>(suspects.model.program);
    count_outputs(program.outputs);
    observed = with_outputs(suspects.model, buffers_of(program, names));
  }
  const ReadyModel interpreted = COIL_TRY(suspects.prepare(observed, false));
  const LoopProgram& program = interpreted.compilation->program;
  const Oracle oracle = COIL_TRY(run_oracle(program, *suspects.inputs));
  const ReadyModel target = COIL_TRY(suspects.prepare(observed, true));
  const Rows found = COIL_TRY(run_calls(*target.runner, program, *suspects.inputs));
  const std::vector<std::string> labels = row_labels(program);
  const auto verdict = [&](std::size_t call, std::size_t row) {
    return judge(found[call].at(row), oracle.plain[call].at(row), oracle.wide[call].at(row));
  };
  for (std::size_t call = 0; call < found.size(); ++call) {
    const std::string when = found.size() == 1 ? "" : str(" in call {}", call + 1);
    for (std::size_t k = 0; k < names.size(); ++k)
      if (const Verdict v = verdict(call, outputs + k); !v.ok)
        return str("first wrong{}: {}: {}", when, names[k].name, v.mismatch);
    for (std::size_t row = 0; row < found[call].size(); ++row) {
      if (row >= outputs && row < outputs + names.size()) continue;
      if (const Verdict v = verdict(call, row); !v.ok)
        return str("every value is right{}, and {} is still wrong: {}", when, labels.at(row),
                   v.mismatch);
    }
  }
  return std::string("looking makes it vanish: with every value as an output, nothing is wrong");
}

}  // namespace coil::cli
