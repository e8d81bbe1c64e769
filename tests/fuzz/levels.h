#pragma once
// What must hold of a graph that the importer or the parser took, on its way down to level 1.

#include "graph/text.h"
#include "graph/verify.h"
#include "lower/lower.h"
#include "passes/passes.h"

namespace coil::fuzz {

inline void require(const Status& status, std::string_view what) {
  COIL_CHECK(status.ok(), "{}: {}", what, status.error().message);
}

/// An Error is an answer, but not an empty one.
template <class T>
bool is_taken(const Result<T>& result) {
  COIL_CHECK(result.ok() || !result.error().message.empty(), "an Error says nothing");
  return result.ok();
}

/// What a pass hands on is sound, whatever came in.
inline void take_down(const Graph& graph) {
  Result<Graph> plain = decompose(graph);
  if (!is_taken(plain)) return;
  require(verify(*plain), "after decompose");
  remove_dead_code(*plain);
  require(verify(*plain), "after dead_code");
  const Result<LoopProgram> program = lower(*plain, Options());
  if (!is_taken(program)) return;
  require(verify(*program), "after lower");
  (void)to_text(*program);
}

}  // namespace coil::fuzz
