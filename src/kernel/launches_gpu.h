#pragma once
// A kernel as a GPU runs it: several launches where one would leave most of the chip idle.

#include "kernel/launches.h"

namespace coil {

/// A reduction that is split over programs has the tree of its tile (mapping_gpu.h) in each piece
/// of the row, and once more over the results of the pieces; how long a piece is depends on the
/// extent of the row alone.
Result<Launches> launches_on_gpu(const Kernel& kernel);

}  // namespace coil
