#include "runtime/model.h"

#include <cstring>

#include "runtime/bind.h"
#include "runtime/frame.h"

namespace coil::runtime {
namespace {

std::byte* constant_data(const Model& model, u32 source) {
  return const_cast<std::byte*>(model.constants[source].data);  // never written: only states are
}

void place_derived(const Model& model, Frame& frame) {
  for (u32 b = 0; b < model.plan.buffers.size(); ++b) {
    const PlanBuffer& buffer = model.plan.buffers[b];
    if (buffer.where == Where::Constant) frame.place(b, constant_data(model, buffer.source));
    if (buffer.where == Where::Derived)
      frame.place(b, static_cast<std::byte*>(model.derived[b].get()));
  }
}

CallContext context_of(const Model& model) {
  return {model, std::vector<i64>(model.plan.symbols.size()),
          std::vector<double>(model.plan.scalars.size()), *model.pool};
}

}  // namespace

Status init_model(Model& model) {
  CallContext context = context_of(model);
  Frame frame(model.plan, context);
  model.derived.assign(model.plan.buffers.size(), nullptr);
  for (u32 b = 0; b < model.plan.buffers.size(); ++b)
    if (model.plan.buffers[b].where == Where::Derived)
      model.derived[b] = COIL_TRY(frame.allocate(b));
  place_derived(model, frame);
  return frame.run(model.plan.init);
}

Result<std::unique_ptr<Instance>> Instance::open(std::shared_ptr<const Model> model) {
  std::unique_ptr<Instance> instance(new Instance(model));
  instance->states_.resize(model->constants.size());
  for (const PlanBuffer& b : model->plan.buffers) {
    if (b.where != Where::State || instance->states_[b.source]) continue;
    const ModelConstant& from = model->constants[b.source];
    instance->states_[b.source] = COIL_TRY(allocate_bytes(from.bytes));
    if (from.bytes > 0)
      std::memcpy(instance->states_[b.source].get(), from.data,
                  static_cast<std::size_t>(from.bytes));
  }
  return instance;
}

i64 Instance::arena_bytes() const {
  std::lock_guard<std::mutex> lock(arenas_mutex_);
  return arena_bytes_;
}

/// One call: binds inputs, runs, makes outputs, then commits what the program mutates.
class CallFrame {
 public:
  CallFrame(Instance& instance, std::span<const Value> inputs)
      : instance_(instance),
        model_(*instance.model_),
        plan_(model_.plan),
        inputs_(inputs),
        context_(context_of(model_)),
        frame_(plan_, context_) {}

  Result<std::vector<Value>> run() {
    COIL_TRY(bind_inputs(plan_, inputs_, context_));
    COIL_TRY(place_inputs());
    place_derived(model_, frame_);
    for (u32 b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].where == Where::State)
        frame_.place(b, static_cast<std::byte*>(instance_.states_[plan_.buffers[b].source].get()));
    const i64 bytes = COIL_TRY(frame_.arena_bytes());
    ArenaLease lease(instance_, context_.scratch, bytes);
    COIL_TRY(lease.take());
    COIL_TRY(frame_.place_arena(static_cast<std::byte*>(lease.memory.get())));
    COIL_TRY(frame_.run(plan_.run));
    COIL_TRY(check_conditions(plan_, frame_, When::AfterRun));
    std::vector<Value> results = COIL_TRY(make_outputs());
    COIL_TRY(commit());
    return results;
  }

 private:
  /// An arena, with scratch, from the instance's free ones; given back when the call ends.
  struct ArenaLease {
    ArenaLease(Instance& i, Scratch& s, i64 n) : instance(i), scratch(s), bytes(n) {}
    ~ArenaLease() {
      if (!memory) return;
      std::lock_guard<std::mutex> lock(instance.arenas_mutex_);
      instance.free_arenas_.emplace(capacity,
                                    Instance::Arena{std::move(memory), std::move(scratch)});
      instance.arena_bytes_ = bytes;
    }
    Status take() {
      {
        std::lock_guard<std::mutex> lock(instance.arenas_mutex_);
        auto fits = instance.free_arenas_.lower_bound(bytes);
        if (fits != instance.free_arenas_.end()) {
          capacity = fits->first;
          memory = std::move(fits->second.memory);
          scratch = std::move(fits->second.scratch);
          instance.free_arenas_.erase(fits);
          return Ok{};
        }
        if (!instance.free_arenas_.empty())
          instance.free_arenas_.erase(instance.free_arenas_.begin());
      }
      memory = COIL_TRY(allocate_bytes(bytes));
      capacity = bytes;
      return Ok{};
    }
    Instance& instance;
    Scratch& scratch;
    i64 bytes = 0, capacity = 0;
    std::shared_ptr<void> memory;
  };

