#pragma once
// Shape, stride and dtype rules: the result types of an op from its arguments.

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace coil {

/// What a layer above (passes/) adds to the rules of this folder: types of composite ops, found by
/// running their decomposition in a scratch graph. One constant object of static lifetime, to which
/// `Graph::composites` points; whoever makes a Graph (import/, driver/) sets it.
struct CompositeRules {
  bool (*handles)(std::string_view op);
  Result<std::vector<Type>> (*types)(Graph& graph, const Node& node);
};

/// Result types of `node` (all but `outs` filled in), with eager's strides. One rule a row of the
/// registry in rules.cpp; an op without one is asked of `graph.composites`. An Error says what does
/// not fit, or that the op is unknown. Sizes that depend on data become fresh variables of role
/// Value (u0, ...). Sizes that must agree, but of which the prover cannot tell, are added to
/// `graph.checks`.
Result<std::vector<Type>> infer(Graph& graph, const Node& node);

/// Whether some rule of this folder handles this op.
bool has_rule(std::string_view op);
/// The same, or a composite rule of `graph`.
bool has_rule(const Graph& graph, std::string_view op);
/// Coil's own ops and control flow, which have no schema: update, cond, while_loop, scan.
bool is_own_op(std::string_view op);
/// Every op with a rule in this folder, sorted.
std::vector<std::string> ops_with_rules();
/// Whether the op always is a view of its first argument (permute, slice.Tensor, view, ...). Ops
/// that alias or copy, as strides allow (reshape, contiguous, ...), are not.
bool is_view_op(std::string_view op);

/// PyTorch's promotion among tensors of dimension > 0, 0-d tensors and Python scalars.
struct Promotion {
  std::vector<Type> tensors;
  std::vector<DType>
      scalars;  // i64, f64 (any Python float), b8, c128: categories of Python scalars
};
DType promote(const Promotion& operands);
/// Promotion of two dtypes of one kind of operand.
DType promote(DType a, DType b);
/// Broadcast shape of all operands; an Error names the sizes that do not fit.
Result<std::vector<sym::Expr>> broadcast(Graph& graph, std::span<const Type> operands);
/// The same of two shapes.
Result<std::vector<sym::Expr>> broadcast(Graph& graph, std::span<const sym::Expr> a,
                                         std::span<const sym::Expr> b);
/// TensorIterator's layout of a pointwise result over these operands.
std::vector<sym::Expr> pointwise_strides(Graph& graph, std::span<const Type> operands,
                                         std::span<const sym::Expr> shape);
/// Layout of a copy of `like` that asks for `format` (clone, contiguous, empty_like, to).
std::vector<sym::Expr> strides_for(Graph& graph, const Type& like, MemoryFormat format);
/// Whether `type` provably has the strides of a contiguous tensor, or of a channels_last one.
bool is_contiguous(Graph& graph, const Type& type);
bool is_channels_last(Graph& graph, const Type& type);
/// Provably without gaps or overlap between its elements.
bool is_dense(Graph& graph, const Type& type);
/// Strides of `view(shape)` (no -1 in it) of a tensor; nothing where only a copy can have the
/// shape.
std::optional<std::vector<sym::Expr>> view_strides(Graph& graph, const Type& of,
                                                   std::span<const sym::Expr> shape);
/// `shape` with its one -1 replaced, or an Error where the element counts cannot agree.
Result<std::vector<sym::Expr>> complete_shape(Graph& graph, std::span<const sym::Expr> of,
                                              std::vector<sym::Expr> shape);
/// Adds to `graph.checks` that a == b, unless that is provable; an Error if it is provably false.
Status require_equal(Graph& graph, sym::Expr a, sym::Expr b, std::string_view what);

}  // namespace coil
