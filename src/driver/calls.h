#pragma once
// Structured nodes on a CPU: the prebuilt templates behind the plan's call interface.

#include "base/machine.h"
#include "candidates/candidate.h"

namespace coil {

/// The candidate `template`: the template for a node, or what it does not take.
Result<Implementation> implement_on_cpu(const LoopProgram& program, const Structured& node,
                                        const Machine& machine);

/// Finds the function of a call by its name, and reads its attributes: what `implement_on_cpu`
/// made, in this process or, from the program cache, in another.
Status bind_cpu_call(runtime::Call& call);

}  // namespace coil
