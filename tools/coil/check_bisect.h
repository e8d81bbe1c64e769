#pragma once
// After a difference: which value is the first to be wrong.

#include <functional>
#include <string>

#include "check_calls.h"
#include "check_undecided.h"

namespace coil::cli {

struct Suspects {
  LoadedModel model;  // a decomposed graph, or a program of level 1
  const Decisions* decisions =
      nullptr;  // of the graph: values that hang on open decisions are passed over
  const std::vector<Values>* inputs = nullptr;
  std::function<Result<ReadyModel>(const LoadedModel&, bool on_target)>
      prepare;  // else for the interpreter
};

/// Makes every value an output and says which is wrong first, in a sentence.
Result<std::string> bisect(const Suspects& suspects);

}  // namespace coil::cli
