#pragma once
// Depthwise convolution: a task copies the rows it needs of one input plane, padded and cut by
// phase, and sums the kernel positions with lanes along the row. Included by conv.isa.cpp only.

#include "templates/cpu/conv_call.h"

namespace coil::templates::COIL_ISA {

template <int N>
struct Count {
  static constexpr int value = N;
};

/// One register of each of Rows output rows: the sum over k of w[p] * in[offsets[p]...].
template <class Acc, int Rows>
[[gnu::always_inline]] inline void sum_taps(const Acc* in, i64 in_step, const i64* offsets,
                                            const Acc* w, i64 k, Acc* out, i64 out_step) {
  using V = typename Tile<Acc>::Vector;
  constexpr int lanes = Tile<Acc>::kLanes;
  V sum[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) sum[r] = kernel::like<V>(Acc(0));
  for (i64 p = 0; p < k; ++p) {
    const V factor = kernel::like<V>(w[p]);
    const Acc* from = in + offsets[p];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      sum[r] = multiply_add(factor, kernel::load_lanes<Acc, lanes>(from + r * in_step), sum[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) kernel::to_array(sum[r], out + r * out_step);
}

/// One register's width of `rows` output rows. A row shorter than a register is written from the
/// first row on, so that each repairs what the one before wrote over it.
template <class Acc>
static void sum_column(const Acc* in, i64 in_step, const i64* offsets, const Acc* w, i64 k,
                       i64 rows, Acc* out, i64 out_step) {
  const auto some = [&](auto count) {
    constexpr int n = decltype(count)::value;
    for (; rows >= n; rows -= n, in += n * in_step, out += n * out_step) {
      sum_taps<Acc, n>(in, in_step, offsets, w, k, out, out_step);
    }
  };
  some(Count<8>{});
  some(Count<4>{});
  some(Count<2>{});
  some(Count<1>{});
}

template <class Acc>
static void run_depthwise_task(const ConvCall<Acc>& call, i64 image, i64 group, i64 row, i64 rows,
                               int worker) {
  constexpr i64 lanes = Tile<Acc>::kLanes;
  const ConvArgs& c = call.c;
  const ConvShape& s = call.s;
  const Planes& planes = call.plan.planes;
  char* memory = call.workers + worker * call.plan.worker_bytes();
  Acc* in = reinterpret_cast<Acc*>(memory);
  Acc* sums = reinterpret_cast<Acc*>(memory + call.plan.dw_input_bytes());
  const i64 in_rows = (rows - 1) * planes.step[1] + (s.d[1].kernel - 1) * s.d[1].dilation + 1;
  const void* x = advance(c.x, image * c.x_strides[0] + group * c.x_strides[1], c.in);
  call.copy(s, planes, x, row * planes.step[1], in_rows, in);
  const i64 width = s.d[2].output;
  for (i64 o = 0; o < s.oc; ++o) {
    const Acc* w = call.weights.tile(group, o, 0, 1).data;
    for (i64 j = 0; j < width; j += lanes) {
      const i64 at = larger(smaller(j, width - lanes), 0);  // the last register overlaps
      sum_column(in + at, planes.step[1] * planes.pitch, call.offsets, w, s.k, rows, sums + at,
                 width);
    }
    const i64 count = rows * width;
    ConvBlock<Acc>{call, image, group, o, 1, row * width, count, sums, count}.finish();
  }
}

}  // namespace coil::templates::COIL_ISA
