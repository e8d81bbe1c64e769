#include "target/interp/interp.h"

#include <algorithm>
#include <cstring>

#include "graph/data.h"
#include "ops/scalar.h"
#include "target/interp/bind.h"
#include "target/interp/frame.h"

namespace coil::interp {
namespace {

/// Elements that `seed N` may make.
constexpr i64 kMostSeeded = i64{1} << 34;

/// The elements of a storage as a buffer's memory, without a copy where nothing has to be widened.
Result<MemoryRef> load_constant(const LoopProgram& program, const Buffer& buffer, bool widen) {
  const Constant& constant = program.constants.at(buffer.source);
  Storage storage = program.storages.at(constant.storage);
  const i64 first = constant.offset * (constant.is_complex ? 2 : 1);
  Env env;
  env.syms = program.syms.get();
  auto memory = std::make_shared<Memory>(COIL_TRY(evaluate_layout(buffer, env, buffer.dtype)));
  if (storage.data == nullptr && storage.source == StorageSource::Seed) {
    if (memory->space > kMostSeeded - first)
      return error("constant %{} is too large for a seed", buffer.name);
    storage = seeded_storage(buffer.dtype, storage.seed, first + memory->space);
  }
  if (storage.data == nullptr && memory->space > 0)
    return error("constant %{} has no data{}", buffer.name,
                 constant.fqn.empty() ? "" : " (" + constant.fqn + ")");
  const i64 available = storage.bytes / size_of(buffer.dtype) - first;
  if (memory->space > available)
    return error("constant %{} needs {} elements, its storage has {}", buffer.name, memory->space,
                 std::max<i64>(available, 0));
  // The interpreter never writes a constant; Memory has one kind of pointer.
  memory->data = const_cast<std::byte*>(storage.data) + first * size_of(buffer.dtype);
  memory->owner = std::const_pointer_cast<void>(storage.owner);
  if (held_dtype(buffer.dtype, widen) == buffer.dtype) return memory;
  auto wide = std::make_shared<Memory>(
      COIL_TRY(evaluate_layout(buffer, env, held_dtype(buffer.dtype, widen))));
  COIL_TRY(allocate(*wide));
  copy_memory(*memory, *wide);
  return wide;
}

/// An argument's memory, seen through the argument's own strides.
Result<MemoryRef> load_input(const runtime::Tensor& given, bool widen) {
  const runtime::Tensor tensor = as_real(given);
  auto memory = std::make_shared<Memory>();
  memory->dtype = tensor.dtype;
  memory->shape = tensor.shape;
  memory->parts = strided_parts(tensor.strides);
  memory->space = COIL_TRY(runtime::span_elements(tensor.shape, tensor.strides));
  memory->data = tensor.data;
  memory->owner = tensor.owner;
  if (held_dtype(tensor.dtype, widen) == tensor.dtype) return memory;
  auto wide = std::make_shared<Memory>(*memory);
  wide->dtype = held_dtype(tensor.dtype, widen);
  COIL_TRY(allocate(*wide));
  copy_memory(*memory, *wide);
  return wide;
}

/// The dtype of a result: its own, or the double of its class.
DType result_dtype(DType dtype, const InterpOptions& options) {
  if (!options.f64_outputs) return dtype;
  if (is_complex(dtype)) return DType::c128;
  return is_float(dtype) ? DType::f64 : dtype;
}

DType part_dtype(DType dtype) { return is_complex(dtype) ? real_of(dtype) : dtype; }

/// Turns the outputs of a finished frame into values.
class Results {
 public:
  Results(Frame& frame, std::span<const runtime::Value> inputs, const InterpOptions& options)
      : frame_(frame), program_(frame.program()), inputs_(inputs), options_(options) {}

  Result<std::vector<runtime::Value>> make();
  /// Writes mutated inputs; nothing can fail any more.
  void write_inputs();

 private:
  Result<runtime::Value> make_one(const ProgramOutput& output);
  Result<runtime::Tensor> fresh(const ProgramOutput& output);
  Result<runtime::Tensor> window(const ProgramOutput& output, const runtime::Tensor& base) const;
  bool lies_as_stated(const runtime::Tensor& tensor, BufferId input) const;
  Result<runtime::Value> constant(const ProgramOutput& output) const;
  Result<runtime::Value> number(const ProgramOutput& output);

