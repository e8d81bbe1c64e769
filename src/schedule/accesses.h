#pragma once
// What a body reads and writes, with the bodies that it computes again looked through.

#include "schedule/schedule.h"

namespace coil {

/// A load, its index in the dims of the body that asked.
struct Reading {
  BufferId buffer;
  std::vector<sym::Expr> index;
  bool masked = false;
  bool after_row = false;  // by an instruction behind the body's reductions
};

/// The loads of `body`; one from a buffer in `recomputed` stands for the loads of that buffer's
/// body.
std::vector<Reading> readings(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed,
                              const Body& body);
std::vector<BufferId> buffers_stored(const Body& body);

/// Every point stands alone: no reduction, no scan, no store that meets another.
bool is_pointwise(const Body& body);
bool has_kind(const Body& body, InstKind kind);
/// Points may store to one element: stores combine, or their place comes from data. Their order
/// counts.
bool stores_may_meet(const LoopProgram& program, const Body& body);
/// The tuple names the iteration point itself; along a dim of extent 1 it may say 0.
bool is_identity(const LoopProgram& program, const Body& body, const std::vector<sym::Expr>& index);

}  // namespace coil
