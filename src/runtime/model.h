#pragma once
// A compiled program that can be called.

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/plan.h"

namespace coil::runtime {

/// Plan, kernels and constants: immutable once made, shared by instances and threads.
struct Model {
  Plan plan;
  std::vector<KernelFunction> kernels;
  std::vector<std::string> kernel_names;
  std::vector<ModelConstant> constants;
  std::vector<std::shared_ptr<void>> derived;  // by buffer of the plan; made by `init`
  std::shared_ptr<void> code;                  // keeps loaded libraries
  std::shared_ptr<ThreadPool> pool;
};

/// Runs `plan.init` and fills in `derived`.
Status init_model(Model& model);

/// State of one use of a model: mutable buffers and free arenas. Calls from many threads are safe;
/// calls on an instance with state take turns.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> open(std::shared_ptr<const Model> model);
  /// Outputs in order; mutated inputs are written in place. An Error leaves state and inputs as
  /// they were before the call.
  Result<std::vector<Value>> call(std::span<const Value> inputs);
  /// Bytes of the arena of the latest call.
  i64 arena_bytes() const;

 private:
  friend class ArenaLease;
  friend class PendingCall;
  explicit Instance(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<void>> states_;  // by constant index; null where it is not a state
  std::mutex turn_;                            // held during a call of a stateful instance
  mutable std::mutex arenas_mutex_;
  struct Arena {
    std::shared_ptr<void> memory;
    Scratch scratch;
  };
  std::multimap<i64, Arena> free_arenas_;  // by size
  i64 arena_bytes_ = 0;
  ThreadPool alone_{1};  // for calls in a forked child
};

}  // namespace coil::runtime