  Frame& frame_;
  const LoopProgram& program_;
  std::span<const runtime::Value> inputs_;
  const InterpOptions& options_;
  std::vector<runtime::Tensor> spaces_;          // by output: all elements of its buffer, in order
  std::vector<std::pair<Memory, u32>> mutated_;  // new content and the input it goes to
};

/// All elements of the output's buffer, so that outputs which alias this one find theirs in it.
Result<runtime::Tensor> Results::fresh(const ProgramOutput& output) {
  const MemoryRef memory = COIL_TRY(frame_.in_stated_layout(output.buffer));
  const DType dtype = result_dtype(output.dtype, options_);
  Memory all = *memory;
  all.shape = {memory->space};
  all.parts = strided_parts(std::vector<i64>{1});
  all.offset = 0;
  Memory copy = all;
  copy.dtype = part_dtype(dtype);
  COIL_TRY(allocate(copy));
  copy_memory(all, copy);
  const i64 parts = is_complex(dtype) ? 2 : 1;
  return runtime::Tensor{dtype, {memory->space / parts}, {1}, copy.data, copy.owner};
}

/// The output's view of elements that lie as in its buffer.
Result<runtime::Tensor> Results::window(const ProgramOutput& output,
                                        const runtime::Tensor& base) const {
  runtime::Tensor tensor = base;
  // A view may show complex elements as pairs of parts, or pairs as complex elements.
  if (is_complex(base.dtype) && !is_complex(output.dtype)) tensor.dtype = real_of(base.dtype);
  if (!is_complex(base.dtype) && is_complex(output.dtype)) tensor.dtype = complex_of(base.dtype);
  tensor.shape.clear();
  tensor.strides.clear();
  for (std::size_t d = 0; d < output.shape.size(); ++d) {
    tensor.shape.push_back(frame_.env().at(output.shape[d]));
    tensor.strides.push_back(frame_.env().at(output.strides[d]));
  }
  const i64 offset = output.offset.valid() ? frame_.env().at(output.offset) : 0;
  const i64 space = COIL_TRY(runtime::span_elements(tensor.shape, tensor.strides));
  const i64 whole = COIL_TRY(runtime::span_elements(base.shape, base.strides));
  COIL_CHECK(offset >= 0 && (space == 0 || (offset + space) * size_of(tensor.dtype) <=
                                               whole * size_of(base.dtype)),
             "an output reaches past its memory");
  tensor.data = base.data + offset * size_of(tensor.dtype);
  return tensor;
}

/// Whether an argument has the strides of its buffer, where they matter.
bool Results::lies_as_stated(const runtime::Tensor& tensor, BufferId input) const {
  if (tensor.numel() == 0) return true;
  for (const LayoutEntry& entry : program_.buffers[input].layout.entries)
    if (tensor.shape[entry.dim] > 1 &&
        (entry.factor != 1 || frame_.env().at(entry.stride) != tensor.strides[entry.dim]))
      return false;
  return true;
}

Result<runtime::Value> Results::constant(const ProgramOutput& output) const {
  if (const auto* e = std::get_if<sym::Expr>(&output.constant))
    return runtime::Value(frame_.env().at(*e));
  if (const auto* v = std::get_if<double>(&output.constant)) return runtime::Value(*v);
  if (const auto* v = std::get_if<bool>(&output.constant)) return runtime::Value(*v);
  if (const auto* v = std::get_if<std::string>(&output.constant)) return runtime::Value(*v);
  return runtime::Value(std::monostate());
}

Result<runtime::Value> Results::number(const ProgramOutput& output) {
  if (output.expr.valid()) return runtime::Value(frame_.env().at(output.expr));
  const MemoryRef memory = COIL_TRY(frame_.read(output.buffer));
  const ops::Scalar value = ops::read_element(memory->dtype, memory->data, memory->offset);
  if (is_float(value.dtype)) return runtime::Value(value.f);
  if (is_bool(value.dtype)) return runtime::Value(value.i != 0);
  return runtime::Value(value.i);
}

Result<runtime::Value> Results::make_one(const ProgramOutput& output) {
  switch (output.kind) {
    case OutputKind::Value: {
      spaces_.push_back(COIL_TRY(fresh(output)));
      return runtime::Value(COIL_TRY(window(output, spaces_.back())));
    }
    case OutputKind::AliasOfInput: {
      runtime::Tensor base = std::get<runtime::Tensor>(inputs_[output.target]);
      if (!lies_as_stated(as_real(base), program_.inputs[output.target].buffer))
        return error("input {} ({}) has other strides than stated, and an output views it",
                     output.target, program_.inputs[output.target].name);
      return runtime::Value(COIL_TRY(window(output, base)));
    }
    case OutputKind::AliasOfOutput:
      return runtime::Value(COIL_TRY(window(output, spaces_.at(output.target))));
    case OutputKind::MutatedInput:
      mutated_.emplace_back(COIL_TRY(output_window(frame_, output)), output.target);
      return runtime::Value(std::monostate());
    case OutputKind::Constant: return constant(output);
    case OutputKind::Int: return number(output);
    case OutputKind::None: return runtime::Value(std::monostate());
  }
  COIL_UNREACHABLE();
}

Result<std::vector<runtime::Value>> Results::make() {
  std::vector<runtime::Value> values;
  for (const ProgramOutput& output : program_.outputs) {
    const std::size_t before = spaces_.size();
    runtime::Value value = COIL_TRY(make_one(output));
    if (spaces_.size() == before) spaces_.emplace_back();
    if (output.kind != OutputKind::MutatedInput) values.push_back(std::move(value));
  }
  for (const auto& [memory, target] : mutated_) {
    const runtime::Tensor tensor = as_real(std::get<runtime::Tensor>(inputs_[target]));
    if (tensor.shape != memory.shape)
      return error("input {} ({}) becomes a tensor of another shape", target,
                   program_.inputs[target].name);
  }
  return values;
}

void Results::write_inputs() {
  for (const auto& [content, target] : mutated_) {
    const runtime::Tensor tensor = as_real(std::get<runtime::Tensor>(inputs_[target]));
    Memory memory;
    memory.dtype = tensor.dtype;
    memory.shape = tensor.shape;
    memory.parts = strided_parts(tensor.strides);
    memory.space = content.space;
    memory.data = tensor.data;
    if (content.data != tensor.data || !content.same_layout(memory)) copy_memory(content, memory);
  }
}

}  // namespace

struct Interp::Impl {
  LoopProgram program;
  InterpOptions options;
  Side<BufferId, MemoryRef> constants;  // Constant and State buffers
};

Interp::Interp(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Interp::Interp(Interp&&) noexcept = default;
Interp& Interp::operator=(Interp&&) noexcept = default;
Interp::~Interp() = default;

const LoopProgram& Interp::program() const { return impl_->program; }

Result<Interp> Interp::create(LoopProgram program, InterpOptions options) {
  if (const Status status = verify(program); !status.ok())
    return in_context("program " + program.name, status.error());
  auto impl = std::make_unique<Impl>();
  impl->program = std::move(program);
  impl->options = options;
  for (BufferId id : impl->program.buffers.ids()) {
    const Buffer& buffer = impl->program.buffers[id];
    if (buffer.kind == BufferKind::Constant || buffer.kind == BufferKind::State)
      impl->constants[id] = COIL_TRY(load_constant(impl->program, buffer, options.widen));
  }
  return Interp(std::move(impl));
}

Result<std::vector<runtime::Value>> Interp::run(std::span<const runtime::Value> inputs) {
  const LoopProgram& program = impl_->program;
  Env env;
  env.syms = program.syms.get();
  COIL_TRY(bind_inputs(program, inputs, env));
  COIL_TRY(check_conditions(program, env, CheckScope::Known));
  Frame frame(program, impl_->options.widen, std::move(env));
  for (BufferId id : program.buffers.ids()) {
    const Buffer& buffer = program.buffers[id];
    if (impl_->constants.get(id)) frame.set(id, impl_->constants.get(id));
    if (buffer.kind != BufferKind::Input) continue;
    const auto& tensor = std::get<runtime::Tensor>(inputs[buffer.source]);
    frame.set(id, COIL_TRY(load_input(tensor, impl_->options.widen)));
  }
  COIL_TRY(frame.run());
  COIL_TRY(check_conditions(program, frame.env(), CheckScope::All));
  Results results(frame, inputs, impl_->options);
  std::vector<runtime::Value> values = COIL_TRY(results.make());
  // A state may become what an input or another state was: all are copied before any is replaced.
  std::vector<std::pair<BufferId, MemoryRef>> states;
  for (const ProgramState& state : program.states) {
    auto next = std::make_shared<Memory>(*COIL_TRY(frame.in_stated_layout(state.updated)));
    auto copy = std::make_shared<Memory>(*next);
    COIL_TRY(allocate(*copy));
    copy_memory(*next, *copy);
    states.emplace_back(state.state, std::move(copy));
  }
  results.write_inputs();
  for (auto& [id, memory] : states) impl_->constants[id] = std::move(memory);
  return values;
}

Result<std::vector<runtime::Value>> run(const LoopProgram& program,
                                        std::span<const runtime::Value> inputs,
                                        const InterpOptions& options) {
  Interp interp = COIL_TRY(Interp::create(program, options));
  return interp.run(inputs);
}

}  // namespace coil::interp
