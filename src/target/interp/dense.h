#pragma once
// Operands of structured nodes as dense row-major arrays of the type that computes.

#include <vector>

#include "target/interp/frame.h"

namespace coil::interp {

/// Of float, double, or u64 for integers of every width, which wrap as they should when narrowed.
template <class T>
struct Dense {
  std::vector<i64> shape;
  std::vector<T> data;
};

template <class T>
constexpr DType dense_dtype() {
  if (std::is_same_v<T, float>) return DType::f32;
  return std::is_same_v<T, double> ? DType::f64 : DType::u64;
}

std::vector<i64> access_shape(Frame& frame, const Access& access);
/// Every element of the logical tensor, in row-major order, converted to `to`.
Status gather(Frame& frame, const Access& access, DType to, std::byte* out);
/// Defines a result from row-major elements of dtype `from`.
Status scatter(Frame& frame, const Access& access, DType from, const std::byte* in);
/// The number of elements, or an Error where no machine holds them.
Result<i64> checked_numel(std::span<const i64> shape);

template <class T>
Result<Dense<T>> gather_dense(Frame& frame, const Access& access) {
  Dense<T> dense{access_shape(frame, access), {}};
  dense.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(dense.shape))));
  COIL_TRY(
      gather(frame, access, dense_dtype<T>(), reinterpret_cast<std::byte*>(dense.data.data())));
  return dense;
}
template <class T>
Status scatter_dense(Frame& frame, const Access& access, const Dense<T>& dense) {
  COIL_CHECK(access_shape(frame, access) == dense.shape, "result {} has another shape",
             frame.program().buffers[access.buffer].name);
  return scatter(frame, access, dense_dtype<T>(),
                 reinterpret_cast<const std::byte*>(dense.data.data()));
}

/// c[i, j] = sum over p of a[i, p] * b[p, j], each from 0 in rising order of p, nothing contracted.
/// All are dense and row-major.
template <class T>
void multiply(i64 m, i64 n, i64 k, const T* a, const T* b, T* c);

template <class T>
Status run_gemm(Frame& frame, const Structured& node);
template <class T>
Status run_conv(Frame& frame, const Structured& node, const Conv& conv);
template <class T>
Status run_attention(Frame& frame, const Structured& node, const Attention& attention);
Status run_fft(Frame& frame, const Structured& node, const Fft& fft);
Status run_sort(Frame& frame, const Structured& node, const Sort& sort);
Status run_factor(Frame& frame, const Structured& node, const Factor& factor);

}  // namespace coil::interp
