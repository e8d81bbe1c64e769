#pragma once
// What a graph computes, without what people call its parts: the heart of program keys.

#include <string>

#include "graph/graph.h"

namespace coil {

/// Equal for graphs that a compilation cannot tell apart. Left out are names and places, the texts
/// of checks, and the bytes of constants with where they come from; the order of size variables by
/// name is in, since expressions are sorted by it. Values count by their ids.
std::string canonical_bytes(const Graph& graph);

}  // namespace coil
