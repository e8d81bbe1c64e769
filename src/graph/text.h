#pragma once
// The text form of level 0. `parse_graph(to_text(g)) == g` up to storage identity.

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// graph block(%x: f32[s0, 768], %n: int s1) { size ... const ... nodes ... mutates ... return ... }
std::string to_text(const Graph& graph);
/// `file` is for messages and for the folder in which `file "x.npz"` constants are looked up. Types
/// after a colon may be left out, where the shape rules give them; one that differs is an error.
Result<Graph> parse_graph(std::string_view text, const std::string& file);

}  // namespace coil
