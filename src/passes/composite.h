#pragma once
// What the rows of the decomposition table share: the arguments of a composite op by their names in
// its schema, and the vocabulary in which rows write what the op is.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "ops/schema.h"

namespace coil {

using Values = std::vector<ValueId>;
using Dims = std::vector<i64>;

/// The sizes of a tensor or the items of a list argument. How many there are is the user's affair:
/// rows read on, and BuildError says so where they are too few.
class Exprs : public std::vector<sym::Expr> {
 public:
  using vector::vector;
  Exprs(std::vector<sym::Expr> items) : vector(std::move(items)) {}  // NOLINT: the same thing
  sym::Expr& operator[](std::size_t i) { return data()[checked(i)]; }
  const sym::Expr& operator[](std::size_t i) const { return data()[checked(i)]; }
  sym::Expr& back() { return data()[checked(size() - 1)]; }
  const sym::Expr& back() const { return data()[checked(size() - 1)]; }
  void pop_back() { resize(checked(size() - 1)); }

 private:
  std::size_t checked(std::size_t i) const {
    if (i >= size())
      throw BuildError{error("a shape or list has {} items, which are too few", size())};
    return i;
  }
};

enum class KeepDim : u8 { No, Yes };

/// A composite op while a row rewrites it. Calls append nodes; those that fail throw BuildError.
/// Results are laid out as the rules of graph/ say, which is eager's way.
class Composite {
 public:
  Composite(GraphBuilder& builder, const Node& node);

  GraphBuilder& builder;
  sym::Arena& syms;

  // Arguments. Asking for a name that the schema lacks is a defect.
  const std::string& op() const { return op_; }
  std::string_view base() const { return base_name(op_); }
  /// Whether the schema has the argument, and it is not None.
  bool has(std::string_view name) const;
  const Arg& arg(std::string_view name) const;
  const std::vector<Arg>& args() const { return args_; }
  /// The first argument.
  ValueId self() const;
  ValueId tensor(std::string_view name) const;  // invalid for None
  Values tensors(std::string_view name) const;  // at least one
  sym::Expr integer(std::string_view name) const;
  Exprs integers(std::string_view name) const;  // empty for None
  /// Integers that must not be symbolic.
  i64 fixed(std::string_view name) const;
  /// The same of a number that says how many nodes or parts to make: from 0 to 65536.
  i64 count_of(std::string_view name) const;
  Dims all_fixed(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  DType dtype_or(std::string_view name, DType otherwise) const;
  /// A dim, counted from 0, of `of`; dims: all of them where None or none are given.
  i64 dim(std::string_view name, ValueId of) const;
  Dims dims(std::string_view name, ValueId of) const;
  KeepDim keep() const { return flag("keepdim") ? KeepDim::Yes : KeepDim::No; }

  // Types.
  const Type& type(ValueId v) const { return builder.type(v); }
  i64 ndim(ValueId v) const { return static_cast<i64>(type(v).ndim()); }
  DType dtype(ValueId v) const { return type(v).dtype; }
  Exprs shape(ValueId v) const { return type(v).shape; }
  sym::Expr size(ValueId v, i64 d) const { return builder.size(v, d); }
  sym::Expr count(ValueId v) const { return numel(syms, type(v).shape); }
  i64 wrap(i64 d, i64 of) const;
  sym::Expr n(i64 value) const { return syms.constant(value); }
  bool is(sym::Expr size, i64 value) const;
  bool same(sym::Expr a, sym::Expr b) const;
  bool is_contiguous(ValueId v) const;
  bool is_channels_last(ValueId v) const;
  /// The dims first..last-1 of `v` with their sizes multiplied.
  sym::Expr product(const Exprs& sizes, std::size_t first, std::size_t last) const;

  // Ops.
  ValueId call(const std::string& op, std::vector<Arg> args) {
    return builder.call(op, std::move(args));
  }
  Values call_all(const std::string& op, std::vector<Arg> args) {
    return builder.call_all(op, std::move(args));
  }
  ValueId permute(ValueId v, const Dims& order);
  ValueId transpose(ValueId v, i64 a, i64 b);
  ValueId view(ValueId v, Exprs shape);
  /// A view where strides allow one, else a view of a contiguous copy. One size may be -1.
  ValueId reshape(ValueId v, Exprs shape);
  ValueId expand(ValueId v, Exprs shape);
  ValueId unsqueeze(ValueId v, i64 d);
  ValueId squeeze(ValueId v, Dims dims);
  ValueId select(ValueId v, i64 d, sym::Expr index);
  ValueId slice(ValueId v, i64 d, sym::Expr begin, sym::Expr end);
  ValueId cat(Values values, i64 d);
  ValueId contiguous(ValueId v);
  ValueId to(ValueId v, DType dtype);
  /// `shape` filled with zeros (or ones) of a dtype.
  ValueId filled(Exprs shape, double value, DType dtype);
  Arg scalar(double value, DType dtype) const;

  /// `op`.Tensor or `op`.Scalar, by what b is.
  ValueId binary(const std::string& op, ValueId a, Arg b);
  ValueId add(ValueId a, Arg b) { return binary("add", a, std::move(b)); }
  ValueId sub(ValueId a, Arg b) { return binary("sub", a, std::move(b)); }
  ValueId mul(ValueId a, Arg b) { return binary("mul", a, std::move(b)); }
  ValueId div(ValueId a, Arg b) { return binary("div", a, std::move(b)); }
  ValueId eq(ValueId a, Arg b) { return binary("eq", a, std::move(b)); }
  ValueId ne(ValueId a, Arg b) { return binary("ne", a, std::move(b)); }
  ValueId where(ValueId condition, ValueId yes, double no);
  ValueId sum(ValueId v) { return call("sum", {v}); }
  ValueId sum(ValueId v, const Dims& dims, KeepDim keep);
  ValueId mean(ValueId v, const Dims& dims, KeepDim keep);
  /// The values expanded to their broadcast shape.
  Values broadcast_all(const Values& values);
  Exprs as_exprs(const Dims& values) const;
  /// The promoted dtype of tensors, as pointwise ops over them have it.
  DType common_dtype(const Values& values) const;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw BuildError{error(text, std::forward<Args>(args)...)};
  }

