#pragma once
// Comparison of two results, element by element.

#include <string>

#include "runtime/tensor.h"

namespace coil::cli {

struct Tolerance {
  double rtol = 0, atol = 0;
};
/// Those of torch.testing.assert_close.
Tolerance default_tolerance(DType dtype);

struct Comparison {
  bool ok = true;
  std::string
      mismatch;  // where it is not: "f32[2, 3], expected f32[3, 2]", or the first bad element
  double largest_abs = 0, largest_rel = 0;
  i64 bad = 0, count = 0;
};

/// Element by element |found - expected| <= atol + rtol * |expected|; NaN equals NaN.
Comparison compare(const runtime::Tensor& found, const runtime::Tensor& expected,
                   Tolerance tolerance);

/// Calls f(offset in elements) for each element of a strided tensor, in row-major order.
template <class F>
void for_each_element(const runtime::Tensor& t, F f) {
  const i64 count = t.numel();
  std::vector<i64> index(t.shape.size(), 0);
  i64 offset = 0;
  for (i64 n = 0; n < count; ++n) {
    f(offset);
    for (std::size_t d = index.size(); d-- > 0;) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d]) break;
      offset -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

/// All elements as doubles, real and imaginary parts of complex ones in turn. Integers beyond 2^53
/// lose digits: compare those exactly instead.
std::vector<double> as_doubles(const runtime::Tensor& t);

}  // namespace coil::cli
