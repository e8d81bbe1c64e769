#include "callable.h"
#include "driver/program_cache.h"
#include "runtime/plan_format.h"

#include <algorithm>
#include <set>

namespace coil::python {
namespace {

using runtime::ExprCode;
using runtime::ExprOp;
using runtime::Plan;
using runtime::PlanOutput;
using runtime::Tensor;
using runtime::Value;
using runtime::Where;

/// The value, or throws what is wrong as a RunFailure.
template <class T>
T must(coil::Result<T> made) {
  if (!made.ok()) throw RunFailure(made.error().message);
  return std::move(*made);
}

/// The same of a call: a plan from the program cache has marks in place of names.
template <class T>
T must_of_call(coil::Result<T> made, const Compilation& compilation) {
  if (made.ok()) return std::move(*made);
  const std::string& message = made.error().message;
  if (!runtime::has_marks(message)) throw RunFailure(message);
  throw RunFailure(runtime::with_names(message, present_names(compilation)));
}

/// Slots of symbols that are known only while the program runs.
std::set<u32> late_symbols(const Plan& plan) {
  std::set<u32> late;
  for (const runtime::PlanStep& step : plan.run)
    if (const auto* read = std::get_if<runtime::ReadSize>(&step)) late.insert(read->symbol);
  return late;
}

bool names_any(const ExprCode& code, const std::set<u32>& symbols) {
  for (std::size_t i = 0; i < code.size(); ++i) {
    const ExprOp op = static_cast<ExprOp>(code[i]);
    if (op == ExprOp::Load && symbols.contains(static_cast<u32>(code[i + 1]))) return true;
    if (op == ExprOp::Load || op == ExprOp::Push) ++i;
  }
  return false;
}

/// Whether memory for the output can be made before the program runs. One of size u0 x 0 has no
/// bytes, but a shape that is not known yet.
bool is_known_before(const Plan& plan, const PlanOutput& output, const std::set<u32>& late) {
  const auto is_known = [&](u32 e) { return !names_any(plan.exprs[e], late); };
  return is_known(plan.buffers[output.buffer].bytes) && std::ranges::all_of(output.shape, is_known);
}

bool is_fixed(const ExprCode& code) {
  return code.size() == 2 && static_cast<ExprOp>(code[0]) == ExprOp::Push;
}

/// The values of these expressions, if all are constants.
std::optional<std::vector<i64>> fixed(const Plan& plan, const std::vector<u32>& exprs) {
  std::vector<i64> out;
  for (u32 e : exprs) {
    if (!is_fixed(plan.exprs[e])) return std::nullopt;
    out.push_back(plan.exprs[e][1]);
  }
  return out;
}

/// Whether a tensor with these strides occupies so many elements from its first on, and no more.
bool fills(std::span<const i64> shape, std::span<const i64> strides, i64 count) {
  const coil::Result<i64> elements = runtime::span_elements(shape, strides);
  return elements.ok() && *elements == count;
}

}  // namespace

/// What one call holds.
struct Callable::Run {
  explicit Run(runtime::PendingCall& c) : call(c) {}
  runtime::PendingCall& call;
  const nb::list* args = nullptr;
  std::vector<nb::object> blocks;  // tensors
  std::vector<char> is_whole;      // whether the first output in the block is the tensor itself
};

Callable::Callable(std::shared_ptr<const Torch> torch, std::shared_ptr<Compilation> compilation,
                   CallForm form)
    : torch_(std::move(torch)), compilation_(std::move(compilation)), form_(std::move(form)) {
  if (!compilation_->model) {
    interpreter_ = must(make_runner(compilation_));
    return;
  }
  instance_ = must(runtime::Instance::open(compilation_->model));
  plan_results();
}

void Callable::plan_results() {
  const Plan& plan = compilation_->model->plan;
  const std::set<u32> late = late_symbols(plan);
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlanOutput& o = plan.outputs[i];
    if (o.kind == PlanOutput::Kind::MutatedInput) continue;
    Result r;
    r.output = i;
    if (o.kind == PlanOutput::Kind::AliasOfInput) r.kind = Result::Kind::OfInput;
    const bool is_placed = o.kind == PlanOutput::Kind::Tensor &&
                           plan.buffers[o.buffer].where == Where::Output &&
                           is_known_before(plan, o, late);
    if (is_placed) {
      r.kind = Result::Kind::InBlock;
      u32 block = 0;
      while (block < blocks_.size() && blocks_[block].buffer != o.buffer) ++block;
      r.block = block;
      if (block < blocks_.size()) {
        blocks_[block].is_shared = true;
      } else {
        Block made;
        made.buffer = o.buffer;
        made.dtype = o.dtype;
        made.output = i;
        const auto shape = fixed(plan, o.shape), strides = fixed(plan, o.strides);
        const auto place = fixed(plan, {o.offset, plan.buffers[o.buffer].bytes});
        if (shape && strides && place && (*place)[0] == 0 &&
            fills(*shape, *strides, (*place)[1] / size_of(o.dtype))) {
          made.shape = tuple_of(*shape);
          made.strides = tuple_of(*strides);
        }
        blocks_.push_back(std::move(made));
      }
    }
    results_.push_back(r);
  }
}

