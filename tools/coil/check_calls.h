#pragma once
// What `coil check` runs: calls of a model on copies of the inputs, and what they leave as rows.

#include <span>
#include <string>
#include <vector>

#include "cli.h"

namespace coil::cli {

using Values = std::vector<runtime::Value>;

/// What a call leaves: its outputs, then the new content of mutated inputs. Rows own their memory.
using Rows = std::vector<Values>;  // by call

/// "out0", ..., then "x (written)" of mutated inputs.
std::vector<std::string> row_labels(const LoopProgram& program);

/// Runs all calls in order, each on copies of its inputs.
Result<Rows> run_calls(Runner& runner, const LoopProgram& program,
                       const std::vector<Values>& inputs);

/// The interpreter's answers on a program: as the model says, and with every float in double.
struct Oracle {
  Rows plain, wide;
};
Result<Oracle> run_oracle(const LoopProgram& program, const std::vector<Values>& inputs);

/// A graph or program with further outputs at the end.
LoadedModel with_outputs(const LoadedModel& model, std::span<const ValueId> values);
LoadedModel with_outputs(const LoadedModel& model, std::span<const BufferId> buffers);

}  // namespace coil::cli
