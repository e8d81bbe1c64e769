#pragma once
// What one call of a compiled program does, counted on its plan.

#include "driver/compile.h"

namespace coil::cli {

struct PlanStatistics {
  i64 kernels = 0;  // launches in one call; those of a loop's body count once
  i64 calls = 0;    // of templates
  i64 arena_bytes = 0;
  i64 bytes_moved = 0;  // each distinct buffer that a launch or call reads or writes, once a launch
  i64 recomputed = 0;   // operations beyond one for each point of each body, at likely sizes
};
/// `inputs` give the sizes.
PlanStatistics statistics(const Compilation& compilation,
                          const std::vector<runtime::Value>& inputs);

}  // namespace coil::cli
