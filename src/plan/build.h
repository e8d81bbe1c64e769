#pragma once
// From Schedule to Plan: the steps of the host program, with every size as an expression of
// symbols.

#include <functional>
#include <memory>

#include "kernel/kernel.h"
#include "runtime/plan.h"

namespace coil {

/// Who computes a structured node: a name for people, and the function with its attributes.
struct Implementation {
  std::string name;
  runtime::CallFunction function = nullptr;
  std::shared_ptr<const void> attributes;
  /// Brings a weight into the layout that `function` reads, once at init: input `weight` of the
  /// node. It gets the node's inputs, of which the others have no memory, and writes to
  /// CallTools::packed. Null: the function has no layout of its own.
  runtime::CallFunction pack = nullptr;
  u32 weight = 1;
  std::function<i64(std::span<const runtime::CallOperand>)> packed_bytes;
};

/// What the builder asks of its surroundings.
struct PlanServices {
  /// Hands over a kernel and gets its index; equal kernels get equal indices.
  std::function<u32(const Kernel&)> add_kernel;
  /// Chooses an implementation for a structured node, or an Error that says why there is none.
  std::function<Result<Implementation>(const LoopProgram&, const Structured&)> implement;
  Machine machine;
};

Result<runtime::Plan> build_plan(const LoopProgram& program, const Schedule& schedule,
                                 const PlanServices& services);

}  // namespace coil
