#pragma once
// One call of a model in two halves, so that between them the caller can give results memory of its
// own.

#include <mutex>

#include "runtime/frame.h"

namespace coil::runtime {

CallContext context_of(const Model& model, ThreadPool& pool);
/// Places constants and what `init` derived from them.
void place_derived(const Model& model, Frame& frame);

/// An arena, with scratch, from an instance's free ones; given back at the end.
class ArenaLease {
 public:
  ArenaLease(Instance& instance, Scratch& scratch) : instance_(instance), scratch_(scratch) {}
  ~ArenaLease();
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  Result<std::byte*> take(i64 bytes);

 private:
  Instance& instance_;
  Scratch& scratch_;
  i64 bytes_ = 0, capacity_ = 0;
  std::shared_ptr<void> memory_;
};

class PendingCall {
 public:
  /// `inputs` must outlive this object. Waits for its turn where the instance has state.
  PendingCall(Instance& instance, std::span<const Value> inputs);

  /// Checks the inputs and binds all sizes but those that data gives.
  Status begin();
  /// Where output `index`, a tensor, lies in its buffer; valid once its sizes are known.
  Result<Tensor> window(std::size_t index) const { return frame_.window(plan_.outputs[index]); }
  /// Bytes of a buffer; valid as above.
  Result<i64> bytes(u32 buffer) const { return frame_.eval(plan_.buffers[buffer].bytes); }
  /// Memory for a buffer of `Where::Output`. Outputs in it come back without an owner.
  void place(u32 buffer, std::byte* memory) { frame_.place(buffer, memory); }
  /// Runs, makes the outputs, then commits what the program mutates.
  Result<std::vector<Value>> run();

 private:
  Status place_inputs();
  bool is_copied(u32 input) const;
  Result<std::vector<Value>> make_outputs();
  Result<Tensor> owned_window(const PlanOutput& output);
  Status commit();
  /// Writes what the input becomes into the copy that was laid out anew.
  Status write_copy(const PlanOutput& mutated);

  Instance& instance_;
  const Model& model_;
  const Plan& plan_;
  std::span<const Value> inputs_;
  CallContext context_;
  Frame frame_;
  std::vector<u32> copied_;  // inputs that were laid out anew
  std::unique_lock<std::mutex> turn_;
};

}  // namespace coil::runtime
