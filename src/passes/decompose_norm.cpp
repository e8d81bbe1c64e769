// Normalisations and softmax.

#include <limits>

#include "graph/rule.h"
#include "passes/composite.h"

namespace coil {
namespace {

Values inference_batch_norm(Composite& c) {
  return c.call_all("_native_batch_norm_legit_no_training",
                    {c.tensor("input"), c.arg("weight"), c.arg("bias"), c.arg("running_mean"),
                     c.arg("running_var"), c.arg("momentum"), c.arg("eps")});
}

/// Output, mean and inverse deviation of the batch. Without running statistics, made-up ones are
/// updated and dropped.
Values training_batch_norm(Composite& c) {
  const ValueId input = c.tensor("input");
  const bool has_statistics = c.op() != "_native_batch_norm_legit.no_stats" &&
                              c.has("running_mean") && c.has("running_var");
  ValueId mean, variance;
  if (has_statistics) {
    mean = c.tensor("running_mean");
    variance = c.tensor("running_var");
  } else {
    const DType dtype = c.dtype(input);
    mean = c.filled({c.size(input, 1)}, 0, dtype);
    variance = c.filled({c.size(input, 1)}, 1, dtype);
  }
  Values out = c.call_all("_native_batch_norm_legit_functional",
                          {input, c.arg("weight"), c.arg("bias"), mean, variance, true,
                           c.arg("momentum"), c.arg("eps")});
  out.resize(3);
  return out;
}

/// Eager computes nothing of an input without elements, but has the result depend on the first
/// rows of weight and bias, whose sizes it does not look at.
Values batch_norm_of_nothing(Composite& c) {
  ValueId out = c.call("clone", {c.tensor("input")});
  const auto first = [&](std::string_view name) {
    return c.call("select.int", {c.tensor(name), c.n(0), c.n(0)});
  };
  if (c.has("weight")) out = c.mul(out, first("weight"));
  if (c.has("bias")) out = c.add(out, first("bias"));
  return {out};
}

Values batch_norm(Composite& c) {
  if (known_empty(c.builder.graph(), c.type(c.tensor("input")))) return batch_norm_of_nothing(c);
  return {(c.flag("training") ? training_batch_norm(c) : inference_batch_norm(c)).at(0)};
}

Values native_batch_norm(Composite& c) {
  return c.flag("training") ? training_batch_norm(c) : inference_batch_norm(c);
}

/// The reserve is of other libraries' use, and empty.
Values batch_norm_with_update(Composite& c) {
  Values out =
      c.call_all("_native_batch_norm_legit_functional",
                 {c.tensor("input"), c.arg("weight"), c.arg("bias"), c.tensor("running_mean"),
                  c.tensor("running_var"), true, c.arg("momentum"), c.arg("eps")});
  out.insert(out.begin() + 3, c.filled({c.n(0)}, 0, DType::u8));
  return out;
}

Values layer_norm(Composite& c) {
  return {c.call_all("native_layer_norm", {c.tensor("input"), c.arg("normalized_shape"),
                                           c.arg("weight"), c.arg("bias"), c.arg("eps")})
              .at(0)};
}

Values group_norm(Composite& c) {
  ValueId input = c.tensor("input");
  if (c.ndim(input) < 2) c.fail("the input must have at least 2 dims");
  if (!c.is_channels_last(input)) input = c.contiguous(input);
  const Exprs shape = c.shape(input);
  return {c.call_all("native_group_norm",
                     {input, c.arg("weight"), c.arg("bias"), shape[0], shape[1],
                      c.product(shape, 2, shape.size()), c.arg("num_groups"), c.arg("eps")})
              .at(0)};
}

/// One value a channel, repeated for each image.
Arg repeated(Composite& c, std::string_view name, sym::Expr times) {
  if (!c.has(name)) return None{};
  return c.call("repeat", {c.tensor(name), Exprs{times}});
}

/// A batch norm of one image whose channels are all channels of all images.
Values instance_norm(Composite& c) {
  const ValueId input = c.tensor("input");
  if (c.ndim(input) < 2) c.fail("the input must have at least 2 dims");
  const Exprs shape = c.shape(input);
  Exprs merged = shape;
  merged[0] = c.n(1);
  merged[1] = c.syms.mul(shape[0], shape[1]);
  const ValueId channels = c.view(c.contiguous(input), merged);
  const ValueId out = c.call(
      "batch_norm", {channels, repeated(c, "weight", shape[0]), repeated(c, "bias", shape[0]),
                     repeated(c, "running_mean", shape[0]), repeated(c, "running_var", shape[0]),
                     c.flag("use_input_stats"), c.arg("momentum"), c.arg("eps"), false});
  return {c.reshape(out, shape)};
}

/// Of the dtype that the norm is computed in.
double machine_epsilon(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

struct RootMeanSquare {
  ValueId normalised, scale;
};

/// Results are contiguous, or in channels_last, whatever else the input's layout is.
RootMeanSquare root_mean_square(Composite& c) {
  ValueId input = c.tensor("input");
  if (!suggests_channels_last(c.builder.graph(), Type(c.type(input)))) input = c.contiguous(input);
  const DType computed_in = compute_dtype(c.dtype(input));
  const double epsilon = c.has("eps") ? c.real("eps") : machine_epsilon(computed_in);
  const i64 count = static_cast<i64>(c.integers("normalized_shape").size());
  if (count == 0 || count > c.ndim(input)) c.fail("normalized_shape does not fit the input");
  Dims dims;
  for (i64 d = c.ndim(input) - count; d < c.ndim(input); ++d) dims.push_back(d);
  const ValueId wide = c.to(input, computed_in);
  const ValueId square = c.call("pow.Tensor_Scalar", {wide, c.n(2)});
  const ValueId scale = c.call("rsqrt", {c.add(c.mean(square, dims, KeepDim::Yes), epsilon)});
  ValueId out = c.mul(wide, scale);
  if (c.has("weight")) out = c.mul(out, c.tensor("weight"));
  return {c.to(out, c.dtype(input)), scale};
}

Values rms_norm(Composite& c) { return {root_mean_square(c).normalised}; }

Values fused_rms_norm(Composite& c) {
  const RootMeanSquare out = root_mean_square(c);
  return {out.normalised, c.contiguous(out.scale)};
}

Values softmax_int(Composite& c) {
  const std::string op =
      c.base().find("log_") == std::string_view::npos ? "_softmax" : "_log_softmax";
  const DType dtype = c.dtype_or("dtype", c.dtype(c.self()));
  return {softmax(c, op, c.self(), c.dim("dim", c.self()), dtype)};
}

/// A row of minus infinities gives zeros.
Values safe_softmax(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  const ValueId out = softmax(c, "_softmax", c.self(), dim, c.dtype_or("dtype", c.dtype(c.self())));
  const ValueId masked = c.binary("eq", c.self(), -std::numeric_limits<double>::infinity());
  const ValueId rows = c.call("all.dim", {masked, c.n(dim), true});
  return {c.call("where.self", {rows, c.filled({}, 0, c.dtype(out)), out})};
}

/// v * (g / norm(v)), norms over all dims but `dim`.
Values weight_norm(Composite& c) {
  const ValueId v = c.tensor("v");
  const i64 dim = c.fixed("dim");
  Dims dims;
  for (i64 d = 0; d < c.ndim(v); ++d)
    if (dim == -1 || d != c.wrap(dim, c.ndim(v))) dims.push_back(d);
  const ValueId norm = c.call("linalg_vector_norm", {v, c.n(2), c.as_exprs(dims), dim != -1});
  return {c.mul(v, c.div(c.tensor("g"), norm))};
}

Values weight_norm_interface(Composite& c) {
  const ValueId v = c.tensor("v");
  const i64 dim = c.dim("dim", v);
  Dims dims;
  for (i64 d = 0; d < c.ndim(v); ++d)
    if (d != dim) dims.push_back(d);
  const ValueId norm = c.call("linalg_vector_norm", {v, c.n(2), c.as_exprs(dims), true});
  return {c.mul(v, c.div(c.tensor("g"), norm)), norm};
}

constexpr DecompositionRow kRows[] = {
    {"batch_norm", batch_norm},
    {"native_batch_norm", native_batch_norm},
    {"_native_batch_norm_legit.no_stats", training_batch_norm},
    {"_batch_norm_with_update_functional", batch_norm_with_update},
    {"layer_norm", layer_norm},
    {"group_norm", group_norm},
    {"instance_norm", instance_norm},
    {"rms_norm", rms_norm},
    {"_fused_rms_norm", fused_rms_norm},
    {"softmax.int", softmax_int},
    {"special_softmax", softmax_int},
    {"log_softmax.int", softmax_int},
    {"special_log_softmax", softmax_int},
    {"_safe_softmax", safe_softmax},
    {"_weight_norm", weight_norm},
    {"_weight_norm_interface", weight_norm_interface},
};

}  // namespace

ValueId softmax(Composite& c, const std::string& op, ValueId v, i64 dim, DType dtype) {
  return c.call(op, {c.to(v, dtype), c.n(dim), false});
}

std::span<const DecompositionRow> norm_decompositions() { return kRows; }

}  // namespace coil
