#pragma once
// Where each buffer lives, and for how long.

#include "schedule/schedule.h"

namespace coil {

/// Fills in `buffers` and `slots` of a schedule whose groups and order are settled.
void plan_memory(const LoopProgram& program, Schedule& schedule);

/// Buffers that a step reads or writes.
struct StepBuffers {
  std::vector<BufferId> reads, writes;
};
StepBuffers buffers_of(const LoopProgram& program, const Schedule& schedule,
                       const ScheduleStep& step);

}  // namespace coil
