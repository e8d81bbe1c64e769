#pragma once
// Columns of a transposed convolution: which input each output position reads at a kernel position.
// Included by conv.isa.cpp only.

#include "templates/cpu/conv_shape.h"

namespace coil::templates::COIL_ISA {

struct GatherBlock {
  const ConvShape& s;
  const void* x;  // channel 0 of the group
  i64 channel_stride;
};

/// out[i] = x at output o0 + i and position `tap` of the last dim, zero where there is none.
template <class Acc, class T>
[[gnu::always_inline]] inline void gather_run(const T* row, const ConvDim& d, i64 stride, i64 o0,
                                              i64 count, i64 tap, Acc* out) {
  if (d.stride != 1) {
    for (i64 i = 0; i < count; ++i) {
      const i64 at = input_index(d, true, o0 + i, tap);
      out[i] = at < 0 ? Acc(0) : kernel::cast_scalar<Acc>(kernel::load1(row + at * stride));
    }
    return;
  }
  // The outputs whose input exists are one interval.
  const i64 first = o0 + d.pad - tap * d.dilation;
  const i64 lo = first >= 0 ? 0 : smaller(-first, count);
  const i64 hi = larger(smaller(d.input - first, count), lo);
  for (i64 i = 0; i < lo; ++i) out[i] = Acc(0);
  const T* from = row + first * stride;
  i64 i = lo;
  for (; stride == 1 && i < hi; i += 16) {
    const i64 n = smaller(16, hi - i);
    store_first(out + i, kernel::cast<Acc>(kernel::load_n(from + i, n)), n);
  }
  for (; i < hi; ++i) out[i] = kernel::cast_scalar<Acc>(kernel::load1(from + i * stride));
  for (i = hi; i < count; ++i) out[i] = Acc(0);
}

/// Rows [k0, k0 + kc) of the columns, for the runs of one panel of `width` columns.
template <class Acc, class T>
static void gather_panel(const GatherBlock& g, i64 k0, i64 kc, const Run* runs, int run_count,
                         i64 filled, i64 width, Acc* out) {
  const ConvShape& s = g.s;
  i64 channel = k0 / s.kernel, position = k0 % s.kernel;
  for (i64 p = 0; p < kc; ++p, out += width) {
    i64 tap[3];
    tap_of(s, position, tap);
    const T* plane = static_cast<const T*>(g.x) + channel * g.channel_stride;
    for (int r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      const i64 z = input_index(s.d[0], true, run.o[0], tap[0]);
      const i64 y = input_index(s.d[1], true, run.o[1], tap[1]);
      if (z < 0 || y < 0) {
        for (i64 i = 0; i < run.count; ++i) out[run.start + i] = Acc(0);
        continue;
      }
      gather_run(plane + z * s.x_stride[0] + y * s.x_stride[1], s.d[2], s.x_stride[2], run.o[2],
                 run.count, tap[2], out + run.start);
    }
    for (i64 i = filled; i < width; ++i) out[i] = Acc(0);
    if (++position == s.kernel) {
      position = 0;
      ++channel;
    }
  }
}

}  // namespace coil::templates::COIL_ISA
