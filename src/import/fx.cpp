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
    FxProgram program;
    const Json* memories = find_field(document_, "memories");
    for (const Json& input : array_of(field(graph_json, "inputs"))) {
      const Json* memory = memories ? find_field(*memories, name_at(input).c_str()) : nullptr;
      if (memory != nullptr)
        program.memories.push_back(add_memory(input, *memory));
      else
        add_user_input(input, name_at(input));
    }
    add_constants(std::move(constants));
    read_nodes();
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
  /// The input as a view of the memory that is the graph's own input.
  InputMemory add_memory(const Json& input, const Json& reach) {
    const std::string& name = name_at(input);
    const Type tensor = stated_type(name);
    if (array_of(reach).size() != 2) fail("the memory of '{}' is no pair", name);
    InputMemory memory{static_cast<u32>(graph().inputs.size()), integer_of(reach[0]),
                       integer_of(reach[1]), fixed(tensor.shape, name),
                       fixed(tensor.strides, name)};
    sym::Arena& syms = *graph().syms;
    Type row = tensor;
    row.shape = {syms.constant(memory.elements)};
    row.strides = {syms.constant(1)};
    const ValueId value = graph().add_value(builder().claim_name(name), row);
    graph().inputs.push_back({name, value, None{}});
    const TensorId whole = builder().add_base(value, Origin::Input, memory.input);
    ImportCall call;
    call.op = "as_strided";
    const sym::Expr start = syms.constant(-memory.first);
    call.names = {builder().fresh_name(name)};
    define(name,
           builder().view(whole, {"as_strided", {tensor.shape, tensor.strides, start}}, call));
    return memory;
  }

  std::vector<i64> fixed(const std::vector<sym::Expr>& sizes, const std::string& name) {
    std::vector<i64> values;
    for (sym::Expr e : sizes) {
      const std::optional<i64> value = graph().syms->as_const(e);
      if (!value) fail("'{}' has a dynamic layout, but is given as its memory", name);
      values.push_back(*value);
    }
    return values;
  }

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
