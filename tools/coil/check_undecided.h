#pragma once
// Which outputs hang on a decision that rounding may turn: a comparison of floats that is closer
// than its operands are known, an index out of such values, a cut like floor.

#include <string>
#include <vector>

#include "check_calls.h"
#include "check_close.h"

namespace coil::cli {

/// Looks at a decomposed graph before and after the interpreter has run it.
class Decisions {
 public:
  /// `graph` outlives this.
  explicit Decisions(const Graph& graph);

  /// Values to observe: operands and results of decisions on rounded floats.
  const std::vector<ValueId>& observed() const { return observed_; }

  /// `oracle` has the rows of observed() in order, from `first` on. Afterwards reason() answers.
  void settle(const Oracle& oracle, std::size_t first);

  /// Why a value hangs on an open decision; "" where it does not.
  const std::string& reason(ValueId value) const { return reasons_.get(value); }

 private:
  friend class Closeness;
  Rounding rounding_of(const Node& node) const;
  void find_rounded();
  void find_decisions();
  void observe(ValueId v);
  std::string own_reason(NodeId id, const Oracle& oracle) const;
  bool is_smooth_choice(const Node& node, const Oracle& oracle) const;
  bool propagate(const Oracle& oracle);

  const Graph& graph_;
  Side<ValueId, Rounding> rounded_;
  Side<ValueId, int> uses_;        // by nodes, outputs and state updates
  Side<ValueId, u32> at_;          // its place in observed_, plus 1
  Side<sym::Expr, ValueId> data_;  // variables that come from data -> the value they are of
  std::vector<NodeId> decisions_;
  std::vector<ValueId> observed_;
  std::size_t first_ = 0;
  Side<NodeId, std::string> own_;
  Side<ValueId, std::string> reasons_;
};

}  // namespace coil::cli
