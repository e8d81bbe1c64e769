#include "runtime/model.h"

#include <cstring>

#include "runtime/call.h"

namespace coil::runtime {
Status init_model(Model& model) {
  CallContext context = context_of(model, *model.pool);
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

Result<std::vector<Value>> Instance::call(std::span<const Value> inputs) {
  PendingCall call(*this, inputs);
  COIL_TRY(call.begin());
  return call.run();
}

}  // namespace coil::runtime
