#pragma once
// Reads programs that torch.export.save wrote (torch 2.9 and newer).

#include <string>
#include <vector>

#include "graph/rules.h"
#include "import/archive.h"

namespace coil {

/// A user argument that the export fixed: every call must pass this value. Its place in
/// Graph::inputs has a value of kind Int or Bool with a constant expression, or of kind None for
/// floats, strings and None.
struct FixedInput {
  u32 input = 0;
  Arg value;
};

struct Pt2Program {
  Graph graph;
  std::string torch_version;
  std::vector<FixedInput> fixed_inputs;
  /// What was left out, in words: guards that coil cannot read.
  std::vector<std::string> warnings;
  /// Where coil's rules give another dtype, shape or strides than the file states. Each is a defect
  /// of coil (or a known one of the writer's, which are left out).
  std::vector<std::string> type_differences;
};

/// `composites` gives types of composite ops; without it those that the file states are believed.
/// The weights in the graph are views of the mapped file. `model`: which of the file's models, by
/// default its only one.
Result<Pt2Program> import_pt2(const std::string& path, const CompositeRules* composites,
                              const std::string& model = "");
/// The same of a file in memory.
Result<Pt2Program> import_pt2(Bytes file, const std::string& path, const CompositeRules* composites,
                              const std::string& model = "");

}  // namespace coil