  Status place_inputs() {
    copied_.resize(plan_.inputs.size());
    for (u32 b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].where != Where::Input) continue;
      const u32 source = plan_.buffers[b].source;
      const Tensor& given = std::get<Tensor>(inputs_[source]);
      const std::vector<i64> strides = COIL_TRY(frame_.eval(plan_.inputs[source].strides));
      frame_.place(b, given.data);
      if (same_walk(given.shape, given.strides, strides)) continue;
      Tensor to = COIL_TRY(Tensor::allocate(given.dtype, given.shape, strides));
      copy_elements(given, to);
      frame_.place(b, to.data);
      frame_.keep(to.owner);
      copied_[source] = true;
    }
    return Ok{};
  }

  Result<std::vector<Value>> make_outputs() {
    std::vector<Value> out;
    for (const PlanOutput& o : plan_.outputs) {
      switch (o.kind) {
        case PlanOutput::Kind::Tensor: out.push_back(COIL_TRY(owned_window(o))); break;
        case PlanOutput::Kind::AliasOfInput: {
          Tensor t = COIL_TRY(frame_.window(o));
          t.owner = copied_[o.target] ? frame_.owner_of(t.data)
                                      : std::get<Tensor>(inputs_[o.target]).owner;
          out.push_back(t);
          break;
        }
        case PlanOutput::Kind::MutatedInput: break;
        case PlanOutput::Kind::Constant: out.push_back(o.constant); break;
        case PlanOutput::Kind::Int: out.push_back(COIL_TRY(frame_.eval(o.value))); break;
        case PlanOutput::Kind::Bool: out.push_back(COIL_TRY(frame_.eval(o.value)) != 0); break;
        case PlanOutput::Kind::None: out.push_back(std::monostate{}); break;
      }
    }
    return out;
  }

  /// A result that outlives the call: on the buffer's own memory, or a copy where that is not ours
  /// to give away (an arena, a weight, a state).
  Result<Tensor> owned_window(const PlanOutput& o) {
    Tensor t = COIL_TRY(frame_.window(o));
    t.owner = frame_.owner_of(frame_.data(o.buffer));
    const Where where = plan_.buffers[o.buffer].where;
    if (where == Where::Output || where == Where::Heap) return t;
    const Tensor copy = COIL_TRY(Tensor::allocate(t.dtype, t.shape, t.strides));
    copy_elements(t, copy);
    return copy;
  }

  Status commit() {
    for (const PlanState& s : plan_.states) {
      const Tensor from = COIL_TRY(frame_.window(s.updated)), to = COIL_TRY(frame_.window(s.state));
      if (from.data != to.data) copy_elements(from, to);
    }
    for (const PlanOutput& o : plan_.outputs)
      if (o.kind == PlanOutput::Kind::MutatedInput)
        copy_elements(COIL_TRY(frame_.window(o)), std::get<Tensor>(inputs_[o.target]));
    return Ok{};
  }

  Instance& instance_;
  const Model& model_;
  const Plan& plan_;
  std::span<const Value> inputs_;
  CallContext context_;
  Frame frame_;
  std::vector<bool> copied_;
};

Result<std::vector<Value>> Instance::call(std::span<const Value> inputs) {
  if (model_->plan.states.empty()) return CallFrame(*this, inputs).run();
  std::lock_guard<std::mutex> lock(turn_);
  return CallFrame(*this, inputs).run();
}

}  // namespace coil::runtime
