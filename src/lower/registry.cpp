#include "lower/registry.h"

#include <algorithm>
#include <array>

#include "lower/pointwise.h"

namespace coil::lowering {
namespace {

struct Row {
  std::string_view op;
  LowerFn lower;
};

// clang-format off
constexpr Row kRows[] = {
    // views
    {"view", lower_view}, {"_unsafe_view", lower_view}, {"reshape", lower_view},
    {"permute", lower_view}, {"t", lower_view}, {"transpose.int", lower_view},
    {"expand", lower_view}, {"select.int", lower_view}, {"slice.Tensor", lower_view},
    {"unsqueeze", lower_view}, {"squeeze.dims", lower_view}, {"squeeze.dim", lower_view},
    {"squeeze", lower_view}, {"diagonal", lower_view}, {"unfold", lower_view},
    {"as_strided", lower_view}, {"alias", lower_view}, {"detach", lower_view},
    {"view_as_real", lower_view}, {"view_as_complex", lower_view},
    {"real", lower_view}, {"imag", lower_view}, {"lift_fresh_copy", lower_view},
    {"split_with_sizes", lower_split}, {"unbind.int", lower_split}, {"split.Tensor", lower_split},
    {"view.dtype", lower_bitcast_view},
    // reductions
    {"sum", lower_sum}, {"sum.dim_IntList", lower_sum},
    {"mean", lower_mean}, {"mean.dim", lower_mean},
    {"prod", lower_prod}, {"prod.dim_int", lower_prod},
    {"amax", lower_amax}, {"amin", lower_amin}, {"max", lower_amax}, {"min", lower_amin},
    {"any", lower_any}, {"any.dim", lower_any}, {"any.dims", lower_any},
    {"all", lower_all}, {"all.dim", lower_all}, {"all.dims", lower_all},
    {"argmax", lower_argmax}, {"argmin", lower_argmin},
    {"max.dim", lower_max_dim}, {"min.dim", lower_min_dim},
    {"var.correction", lower_variance}, {"var_mean.correction", lower_variance},
    {"std.correction", lower_variance}, {"std_mean.correction", lower_variance},
    {"logsumexp", lower_logsumexp}, {"linalg_vector_norm", lower_vector_norm},
    {"cumsum", lower_cumsum}, {"cumprod", lower_cumprod},
    // normalisation
    {"_softmax", lower_softmax}, {"_log_softmax", lower_log_softmax},
    {"native_layer_norm", lower_layer_norm}, {"native_group_norm", lower_group_norm},
    {"_native_batch_norm_legit_no_training", lower_batch_norm_inference},
    {"_native_batch_norm_legit_functional", lower_batch_norm_training},
    // structured
    {"mm", lower_mm}, {"bmm", lower_mm}, {"addmm", lower_addmm}, {"baddbmm", lower_addmm},
    {"convolution", lower_convolution}, {"scaled_dot_product_attention", lower_attention},
    // indexing
    {"embedding", lower_embedding}, {"index.Tensor", lower_index}, {"index_put", lower_index_put},
    {"gather", lower_gather}, {"scatter.src", lower_scatter}, {"scatter.value", lower_scatter},
    {"scatter.reduce", lower_scatter}, {"scatter.value_reduce", lower_scatter},
    {"scatter_add", lower_scatter_add}, {"scatter_reduce.two", lower_scatter_reduce},
    {"index_select", lower_index_select}, {"index_add", lower_index_add},
    {"index_copy", lower_index_copy}, {"index_fill.int_Scalar", lower_index_fill},
    {"index_fill.int_Tensor", lower_index_fill}, {"nonzero", lower_nonzero},
    {"_local_scalar_dense", lower_item}, {"item", lower_item},
    // copies
    {"cat", lower_cat}, {"constant_pad_nd", lower_constant_pad}, {"flip", lower_flip},
    {"roll", lower_roll}, {"repeat", lower_repeat}, {"tril", lower_tril}, {"triu", lower_triu},
    {"reflection_pad1d", lower_reflection_pad}, {"reflection_pad2d", lower_reflection_pad},
    {"reflection_pad3d", lower_reflection_pad}, {"replication_pad1d", lower_replication_pad},
    {"replication_pad2d", lower_replication_pad}, {"replication_pad3d", lower_replication_pad},
    // creation
    {"full", lower_full}, {"full_like", lower_full}, {"scalar_tensor", lower_full},
    {"empty.memory_format", lower_empty}, {"empty_like", lower_empty},
    {"empty_strided", lower_empty}, {"new_empty", lower_empty}, {"empty_permuted", lower_empty},
    {"new_empty_strided", lower_empty},
    {"arange", lower_arange}, {"arange.start", lower_arange}, {"arange.start_step", lower_arange},
    {"linspace", lower_linspace}, {"eye", lower_eye}, {"eye.m", lower_eye},
    // pooling
    {"max_pool2d_with_indices", lower_max_pool}, {"max_pool3d_with_indices", lower_max_pool},
    {"avg_pool1d", lower_avg_pool}, {"avg_pool2d", lower_avg_pool}, {"avg_pool3d", lower_avg_pool},
    {"_adaptive_avg_pool2d", lower_adaptive_avg_pool},
    {"_adaptive_avg_pool3d", lower_adaptive_avg_pool},
    {"adaptive_max_pool2d", lower_adaptive_max_pool},
    // resampling
    {"upsample_nearest1d.vec", lower_upsample_nearest},
    {"upsample_nearest2d.vec", lower_upsample_nearest},
    {"upsample_nearest3d.vec", lower_upsample_nearest},
    {"_upsample_nearest_exact1d.vec", lower_upsample_nearest},
    {"_upsample_nearest_exact2d.vec", lower_upsample_nearest},
    {"_upsample_nearest_exact3d.vec", lower_upsample_nearest},
    {"upsample_nearest1d", lower_upsample_nearest}, {"upsample_nearest2d", lower_upsample_nearest},
    {"upsample_nearest3d", lower_upsample_nearest},
    {"_upsample_nearest_exact1d", lower_upsample_nearest},
    {"_upsample_nearest_exact2d", lower_upsample_nearest},
    {"_upsample_nearest_exact3d", lower_upsample_nearest},
    {"upsample_linear1d.vec", lower_upsample_linear}, {"upsample_linear1d", lower_upsample_linear},
    {"upsample_bilinear2d.vec", lower_upsample_linear},
    {"upsample_bilinear2d", lower_upsample_linear},
    {"upsample_trilinear3d.vec", lower_upsample_linear},
    {"upsample_trilinear3d", lower_upsample_linear},
    {"upsample_bicubic2d.vec", lower_upsample_bicubic},
    {"upsample_bicubic2d", lower_upsample_bicubic},
    {"grid_sampler_2d", lower_grid_sampler},
    // order
    {"sort", lower_sort}, {"sort.stable", lower_sort}, {"topk", lower_topk},
    // recurrence
    {"lstm.input", lower_lstm}, {"gru.input", lower_gru}, {"rnn_tanh.input", lower_rnn},
    {"rnn_relu.input", lower_rnn},
    // complex
    {"complex", lower_complex_make}, {"polar", lower_polar},
    // random
    {"rand", lower_random}, {"randn", lower_random}, {"rand_like", lower_random},
    {"randn_like", lower_random}, {"randint", lower_random}, {"randint.low", lower_random},
    {"randperm", lower_random}, {"bernoulli", lower_random}, {"bernoulli.p", lower_random},
    {"native_dropout", lower_random}, {"dropout", lower_random}, {"multinomial", lower_random},
    {"normal_functional", lower_random}, {"uniform", lower_random}, {"exponential", lower_random},
};
// clang-format on

}  // namespace

LowerFn find_lowering(std::string_view op) {
  if (pointwise_formula(op)) return lower_pointwise;
  for (const Row& row : kRows)
    if (row.op == op) return row.lower;
  return nullptr;
}

std::vector<std::string_view> lowered_ops() {
  std::vector<std::string_view> all = pointwise_ops();
  for (const Row& row : kRows) all.push_back(row.op);
  std::sort(all.begin(), all.end());
  return all;
}

Status lower_random(Lowering& l, const Node&, const Args&) {
  return l.unsupported_case("coil has no random numbers yet; make them outside and pass them in");
}

}  // namespace coil::lowering
