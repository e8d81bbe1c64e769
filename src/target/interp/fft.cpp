// Fourier transforms as the sums that define them.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "target/interp/dense.h"

namespace coil::interp {
namespace {

/// Wide, so that the sums are good to the last bits of a double.
struct Number {
  long double re = 0, im = 0;
};

/// A side of a transform as [outer, extent, inner], complex or not.
struct Side {
  std::vector<double> data;
  i64 outer = 1, extent = 1, inner = 1, parts = 1;

  Side(std::vector<i64> shape, i64 dim, i64 part_count) : parts(part_count) {
    if (parts == 2) shape.pop_back();
    for (i64 d = 0; d < static_cast<i64>(shape.size()); ++d)
      (d < dim ? outer : d == dim ? extent : inner) *= shape[d];
  }
  double* at(i64 o, i64 j, i64 i) { return data.data() + ((o * extent + j) * inner + i) * parts; }
};

/// Element j of the signal of n elements; in C2r, of the one that x is the first half of.
Number element(Side& x, const Fft& fft, i64 n, i64 o, i64 j, i64 i) {
  const bool is_half = fft.kind == FftKind::C2r;
  const bool is_mirrored = is_half && 2 * j > n;
  const double* found = x.at(o, is_mirrored ? n - j : j, i);
  const bool is_real = x.parts == 1 || (is_half && (j == 0 || 2 * j == n));
  const double im = is_real ? 0 : found[1];
  return {found[0], is_mirrored ? -im : im};
}

/// exp(-+ 2 pi i k / n) for all k < n.
std::vector<Number> roots_of_unity(i64 n, bool forward) {
  std::vector<Number> roots(static_cast<std::size_t>(n));
  for (i64 k = 0; k < n; ++k) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                              static_cast<long double>(n);
    roots[k] = {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
  }
  return roots;
}

}  // namespace

Status run_fft(Frame& frame, const Structured& node, const Fft& fft) {
  const std::vector<i64> x_shape = access_shape(frame, node.inputs[0]);
  const std::vector<i64> y_shape = access_shape(frame, node.outputs[0]);
  Side x(x_shape, fft.dim, fft.kind == FftKind::R2c ? 1 : 2);
  Side y(y_shape, fft.dim, fft.kind == FftKind::C2r ? 1 : 2);
  COIL_CHECK(x.outer == y.outer && x.inner == y.inner, "fft {} of shapes that do not fit",
             node.name);
  COIL_TRY(check_fft_sizes(fft, x.extent, y.extent));
  x.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(x_shape))));
  y.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(y_shape))));
  COIL_TRY(gather(frame, node.inputs[0], DType::f64, reinterpret_cast<std::byte*>(x.data.data())));
  const i64 n = fft.kind == FftKind::C2r ? y.extent : x.extent;
  const std::vector<Number> roots = roots_of_unity(n, fft.forward);
  const long double scale = scale_of(fft, n);
  std::vector<Number> signal(static_cast<std::size_t>(n));
  for (i64 row = 0; row < y.outer * y.inner && y.extent > 0; ++row) {
    const i64 o = row / y.inner, i = row % y.inner;
    for (i64 j = 0; j < n; ++j) signal[j] = element(x, fft, n, o, j, i);
    for (i64 k = 0; k < y.extent; ++k) {
      Number sum;
      for (i64 j = 0, at = 0; j < n; ++j, at = (at + k) % n) {
        sum.re += signal[j].re * roots[at].re - signal[j].im * roots[at].im;
        sum.im += signal[j].re * roots[at].im + signal[j].im * roots[at].re;
      }
      double* to = y.at(o, k, i);
      to[0] = static_cast<double>(sum.re * scale);
      if (y.parts == 2) to[1] = static_cast<double>(sum.im * scale);
    }
  }
  return scatter(frame, node.outputs[0], DType::f64, reinterpret_cast<std::byte*>(y.data.data()));
}

}  // namespace coil::interp
