#pragma once
// Reads FX graphs that torch.compile hands to a backend. The Python side writes a graph as JSON in
// the schema of exported programs, so that one reader serves both:
//   {"graph": Graph, "range_constraints": {"s77": {"min_val": 2, "max_val": null}},
//    "constants": ["_tensor_constant0"], "memories": {"x": [-3, 20]}}
// Every placeholder is a user input, whose name is the placeholder's. In place of one that
// "memories" names the graph takes the memory in which it lies: so many elements, the first of
// which is so far from its own. as_strided of it counts in that.

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

/// An input that the graph takes as one row of memory, and how the tensor lies in it.
struct InputMemory {
  u32 input = 0;     // of Graph::inputs
  i64 first = 0;     // the memory's first element, counted from the tensor's; 0 or less
  i64 elements = 0;  // of the memory
  std::vector<i64> shape, strides;  // of the tensor
};

struct FxProgram {
  Graph graph;                                // of no use where an op is missing
  std::vector<InputMemory> memories;          // of few inputs
  std::vector<MissingOp> missing;             // all of them
  std::vector<std::string> type_differences;  // where coil's rules disagree with torch's fake run
};

/// `constants`: the bytes of each tensor that the document's "constants" name, whole, laid out as
/// its strides say.
Result<FxProgram> import_fx(std::string_view document, std::vector<Storage> constants,
                            const CompositeRules* composites);

}  // namespace coil
