#pragma once
// A kernel of few long rows as several launches, in which threads share the blocks of its rows.

#include "kernel/launches_cpu.h"

namespace coil {

/// Whether the rows of a mapped kernel are split.
struct RowSplit {
  bool yes = false;
  std::string reason;  // for either; "" where its rows are many or short
};
RowSplit decide_row_split(const Kernel& mapped, const CpuTuning& tuning);

/// A launch for each stage. That of a loop which reduces has a unit of work for each block of the
/// tree and leaves the block's result in scratch, which the launch of the straight stage after it
/// folds in the order that the tree states: the bits are those of the whole kernel. A scan that is
/// exact in any order goes block by block as well. A loop that does neither becomes points of a
/// grid. What straight code hands to later stages goes through
/// scratch, one value for each point of the grid. `out` gets the scratch.
std::vector<Kernel> split_rows(const Kernel& mapped, const CpuTuning& tuning, Launches& out);

}  // namespace coil
