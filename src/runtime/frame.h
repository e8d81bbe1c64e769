#pragma once
// One run of a plan or subplan: where its buffers are, and the execution of its steps.

#include "runtime/model.h"

namespace coil::runtime {

/// What all frames of one call share.
struct CallContext {
  const Model& model;
  std::vector<i64> symbols;  // by slot
  std::vector<double> scalars;
  ThreadPool& pool;
  Scratch scratch = {};
};

/// An epilogue of a call that runs: all but what each block gives.
struct EpilogueRun {
  KernelFunction kernel = nullptr;
  std::vector<void*> buffers;  // null: the block
  std::vector<i64> symbols;
  std::vector<i32> block_values;  // by symbol: which BlockValue, or -1
  std::vector<double> scalars;
};

class Frame {
 public:
  Frame(const Plan& plan, CallContext& call)
      : plan_(plan), call_(call), data_(plan.buffers.size()) {}

  Result<i64> eval(ExprRef e) const;
  Result<std::vector<i64>> eval(const std::vector<ExprRef>& list) const;

  void place(u32 buffer, std::byte* data) { data_[buffer] = data; }
  std::byte* data(u32 buffer) const { return data_[buffer]; }
  /// Keeps memory alive until the frame ends.
  void keep(std::shared_ptr<void> owner) { owners_.push_back(std::move(owner)); }
  /// The owner of memory that this frame allocated or keeps; null for others.
  std::shared_ptr<void> owner_of(const std::byte* data) const;
  /// Total bytes of the arena, then places its buffers in `base`.
  Result<i64> arena_bytes() const;
  Status place_arena(std::byte* base);
  /// Allocates a buffer of its own (Output, Heap) now; returns its owner.
  Result<std::shared_ptr<void>> allocate(u32 buffer);

  Status run(const std::vector<PlanStep>& steps);
  /// An Error with the check's text where it does not hold.
  Status require(const PlanCheck& check) const;
  /// The buffer as a tensor without an owner.
  Result<Tensor> window(u32 buffer) const;
  /// An output as a tensor on the buffer's memory, without an owner.
  Result<Tensor> window(const PlanOutput& output) const;

 private:
  Status execute(const Launch& launch);
  Status execute(const Call& call);
  Status execute(const CopyStep& copy);
  Status execute(const ReadSize& read);
  Status execute(const PlanCheck& check) { return require(check); }
  Status execute(const ControlStep& control);
  Status ensure(u32 buffer);
  Result<EpilogueRun> prepare(const Launch& epilogue);
  Status run_if(const ControlStep& control);
  Status run_while(const ControlStep& control);
  Status run_for(const ControlStep& control);
  /// Runs a subplan on these input buffers of ours and hands its frame to `take`.
  template <class Take>
  Status run_sub(u32 plan, const std::vector<u32>& inputs, Take take);
  Status copy_into(u32 result, const Tensor& from);

  const Plan& plan_;
  CallContext& call_;
  std::vector<std::byte*> data_;
  std::vector<std::shared_ptr<void>> owners_;
};

}  // namespace coil::runtime
