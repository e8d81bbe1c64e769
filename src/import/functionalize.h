#pragma once
// Programs that write to tensors, as functional graphs. Importers call ops as the program does,
// with in-place ops and ops that may alias; the graph that comes out has neither.
//
// A tensor is a chain of views over a base. A write through any tensor of a base gives the base a
// new version; the other tensors are taken again from that version when they are next read.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "ops/schema.h"

namespace coil {

struct ImportedTensorTag;
struct ImportedBaseTag;
using TensorId = Id<ImportedTensorTag>;
using BaseId = Id<ImportedBaseTag>;

/// An argument as the program gives it. In a list an invalid id stands for None.
using ImportArg = std::variant<Arg, TensorId, std::vector<TensorId>>;
/// A result: nothing, a tensor, an integer or bool expression, or a float known only during a run.
using ImportValue = std::variant<None, TensorId, sym::Expr, ValueId>;

/// One op of the program.
struct ImportCall {
  std::string op;                  // a schema's full name
  std::vector<ImportArg> args;     // in schema order, defaults filled in
  std::vector<std::string> names;  // of the results, lists flattened
  std::vector<Type> expected;      // types that the program states for them; kind None: not stated
  LocId loc;
};

/// The name of the state that holds a program's random key: i64[2], the seed (0 unless it is set
/// before the program is run) and the first stream of the next call.
inline constexpr std::string_view kRandomState = "random_key";

enum class Origin : u8 { Computed, Input, Constant };

class FunctionalBuilder {
 public:
  /// A tensor that occupies memory of its own.
  struct Base {
    ValueId value;    // the newest version
    u32 version = 0;  // counts writes
    Origin origin = Origin::Computed;
    u32 index = 0;  // in Graph::inputs or Graph::constants
    TensorId root;  // the tensor that is the whole base
  };
  /// An op that nothing supports, with where it is first used.
  struct Unsupported {
    int count = 0;
    std::string place;
  };

  /// `reserved`: names that the program will use, so that names made here are different.
  FunctionalBuilder(Graph& graph, std::unordered_set<std::string> reserved);

  /// The graph is one of control flow, whose state is that of the graph around it.
  void make_inner() { keeps_state_ = false; }

  /// The exporter's own assumptions: each symbol with one that has the range it took for granted.
  /// Only stated types are compared under them. `pairs` may grow while this builder is used.
  void assume(const std::vector<std::pair<sym::Expr, sym::Expr>>& pairs) { assumed_ = &pairs; }

  // Functions below throw BuildError where the program is wrong or not supported.

  TensorId add_base(ValueId value, Origin origin, u32 index);
  /// Appends what the op is in functional form. Results are flattened, as many as `call.names`.
  std::vector<ImportValue> call(const ImportCall& call);
  /// The newest value of a tensor.
  ValueId read(TensorId tensor);
  Type type(TensorId tensor) const { return tensors_[tensor].type; }
  /// Stores `value` into the elements of `tensor`; it is cast and expanded as copy_ does.
  void write(TensorId tensor, ValueId value, const ImportCall& call);
  /// A view of `of` by one step; `loc`, name and expected type from result `index` of `call`.
  TensorId view(TensorId of, ViewStep step, const ImportCall& call, std::size_t index = 0);

  BaseId base_of(TensorId tensor) const { return tensors_[tensor].base; }
  const Base& base(BaseId id) const { return bases_[id]; }
  const Table<BaseId, Base>& bases() const { return bases_; }

