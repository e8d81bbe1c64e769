#pragma once
// Whether written types are those that the rules derive, fresh data variables apart.

#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// Compares types of one graph's values in the order in which nodes define them. A variable of role
/// Value that a rule has just made (u7) stands for the one that is written (u0), which no earlier
/// node may have defined.
class Unifier {
 public:
  explicit Unifier(Graph& graph) : graph_(graph) {}

  /// Variables in the type of an input or of a node without written types are defined from here on.
  void define(const Type& type);
  /// Whether `derived` is `written`; what fresh variables stand for is kept for the node's other
  /// results.
  bool match(const Type& derived, const Type& written);
  /// Between two nodes: forgets what fresh variables stand for.
  void next_node() { fresh_.clear(); }

 private:
  bool match(sym::Expr derived, sym::Expr written);
  bool is_data(sym::Expr e) const;

  Graph& graph_;
  std::set<sym::Expr> defined_;
  std::vector<std::pair<sym::Expr, sym::Expr>> fresh_;
};

/// An Error for negative sizes, and for element counts that no memory holds.
Status check_type(sym::Arena& syms, const Type& type);
/// How many elements of its storage a constant of this type reaches into from the storage's start.
Result<i64> storage_extent(sym::Arena& syms, const Type& type, i64 offset);

}  // namespace coil
