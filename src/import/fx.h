#pragma once
// Reads FX graphs that torch.compile hands to a backend. The Python side writes a graph as JSON in
// the schema of exported programs, so that one reader serves both:
//   {"graph": Graph, "range_constraints": {"s77": {"min_val": 2, "max_val": null}},
//    "constants": ["_tensor_constant0"]}
// Every placeholder is a user input, whose name is the placeholder's.

#include <string>
#include <string_view>
#include <vector>

#include "graph/rules.h"

namespace coil {

/// An op that coil has not, where it is first used, and how often it is.
struct MissingOp {
  std::string op;     // "aten.foo.Tensor", "mylib::op"
  std::string place;  // "model.py:12"
  int count = 0;
};

struct FxProgram {
  Graph graph;                                // of no use where an op is missing
  std::vector<MissingOp> missing;             // all of them
  std::vector<std::string> type_differences;  // where coil's rules disagree with torch's fake run
};

/// `constants`: the bytes of each tensor that the document's "constants" name, whole, laid out as
/// its strides say.
Result<FxProgram> import_fx(std::string_view document, std::vector<Storage> constants,
                            const CompositeRules* composites);

}  // namespace coil
