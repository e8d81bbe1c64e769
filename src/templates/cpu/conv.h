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
/// The sum runs over (c, kernel positions in row-major order) as in GemmArgs: same accumulators,
/// same blocks of 256, so the bits depend neither on the number of threads nor on packing. Padding
/// takes no part: an infinite or NaN weight that only meets padding does not show. The bias is
/// added to the finished sum.
///
/// The epilogue's batch is the image; its rows are output channels (of all groups), its columns
/// output positions in row-major order; it sees the sum with the bias. An empty sum (ic = 0) calls
/// it too.
struct ConvArgs {
  i64 n = 1, groups = 1, ic = 1, oc = 1;
  int rank = 2;
  bool transposed = false;
  ConvDim dims[3];
  const void* x = nullptr;
  const void* w = nullptr;
  const void* bias = nullptr;  // `in` elements, one per output channel, or null
  void* y = nullptr;           // may be null when the epilogue writes the result
  i64 x_strides[5] = {}, w_strides[5] = {}, y_strides[5] = {};
  i64 bias_stride = 1;
  DType in = DType::f32, out = DType::f32;
  const void* packed_w = nullptr;  // from pack_w; then w is not read
  BlockEpilogue epilogue = nullptr;
  void* epilogue_context = nullptr;
};

}  // namespace coil::templates