/// Values of a call. Their lists of sizes keep their memory from one call to the next.
class Callable::Inputs {
 public:
  /// Both ends need the GIL.
  explicit Inputs(Callable& callable) : callable_(callable) {
    if (callable.spare_.empty()) return;
    values = std::move(callable.spare_.back());
    callable.spare_.pop_back();
  }
  ~Inputs() { callable_.spare_.push_back(std::move(values)); }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  std::vector<Value> values;

 private:
  Callable& callable_;
};

void Callable::read_args(const nb::list& args, std::vector<Value>& out) const {
  out.resize(args.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    PyObject* arg = PyList_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i));
    if (PyBool_Check(arg)) {
      out[i] = arg == Py_True;
    } else if (PyLong_Check(arg)) {
      out[i] = nb::cast<i64>(nb::handle(arg));
    } else if (PyFloat_Check(arg)) {
      out[i] = PyFloat_AS_DOUBLE(arg);
    } else if (arg == Py_None) {
      out[i] = std::monostate{};
    } else if (torch_->is_tensor(arg)) {
      Tensor* t = std::get_if<Tensor>(&out[i]);
      torch_->view(arg, t ? *t : out[i].emplace<Tensor>());
    } else {
      throw nb::type_error(
          str("argument {} is {}, no tensor or number", i, Py_TYPE(arg)->tp_name).c_str());
    }
  }
  for (const InputMemory& memory : form_.memories) {
    Tensor* t = memory.input < out.size() ? std::get_if<Tensor>(&out[memory.input]) : nullptr;
    if (t == nullptr) continue;  // which the call itself refuses
    widen(memory, PyList_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(memory.input)), *t);
  }
  for (const InputMemory& memory : form_.memories) check_apart(memory, out);
}

void Callable::widen(const InputMemory& memory, PyObject* arg, Tensor& t) const {
  const std::string& name = compilation_->program.inputs.at(memory.input).name;
  bool fits = t.shape == memory.shape && t.strides.size() == memory.strides.size();
  for (std::size_t d = 0; fits && d < t.shape.size(); ++d)
    fits = t.shape[d] < 2 || t.strides[d] == memory.strides[d];
  if (!fits) {
    const auto list = [](const std::vector<i64>& sizes) {
      return join(sizes, ", ", [](i64 n) { return std::to_string(n); });
    };
    throw RunFailure(
        str("input '{}' has shape [{}] and strides [{}]; its memory is read, so that "
            "they must be [{}] and [{}]",
            name, list(t.shape), list(t.strides), list(memory.shape), list(memory.strides)));
  }
  const i64 start = torch_->storage_offset(arg) + memory.first;
  const i64 size = size_of(t.dtype);
  const std::span<std::byte> storage = torch_->storage(arg);
  if (start < 0 || (start + memory.elements) * size > static_cast<i64>(storage.size()))
    throw RunFailure(str("input '{}': as_strided reaches out of its memory", name));
  t.data = storage.data() + start * size;
  t.shape = {memory.elements};
  t.strides = {1};
}

void Callable::check_apart(const InputMemory& memory, const std::vector<Value>& args) const {
  const Tensor* t = std::get_if<Tensor>(&args[memory.input]);
  if (t == nullptr) return;
  const std::byte* end = t->data + memory.elements * size_of(t->dtype);
  for (u32 i = 0; i < args.size(); ++i) {
    const Tensor* other = std::get_if<Tensor>(&args[i]);
    const bool is_written = form_.written.contains(i) || form_.written.contains(memory.input);
    if (other == nullptr || i == memory.input || !is_written || other->numel() == 0) continue;
    const i64 span = must(runtime::span_elements(other->shape, other->strides));
    if (other->data < end && t->data < other->data + span * size_of(other->dtype))
      throw RunFailure(
          str("inputs '{}' and '{}' lie in one memory, which is written to, and which "
              "as_strided sees",
              compilation_->program.inputs.at(memory.input).name,
              compilation_->program.inputs.at(i).name));
  }
}

void Callable::allocate(Run& run) const {
  run.blocks.reserve(blocks_.size());
  for (const Block& block : blocks_) {
    nb::object tensor;
    bool is_whole = true;
    if (block.shape) {
      tensor = torch_->empty(block.dtype, block.shape.ptr(), block.strides.ptr());
    } else {
      const Tensor window = must(run.call.window(block.output));
      const i64 elements[] = {must(run.call.bytes(block.buffer)) / size_of(block.dtype)},
                one[] = {1};
      // Nothing is placed yet: the address is the offset.
      is_whole = window.data == nullptr && fills(window.shape, window.strides, elements[0]);
      const nb::object shape = is_whole ? tuple_of(window.shape) : tuple_of(elements);
      const nb::object strides = is_whole ? tuple_of(window.strides) : tuple_of(one);
      tensor = torch_->empty(block.dtype, shape.ptr(), strides.ptr());
    }
    // A tensor without elements has no memory.
    if (std::byte* data = torch_->data(tensor.ptr())) run.call.place(block.buffer, data);
    run.blocks.push_back(std::move(tensor));
    run.is_whole.push_back(is_whole);
  }
}

