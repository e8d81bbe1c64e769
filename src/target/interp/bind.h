#pragma once
// Arguments of a call: their dtypes and shapes against the program, and the sizes they define.

#include "target/interp/frame.h"

namespace coil::interp {

/// The argument as the real tensor that its buffer holds: a complex one gets a trailing dim of 2.
runtime::Tensor as_real(const runtime::Tensor& tensor);
/// Checks counts, kinds, dtypes and shapes, and gives every size and host float its value.
Status bind_inputs(const LoopProgram& program, std::span<const runtime::Value> inputs, Env& env);
/// Conditions that have a value by now; one that does not hold is an Error with its text. With
/// `all`, one without a value is an Error too.
enum class CheckScope : u8 { Known, All };
Status check_conditions(const LoopProgram& program, const Env& env, CheckScope scope);

}  // namespace coil::interp
