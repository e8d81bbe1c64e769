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

/// Replaces the results of ops that change nothing (a clone in the same layout, a cast there and
/// back, x * 1), of nodes that were computed before, and of constants that are the same weight.
/// Whatever it leaves without a reader is removed by remove_dead_code.
void simplify(Graph& graph);

/// Finds attention that a model spells out, softmax(q k^T * scale + masks) v, and makes it one op,
/// softmax_attention. In f32 and f64, and where nothing else reads the scores: in narrow floats
/// eager rounds the scores and the weights, which one op does not. For graphs of core ops.
void recognize_attention(Graph& graph);

/// Removes nodes, constants and subgraphs that no output, state update or check needs. Inputs stay.
void remove_dead_code(Graph& graph);

}  // namespace coil