 private:
  // Copies: the graph's tables grow while a row runs.
  std::string op_;
  std::vector<Arg> args_;
  ops::Schema schema_;
};

/// The results of the op in terms of simpler ops.
using Decomposition = Values (*)(Composite& c);
struct DecompositionRow {
  std::string_view op;
  Decomposition rewrite;
};

// One table a family.
std::span<const DecompositionRow> matrix_decompositions();
std::span<const DecompositionRow> einsum_decompositions();
std::span<const DecompositionRow> grouped_decompositions();
std::span<const DecompositionRow> conv_decompositions();
std::span<const DecompositionRow> norm_decompositions();
std::span<const DecompositionRow> view_decompositions();
std::span<const DecompositionRow> split_decompositions();
std::span<const DecompositionRow> create_decompositions();
std::span<const DecompositionRow> loss_decompositions();
std::span<const DecompositionRow> pointwise_decompositions();
std::span<const DecompositionRow> reduce_decompositions();
std::span<const DecompositionRow> index_decompositions();
std::span<const DecompositionRow> scatter_decompositions();
std::span<const DecompositionRow> segment_decompositions();
std::span<const DecompositionRow> embedding_bag_decompositions();
std::span<const DecompositionRow> unique_decompositions();
std::span<const DecompositionRow> pool_decompositions();
std::span<const DecompositionRow> attention_decompositions();
std::span<const DecompositionRow> linalg_decompositions();
std::span<const DecompositionRow> histogram_decompositions();
std::span<const DecompositionRow> distance_decompositions();
std::span<const DecompositionRow> random_decompositions();

/// Every op X_copy where X is a view op is X and then a copy: one function for them all; null for
/// other ops.
Decomposition view_copy_of(std::string_view op);
std::span<const DecompositionRow> fft_decompositions();
std::span<const DecompositionRow> stft_decompositions();

/// Core ops on the parts of complex numbers.
std::span<const DecompositionRow> complex_part_decompositions();
/// The row of a core op that has complex operands or a complex result, or null.
Decomposition find_complex_decomposition(const Graph& graph, const Node& node);
/// The row of an op, or null.
Decomposition find_decomposition(std::string_view op);
std::vector<std::string_view> decomposed_ops();
/// Whether lowering takes the op as it is: it has a row in the tables of ops/, and none here.
bool is_core_op(std::string_view op);

/// Whether the node is an index.Tensor or index_put with a mask, which its row rewrites; with
/// integer indices these ops are core.
bool indexes_by_mask(const Graph& graph, const Node& node);
/// Whether an op is core but for nodes that computes_in_f32 names.
bool may_compute_in_f32(std::string_view op);
/// Whether the node is a linalg_matrix_exp of half floats, or a factorisation without elements, of
/// which eager takes any dtype: their row computes in f32.
bool computes_in_f32(const Graph& graph, const Node& node);
/// Whether the node is an attention with dropout, which its row rewrites.
bool drops_attention(const Node& node);

// Pieces that rows of several families use.

/// torch.matmul, with eager's rules of when to fold batch dims into rows.
ValueId matmul(Composite& c, ValueId a, ValueId b);
/// beta * self + alpha * product, both factors left out where they are 1; a beta of 0 ignores self.
ValueId scaled_sum(Composite& c, ValueId product);
ValueId linear(Composite& c, ValueId input, ValueId weight, ValueId bias);
/// Softmax over a dim (the op's base name: _softmax or _log_softmax), in `dtype`.
ValueId softmax(Composite& c, const std::string& op, ValueId v, i64 dim, DType dtype);
/// For each position 0..count-1 how many of `starts`, along their last dim and each in 0..count,
/// are at or before it.
ValueId starts_before(Composite& c, ValueId starts, sym::Expr count);
/// `v` with at least 1, 2 or 3 dims, new ones where atleast_1d, _2d and _3d have them.
ValueId at_least(Composite& c, ValueId v, i64 dims);
/// A loss reduced as asked: 0 none, 1 mean, 2 sum.
ValueId reduced(Composite& c, ValueId loss, i64 reduction);

}  // namespace coil
