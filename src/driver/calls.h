#pragma once
// Structured nodes on a CPU: the prebuilt templates behind the plan's call interface.

#include "base/machine.h"
#include "candidates/candidate.h"

namespace coil {

/// The candidate `template`: the template for a node, or what it does not take.
Result<Implementation> implement_on_cpu(const LoopProgram& program, const Structured& node,
                                        const Machine& machine);

}  // namespace coil
