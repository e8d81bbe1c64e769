#pragma once
// From Schedule to Plan: the steps of the host program, with every size as an expression of
// symbols.

#include <functional>
#include <memory>

#include "kernel/kernel.h"
#include "runtime/plan_format.h"

namespace coil {

/// Who computes a structured node: what its runtime::Call says of it.
struct Implementation {
  std::string name;
  std::vector<i64> attributes;
  /// The size of a weight in the layout that the function reads, from the node's inputs without
  /// memory. The call "pack.NAME" brings it into that layout, once at init: input `weight` of the
  /// node. Empty: the function has no layout of its own.
  std::function<i64(std::span<const runtime::CallOperand>)> packed_bytes;
  u32 weight = 1;
};

/// What the builder asks of its surroundings.
struct PlanServices {
  /// Hands over a kernel and gets its index; equal kernels get equal indices.
  std::function<u32(const Kernel&)> add_kernel;
  /// Chooses an implementation for a structured node, or an Error that says why there is none.
  std::function<Result<Implementation>(const LoopProgram&, const Structured&)> implement;
  /// Gives a call its function.
  runtime::BindCall bind = nullptr;
  Machine machine;
};

Result<runtime::Plan> build_plan(const LoopProgram& program, const Schedule& schedule,
                                 const PlanServices& services);

}  // namespace coil
