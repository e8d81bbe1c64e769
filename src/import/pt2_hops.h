#pragma once
// Higher-order ops of a .pt2: control flow keeps its subgraphs, wrappers are inlined.

#include "import/pt2_graph.h"

namespace coil {

class Pt2HopReader {
 public:
  /// `name` is without "torch.ops.higher_order.".
  Pt2HopReader(Pt2GraphReader& outer, const Json& node, std::string name);
  void read();

 private:
  /// A subgraph in functional form.
  struct Sub {
    Graph graph;
    std::vector<std::size_t> written;     // inputs that it writes to
    std::vector<ValueId> written_values;  // their newest values, in the same order
  };

  void read_cond();
  void read_while_loop();
  void read_scan(bool has_carry);
  void read_inlined(const Json& graph, const std::vector<const Json*>& operands);
  void read_wrapper();

  const Json& arg(std::size_t i) const;
  const Json& graph_arg(std::size_t i) const;
  /// The named items of a list argument, or of one argument.
  std::vector<std::string> names_of(const Json& argument) const;
  std::vector<ValueId> operands(const std::vector<std::string>& names);
  Sub read_sub(const Json& graph, const std::vector<Type>& inputs, const std::string& name);
  void add_output(Graph& graph, FunctionalBuilder& builder, const NamedValue& value);
  u32 attach(Graph sub);
  void finish(Node node, const ImportCall& call);
  void require_no_writes(const Sub& sub) const;

  Pt2GraphReader& outer_;
  FunctionalBuilder& builder_;
  const Json& node_;
  std::string name_;
  ImportCall call_;
};

}  // namespace coil
