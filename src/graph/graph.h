#pragma once
// Level 0: functional ATen ops over tensors with symbolic shapes and strides.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"
#include "graph/storage.h"
#include "sym/prover.h"

namespace coil {

struct ValueTag;
struct NodeTag;
struct LocTag;
using ValueId = Id<ValueTag>;
using NodeId = Id<NodeTag>;
using LocId = Id<LocTag>;
struct CompositeRules;  // rules.h

enum class TypeKind : u8 { Tensor, Int, Float, Bool, None };

/// The type of a value. Strides are in elements and are eager's: an op's result is laid out as
/// eager lays it out. Int and Bool values are symbolic expressions and need no node to compute
/// them, unless they come from data (item, the size of nonzero): then `expr` is a variable of role
/// Value.
struct Type {
  TypeKind kind = TypeKind::Tensor;
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  std::vector<sym::Expr> strides;
  sym::Expr expr;

  std::size_t ndim() const { return shape.size(); }
  bool is_tensor() const { return kind == TypeKind::Tensor; }
};

enum class MemoryFormat : u8 { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

struct None {
  bool operator==(const None&) const = default;
};
struct Device {
  std::string name;  // "cpu"
  bool operator==(const Device&) const = default;
};
struct Complex {
  double re = 0, im = 0;
  bool operator==(const Complex&) const = default;
};

/// An argument of a node. A Scalar argument is an Expr, double, bool or Complex (its Python type
/// drives promotion), or the ValueId of a Float value that is known only at run time. Layouts and
/// generators are None. A list of tensors may hold invalid ids, for None.
using Arg = std::variant<None, ValueId, std::vector<ValueId>, sym::Expr, std::vector<sym::Expr>,
                         double, std::vector<double>, bool, std::vector<bool>, std::string, DType,
                         MemoryFormat, Device, Complex>;

/// One step of a view chain: a view op of ATen without its first argument, arguments as in a Node.
struct ViewStep {
  std::string op;
  std::vector<Arg> args;  // in schema order, without self
  bool operator==(const ViewStep&) const = default;
};

/// `op` is a schema's full name in namespace aten ("add.Tensor", "relu"), with args in schema order
/// and defaults filled in, or one of coil's own:
///   update(base, value)         `view`: base with the view's elements replaced by value
///   cond(pred, operands)        subgraphs then, else, both with the operands as inputs
///   while_loop(carried, extra)  subgraphs condition, body, both with carried + extra as inputs
///   scan(init, xs, extra)       subgraph combine: init + one slice of each xs + extra -> carry +
///   ys recurrence ops of ATen (lstm.input, gru.input, ...) stay whole until they are lowered
struct Node {
  std::string op;
  std::vector<Arg> args;
  std::vector<ValueId> outs;
  std::vector<ViewStep> view;  // update only
  std::vector<u32> subgraphs;  // indices into Graph::subgraphs
  LocId loc;
};

struct Value {
  std::string name;  // torch's name, unique in its graph
  Type type;
  NodeId def;         // invalid for inputs and constants
  u32 out_index = 0;  // among the outs of `def`
};

/// A place in the user's source.
struct Loc {
  std::string frame;   // "model.py:12", innermost user frame; "" if unknown
  std::string module;  // "encoder.layer.0", "" if unknown
  bool operator==(const Loc&) const = default;
};

/// A user's argument. `name` is the user's own (keyword or parameter name) or torch's placeholder.
struct Input {
  std::string name;
  ValueId value;
  Arg fixed;  // a value of kind None: what every call must pass (a float, a string, None)
};

/// A weight, buffer or lifted constant: elements of a storage, walked by the value type's strides.
struct Constant {
  ValueId value;
  std::string fqn;          // "encoder.weight"; "" for literals
  u32 storage = 0;          // index into Graph::storages
  i64 offset = 0;           // elements
  bool is_state = false;    // the program replaces it: see StateUpdate
  bool is_complex = false;  // `offset` counts complex elements
};

/// After a call that succeeds, the state holds `value`.
struct StateUpdate {
  u32 constant = 0;  // index into Graph::constants
  ValueId value;
};

enum class OutputKind : u8 {
  Value,
  AliasOfInput,
  AliasOfOutput,
  MutatedInput,
  Constant,
  Int,
  None
};

/// One output of the program, in the order of the exported program's user outputs, after all
/// MutatedInput rows.
///   Value         a new tensor
///   AliasOfInput  `value` is a view of input `target` (or the input itself)
///   AliasOfOutput `value` shares memory with output `target`
///   MutatedInput  not returned: `value` is written into input `target` when the call ends
///   Constant      a fixed int, float, bool or string in `constant`
///   Int           an Int, Float or Bool value
struct Output {
  OutputKind kind = OutputKind::Value;
  ValueId value;
  u32 target = 0;
  Arg constant;
};

/// A dynamic size: `size s0 in 1..4096 hint 128`.
struct SizeVar {
  sym::Expr var;  // its name and range are in the arena
  std::optional<i64> hint;
};

/// A condition that every call must meet, from the file (range constraints, guards_code) or from
/// sizes that must agree. `text` says it to the user.
struct Check {
  sym::Expr condition;
  std::string text;
};

struct Graph {
  std::string name = "main";
  std::shared_ptr<sym::Arena> syms = std::make_shared<sym::Arena>();
  Table<ValueId, Value> values;
  Table<NodeId, Node> nodes;  // in execution order
  Table<LocId, Loc> locs;
  std::vector<SizeVar> sizes;
  std::vector<Input> inputs;
  std::vector<Constant> constants;
  std::vector<Storage> storages;
  std::vector<StateUpdate> state_updates;
  std::vector<Output> outputs;
  std::vector<Check> checks;
  std::vector<Graph> subgraphs;  // share `syms`; have no constants or checks of their own
  sym::Facts facts;
  /// How composite ops (linear, layer_norm, ...) get their types; subgraphs share it. May be null:
  /// then those ops are unknown.
  const CompositeRules* composites = nullptr;
  /// What fresh_name knows of the first `seen` values: which names are taken, and the largest N of
  /// each `name_N`.
  struct Names {
    struct Use {
      bool taken = false;
      i64 largest = 0;
    };
    std::size_t seen = 0;
    std::unordered_map<std::string, Use> uses;
  } names;

  ValueId add_value(std::string name, Type type);
  /// A name not used yet: `base`, else `base_1`, ...
  std::string fresh_name(const std::string& base);
  LocId intern(const Loc& loc);
  const Type& type(ValueId v) const { return values[v].type; }
};

/// `name` of the op without its overload: "add" of "add.Tensor".
std::string_view base_name(std::string_view op);
std::vector<sym::Expr> contiguous_strides(sym::Arena& syms, std::span<const sym::Expr> shape);
sym::Expr numel(sym::Arena& syms, std::span<const sym::Expr> shape);
/// "f32[s0, 768]", with " strides [1, 8]" where they are not contiguous; "int s0 + 1", "float", ...
std::string text(sym::Arena& syms, const Type& type);
/// "relu_3 (model.py:12)": how messages name a node.
std::string describe(const Graph& graph, NodeId node);

}  // namespace coil
