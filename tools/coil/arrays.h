#pragma once
// Arrays of .npz files as the arguments and results of calls.

#include <optional>
#include <string>
#include <vector>

#include "import/npz.h"
#include "loop/program.h"
#include "runtime/tensor.h"

namespace coil::cli {

/// Arguments by call, from the arrays of a file. An Error names an array that belongs to no input,
/// or an input without an array.
Result<std::vector<std::vector<runtime::Value>>> read_inputs(const std::string& path,
                                                             const LoopProgram& program);
/// One call with random arguments: floats normal, integers 0..3, sizes by their hints.
Result<std::vector<runtime::Value>> random_inputs(const LoopProgram& program, u64 seed);

/// The calls of a file, or one with random arguments where there is none ("").
Result<std::vector<std::vector<runtime::Value>>> input_calls(const std::string& path, u64 seed,
                                                             const LoopProgram& program);

/// Results by call, from arrays out0, out1_bf16, out0_call2, ...; absent ones are None.
Result<std::vector<std::vector<runtime::Value>>> read_outputs(const std::string& path);
Status write_outputs(const std::string& path,
                     const std::vector<std::vector<runtime::Value>>& calls);

/// A number as a 0-d tensor; a tensor as it is; nothing for None and strings.
std::optional<runtime::Tensor> as_tensor(const runtime::Value& value);

}  // namespace coil::cli
