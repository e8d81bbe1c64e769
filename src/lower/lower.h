#pragma once
// Level 0 to level 1.

#include "base/options.h"
#include "base/result.h"
#include "graph/graph.h"
#include "loop/program.h"

namespace coil {

/// Turns each node of a decomposed graph into bodies, structured nodes and control nodes. All ops
/// that have no row in the registry are listed in one Error, with counts and places.
Result<LoopProgram> lower(const Graph& graph, const Options& options);

/// The part of a program that a caller sees: sizes, arguments, what the outputs are, and
/// `constants` in their order.
LoopProgram lower_interface(const Graph& graph, std::vector<Constant> constants);

}  // namespace coil
