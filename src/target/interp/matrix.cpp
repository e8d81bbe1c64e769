// Products of matrices and convolutions: plain loops, each sum in rising order from 0.

#include <algorithm>
#include <cstring>

#include "target/interp/dense.h"

namespace coil::interp {
namespace {

/// 64 bytes side by side; arithmetic on it is element by element, so it does not change any bits.
template <class T>
struct Lanes {
  using Vector [[gnu::vector_size(64)]] = T;
  static constexpr i64 kCount = 64 / sizeof(T);
};

/// `rows` rows of c at a panel of columns.
template <class T, int rows>
void multiply_rows(i64 k, i64 width, const T* a, i64 a_stride, const T* panel, T* c, i64 c_stride) {
  using Vector = typename Lanes<T>::Vector;
  Vector sum[rows] = {};
  for (i64 p = 0; p < k; ++p) {
    Vector b;
    std::memcpy(&b, panel + p * Lanes<T>::kCount, sizeof(b));
    for (int r = 0; r < rows; ++r) sum[r] += a[r * a_stride + p] * b;
  }
  for (int r = 0; r < rows; ++r)
    std::memcpy(c + r * c_stride, &sum[r], static_cast<std::size_t>(width) * sizeof(T));
}

}  // namespace

template <class T>
void multiply(i64 m, i64 n, i64 k, const T* a, const T* b, T* c) {
  constexpr i64 kLanes = Lanes<T>::kCount;
  std::vector<T> panel(static_cast<std::size_t>(k * kLanes));
  for (i64 j = 0; j < n; j += kLanes) {
    const i64 width = std::min(kLanes, n - j);
    for (i64 p = 0; p < k; ++p) std::copy_n(b + p * n + j, width, panel.data() + p * kLanes);
    i64 i = 0;
    for (; i + 2 <= m; i += 2)
      multiply_rows<T, 2>(k, width, a + i * k, k, panel.data(), c + i * n + j, n);
    if (i < m) multiply_rows<T, 1>(k, width, a + i * k, k, panel.data(), c + i * n + j, n);
  }
}

template <class T>
Status run_gemm(Frame& frame, const Structured& node) {
  const Dense<T> a = COIL_TRY(gather_dense<T>(frame, node.inputs[0]));
  const Dense<T> b = COIL_TRY(gather_dense<T>(frame, node.inputs[1]));
  Dense<T> c{access_shape(frame, node.outputs[0]), {}};
  const std::size_t rank = c.shape.size();
  const i64 m = c.shape[rank - 2];
  const i64 n = c.shape[rank - 1];
  const i64 k = a.shape[rank - 1];
  std::vector<i64> batch(c.shape.begin(), c.shape.end() - 2);
  const auto fits = [&](const Dense<T>& x, i64 rows, i64 columns) {
    std::vector<i64> expected = batch;
    expected.insert(expected.end(), {rows, columns});
    return x.shape == expected;
  };
  COIL_CHECK(fits(a, m, k) && fits(b, k, n), "gemm {} of shapes that do not fit", node.name);
  c.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(c.shape))));
  const i64 count = COIL_TRY(checked_numel(batch));
  for (i64 i = 0; i < count; ++i)
    multiply<T>(m, n, k, a.data.data() + i * m * k, b.data.data() + i * k * n,
                c.data.data() + i * m * n);
  return scatter_dense(frame, node.outputs[0], c);
}

namespace {

/// One convolution's sizes. `taps` are the kernel's positions, row-major.
struct ConvShape {
  i64 batch, in_channels, out_channels, groups;
  std::vector<i64> in, out, kernel;  // spatial
  i64 in_size, out_size, taps;
};

i64 product(std::span<const i64> items) {
  i64 result = 1;
  for (i64 item : items) result *= item;
  return result;
}

void unravel(i64 position, std::span<const i64> shape, std::span<i64> index) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = position % shape[d];
    position /= shape[d];
  }
}

/// The input position that feeds output position `out` through kernel position `tap`, or -1.
i64 source(const Conv& conv, const ConvShape& s, std::span<const i64> out,
           std::span<const i64> tap) {
  i64 position = 0;
  for (std::size_t d = 0; d < out.size(); ++d) {
    i64 x = 0;
    if (conv.transposed) {
      x = out[d] + conv.padding[d] - tap[d] * conv.dilation[d];
      if (x < 0 || x % conv.stride[d] != 0) return -1;
      x /= conv.stride[d];
    } else {
      x = out[d] * conv.stride[d] - conv.padding[d] + tap[d] * conv.dilation[d];
    }
    if (x < 0 || x >= s.in[d]) return -1;
    position = position * s.in[d] + x;
  }
  return position;
}

/// Output positions handled together: their columns stay in cache.
constexpr i64 kPositions = 128;

/// sources[tap, position]: the input position that each of `count` outputs reads, or -1.
void find_sources(const Conv& conv, const ConvShape& s, i64 first, i64 count,
                  std::vector<i64>& sources) {
  std::vector<i64> out(s.out.size());
  std::vector<i64> tap(s.out.size());
  for (i64 j = 0; j < count; ++j) {
    unravel(first + j, s.out, out);
    for (i64 t = 0; t < s.taps; ++t) {
      unravel(t, s.kernel, tap);
      sources[t * count + j] = source(conv, s, out, tap);
    }
  }
}

/// columns[(channel, tap), position] of one image and group; 0 outside the input.
template <class T>
void fill_columns(const ConvShape& s, const T* image, i64 count, const std::vector<i64>& sources,
                  std::vector<T>& columns) {
  const i64 channels = s.in_channels / s.groups;
  T* column = columns.data();
  for (i64 c = 0; c < channels; ++c)
    for (i64 i = 0; i < s.taps * count; ++i)
      *column++ = sources[i] < 0 ? T{0} : image[c * s.in_size + sources[i]];
}

