#pragma once
// A kernel whose grid is small and whose rows are long, as several launches over pieces of the
// rows.

#include "kernel/launches_gpu.h"

namespace coil {

/// Whether a mapped kernel is split, by how many programs it has and how long its rows are.
struct Split {
  sym::Expr taken;      // the condition on sizes, 1 for always; invalid: never
  std::string reason;   // for either
  sym::Expr piece;      // points of the row in a piece
  i64 most_pieces = 0;  // of a row
};
Split decide_split(const Kernel& mapped);

/// A launch for each loop that reduces or scans, which leaves a partial result of each piece in
/// scratch (appended to `out`); what follows the loop, in later launches, begins with folding them.
/// Straight code is repeated by the programs of every launch that needs its values, and stores
/// once.
Result<std::vector<Kernel>> split_kernel(const Kernel& mapped, const Split& split, Launches& out);

}  // namespace coil
