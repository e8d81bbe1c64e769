#include "runtime/call.h"

#include <algorithm>

#include "runtime/bind.h"

namespace coil::runtime {
namespace {

std::byte* constant_data(const Model& model, u32 source) {
  return const_cast<std::byte*>(model.constants[source].data);  // never written: only states are
}

}  // namespace

CallContext context_of(const Model& model, ThreadPool& pool) {
  return {model, std::vector<i64>(model.plan.symbols.size()),
          std::vector<double>(model.plan.scalars.size()), pool};
}

void place_derived(const Model& model, Frame& frame) {
  for (u32 b = 0; b < model.plan.buffers.size(); ++b) {
    const PlanBuffer& buffer = model.plan.buffers[b];
    if (buffer.where == Where::Constant) frame.place(b, constant_data(model, buffer.source));
    if (buffer.where == Where::Derived)
      frame.place(b, static_cast<std::byte*>(model.derived[b].get()));
  }
}

ArenaLease::~ArenaLease() {
  if (!memory_) return;
  std::lock_guard<std::mutex> lock(instance_.arenas_mutex_);
  instance_.free_arenas_.emplace(capacity_,
                                 Instance::Arena{std::move(memory_), std::move(scratch_)});
  instance_.arena_bytes_ = bytes_;
}

Result<std::byte*> ArenaLease::take(i64 bytes) {
  bytes_ = bytes;
  {
    std::lock_guard<std::mutex> lock(instance_.arenas_mutex_);
    auto fits = instance_.free_arenas_.lower_bound(bytes);
    if (fits != instance_.free_arenas_.end()) {
      capacity_ = fits->first;
      memory_ = std::move(fits->second.memory);
      scratch_ = std::move(fits->second.scratch);
      instance_.free_arenas_.erase(fits);
      return static_cast<std::byte*>(memory_.get());
    }
    if (!instance_.free_arenas_.empty())
      instance_.free_arenas_.erase(instance_.free_arenas_.begin());
  }
  memory_ = COIL_TRY(allocate_bytes(bytes));
  capacity_ = bytes;
  return static_cast<std::byte*>(memory_.get());
}

PendingCall::PendingCall(Instance& instance, std::span<const Value> inputs)
    : instance_(instance),
      model_(*instance.model_),
      plan_(model_.plan),
      inputs_(inputs),
      context_(context_of(model_, model_.pool->is_own() ? *model_.pool : instance.alone_)),
      frame_(plan_, context_) {
  if (!plan_.states.empty()) turn_ = std::unique_lock<std::mutex>(instance.turn_);
}

Status PendingCall::begin() {
  COIL_TRY(bind_inputs(plan_, inputs_, context_));
  COIL_TRY(place_inputs());
  place_derived(model_, frame_);
  for (u32 b = 0; b < plan_.buffers.size(); ++b)
    if (plan_.buffers[b].where == Where::State)
      frame_.place(b, static_cast<std::byte*>(instance_.states_[plan_.buffers[b].source].get()));
  return Ok{};
}

Result<std::vector<Value>> PendingCall::run() {
  ArenaLease lease(instance_, context_.scratch);
  COIL_TRY(frame_.place_arena(COIL_TRY(lease.take(COIL_TRY(frame_.arena_bytes())))));
  COIL_TRY(frame_.run(plan_.run));
  std::vector<Value> results = COIL_TRY(make_outputs());
  COIL_TRY(commit());
  return results;
}

bool PendingCall::is_copied(u32 input) const {
  return std::find(copied_.begin(), copied_.end(), input) != copied_.end();
}

Status PendingCall::place_inputs() {
  for (u32 b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].where != Where::Input) continue;
    const u32 source = plan_.buffers[b].source;
    const Tensor& given = std::get<Tensor>(inputs_[source]);
    const PlanInput& input = plan_.inputs[source];
    frame_.place(b, given.data);
    if (COIL_TRY(lies_as_planned(input, given, frame_))) continue;
    const std::vector<i64> strides = COIL_TRY(frame_.eval(input.strides));
    Tensor to = COIL_TRY(Tensor::allocate(given.dtype, given.shape, strides));
    copy_elements(given, to);
    frame_.place(b, to.data);
    frame_.keep(to.owner);
    copied_.push_back(source);
  }
  return Ok{};
}

Result<std::vector<Value>> PendingCall::make_outputs() {
  std::vector<Value> out;
  out.reserve(plan_.outputs.size());
  for (const PlanOutput& o : plan_.outputs) {
    switch (o.kind) {
      case PlanOutput::Kind::Tensor: out.push_back(COIL_TRY(owned_window(o))); break;
      case PlanOutput::Kind::AliasOfInput: {
        Tensor t = COIL_TRY(frame_.window(o));
        t.owner = is_copied(o.target) ? frame_.owner_of(t.data)
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
Result<Tensor> PendingCall::owned_window(const PlanOutput& o) {
  Tensor t = COIL_TRY(frame_.window(o));
  t.owner = frame_.owner_of(frame_.data(o.buffer));
  const Where where = plan_.buffers[o.buffer].where;
  if (where == Where::Output || where == Where::Heap) return t;
  const Tensor copy = COIL_TRY(Tensor::allocate(t.dtype, t.shape, t.strides));
  copy_elements(t, copy);
  return copy;
}

Status PendingCall::write_copy(const PlanOutput& mutated) {
  const Tensor from = COIL_TRY(frame_.window(mutated));
  for (u32 b = 0; b < plan_.buffers.size(); ++b) {
    if (plan_.buffers[b].where != Where::Input || plan_.buffers[b].source != mutated.target)
      continue;
    Tensor to = from;
    to.strides = COIL_TRY(frame_.eval(plan_.inputs[mutated.target].strides));
    to.data = frame_.data(b);
    copy_elements(from, to);
  }
  return Ok{};
}

Status PendingCall::commit() {
  for (const PlanState& s : plan_.states) {
    const Tensor from = COIL_TRY(frame_.window(s.updated)), to = COIL_TRY(frame_.window(s.state));
    if (from.data != to.data) copy_elements(from, to);
  }
  for (const PlanOutput& o : plan_.outputs) {
    if (o.kind != PlanOutput::Kind::MutatedInput) continue;
    copy_elements(COIL_TRY(frame_.window(o)), std::get<Tensor>(inputs_[o.target]));
    // Results that view the input lie in its copy.
    if (is_copied(o.target)) COIL_TRY(write_copy(o));
  }
  return Ok{};
}

}  // namespace coil::runtime