  /// Appends a node as it is, its result types inferred, or else the expected ones.
  std::vector<ValueId> append(Node node, const ImportCall& call);
  /// Appends a node with these result types.
  std::vector<ValueId> append(Node node, std::vector<Type> types, const ImportCall& call);
  /// Notes where a type is not the one stated for result `index`.
  void check_expected(const Type& found, const ImportCall& call, std::size_t index);
  /// The result as the program sees it: a tensor with memory of its own, or an expression.
  ImportValue result(ValueId value);
  /// `name` if it is free or reserved but unused, else a name used nowhere in this graph.
  std::string claim_name(const std::string& name);
  /// A name that is neither used nor reserved: `name_1`, ...
  std::string fresh_name(const std::string& name);
  Error error_at(const ImportCall& call, const std::string& message) const;
  /// Every call draws new random numbers: after one that succeeded, the streams begin behind those
  /// that its ops used. Called once all nodes are there.
  void advance_random_key();
  /// Notes that `op` is not supported, and makes results of the expected types so that the import
  /// can go on to find all such ops.
  std::vector<ImportValue> unsupported(const ImportCall& call);

  Graph& graph() { return graph_; }
  sym::Arena& syms() { return *graph_.syms; }
  const std::map<std::string, Unsupported>& unsupported_ops() const { return unsupported_; }
  std::map<std::string, Unsupported>& unsupported_ops() { return unsupported_; }
  std::vector<std::string>& type_differences() { return type_differences_; }

 private:
  friend class AliasOps;
  friend class WriteOps;

  struct Tensor {
    BaseId base;
    TensorId parent;  // invalid: the whole base
    ViewStep step;    // from the parent; no op: the same elements
    Type type;
    ValueId value;  // as of `version` of the base
    u32 version = 0;
    std::string name;
    LocId loc;
  };

  TensorId alias(TensorId of, const ImportCall& call, std::size_t index = 0);
  /// From now on `tensor` means the view that `make` takes of what it meant: transpose_ and its
  /// like.
  void rebind(TensorId tensor, const std::function<TensorId(TensorId)>& make);
  std::vector<ViewStep> chain(TensorId tensor) const;
  /// The nearest tensor above, or this one, that is its parent's bytes as another dtype.
  TensorId nearest_bytes(TensorId tensor) const;
  /// Writes to `tensor`, a view of `bytes`: the parent of that gets the bytes back in its own
  /// dtype.
  void write_bytes(TensorId tensor, TensorId bytes, ValueId value, const ImportCall& call);
  std::vector<ImportValue> plain_call(const ImportCall& call);
  ValueId call_op(const std::string& op, std::vector<Arg> args, const ImportCall& call);
  Arg read_arg(const ImportArg& arg);
  /// Result types by the rules, compared with the stated ones.
  std::vector<Type> infer_types(const Node& node, const ImportCall& call);
  std::vector<ValueId> append_named(Node node, std::vector<Type> types,
                                    std::vector<std::string> names, LocId loc);
  void note_unsupported(const ImportCall& call);
  void give_random_key(Node& node, const ops::Schema& schema, const ImportCall& call);
  void adopt_symbols(std::vector<Type>& types, std::size_t first_check, std::size_t first_fact,
                     const ImportCall& call);
  bool equal(sym::Expr a, sym::Expr b);

  Graph& graph_;
  std::unordered_set<std::string> reserved_;
  std::unordered_set<std::string> used_;
  std::map<std::string, u32> suffixes_;  // the last N tried of `name_N`
  Table<BaseId, Base> bases_;
  Table<TensorId, Tensor> tensors_;
  std::unordered_set<u32> defined_symbols_;  // of role Value
  std::map<std::string, Unsupported> unsupported_;
  std::vector<std::string> type_differences_;
  const std::vector<std::pair<sym::Expr, sym::Expr>>* assumed_ = nullptr;
  bool keeps_state_ = true;
  ValueId random_key_;  // a state of the graph, made for the first op that draws without a key
  i64 random_ops_ = 0;  // with that key
};

/// Whether a FunctionalBuilder takes calls of this op; of ops that write, those of its own rows.
bool can_import(std::string_view op, const CompositeRules& composites);
/// "3 ops are not supported: aten.foo (2x, first at model.py:12), ...".
Error unsupported_error(const std::map<std::string, FunctionalBuilder::Unsupported>& ops);

}  // namespace coil
