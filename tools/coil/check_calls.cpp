#include "check_calls.h"

#include "arrays.h"
#include "loop/text_marks.h"

namespace coil::cli {
namespace {

using runtime::Tensor;
using runtime::Value;

Result<Value> copy_of(const Value& v) {
  const auto* t = std::get_if<Tensor>(&v);
  if (!t) return v;
  const Tensor copy = COIL_TRY(Tensor::allocate(t->dtype, t->shape, t->strides));
  copy_elements(*t, copy);
  return Value(copy);
}

/// Mutated inputs become outputs as well: what `widen` computes for them is not rounded to the
/// input.
LoopProgram with_mutated_outputs(LoopProgram program) {
  const std::vector<ProgramOutput> outputs = program.outputs;
  for (ProgramOutput out : outputs) {
    if (out.kind != OutputKind::MutatedInput) continue;
    out.kind = OutputKind::Value;
    program.outputs.push_back(std::move(out));
  }
  return program;
}

class InterpRunner : public Runner {
 public:
  explicit InterpRunner(interp::Interp interp) : interp_(std::move(interp)) {}
  Result<Values> call(std::span<const Value> inputs) override { return interp_.run(inputs); }

 private:
  interp::Interp interp_;
};

}  // namespace

std::vector<std::string> row_labels(const LoopProgram& program) {
  std::vector<std::string> labels, written;
  for (const ProgramOutput& out : program.outputs) {
    if (out.kind == OutputKind::MutatedInput) {
      written.push_back(program.inputs[out.target].name + " (written)");
    } else {
      labels.push_back(str("out{}", labels.size()));
    }
  }
  labels.insert(labels.end(), written.begin(), written.end());
  return labels;
}

Result<Rows> run_calls(Runner& runner, const LoopProgram& program,
                       const std::vector<Values>& inputs) {
  Rows rows;
  for (const Values& call : inputs) {
    Values mine;
    for (const Value& v : call) mine.push_back(COIL_TRY(copy_of(v)));
    const Values results = COIL_TRY(runner.call(mine));
    Values& row = rows.emplace_back();
    for (const Value& v : results) row.push_back(COIL_TRY(copy_of(v)));
    for (const ProgramOutput& out : program.outputs)
      if (out.kind == OutputKind::MutatedInput)
        row.push_back(COIL_TRY(copy_of(mine.at(out.target))));
  }
  return rows;
}

Result<Oracle> run_oracle(const LoopProgram& program, const std::vector<Values>& inputs) {
  Oracle out;
  InterpRunner plain(COIL_TRY(interp::Interp::create(program, {})));
  out.plain = COIL_TRY(run_calls(plain, program, inputs));
  interp::InterpOptions options;
  options.widen = true;
  options.f64_outputs = true;
  const LoopProgram wide_program = with_mutated_outputs(program);
  InterpRunner wide(COIL_TRY(interp::Interp::create(wide_program, options)));
  out.wide = COIL_TRY(run_calls(wide, wide_program, inputs));
  // The added outputs stand where the mutated inputs do.
  for (std::size_t c = 0; c < out.wide.size(); ++c) out.wide[c].resize(out.plain[c].size());
  return out;
}

LoadedModel with_outputs(const LoadedModel& model, std::span<const ValueId> values) {
  LoadedModel out = model;
  Graph& graph = std::get<Graph>(out.program);
  for (ValueId v : values) graph.outputs.push_back({OutputKind::Value, v, 0, None{}});
  return out;
}

LoadedModel with_outputs(const LoadedModel& model, std::span<const BufferId> buffers) {
  LoadedModel out = model;
  LoopProgram& program = std::get<LoopProgram>(out.program);
  for (BufferId b : buffers) {
    Buffer& buffer = program.buffers[b];
    buffer.layout.open = false;
    ProgramOutput output;
    output.buffer = b;
    output.dtype = buffer.dtype;
    output.shape = buffer.shape;
    for (const LayoutEntry& e : buffer.layout.entries) output.strides.push_back(e.stride);
    output.offset = buffer.layout.offset;
    program.outputs.push_back(std::move(output));
  }
  return out;
}

}  // namespace coil::cli
