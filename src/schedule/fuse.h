#pragma once
// The decision whether two bodies share a kernel.

#include "schedule/schedule.h"

namespace coil {

/// Whether `consumer` may run at the same point, right after `producer`, reading `through` from a
/// register. Both must be pointwise over the same loops.
Decision may_fuse(const LoopProgram& program, const Body& producer, const Body& consumer,
                  BufferId through);

}  // namespace coil
