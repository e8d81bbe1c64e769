#pragma once
// Appends nodes with inferred types; what importers, passes and decompositions write graphs with.

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// Thrown out of a chain of builder calls by an Error, and turned back into a Result by
/// `run_builder`.
struct BuildError {
  Error error;
};

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw BuildError{result.error()};
  return std::move(*result);
}

class GraphBuilder {
 public:
  /// Appends to `graph`. New nodes get `loc`; new values are named after `prefix`.
  GraphBuilder(Graph& graph, LocId loc, std::string prefix);

  /// Appends `op` with arguments in schema order; missing trailing ones get the schema's defaults.
  /// Throws BuildError where the op, an argument or a shape is wrong.
  std::vector<ValueId> call_all(const std::string& op, std::vector<Arg> args);
  /// The same for an op with one result.
  ValueId call(const std::string& op, std::vector<Arg> args);
  /// `base` with the elements of the view that `view` walks to replaced by those of `value`.
  ValueId update(ValueId base, std::vector<ViewStep> view, ValueId value);
  /// Any node, with all arguments given; `outs` and `loc` are filled in here.
  std::vector<ValueId> append(Node node);

  Graph& graph() { return graph_; }
  sym::Arena& syms() { return *graph_.syms; }
  const Type& type(ValueId v) const { return graph_.type(v); }
  /// `dim` may be negative. Throws BuildError where the tensor has no such dim.
  sym::Expr size(ValueId v, i64 dim) const;
  sym::Expr integer(i64 v) { return syms().constant(v); }
  std::vector<sym::Expr> integers(std::initializer_list<i64> v);

 private:
  Graph& graph_;
  LocId loc_;
  std::string prefix_;
};

/// Runs `f`, which calls a builder: its value, or the Error of the first call that failed.
template <class F>
auto run_builder(F f) -> Result<decltype(f())> {
  try {
    return f();
  } catch (const BuildError& failure) {
    return failure.error;
  }
}

}  // namespace coil
