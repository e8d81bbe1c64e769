#pragma once
// Convolution and transposed convolution over one to three spatial dims, any strides.

#include "templates/cpu/gemm.h"

namespace coil::templates {

/// One spatial dim. As ATen: output = (input + 2*pad - dilation*(kernel-1) - 1) / stride + 1; for a
/// transposed convolution output = (input-1)*stride - 2*pad + dilation*(kernel-1) + 1 and whatever
/// output_padding adds. `output` is taken as given.
struct ConvDim {
  i64 input = 1, kernel = 1, stride = 1, pad = 0, dilation = 1, output = 1;
};

/// y[n, o, ...] = bias[o] + sum over c and the kernel of x[n, c, ...] * w.
///
/// w is [oc, ic/groups, kernel...], transposed [ic, oc/groups, kernel...]. Strides are in elements:
/// batch, channel, then `rank` spatial ones; for w its two leading dims, then the kernel's.
/// The sum runs over (c, kernel positions in row-major order) as in GemmArgs: same accumulators, same
/// blocks of 256, so the bits do not depend on the number of threads. The bias is added to the
/// finished sum.
struct ConvArgs {
  i64 n = 1, groups = 1, ic = 1, oc = 1;
  int rank = 2;
  bool transposed = false;
  ConvDim dims[3];
  const void* x = nullptr;
  const void* w = nullptr;
  const void* bias = nullptr;  // `in` elements, one per output channel, or null
  void* y = nullptr;
  i64 x_strides[5] = {}, w_strides[5] = {}, y_strides[5] = {};
  i64 bias_stride = 1;
  DType in = DType::f32, out = DType::f32;
};

}  // namespace coil::templates
