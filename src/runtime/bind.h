#pragma once
// From arguments to symbols: what a call must give, and the errors where it does not.

#include "runtime/frame.h"

namespace coil::runtime {

/// Checks count, kinds, dtypes and ranks, binds every symbol, then checks sizes, ranges and the
/// program's own conditions. The first thing that is wrong is the Error.
Status bind_inputs(const Plan& plan, std::span<const Value> inputs, CallContext& call);

/// Whether a given tensor has the strides that the plan reads it by: dims of size 1 do not count,
/// and nothing does where it is empty.
Result<bool> lies_as_planned(const PlanInput& input, const Tensor& given, const Frame& frame);

}  // namespace coil::runtime
