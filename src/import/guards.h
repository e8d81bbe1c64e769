#pragma once
// Conditions as Python text: the lines of guards_code, and the keys of range_constraints.

#include <map>
#include <string>
#include <string_view>

#include "import/symbols.h"

namespace coil {

struct GuardScope {
  SymbolTable& symbols;
  Graph& graph;
  /// User inputs under the text by which guards name them: "L['x']", "L['l'][1]".
  std::map<std::string, ValueId> inputs;
};

/// A number or (0 or 1) condition over sizes: comparisons, and, or, not, + - * / // % **, calls of
/// math.trunc, torch.sym_float and their like, paths such as L['x'].size()[0], and names of
/// symbols. Nothing for text outside of this.
std::optional<HostNumber> parse_python(const GuardScope& scope, std::string_view text);

/// Adds a condition that every call must meet: to the variable's range where it says no more than
/// that (ranges are enforced), else to checks and facts.
void add_condition(Graph& graph, sym::Expr condition, const std::string& text);

}  // namespace coil
