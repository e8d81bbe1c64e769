#pragma once
// Which pointwise bodies have no place of their own, because computing them where they are read is
// cheaper.

#include <span>

#include "schedule/accesses.h"

namespace coil {

/// Sample sizes for decisions: the hint of a size, or a middling number.
i64 likely(const LoopProgram& program, sym::Expr e);
i64 likely_product(const LoopProgram& program, std::span<const sym::Expr> extents);
i64 likely_points(const LoopProgram& program, const Body& body);
/// Rows that are few and long, and not so long that threads share their blocks, where the tree of
/// their reductions has these (0: none): sharing out the rows leaves threads without work.
bool leaves_threads_idle(const LoopProgram& program, std::span<const sym::Expr> grid,
                         std::span<const sym::Expr> row, i64 block);
inline constexpr i64 kFewRows = 16;      // fewer leave threads without work
inline constexpr i64 kSharedBlocks = 4;  // of a row: from so many on threads share them
/// Operations of one point, an elementary function as kElementary of them.
i64 cost_of_point(const Body& body);
inline constexpr i64 kElementary = 8;

/// Fills in `recomputed` and says why, for each pointwise body whose readers are all bodies.
void choose_recomputed(const LoopProgram& program, Schedule& schedule);

}  // namespace coil
