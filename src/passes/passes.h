#pragma once
// Graph passes: Graph to Graph, each a row of driver/pipeline.cpp.

#include "base/result.h"
#include "graph/graph.h"
#include "graph/rules.h"

namespace coil {

/// Rewrites every op that lowering does not take into ops that it does, and drops what has no
/// effect (aliases, dropout in eval). Values that survive keep their names; new ones are called
/// after the node that they come from. An Error lists all unknown ops at once, with counts and
/// places.
Result<Graph> decompose(const Graph& graph);

/// Types of composite ops. Whoever makes a Graph lets `Graph::composites` point here.
const CompositeRules& composite_rules();

/// Removes nodes, constants and subgraphs that no output, state update or check needs. Inputs stay.
void remove_dead_code(Graph& graph);

}  // namespace coil
