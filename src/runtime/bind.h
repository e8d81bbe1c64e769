#pragma once
// From arguments to symbols: what a call must give, and the errors where it does not.

#include "runtime/frame.h"

namespace coil::runtime {

/// Checks count, kinds, dtypes and ranks, binds every symbol, then checks sizes, ranges and the
/// program's own conditions. The first thing that is wrong is the Error.
Status bind_inputs(const Plan& plan, std::span<const Value> inputs, CallContext& call);

/// The program's conditions that can be decided at entry, or those that name a size from data and
/// so wait until the steps have run (nothing is committed by then).
enum class When : u8 { Entry, AfterRun };
Status check_conditions(const Plan& plan, const Frame& frame, When when);

/// Whether two stride lists visit the same elements of this shape: dims of size 1 do not count, and
/// nothing does where the tensor is empty.
bool same_walk(std::span<const i64> shape, std::span<const i64> a, std::span<const i64> b);

}  // namespace coil::runtime
