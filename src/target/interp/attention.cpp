// Attention and sorting.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/scalar.h"
#include "target/interp/dense.h"

namespace coil::interp {
namespace {

template <class T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// The scores of one query as weights that sum to 1; false where every score is -inf.
template <class T>
bool softmax(std::vector<T>& scores) {
  const i64 n = static_cast<i64>(scores.size());
  T largest = kNothing<T>;
  for (T s : scores) largest = std::isnan(s) || s > largest ? s : largest;
  if (largest == kNothing<T>) return false;
  for (T& s : scores) s -= largest;
  const void* operand = scores.data();
  ops::evaluate(ops::ScalarOp::exp, dense_dtype<T>(), dense_dtype<T>(), n, {&operand, 1},
                scores.data());
  T sum = 0;
  for (T s : scores) sum += s;
  for (T& s : scores) s /= sum;
  return true;
}

/// What is added to the scores of each query: 0 or -inf for a bool mask.
template <class T>
Result<Dense<T>> read_mask(Frame& frame, const Structured& node, const Attention& attention) {
  if (!attention.has_mask) return Dense<T>{};
  Dense<T> mask = COIL_TRY(gather_dense<T>(frame, node.inputs[3]));
  if (is_bool(frame.program().buffers[node.inputs[3].buffer].dtype))
    for (T& m : mask.data) m = m != 0 ? T{0} : kNothing<T>;
  return mask;
}

}  // namespace

template <class T>
Status run_attention(Frame& frame, const Structured& node, const Attention& attention) {
  const Dense<T> q = COIL_TRY(gather_dense<T>(frame, node.inputs[0]));
  const Dense<T> k = COIL_TRY(gather_dense<T>(frame, node.inputs[1]));
  const Dense<T> v = COIL_TRY(gather_dense<T>(frame, node.inputs[2]));
  const Dense<T> mask = COIL_TRY(read_mask<T>(frame, node, attention));
  const i64 heads = q.shape[1], m = q.shape[2], depth = q.shape[3];
  const i64 kv_heads = k.shape[1], n = k.shape[2], width = v.shape[3];
  Dense<T> y{{q.shape[0], heads, m, width}, {}};
  COIL_CHECK(kv_heads > 0 && heads % kv_heads == 0 && k.shape[3] == depth && v.shape[2] == n &&
                 k.shape[0] == q.shape[0] && v.shape[0] == q.shape[0] && v.shape[1] == kv_heads,
             "attention {} of shapes that do not fit", node.name);
  if (attention.has_mask)
    COIL_CHECK(mask.shape == (std::vector<i64>{q.shape[0], heads, m, n}), "mask of attention {}",
               node.name);
  y.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(y.shape))));
  const T scale = static_cast<T>(attention.scale);
  std::vector<T> scores(static_cast<std::size_t>(n));
  std::vector<T> keys(static_cast<std::size_t>(depth * n));
  for (i64 bh = 0; bh < q.shape[0] * heads; ++bh) {
    const i64 kv = bh / heads * kv_heads + bh % heads / (heads / kv_heads);
    for (i64 j = 0; j < n; ++j)
      for (i64 d = 0; d < depth; ++d) keys[d * n + j] = k.data[(kv * n + j) * depth + d];
    for (i64 i = 0; i < m; ++i) {
      multiply<T>(1, n, depth, q.data.data() + (bh * m + i) * depth, keys.data(), scores.data());
      for (i64 j = 0; j < n; ++j) {
        scores[j] *= scale;
        if (attention.has_mask) scores[j] += mask.data[(bh * m + i) * n + j];
        if (attention.causal && j > i) scores[j] = kNothing<T>;
      }
      T* row = y.data.data() + (bh * m + i) * width;
      if (softmax(scores))
        multiply<T>(1, width, n, scores.data(), v.data.data() + kv * n * width, row);
      else if (attention.nan_rows && n > 0)
        std::fill(row, row + width, std::numeric_limits<T>::quiet_NaN());
    }
  }
  return scatter_dense(frame, node.outputs[0], y);
}

template Status run_attention<float>(Frame&, const Structured&, const Attention&);
template Status run_attention<double>(Frame&, const Structured&, const Attention&);

namespace {

/// NaN is above every number, and equal to NaN.
template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (std::isnan(b) && !std::isnan(a));
  else
    return a < b;
}

template <class T>
Status sort_rows(Frame& frame, const Structured& node, const Sort& sort) {
  const DType dtype = std::is_same_v<T, i64> ? DType::i64 : dense_dtype<T>();
  const std::vector<i64> shape = access_shape(frame, node.inputs[0]);
  std::vector<T> x(static_cast<std::size_t>(COIL_TRY(checked_numel(shape))));
  COIL_TRY(gather(frame, node.inputs[0], dtype, reinterpret_cast<std::byte*>(x.data())));
  const std::vector<i64> out_shape = access_shape(frame, node.outputs[0]);
  const i64 rows = shape[0], n = shape[1], k = out_shape[1];
  if (k > n) return error("takes {} of {} elements", k, n);
  COIL_CHECK(out_shape[0] == rows && out_shape == access_shape(frame, node.outputs[1]),
             "sort {} of shapes that do not fit", node.name);
  std::vector<T> values(static_cast<std::size_t>(rows * k));
  std::vector<i64> indices(values.size());
  std::vector<i64> order(static_cast<std::size_t>(n));
  for (i64 r = 0; r < rows; ++r) {
    const T* row = x.data() + r * n;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](i64 a, i64 b) {
      return sort.descending ? is_less(row[b], row[a]) : is_less(row[a], row[b]);
    });
    for (i64 i = 0; i < k; ++i) {
      values[r * k + i] = row[order[i]];
      indices[r * k + i] = order[i];
    }
  }
  COIL_TRY(scatter(frame, node.outputs[0], dtype, reinterpret_cast<std::byte*>(values.data())));
  return scatter(frame, node.outputs[1], DType::i64, reinterpret_cast<std::byte*>(indices.data()));
}

}  // namespace

Status run_sort(Frame& frame, const Structured& node, const Sort& sort) {
  const DType dtype = frame.program().buffers[node.inputs[0].buffer].dtype;
  if (is_float(dtype)) return sort_rows<double>(frame, node, sort);
  if (dtype == DType::u64) return sort_rows<u64>(frame, node, sort);
  return sort_rows<i64>(frame, node, sort);
}

}  // namespace coil::interp