nb::object Callable::plain(const Value& value) const {
  if (const i64* i = std::get_if<i64>(&value)) return nb::cast(*i);
  if (const double* d = std::get_if<double>(&value)) return nb::cast(*d);
  if (const bool* b = std::get_if<bool>(&value)) return nb::cast(*b);
  if (const std::string* s = std::get_if<std::string>(&value)) return nb::str(s->c_str());
  if (const Tensor* t = std::get_if<Tensor>(&value)) return copied(*t);
  return nb::none();
}

nb::object Callable::copied(const Tensor& from) const {
  const nb::object shape = tuple_of(from.shape), strides = tuple_of(from.strides);
  nb::object tensor = torch_->empty(from.dtype, shape.ptr(), strides.ptr());
  Tensor to;
  torch_->view(tensor.ptr(), to);
  if (from.numel() > 0) copy_elements(from, to);
  return tensor;
}

nb::object Callable::view_in(const Memory& memory, const Tensor& t) const {
  const nb::object shape = tuple_of(t.shape), strides = tuple_of(t.strides);
  const i64 size = size_of(memory.dtype);
  const i64 bytes = memory.offset * size + (memory.start ? t.data - memory.start : 0);
  const i64 first = bytes / size;
  if (memory.dtype == t.dtype)
    return torch_->as_strided(memory.tensor, shape.ptr(), strides.ptr(), first);
  // Seen as another dtype: the elements that it reaches in a row, which torch then retypes. Of
  // nothing none is reached: it may begin where the memory ends.
  const i64 before = bytes % size;
  const i64 reach = before + must(runtime::span_elements(t.shape, t.strides)) * size_of(t.dtype);
  const i64 count[] = {t.numel() == 0 ? 0 : (reach + size - 1) / size}, step[] = {1};
  const nb::object row_shape = tuple_of(count), row_strides = tuple_of(step);
  const nb::object row =
      torch_->as_strided(memory.tensor, row_shape.ptr(), row_strides.ptr(), first);
  const nb::object seen = torch_->retyped(row.ptr(), t.dtype);
  return torch_->as_strided(seen.ptr(), shape.ptr(), strides.ptr(),
                            torch_->storage_offset(seen.ptr()) + before / size_of(t.dtype));
}

nb::object Callable::result(const Run& run, const Result& r, const Value& value) const {
  const Tensor* t = std::get_if<Tensor>(&value);
  if (!t || r.kind == Result::Kind::Other) return plain(value);
  if (r.kind == Result::Kind::InBlock) {
    const Block& block = blocks_[r.block];
    const nb::object& base = run.blocks[r.block];
    if (run.is_whole[r.block] && block.output == r.output) return base;
    return view_in({base.ptr(), torch_->data(base.ptr()), block.dtype, 0}, *t);
  }
  const u32 target = compilation_->model->plan.outputs[r.output].target;
  PyObject* input = PyList_GET_ITEM(run.args->ptr(), static_cast<Py_ssize_t>(target));
  // An input that was laid out anew is not what the view is on.
  if (t->owner) return copied(*t);
  const auto is_seen = [&](const InputMemory& m) { return m.input == target; };
  Tensor whole;
  torch_->view(input, whole);
  if (std::ranges::any_of(form_.memories, is_seen))
    return view_in({input, torch_->storage(input).data(), whole.dtype, 0}, *t);
  return view_in({input, whole.data, whole.dtype, torch_->storage_offset(input)}, *t);
}

std::vector<Value> Callable::interpret(std::vector<Value>& inputs) {
  const nb::gil_scoped_release free;
  const std::lock_guard<std::mutex> lock(interpreter_turn_);
  return must(interpreter_->call(inputs));
}

nb::list Callable::results(const nb::list& args, const Run* run,
                           const std::vector<Value>& values) const {
  nb::list out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int passed = i < form_.passed.size() ? form_.passed[i] : -1;
    if (passed >= 0)
      out.append(args[static_cast<std::size_t>(passed)]);
    else if (run)
      out.append(result(*run, results_[i], values[i]));
    else
      out.append(plain(values[i]));
  }
  return out;
}

nb::list Callable::call(nb::list args) {
  Inputs given(*this);
  std::vector<Value>& inputs = given.values;
  read_args(args, inputs);
  nb::list out;
  if (instance_) {
    std::optional<runtime::PendingCall> pending;
    if (compilation_->model->plan.states.empty()) {
      pending.emplace(*instance_, inputs);
    } else {
      // Whoever has the turn needs the GIL to end it.
      const nb::gil_scoped_release free;
      pending.emplace(*instance_, inputs);
    }
    must_of_call(pending->begin(), *compilation_);
    Run run(*pending);
    run.args = &args;
    allocate(run);
    std::vector<Value> values;
    {
      const nb::gil_scoped_release free;
      values = must_of_call(pending->run(), *compilation_);
    }
    out = results(args, &run, values);
  } else {
    out = results(args, nullptr, interpret(inputs));
  }
  args.clear();
  return out;
}

}  // namespace coil::python
