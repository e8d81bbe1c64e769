#pragma once
// From a file to a graph or a program: .pt2, or coil's text of level 0 or 1, with all constants
// there.

#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "loop/program.h"

namespace coil {

struct LoadedModel {
  std::variant<Graph, LoopProgram> program;
  std::vector<std::string> warnings;  // guards that could not be read, ...
  std::vector<std::string>
      type_differences;  // where coil's rules and the file disagree: defects of coil
};

/// Reads a model; what the file holds decides how. Constants `file "x.npz" "key"` of a text are
/// looked up beside it.
Result<LoadedModel> load_model(const std::string& path);
/// The seed of the random numbers that the model draws, if it does; without a call it is 0.
void set_random_seed(LoadedModel& model, u64 seed);

}  // namespace coil
