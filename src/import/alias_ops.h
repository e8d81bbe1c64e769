#pragma once
// Ops whose result may share memory with an argument: views, and composites that are a view or a
// copy as the strides allow. What comes out are view steps of a small set: view, permute, expand,
// select.int, slice.Tensor, unsqueeze, squeeze.dims, diagonal, unfold, as_strided, view.dtype,
// view_as_real, view_as_complex.

#include "graph/einsum.h"
#include "import/functionalize.h"

namespace coil {

class AliasOps {
 public:
  AliasOps(FunctionalBuilder& builder, const ImportCall& call) : builder_(builder), call_(call) {}

  /// The results; nothing where the op is none of these.
  std::optional<std::vector<ImportValue>> run();
  /// Whether the op has a row here.
  static bool handles(std::string_view op) { return find(op) != nullptr; }

 private:
  using Results = std::vector<ImportValue>;
  using Exprs = std::vector<sym::Expr>;
  struct Row {
    std::string_view op;  // a full name; "name.*" for all overloads
    Results (AliasOps::*resolve)();
  };
  static const Row* find(std::string_view op);

  // alias_ops.cpp: the rows
  Results same();
  Results same_in_evaluation();
  Results only_one();
  Results contiguous();
  Results to_dtype();
  Results to_device();
  Results to_dtype_layout();
  Results to_other();
  Results type_as();
  Results reshape();
  Results reshape_like();
  Results ravel();
  Results flatten();
  Results unflatten();
  Results expand();
  Results expand_like();
  Results broadcast_tensors();
  Results meshgrid();
  Results view_dtype();
  Results view_as_real();
  Results view_as_complex();
  Results real();
  Results imag();
  Results conj();
  TensorId memory_of(TensorId self);
  Results as_strided();
  Results as_strided_copy();
  Results as_strided_scatter();

  // alias_dims.cpp: rows that choose or reorder dims
  Results transpose();
  Results transpose_last();
  Results reverse_dims();
  Results permute();
  /// How an einsum that is a view of its one tensor, and sums nothing, places the dims.
  std::optional<EinsumOperand> view_of_einsum();
  Results einsum();
  Results movedim();
  Results select();
  Results slice();
  Results narrow();
  Results unsqueeze();
  Results squeeze();
  Results diagonal();
  Results unfold();
  Results chunk();
  Results split();
  Results split_sizes();
  Results tensor_split();
  Results axis_split();
  Results unbind();
  Results at_least();
  Results at_least_each();

  // Arguments, by position. An Error where one is of another kind.
  TensorId tensor(std::size_t i) const;
  std::vector<TensorId> tensors(std::size_t i) const;
  const Arg& arg(std::size_t i) const;
  bool is_none(std::size_t i) const { return std::holds_alternative<None>(arg(i)); }
  sym::Expr expr(std::size_t i) const;
  i64 integer(std::size_t i) const;
  Exprs exprs(std::size_t i) const;
  std::vector<i64> integers(std::size_t i) const;
  bool flag(std::size_t i) const;
  Type type() const { return builder_.type(tensor(0)); }
  i64 ndim() const { return static_cast<i64>(type().ndim()); }
  /// `dim` in 0..ndim-1, an Error where there is no such dim. A 0-d tensor counts as one of 1 dim.
  i64 wrap(i64 dim, i64 count) const;
  i64 dim(std::size_t i) const { return wrap(integer(i), ndim()); }

  // Steps.
  TensorId step(TensorId of, std::string op, std::vector<Arg> args, std::size_t result = 0);
  TensorId permuted(TensorId of, const std::vector<i64>& order, std::size_t result = 0);
  TensorId sliced(TensorId of, i64 dim, sym::Expr start, sym::Expr end, std::size_t result);
  TensorId reshaped(TensorId of, Exprs shape, std::size_t result = 0);
  TensorId expanded(TensorId of, Exprs shape, std::size_t result = 0);
  TensorId with_dims(TensorId of, std::size_t result);
  TensorId squeezed(TensorId of, const std::vector<i64>& dims);
  Results pieces(i64 dim, const Exprs& starts, const Exprs& ends);
  /// `to` of any form: an alias where nothing changes, else a copy.
  Results converted(DType dtype, bool copy, const Arg& memory_format);
  bool has_format(const Type& type, const Arg& memory_format);
  /// `op` on `of` with these arguments after it, a tensor with memory of its own.
  ImportValue copied(const std::string& op, TensorId of, std::vector<Arg> args);
  Results split_at(i64 dim, const Exprs& inner_bounds);
  Results split_evenly(i64 dim, sym::Expr each);
  Results one(ImportValue value) const { return {std::move(value)}; }

  FunctionalBuilder& builder_;
  const ImportCall& call_;
};

}  // namespace coil
