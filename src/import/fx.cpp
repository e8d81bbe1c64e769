#include "import/fx.h"

#include <nlohmann/json.hpp>

#include "import/program_reader.h"

namespace coil {
namespace {

/// Deeper than any graph; recursion over the document is safe below it.
constexpr int kMaxJsonDepth = 200;

class FxReader : private ProgramReader {
 public:
  FxReader(const Json& document, const CompositeRules* composites)
      : ProgramReader(std::make_unique<Parts>(field(document, "graph"), composites,
                                              false /* recurrent states are right */),
                      field(document, "graph")),
        document_(document) {}

  FxProgram read(std::vector<Storage> constants) {
    read_ranges(field(document_, "range_constraints"));
    const Json& graph_json = field(document_, "graph");
    for (const Json& input : array_of(field(graph_json, "inputs")))
      add_user_input(input, name_at(input));
    add_constants(std::move(constants));
    read_nodes();
    FxProgram program;
    for (const auto& [op, use] : builder().unsupported_ops())
      program.missing.push_back({op, use.place, use.count});
    if (!program.missing.empty()) return program;
    add_mutations();
    for (const Json& output : array_of(field(graph_json, "outputs"))) add_output(output);
    program.type_differences = builder().type_differences();
    program.graph = take_graph();
    return program;
  }

 private:
  void add_constants(std::vector<Storage> constants) {
    const Json& names = array_of(field(document_, "constants"));
    if (names.size() != constants.size())
      fail("{} constants are named, {} are given", names.size(), constants.size());
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const std::string name = text_of(names[i]);
      const ValueId value = graph().add_value(builder().claim_name(name), stated_type(name));
      const u32 index = static_cast<u32>(i);
      graph().storages.push_back(std::move(constants[i]));
      graph().constants.push_back({value, name, index, 0, false});
      define(name, builder().add_base(value, Origin::Constant, index));
    }
  }

  const Json& document_;
};

}  // namespace

Result<FxProgram> import_fx(std::string_view document, std::vector<Storage> constants,
                            const CompositeRules* composites) {
  try {
    const Json json = parse_json(document, "the graph", kMaxJsonDepth);
    return FxReader(json, composites).read(std::move(constants));
  } catch (const BuildError& problem) {
    return problem.error;
  } catch (const Json::exception& problem) {
    return error("the graph is damaged: {}", problem.what());
  }
}

}  // namespace coil
