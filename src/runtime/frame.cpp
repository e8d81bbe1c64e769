#include "runtime/frame.h"

#include <cstring>

namespace coil::runtime {
namespace {

constexpr i64 kMaxArenaBytes = i64{1} << 46;

i64 align(i64 bytes) { return (bytes + i64(kAlignment) - 1) / i64(kAlignment) * i64(kAlignment); }

Error fault_error(const Model& model, const Launch& launch, const Fault& fault) {
  const std::string where = static_cast<std::size_t>(fault.site) < launch.index_names.size()
                                ? launch.index_names[static_cast<std::size_t>(fault.site)]
                                : model.kernel_names[launch.kernel];
  if (fault.extent == kDivisor)
    return error("{}: an integer is divided by zero at position {}", where, fault.position);
  return error("{}: index {} at position {} is out of range for size {}", where, fault.value,
               fault.position, fault.extent);
}

/// BlockFunction of a template call: the kernel on one block, on the thread that finished it.
void run_epilogue(void* context, i64 batch, i64 row0, i64 rows, i64 col0, i64 cols, void* block,
                  i64 ld) {
  const EpilogueRun& run = *static_cast<const EpilogueRun*>(context);
  const i64 values[] = {batch, row0, rows, col0, cols, ld};
  void* buffers[kMostEpilogueArguments];
  i64 symbols[kMostEpilogueArguments];
  for (std::size_t i = 0; i < run.buffers.size(); ++i)
    buffers[i] = run.buffers[i] ? run.buffers[i] : block;
  for (std::size_t i = 0; i < run.symbols.size(); ++i)
    symbols[i] = run.block_values[i] >= 0 ? values[run.block_values[i]] : run.symbols[i];
  Fault fault;  // an epilogue has no index that can be out of range
  run.kernel(buffers, symbols, run.scalars.data(), 0, rows, &fault);
}

}  // namespace

Result<i64> Frame::eval(ExprRef e) const {
  const std::optional<i64> value = runtime::run(plan_.exprs[e], call_.symbols);
  if (!value)
    return error("the size {} cannot be computed for these inputs",
                 to_text(plan_.exprs[e], call_.model.plan.symbols));
  return *value;
}

Result<std::vector<i64>> Frame::eval(const std::vector<ExprRef>& list) const {
  std::vector<i64> out;
  out.reserve(list.size());
  for (ExprRef e : list) out.push_back(COIL_TRY(eval(e)));
  return out;
}

Result<i64> Frame::arena_bytes() const {
  i64 total = 0;
  for (ExprRef slot : plan_.slots) {
    const i64 bytes = COIL_TRY(eval(slot));
    if (bytes < 0 || bytes > kMaxArenaBytes || total > kMaxArenaBytes)
      return error("these inputs need an arena of {} bytes", bytes);
    total += align(bytes);
  }
  return total;
}

Status Frame::place_arena(std::byte* base) {
  std::vector<std::byte*> starts;
  for (ExprRef slot : plan_.slots) {
    starts.push_back(base);
    base += align(COIL_TRY(eval(slot)));
  }
  for (u32 b = 0; b < plan_.buffers.size(); ++b)
    if (plan_.buffers[b].where == Where::Arena) data_[b] = starts[plan_.buffers[b].source];
  return Ok{};
}

Result<std::shared_ptr<void>> Frame::allocate(u32 buffer) {
  const i64 bytes = COIL_TRY(eval(plan_.buffers[buffer].bytes));
  if (bytes < 0 || bytes > kMaxArenaBytes)
    return error("buffer %{} would need {} bytes", plan_.buffers[buffer].name, bytes);
  std::shared_ptr<void> owner = COIL_TRY(allocate_bytes(bytes));
  data_[buffer] = static_cast<std::byte*>(owner.get());
  owners_.push_back(owner);
  return owner;
}

std::shared_ptr<void> Frame::owner_of(const std::byte* data) const {
  for (const std::shared_ptr<void>& owner : owners_)
    if (owner.get() == data) return owner;
  return nullptr;
}

Status Frame::ensure(u32 buffer) {
  const Where where = plan_.buffers[buffer].where;
  if (!data_[buffer] && (where == Where::Heap || where == Where::Output))
    COIL_TRY(allocate(buffer));
  return Ok{};
}

Result<Tensor> Frame::window(u32 buffer) const {
  Tensor t;
  t.dtype = plan_.buffers[buffer].dtype;
  t.shape = COIL_TRY(eval(plan_.buffers[buffer].shape));
  t.strides = COIL_TRY(eval(plan_.buffers[buffer].strides));
  t.data = data_[buffer];
  return t;
}

Result<Tensor> Frame::window(const PlanOutput& output) const {
  Tensor t;
  t.dtype = output.dtype;
  t.shape = COIL_TRY(eval(output.shape));
  t.strides = COIL_TRY(eval(output.strides));
  const i64 offset = COIL_TRY(eval(output.offset));
  t.data = data_[output.buffer] + offset * size_of(output.dtype);
  return t;
}

Status Frame::run(const std::vector<PlanStep>& steps) {
  for (const PlanStep& step : steps)
    COIL_TRY(std::visit([&](const auto& s) { return execute(s); }, step));
  return Ok{};
}

Status Frame::execute(const Launch& launch) {
  const i64 units = COIL_TRY(eval(launch.units));
  std::vector<void*> buffers;
  std::vector<i64> symbols;
  std::vector<double> scalars;
  buffers.reserve(launch.buffers.size());
  symbols.reserve(launch.symbols.size());
  scalars.reserve(launch.scalars.size());
  for (u32 b : launch.buffers) {
    COIL_TRY(ensure(b));
    buffers.push_back(data_[b]);
  }
  for (u32 s : launch.symbols) symbols.push_back(call_.symbols[s]);
  for (u32 s : launch.scalars) scalars.push_back(call_.scalars[s]);
  Fault fault;
  const KernelFunction kernel = call_.model.kernels[launch.kernel];
  if (units > 0 && launch.serial) {
    kernel(buffers.data(), symbols.data(), scalars.data(), 0, units, &fault);
  } else if (units > 0) {
    call_.pool.parallel_for(0, units, launch.grain, [&](i64 lo, i64 hi, int) {
      kernel(buffers.data(), symbols.data(), scalars.data(), lo, hi, &fault);
    });
  }
  if (fault.is_set) return fault_error(call_.model, launch, fault);
  return Ok{};
}

Status Frame::execute(const Call& call) {
  std::vector<CallOperand> operands;
  for (const PlanOperand& o : call.operands) {
    CallOperand c;
    if (o.buffer == kNoBuffer) {
      operands.push_back(c);
      continue;
    }
    COIL_TRY(ensure(o.buffer));
    c.dtype = plan_.buffers[o.buffer].dtype;
    c.shape = COIL_TRY(eval(o.shape));
    c.strides = COIL_TRY(eval(o.strides));
    if (data_[o.buffer]) c.data = data_[o.buffer] + COIL_TRY(eval(o.offset)) * size_of(c.dtype);
    operands.push_back(std::move(c));
  }
  CallTools tools{call_.pool, call_.scratch};
  if (call.packed) tools.packed = data_[*call.packed];
  if (!call.epilogue) return call.function(call.bound.get(), operands, tools);
  const EpilogueRun epilogue = COIL_TRY(prepare(*call.epilogue));
  tools.epilogue = run_epilogue;
  tools.epilogue_context = const_cast<EpilogueRun*>(&epilogue);
  return call.function(call.bound.get(), operands, tools);
}

Result<EpilogueRun> Frame::prepare(const Launch& epilogue) {
  EpilogueRun run;
  run.kernel = call_.model.kernels[epilogue.kernel];
  for (u32 b : epilogue.buffers) {
    if (b != kBlockBuffer) COIL_TRY(ensure(b));
    run.buffers.push_back(b == kBlockBuffer ? nullptr : data_[b]);
  }
  for (u32 s : epilogue.symbols) {
    run.block_values.push_back(s >= kBlockBatch ? static_cast<i32>(s - kBlockBatch) : -1);
    run.symbols.push_back(s >= kBlockBatch ? 0 : call_.symbols[s]);
  }
  for (u32 s : epilogue.scalars) run.scalars.push_back(call_.scalars[s]);
  return run;
}

Status Frame::execute(const CopyStep& copy) {
  COIL_TRY(ensure(copy.to));
  const i64 bytes = COIL_TRY(eval(plan_.buffers[copy.to].bytes));
  if (bytes > 0 && data_[copy.to] != data_[copy.from])
    std::memcpy(data_[copy.to], data_[copy.from], static_cast<std::size_t>(bytes));
  return Ok{};
}

Status Frame::execute(const ReadSize& read) {
  i64 value = 0;
  std::memcpy(&value, data_[read.buffer], sizeof value);
  const std::string& name = call_.model.plan.symbols[read.symbol];
  if (value < read.lo || value > read.hi)
    return error("the data gave {} = {}, which is outside {}..{}", name, value, read.lo, read.hi);
  call_.symbols[read.symbol] = value;
  return Ok{};
}

Status Frame::require(const PlanCheck& check) const {
  if (COIL_TRY(eval(check.condition)) != 0) return Ok{};
  return error("the inputs do not meet a condition of the program: {}", check.text);
}

template <class Take>
Status Frame::run_sub(u32 plan, const std::vector<u32>& inputs, Take take) {
  const Plan& sub = plan_.subplans[plan];
  Frame frame(sub, call_);
  std::vector<std::shared_ptr<void>> copies;
  for (u32 b = 0; b < sub.buffers.size(); ++b) {
    if (sub.buffers[b].where != Where::Input) continue;
    const Tensor from = COIL_TRY(window(inputs.at(sub.buffers[b].source)));
    const Tensor as = COIL_TRY(frame.window(b));
    if (from.shape != as.shape)
      return error("{}: a value of the sub-program has another shape than its operand", sub.name);
    frame.data_[b] = from.data;
    if (from.strides == as.strides) continue;
    const std::shared_ptr<void> owner = COIL_TRY(frame.allocate(b));
    Tensor to = as;
    to.data = frame.data_[b];
    copy_elements(from, to);
  }
  const std::shared_ptr<void> arena = COIL_TRY(allocate_bytes(COIL_TRY(frame.arena_bytes())));
  COIL_TRY(frame.place_arena(static_cast<std::byte*>(arena.get())));
  COIL_TRY(frame.run(sub.run));
  return take(sub, frame);
}

Status Frame::copy_into(u32 result, const Tensor& from) {
  COIL_TRY(ensure(result));
  const Tensor to = COIL_TRY(window(result));
  if (to.shape != from.shape)
    return error("%{}: a branch gave another shape", plan_.buffers[result].name);
  copy_elements(from, to);
  return Ok{};
}

Status Frame::execute(const ControlStep& control) {
  switch (control.kind) {
    case ControlStep::Kind::If: return run_if(control);
    case ControlStep::Kind::While: return run_while(control);
    case ControlStep::Kind::For: return run_for(control);
  }
  COIL_UNREACHABLE();
}

Status Frame::run_if(const ControlStep& control) {
  bool yes = false;
  if (control.predicate >= 0) {
    yes = data_[static_cast<u32>(control.predicate)][0] != std::byte{0};
  } else {
    yes = COIL_TRY(eval(control.condition)) != 0;
  }
  return run_sub(
      control.plans[yes ? 0 : 1], control.operands, [&](const Plan& sub, Frame& frame) -> Status {
        for (std::size_t i = 0; i < control.results.size(); ++i)
          COIL_TRY(copy_into(control.results[i], COIL_TRY(frame.window(sub.outputs[i]))));
        return Ok{};
      });
}

Status Frame::run_while(const ControlStep& control) {
  for (std::size_t i = 0; i < control.carried.size(); ++i)
    COIL_TRY(copy_into(control.results[i], COIL_TRY(window(control.carried[i]))));
  std::vector<u32> inputs = control.results;
  inputs.insert(inputs.end(), control.operands.begin(), control.operands.end());
  while (true) {
    bool go_on = false;
    COIL_TRY(run_sub(control.plans[0], inputs, [&](const Plan& sub, Frame& frame) -> Status {
      const Tensor flag = COIL_TRY(frame.window(sub.outputs[0]));
      go_on = flag.data[0] != std::byte{0};
      return Ok{};
    }));
    if (!go_on) return Ok{};
    COIL_TRY(run_sub(control.plans[1], inputs, [&](const Plan& sub, Frame& frame) -> Status {
      // All outputs are taken before any carried buffer changes: one may be another's input.
      std::vector<Tensor> next;
      for (const PlanOutput& o : sub.outputs) {
        Tensor copy = COIL_TRY(frame.window(o));
        const Tensor fresh = COIL_TRY(Tensor::allocate(copy.dtype, copy.shape));
        copy_elements(copy, fresh);
        next.push_back(fresh);
      }
      for (std::size_t i = 0; i < control.results.size(); ++i)
        COIL_TRY(copy_into(control.results[i], next[i]));
      return Ok{};
    }));
  }
}

Status Frame::run_for(const ControlStep& control) {
  const std::size_t carried = control.carried.size();
  for (std::size_t i = 0; i < control.results.size(); ++i) COIL_TRY(ensure(control.results[i]));
  for (std::size_t i = 0; i < carried; ++i)
    COIL_TRY(copy_into(control.results[i], COIL_TRY(window(control.carried[i]))));
  std::vector<u32> inputs(control.results.begin(),
                          control.results.begin() + static_cast<std::ptrdiff_t>(carried));
  inputs.insert(inputs.end(), control.operands.begin(), control.operands.end());
  const i64 extent = COIL_TRY(eval(control.extent));
  for (i64 t = 0; t < extent; ++t) {
    call_.symbols[control.step] = t;
    COIL_TRY(run_sub(control.plans[0], inputs, [&](const Plan& sub, Frame& frame) -> Status {
      std::vector<Tensor> next;
      for (std::size_t i = 0; i < carried; ++i) {
        const Tensor out = COIL_TRY(frame.window(sub.outputs[i]));
        next.push_back(COIL_TRY(Tensor::allocate(out.dtype, out.shape)));
        copy_elements(out, next.back());
      }
      for (std::size_t i = carried; i < control.results.size(); ++i) {
        Tensor slice = COIL_TRY(window(control.results[i]));
        slice.data += t * slice.strides[0] * size_of(slice.dtype);
        slice.shape.erase(slice.shape.begin());
        slice.strides.erase(slice.strides.begin());
        copy_elements(COIL_TRY(frame.window(sub.outputs[i])), slice);
      }
      for (std::size_t i = 0; i < carried; ++i) COIL_TRY(copy_into(control.results[i], next[i]));
      return Ok{};
    }));
  }
  return Ok{};
}

}  // namespace coil::runtime
