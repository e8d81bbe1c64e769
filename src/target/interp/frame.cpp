#include "target/interp/frame.h"

#include "ops/scalar.h"
#include "target/interp/bind.h"

namespace coil::interp {

std::string place_text(const LoopProgram& program, std::span<const LocId> locs) {
  for (LocId id : locs)
    if (!program.locs[id].frame.empty()) return " (" + program.locs[id].frame + ")";
  return "";
}

Result<MemoryRef> Frame::read(BufferId id) {
  if (memory_.get(id)) return memory_.get(id);
  COIL_CHECK(program_.buffers[id].starts.valid(), "%{} is read before it is defined",
             program_.buffers[id].name);
  return define(id);
}

Result<MemoryRef> Frame::define(BufferId id) {
  if (memory_.get(id)) return memory_.get(id);
  const Buffer& buffer = program_.buffers[id];
  auto memory =
      std::make_shared<Memory>(COIL_TRY(evaluate_layout(buffer, env_, held(buffer.dtype))));
  COIL_TRY(allocate(*memory));
  if (buffer.starts.valid()) copy_memory(*COIL_TRY(read(buffer.starts)), *memory);
  memory_[id] = memory;
  return memory;
}

Result<MemoryRef> Frame::in_stated_layout(BufferId id) {
  const MemoryRef memory = COIL_TRY(read(id));
  const Buffer& buffer = program_.buffers[id];
  auto stated =
      std::make_shared<Memory>(COIL_TRY(evaluate_layout(buffer, env_, held(buffer.dtype))));
  COIL_CHECK(stated->shape == memory->shape, "%{} has another shape than stated", buffer.name);
  if (stated->same_layout(*memory)) return memory;
  COIL_TRY(allocate(*stated));
  copy_memory(*memory, *stated);
  return stated;
}

Status Frame::run() {
  COIL_TRY(bind_sizes());
  for (const Step& step : program_.order) {
    COIL_TRY(run_step(step));
    COIL_TRY(bind_sizes());
  }
  return Ok{};
}

Status Frame::run_step(const Step& step) {
  if (const auto* id = std::get_if<BodyId>(&step)) return run_body(*this, program_.bodies[*id]);
  if (const auto* id = std::get_if<StructuredId>(&step))
    return run_structured(*this, program_.structured[*id]);
  return run_control(*this, program_.controls[std::get<ControlId>(step)]);
}

/// Sizes that data decides get their value when their buffer is defined.
Status Frame::bind_sizes() {
  for (const ProgramSize& size : program_.sizes) {
    if (!size.from.valid() || env_.values.contains(size.var)) continue;
    const MemoryRef& memory = memory_.get(size.from);
    if (!memory) continue;
    const i64 value = ops::read_element(memory->dtype, memory->data, memory->offset).i;
    COIL_TRY(check_range(size, value));
    env_.values[size.var] = value;
    COIL_TRY(check_conditions(program_, env_, CheckScope::Known));
  }
  return Ok{};
}

Status Frame::check_range(const ProgramSize& size, i64 value) const {
  const sym::Variable& var = program_.syms->var(size.var);
  if (value >= var.range.lo && value <= var.range.hi) return Ok{};
  const auto bound = [](i64 v, i64 none) { return v == none ? std::string() : str("{}", v); };
  return error("size {} is {}, outside {}..{}", var.name, value, bound(var.range.lo, sym::kMinInt),
               bound(var.range.hi, sym::kMaxInt));
}

Result<Memory> output_window(Frame& frame, const ProgramOutput& output) {
  const MemoryRef base = COIL_TRY(frame.in_stated_layout(output.buffer));
  const i64 parts = is_complex(output.dtype) ? 2 : 1;
  Memory window = *base;
  window.shape.clear();
  std::vector<i64> strides;
  for (std::size_t d = 0; d < output.shape.size(); ++d) {
    window.shape.push_back(frame.env().at(output.shape[d]));
    strides.push_back(frame.env().at(output.strides[d]));
  }
  window.offset = output.offset.valid() ? frame.env().at(output.offset) : 0;
  const i64 space = COIL_TRY(runtime::span_elements(window.shape, strides));
  COIL_CHECK(window.offset >= 0 && (space == 0 || window.offset + space <= base->space / parts),
             "an output reaches past %{}", frame.program().buffers[output.buffer].name);
  if (parts == 2) {
    window.shape.push_back(2);
    for (i64& stride : strides) stride *= 2;
    strides.push_back(1);
    window.offset *= 2;
  }
  window.parts = strided_parts(strides);
  return window;
}

}  // namespace coil::interp
