#pragma once
// What exported programs and FX graphs have in common: user inputs, ranges of symbols, nodes and
// outputs, all in the schema of torch.export's JSON.

#include <map>
#include <memory>
#include <string>

#include "import/pt2_graph.h"

namespace coil {

class ProgramReader : protected Pt2GraphReader {
 protected:
  /// What the parts of this object need before the base class is made.
  struct Parts {
    Parts(const Json& graph_json, const CompositeRules* composites, bool wrong_recurrent_states);
    Graph graph;
    SymbolTable symbols;
    ProgramReading reading;
    FunctionalBuilder builder;
  };
  ProgramReader(std::unique_ptr<Parts> parts, const Json& graph_json);

  /// `ranges` maps names of symbols and other expressions to {"min_val", "max_val"}; only the
  /// symbols are read here.
  void read_ranges(const Json& ranges);
  /// An input that the user passes: a tensor or an int. `name` is the user's own.
  ValueId add_user_input(const Json& argument, const std::string& name);
  /// What the program has written to: outputs of inputs, updates of states.
  void add_mutations();
  void add_output(const Json& argument);
  /// The graph, once nothing more is read.
  Graph take_graph();

  Graph& graph() { return parts_->graph; }
  FunctionalBuilder& builder() { return parts_->builder; }
  const FunctionalBuilder& builder() const { return parts_->builder; }
  SymbolTable& symbols() { return parts_->symbols; }
  ProgramReading& reading() { return parts_->reading; }

 private:
  Output tensor_output(TensorId tensor);

  std::unique_ptr<Parts> parts_;
  const Json& graph_json_;
  std::map<u32, u32> output_of_base_;
};

}  // namespace coil
