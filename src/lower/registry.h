#pragma once
// Which function lowers which op: the rows of ops/lowered.def.

#include <string_view>

#include "lower/args.h"
#include "lower/context.h"

namespace coil::lowering {

/// Lowers the present node: appends bodies and sets every result.
using LowerFn = Status (*)(Lowering& l, const Node& node, const Args& args);

/// The function of an op of ATen, elementwise ones included; null if it has no row.
LowerFn find_lowering(std::string_view op);
/// Whether it handles the last dim that complex tensors have here; all other ops of complex tensors
/// are rewritten at level 0.
bool takes_complex(LowerFn lower);

// One function a family member, each beside its family.
// clang-format does not settle on one layout of this list.
// clang-format off
#define COIL_LOWERINGS(X) \
  X(pointwise) X(view) X(split) X(bitcast_view) X(sum) X(mean) X(prod) X(amax) X(amin) X(any) \
  X(all) X(argmax) X(argmin) X(max_dim) X(min_dim) X(variance) X(logsumexp) X(vector_norm) \
  X(cumsum) X(cumprod) X(cummax) X(cummin) X(hash_tensor) X(nonzero_static) X(softmax) \
  X(log_softmax) X(layer_norm) X(group_norm) X(batch_norm_inference) X(batch_norm_training) \
  X(mm) X(addmm) X(convolution) X(attention) X(softmax_attention) X(embedding) X(index) \
  X(index_put) X(gather) X(scatter) X(scatter_add) X(scatter_reduce) X(index_select) \
  X(index_add) X(index_copy) X(index_fill) X(nonzero) X(item) X(cat) X(constant_pad) X(flip) \
  X(roll) X(repeat) X(reflection_pad) X(replication_pad) X(tril) X(triu) X(full) X(empty) \
  X(arange) X(linspace) X(eye) X(max_pool) X(avg_pool) X(adaptive_avg_pool) \
  X(adaptive_max_pool) X(upsample) X(upsample_antialias) X(upsample_backward) \
  X(upsample_antialias_backward) X(grid_sampler) \
  X(sort) X(topk) X(lstm) X(gru) X(rnn) X(fft) X(random_bits) X(cholesky) X(lu_factor) \
  X(lu_unpack) X(lu_solve) X(solve_triangular) X(ldl_factor) X(ldl_solve) X(qr) X(reflectors) \
  X(eigh) X(eig) X(svd) X(matrix_exp) X(logcumsumexp) X(frexp) X(grid_sampler_backward) \
  X(avg_pool_backward) X(adaptive_avg_pool_backward) X(col2im) X(fractional_max_pool)
// clang-format on
#define X(name) Status lower_##name(Lowering& l, const Node& node, const Args& args);
COIL_LOWERINGS(X)
#undef X

// coil's own ops have no schema.
Status lower_update(Lowering& l, const Node& node);
Status lower_cond(Lowering& l, const Node& node);
Status lower_while(Lowering& l, const Node& node);
Status lower_scan(Lowering& l, const Node& node);

/// What the elements of a tensor are: Pair, the two parts of complex numbers, along a last dim of 2
/// that its accesses have and the dims of level 0 do not count.
enum class Element : u8 { Single, Pair };
inline Element element_of(const Type& type) {
  return is_complex(type.dtype) ? Element::Pair : Element::Single;
}

/// A view op. `shape` is the result's shape where it is known (a node's type); it takes precedence
/// over the shape that follows from the arguments.
struct View {
  std::string_view op;
  const Args& args;
  Element element = Element::Single;  // of what is viewed
  const Exprs* shape = nullptr;
};
/// What the elements of the result are.
Element element_after(const View& view);
Result<Access> apply_view(Lowering& l, const View& view, const Access& in);

}  // namespace coil::lowering
