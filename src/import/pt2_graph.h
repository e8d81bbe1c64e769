#pragma once
// The nodes of a .pt2's graph, handed to the functionalising builder one by one.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "import/functionalize.h"
#include "import/json.h"
#include "import/symbols.h"
#include "ops/schema.h"

namespace coil {

/// A number that coil cannot express; used only where somebody reads it.
struct Inexpressible {
  std::string text;
};
/// What a name of the file stands for. A ValueId is a float that is known only during a run.
using NamedValue = std::variant<None, TensorId, HostNumber, ValueId, Inexpressible>;

/// What all graphs of one program share.
struct ProgramReading {
  SymbolTable& symbols;
  const CompositeRules* composites = nullptr;
  /// Writers up to 2.11 state 4-d states for recurrent ops.
  bool has_wrong_recurrent_states = false;
  std::vector<std::string> warnings;
};

class Pt2GraphReader {
 public:
  /// `graph` is one object of the schema's type Graph.
  Pt2GraphReader(ProgramReading& reading, FunctionalBuilder& builder, const Json& graph);
  virtual ~Pt2GraphReader() = default;

  /// Every name that the graph gives to a value, nested graphs excluded.
  static std::unordered_set<std::string> names(const Json& graph);

  void read_nodes();
  void define(const std::string& name, NamedValue value) { values_[name] = std::move(value); }
  /// The value of an output or operand: {"as_tensor": {"name": ...}} or any symbolic or plain
  /// number.
  NamedValue value_of(const Json& argument);
  const std::string& name_at(const Json& argument);
  /// The type that the file states for a tensor.
  Type stated_type(const std::string& name);

 protected:
  /// The value of a name. Placeholders of constants are made when they are first asked for.
  virtual NamedValue lookup(const std::string& name);

 private:
  friend class Pt2HopReader;

  void read_node(const Json& node);
  void read_op(const Json& node, const std::string& op);
  bool read_size_query(const Json& node, const std::string& op);
  void read_scalar(const Json& node, const std::string& function);
  LocId loc_of(const Json& node);

  /// A call with the results' names and stated types, without arguments.
  ImportCall call_of(const Json& node, const std::string& op);
  std::vector<ImportArg> args_of(const Json& node, ImportCall& call);
  ImportArg arg_of(const Json& argument, const ops::SchemaArg& schema);
  std::optional<Arg> list_arg(std::string_view arm, const Json& content,
                              const ops::SchemaArg& schema);
  /// A number as a tensor, for an op that has no form for numbers.
  TensorId without_dims(const Arg& number, const ImportCall& user);
  TensorId tensor_named(const std::string& name);
  sym::Expr integer_named(const std::string& name);
  Arg scalar_named(const std::string& name);
  void bind(const ImportCall& call, const std::vector<ImportValue>& results);
  Type type_of_result(const std::string& name);

  ProgramReading& reading_;
  FunctionalBuilder& builder_;
  const Json& graph_;
  HostMath math_;
  std::unordered_map<std::string, NamedValue> values_;
  std::map<std::pair<std::string, std::string>, LocId> locs_;
};

}  // namespace coil
