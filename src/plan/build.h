#pragma once
// From Schedule to Plan: the steps of the host program, with every size as an expression of
// symbols.

#include <functional>

#include "candidates/candidate.h"
#include "kernel/launches.h"
#include "runtime/plan.h"

namespace coil {

/// What the builder asks of its surroundings.
struct PlanServices {
  /// Hands over a kernel and gets the index of each launch; equal ones get equal indices.
  std::function<std::vector<u32>(const Launches&)> add_kernel;
  /// Chooses an implementation for a structured node, or an Error that says why there is none.
  std::function<Result<Implementation>(const LoopProgram&, const Structured&)> implement;
  Machine machine;
};

Result<runtime::Plan> build_plan(const LoopProgram& program, const Schedule& schedule,
                                 const PlanServices& services);

}  // namespace coil
