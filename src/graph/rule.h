#pragma once
// What the rule files of this folder share: a node as its rule reads it, and the registry's rows.

#include <span>
#include <string_view>
#include <vector>

#include "graph/args.h"
#include "graph/graph.h"
#include "graph/rules.h"
#include "ops/schema.h"

namespace coil {

using Types = std::vector<Type>;
using Sizes = std::vector<sym::Expr>;

/// A node with its schema. Its arguments have been checked against the schema, so that the
/// accessors by name find the kind that they give back; they are called with names of the op's
/// schema only.
class Call {
 public:
  Call(Graph& g, const Node& n, const ops::Schema& s)
      : graph(g), node(n), schema(s), syms(*g.syms), op_(n.op) {}

  Graph& graph;
  const Node& node;
  const ops::Schema& schema;
  sym::Arena& syms;

  const std::string& op() const { return op_; }
  std::string_view base() const { return base_name(op_); }
  /// Whether the schema has the argument, and it is not None.
  bool has(std::string_view name) const;
  const Arg& arg(std::string_view name) const;
  const Type& tensor(std::string_view name) const;
  Types tensors(std::string_view name) const;
  const Type& self() const;  // the first argument
  sym::Expr integer(std::string_view name) const { return std::get<sym::Expr>(arg(name)); }
  const Sizes& sizes(std::string_view name) const { return std::get<Sizes>(arg(name)); }
  bool flag(std::string_view name) const;
  const std::string& word(std::string_view name) const { return std::get<std::string>(arg(name)); }
  DType dtype(std::string_view name, DType otherwise) const;
  MemoryFormat format(std::string_view name, MemoryFormat otherwise) const;

  /// An integer that must not be symbolic.
  Result<i64> constant(std::string_view name) const;
  Result<std::vector<i64>> constants(std::string_view name) const;
  /// A dim of a tensor of `ndim` dims, counted from 0.
  Result<i64> dim(std::string_view name, std::size_t ndim) const;
  Result<std::vector<i64>> dims(std::string_view name, std::size_t ndim) const;

  sym::Expr number(i64 value) const { return syms.constant(value); }
  Type contiguous(DType dtype, Sizes shape) const;
  Type strided(DType dtype, Sizes shape, Sizes strides) const;
  template <class... Args>
  Error fail(fmt::format_string<Args...> text, Args&&... args) const {
    return in_context(op_, error(text, std::forward<Args>(args)...));
  }
  /// The result, or its Error with the op's name before it.
  template <class T>
  Result<T> named(Result<T> result) const {
    if (result.ok()) return result;
    return in_context(op_, result.error());
  }
  Status sizes_agree(sym::Expr a, sym::Expr b) const {
    return named(require_equal(graph, a, b, "sizes"));
  }
  std::string shape_text(std::span<const sym::Expr> shape) const;

 private:
  const std::string& op_;
};

using Rule = Result<Types> (*)(const Call& call);
struct RuleRow {
  std::string_view op;
  Rule rule;
};

// One table a family.
std::span<const RuleRow> pointwise_rules();
std::span<const RuleRow> view_rules();
std::span<const RuleRow> reshape_rules();
std::span<const RuleRow> reduce_rules();
std::span<const RuleRow> create_rules();
std::span<const RuleRow> copy_rules();
std::span<const RuleRow> matrix_rules();
std::span<const RuleRow> norm_rules();
std::span<const RuleRow> pool_rules();
std::span<const RuleRow> index_rules();
std::span<const RuleRow> recurrence_rules();
std::span<const RuleRow> linalg_rules();
std::span<const RuleRow> fft_rules();

/// Ops of which is_own_op holds.
Result<Types> infer_own_op(Graph& graph, const Node& node);

/// `dim` of `ndim` dims counted from 0; 0-d tensors take dims as if they had one.
Result<i64> wrap_dim(i64 dim, std::size_t ndim);
/// What the prover knows of sizes. Like torch, it takes a dynamic size of unknown value not to
/// be 1.
bool known_equal(Graph& graph, sym::Expr a, sym::Expr b);
bool known_value(Graph& graph, sym::Expr size, i64 value);
/// Whether a tensor is known to have no elements: eager then asks less of it.
bool known_empty(Graph& graph, const Type& type);
bool known_less(Graph& graph, sym::Expr a, sym::Expr b);
bool known_less_equal(Graph& graph, sym::Expr a, sym::Expr b);
/// Below 0, 0 or above 0: which of two strides is the smaller, as far as it is known; a stride that
/// is a multiple of another counts as larger, since torch takes dynamic sizes to be at least 2.
int compare_strides(Graph& graph, sym::Expr a, sym::Expr b);
/// min and max that fold where the prover can tell.
sym::Expr smaller(Graph& graph, sym::Expr a, sym::Expr b);
sym::Expr larger(Graph& graph, sym::Expr a, sym::Expr b);
/// A new variable of role Value with a name that is not yet in the arena: u0, u1, ...
sym::Expr data_variable(Graph& graph, sym::Range range);
/// Whether torch takes the layout for channels_last when it chooses that of a result.
bool suggests_channels_last(Graph& graph, const Type& type);
/// channels_last strides of a 4-d or 5-d tensor; contiguous ones of others.
Sizes channels_last_strides(Graph& graph, const Type& type);
/// The shape without `dims`, or with 1 there.
Sizes reduced_shape(const Call& call, const Type& self, std::span<const i64> dims, bool keep);

}  // namespace coil
