#pragma once
// A kernel as a CPU runs it: several launches where it closes, or where one would leave threads
// idle.

#include "kernel/launches.h"
#include "schedule/recompute.h"

namespace coil {

/// Where rows are split. None of it changes a bit of a result, nor does the number of threads.
struct CpuTuning {
  i64 few_units = kFewRows - 1;      // more units of work keep the threads busy: no row is split
  i64 least_blocks = kSharedBlocks;  // of a row that is split: the blocks of its tree (ops::Tree)
  i64 scan_block = 8192;             // points of a row that is scanned, in one piece
};

Launches launches_on_cpu(const Kernel& kernel, const Machine& machine,
                         const CpuTuning& tuning = CpuTuning());

}  // namespace coil
