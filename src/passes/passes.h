#pragma once
// Graph passes: Graph to Graph, each a row of driver/pipeline.cpp.

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// Rewrites every op that lowering does not take into ops that it does, and drops what has no effect
/// (aliases, dropout in eval). Values that survive keep their names. An Error lists all unknown ops at
/// once, with counts and places.
Result<Graph> decompose(const Graph& graph);

/// Removes nodes and constants that no output, state update or check needs.
void remove_dead_code(Graph& graph);

}  // namespace coil
