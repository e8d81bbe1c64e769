#pragma once
// Fourier transforms along one dim, complex or real on one side.

#include "base/dtype.h"

namespace coil::templates {

/// y[b, k] = scale * sum over j < n of x[b, j] * exp(-+ 2 pi i j k / n), - where `forward`, for
/// each point b of the batch dims. All strides are in elements of `dtype`, the real type of one
/// part.
struct FftArgs {
  i64 batch_rank = 0;
  const i64* batch_shape = nullptr;
  i64 n = 0;      // at least 1, unless there are no results
  i64 count = 0;  // of results along the dim: n where y is real, else at most n
  /// A side of a transform. Where x is real its imaginary parts are 0. Where y is real, x holds the
  /// first n / 2 + 1 elements of a signal with x[n - j] = conj(x[j]), and the imaginary parts of
  /// those that are their own conjugates are not read.
  bool x_is_complex = true, y_is_complex = true;  // not both false
  const void* x = nullptr;
  const i64* x_batch_strides = nullptr;
  i64 x_stride = 1, x_part_stride = 1;
  void* y = nullptr;
  const i64* y_batch_strides = nullptr;
  i64 y_stride = 1, y_part_stride = 1;
  DType dtype = DType::f32;
  bool forward = true;
  double scale = 1;
};

bool fft_supports(DType dtype);

}  // namespace coil::templates
