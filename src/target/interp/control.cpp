// Control flow: sub-programs in frames of their own.

#include "ops/scalar.h"
#include "target/interp/frame.h"

namespace coil::interp {
namespace {

/// Runs a sub-program on these buffers; its outputs share the memory that it made.
Result<std::vector<MemoryRef>> call(Frame& frame, u32 program, const std::vector<MemoryRef>& inputs,
                                    const Env& env) {
  const LoopProgram& sub = frame.program().subprograms.at(program);
  Frame inner(sub, frame.widen(), env);
  for (std::size_t i = 0; i < inputs.size(); ++i) inner.set(sub.inputs[i].buffer, inputs[i]);
  COIL_TRY(inner.run());
  std::vector<MemoryRef> outputs;
  for (const ProgramOutput& output : sub.outputs)
    outputs.push_back(std::make_shared<Memory>(COIL_TRY(output_window(inner, output))));
  return outputs;
}

Result<std::vector<MemoryRef>> read_all(Frame& frame, std::span<const BufferId> ids) {
  std::vector<MemoryRef> memories;
  for (BufferId id : ids) memories.push_back(COIL_TRY(frame.read(id)));
  return memories;
}

bool read_bool(const Memory& memory) {
  return ops::read_element(memory.dtype, memory.data, memory.offset).i != 0;
}

Status run_if(Frame& frame, const Control& control, const If& branch) {
  const bool taken = branch.condition.valid() ? frame.env().at(branch.condition) != 0
                                              : read_bool(*COIL_TRY(frame.read(branch.predicate)));
  const std::vector<MemoryRef> operands = COIL_TRY(read_all(frame, control.operands));
  std::vector<MemoryRef> outputs =
      COIL_TRY(call(frame, control.programs[taken ? 0 : 1], operands, frame.env()));
  for (std::size_t i = 0; i < outputs.size(); ++i) frame.set(control.results[i], outputs[i]);
  return Ok{};
}

Status run_while(Frame& frame, const Control& control) {
  std::vector<MemoryRef> carried = COIL_TRY(read_all(frame, control.carried));
  const std::vector<MemoryRef> extra = COIL_TRY(read_all(frame, control.operands));
  while (true) {
    std::vector<MemoryRef> inputs = carried;
    inputs.insert(inputs.end(), extra.begin(), extra.end());
    const auto condition = COIL_TRY(call(frame, control.programs[0], inputs, frame.env()));
    if (!read_bool(*condition[0])) break;
    carried = COIL_TRY(call(frame, control.programs[1], inputs, frame.env()));
  }
  for (std::size_t i = 0; i < carried.size(); ++i) frame.set(control.results[i], carried[i]);
  return Ok{};
}

/// Slice t of a stacked result.
Status store_slice(Frame& frame, BufferId stacked, i64 t, const Memory& slice) {
  Memory part = *COIL_TRY(frame.define(stacked));
  COIL_CHECK(part.is_strided() && !part.shape.empty(), "%{} is not stacked",
             frame.program().buffers[stacked].name);
  part.shape.erase(part.shape.begin());
  std::vector<LayoutPart> parts;
  for (LayoutPart p : part.parts) {
    if (p.dim == 0) {
      part.offset += t * p.stride;
    } else {
      --p.dim;
      parts.push_back(p);
    }
  }
  part.parts = std::move(parts);
  copy_memory(slice, part);
  return Ok{};
}

Status run_for(Frame& frame, const Control& control, const For& loop) {
  const i64 extent = frame.env().at(loop.extent);
  std::vector<MemoryRef> carried = COIL_TRY(read_all(frame, control.carried));
  const std::vector<MemoryRef> extra = COIL_TRY(read_all(frame, control.operands));
  const std::size_t count = carried.size();
  for (std::size_t i = count; i < control.results.size(); ++i)
    COIL_TRY(frame.define(control.results[i]));
  Env env = frame.env();
  for (i64 t = 0; t < extent; ++t) {
    env.values[loop.step] = t;
    std::vector<MemoryRef> inputs = carried;
    inputs.insert(inputs.end(), extra.begin(), extra.end());
    const auto outputs = COIL_TRY(call(frame, control.programs[0], inputs, env));
    carried.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t i = count; i < outputs.size(); ++i)
      COIL_TRY(store_slice(frame, control.results[i], t, *outputs[i]));
  }
  for (std::size_t i = 0; i < count; ++i) frame.set(control.results[i], carried[i]);
  return Ok{};
}

}  // namespace

Status run_control(Frame& frame, const Control& control) {
  Status status = Ok{};
  if (const auto* branch = std::get_if<If>(&control.kind)) {
    status = run_if(frame, control, *branch);
  } else if (const auto* loop = std::get_if<For>(&control.kind)) {
    status = run_for(frame, control, *loop);
  } else {
    status = run_while(frame, control);
  }
  if (status.ok()) return status;
  return in_context("node " + control.name + place_text(frame.program(), control.locs),
                    status.error());
}

}  // namespace coil::interp