/// Padding takes no part: sums that are NaN are made again, in the same order, without the products
/// of what lies outside the input, which a weight that is not finite makes NaN.
template <class T>
void leave_out_padding(const ConvShape& s, i64 count, const std::vector<i64>& sources,
                       const std::vector<T>& columns, const T* weights, std::vector<T>& block) {
  const i64 outs = s.out_channels / s.groups, depth = s.in_channels / s.groups * s.taps;
  for (i64 o = 0; o < outs; ++o)
    for (i64 j = 0; j < count; ++j) {
      T& sum = block[o * count + j];
      if (sum == sum) continue;
      sum = 0;
      for (i64 p = 0; p < depth; ++p)
        if (sources[p % s.taps * count + j] >= 0)
          sum += weights[o * depth + p] * columns[p * count + j];
    }
}

/// Weights as [groups][out channels of a group][in channels of a group][taps].
template <class T>
std::vector<T> ordered_weights(const Conv& conv, const ConvShape& s, const Dense<T>& w) {
  if (!conv.transposed) return w.data;
  const i64 ins = s.in_channels / s.groups;
  const i64 outs = s.out_channels / s.groups;
  std::vector<T> ordered(w.data.size());
  for (i64 g = 0; g < s.groups; ++g)
    for (i64 o = 0; o < outs; ++o)
      for (i64 c = 0; c < ins; ++c)
        for (i64 t = 0; t < s.taps; ++t)
          ordered[((g * outs + o) * ins + c) * s.taps + t] =
              w.data[((g * ins + c) * outs + o) * s.taps + t];
  return ordered;
}

template <class T>
ConvShape conv_shape(const Conv& conv, const Dense<T>& x, const Dense<T>& w, const Dense<T>& y) {
  ConvShape s;
  s.batch = x.shape[0];
  s.in_channels = x.shape[1];
  s.out_channels = y.shape[1];
  s.groups = conv.groups;
  s.in.assign(x.shape.begin() + 2, x.shape.end());
  s.out.assign(y.shape.begin() + 2, y.shape.end());
  s.kernel.assign(w.shape.begin() + 2, w.shape.end());
  s.in_size = product(s.in);
  s.out_size = product(s.out);
  s.taps = product(s.kernel);
  const i64 ins = s.in_channels / s.groups;
  const i64 outs = s.out_channels / s.groups;
  COIL_CHECK(s.in_channels % s.groups == 0 && s.out_channels % s.groups == 0 &&
                 y.shape[0] == s.batch &&
                 w.shape[0] == (conv.transposed ? s.in_channels : s.out_channels) &&
                 w.shape[1] == (conv.transposed ? outs : ins),
             "convolution of shapes that do not fit");
  return s;
}

}  // namespace

template <class T>
Status run_conv(Frame& frame, const Structured& node, const Conv& conv) {
  const Dense<T> x = COIL_TRY(gather_dense<T>(frame, node.inputs[0]));
  const Dense<T> w = COIL_TRY(gather_dense<T>(frame, node.inputs[1]));
  Dense<T> bias;
  if (node.inputs.size() == 3) bias = COIL_TRY(gather_dense<T>(frame, node.inputs[2]));
  Dense<T> y{access_shape(frame, node.outputs[0]), {}};
  y.data.resize(static_cast<std::size_t>(COIL_TRY(checked_numel(y.shape))));
  const ConvShape s = conv_shape(conv, x, w, y);
  const std::vector<T> weights = ordered_weights(conv, s, w);
  const i64 ins = s.in_channels / s.groups;
  const i64 outs = s.out_channels / s.groups;
  const i64 depth = ins * s.taps;
  std::vector<i64> sources(static_cast<std::size_t>(s.taps * kPositions));
  std::vector<T> columns(static_cast<std::size_t>(depth * kPositions));
  std::vector<T> block(static_cast<std::size_t>(outs * kPositions));
  for (i64 ng = 0; ng < s.batch * s.groups; ++ng) {
    const i64 g = ng % s.groups;
    const T* image = x.data.data() + ng * ins * s.in_size;
    T* result = y.data.data() + ng * outs * s.out_size;
    for (i64 first = 0; first < s.out_size; first += kPositions) {
      const i64 count = std::min(kPositions, s.out_size - first);
      const T* own_weights = weights.data() + g * outs * depth;
      find_sources(conv, s, first, count, sources);
      fill_columns(s, image, count, sources, columns);
      multiply<T>(outs, count, depth, own_weights, columns.data(), block.data());
      leave_out_padding(s, count, sources, columns, own_weights, block);
      for (i64 o = 0; o < outs; ++o)
        for (i64 j = 0; j < count; ++j) {
          T value = block[o * count + j];
          if (!bias.data.empty()) value += bias.data[g * outs + o];
          result[o * s.out_size + first + j] = value;
        }
    }
  }
  return scatter_dense(frame, node.outputs[0], y);
}

template Status run_gemm<float>(Frame&, const Structured&);
template Status run_gemm<double>(Frame&, const Structured&);
template Status run_gemm<u64>(Frame&, const Structured&);
template Status run_conv<float>(Frame&, const Structured&, const Conv&);
template Status run_conv<double>(Frame&, const Structured&, const Conv&);
template Status run_conv<u64>(Frame&, const Structured&, const Conv&);
template void multiply<float>(i64, i64, i64, const float*, const float*, float*);
template void multiply<double>(i64, i64, i64, const double*, const double*, double*);

}  // namespace coil::interp
