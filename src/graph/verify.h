#pragma once
// The verifier of level 0.

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// Every op has a schema and takes the arguments it is given; values are defined once and before
/// use; names are unique; each result type is what the rules derive; outputs and state updates fit.
Status verify(const Graph& graph);

}  // namespace coil
