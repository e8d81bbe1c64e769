#pragma once
// What follows from ConvArgs: the three-dim shape, where inputs lie, how weights are held. Included
// by
// *.isa.cpp only.

#include "templates/cpu/conv.h"
#include "templates/cpu/gemm_core.h"

namespace coil::templates::COIL_ISA {

/// ConvArgs with three spatial dims (leading ones of size 1) and what follows from it. The last dim
/// is the one that most positions lie along.
struct ConvShape {
  ConvDim d[3];
  i64 x_stride[3], w_stride[3], y_stride[3];
  i64 ic, oc;     // of a group
  i64 kernel, k;  // kernel positions; ic * kernel
  i64 positions;  // of the output

  explicit ConvShape(const ConvArgs& c) : ic(c.ic / c.groups), oc(c.oc / c.groups) {
    kernel = positions = 1;
    for (int i = 0; i < 3; ++i) {
      const int from = i - (3 - c.rank);
      d[i] = from < 0 ? ConvDim{} : c.dims[from];
      x_stride[i] = from < 0 ? 0 : c.x_strides[2 + from];
      w_stride[i] = from < 0 ? 0 : c.w_strides[2 + from];
      y_stride[i] = from < 0 ? 0 : c.y_strides[2 + from];
      kernel *= d[i].kernel;
      positions *= d[i].output;
    }
    k = ic * kernel;
    for (int i = 0; i < 2; ++i) {
      if (is_point(2) && !(is_point(0) && is_point(1))) rotate();
    }
    if (!c.transposed) merge(1);
  }

 private:
  bool is_point(int i) const { return d[i].kernel == 1 && d[i].output == 1 && d[i].input == 1; }
  /// Puts the last dim, a point, first; the order of positions and of the sum stays.
  void rotate() {
    const auto turn = [](auto* p) {
      const auto last = p[2];
      p[2] = p[1];
      p[1] = p[0];
      p[0] = last;
    };
    turn(d);
    turn(x_stride);
    turn(w_stride);
    turn(y_stride);
  }
  bool is_pointwise(int i) const {
    return d[i].kernel == 1 && d[i].stride == 1 && d[i].pad == 0 && d[i].output == d[i].input;
  }
  /// Makes one dim of dims i and i+1 where the kernel is a point in both and rows follow each
  /// other.
  void merge(int i) {
    const ConvDim &outer = d[i], &inner = d[i + 1];
    if (outer.output == 1 || !is_pointwise(i) || !is_pointwise(i + 1)) return;
    if (x_stride[i] != inner.input * x_stride[i + 1]) return;
    if (y_stride[i] != inner.output * y_stride[i + 1]) return;
    d[i + 1].input = d[i + 1].output = outer.output * inner.output;
    d[i] = ConvDim{};
    if (i == 0) return;
    d[1] = d[0];  // the free dim goes to the front
    x_stride[1] = x_stride[0];
    y_stride[1] = y_stride[0];
    w_stride[1] = w_stride[0];
    d[0] = ConvDim{};
    merge(1);
  }
};

/// The input index that output `o` reads at kernel position `tap`, or -1 for padding.
static inline i64 input_index(const ConvDim& d, bool transposed, i64 o, i64 tap) {
  i64 i = transposed ? o + d.pad - tap * d.dilation : o * d.stride - d.pad + tap * d.dilation;
  if (transposed && d.stride != 1) {
    if (i < 0 || i % d.stride != 0) return -1;
    i /= d.stride;
  }
  return i >= 0 && i < d.input ? i : -1;
}

/// Output positions o, o + 1, ... of one row.
struct Run {
  i64 o[3];
  i64 start, count;  // in the block of positions
};

/// Splits positions [first, first + count) at the ends of output rows.
static inline int cut_runs(const ConvShape& s, i64 first, i64 count, Run* runs) {
  int n = 0;
  i64 column = first % s.d[2].output, row = first / s.d[2].output % s.d[1].output;
  i64 plane = first / s.d[2].output / s.d[1].output;
  for (i64 done = 0; done < count;) {
    const i64 length = smaller(s.d[2].output - column, count - done);
    runs[n++] = {{plane, row, column}, done, length};
    done += length;
    column = 0;
    if (++row == s.d[1].output) {
      row = 0;
      ++plane;
    }
  }
  return n;
}

/// Kernel position `at` of the row-major order as one index per dim.
static inline void tap_of(const ConvShape& s, i64 at, i64* tap) {
  tap[2] = at % s.d[2].kernel;
  tap[1] = at / s.d[2].kernel % s.d[1].kernel;
  tap[0] = at / s.d[2].kernel / s.d[1].kernel;
}

/// Input planes as the direct kernels read them, so that a row of outputs reads a row of inputs one
/// by one at every kernel position: padded, and cut by phase along the last dim where its stride is
/// not 1 (index i of the padded row stands at place i / stride of phase i % stride). A dim whose
/// kernel is a point holds only the rows that are read.
struct Planes {
  i64 size[2];     // rows of the first two dims
  i64 step[2];     // rows from one output to the next
  i64 phases;      // of the last dim
  i64 phase_size;  // elements of one phase of a row
  i64 pitch;       // of a row
  i64 channel;     // elements from one plane to the next

  explicit Planes(const ConvShape& s) {
    for (int i = 0; i < 2; ++i) {
      const ConvDim& d = s.d[i];
      step[i] = d.kernel == 1 ? 1 : d.stride;
      size[i] = (d.output - 1) * step[i] + (d.kernel - 1) * d.dilation + 1;
    }
    const ConvDim& d = s.d[2];
    phases = d.kernel == 1 || d.dilation % d.stride == 0 ? 1 : d.stride;
    phase_size = d.output + (d.kernel - 1) * d.dilation / d.stride;
    pitch = phases * phase_size;
    // With room for the 16 elements that copying may write more, and an odd number of cache lines,
    // so that the planes do not share the sets of a cache.
    channel = (((size[0] * size[1] * pitch + 15) / 16 + 1) | 1) * 16;
  }
  i64 offset_of_output(const i64* o) const {
    return (o[0] * step[0] * size[1] + o[1] * step[1]) * pitch + o[2];
  }
  i64 offset_of_tap(const ConvShape& s, const i64* tap) const {
    const ConvDim& d = s.d[2];
    const i64 at = tap[2] * d.dilation;
    return (tap[0] * s.d[0].dilation * size[1] + tap[1] * s.d[1].dilation) * pitch +
           at % d.stride * phase_size * (phases > 1) + at / d.stride;
  }
};

/// Zeros in out[from, to) and up to 15 elements more.
template <class Acc>
static void clear_from(Acc* out, i64 from, i64 to) {
  for (i64 i = from; i < to; i += 16) kernel::to_array(kernel::splat16(Acc(0)), out + i);
}

/// out[i] = from[2*i] for i < N; reads one element more.
template <int N, class Acc>
[[gnu::always_inline]] inline void copy_every_second(const Acc* from, Acc* out) {
  const auto a = kernel::load_lanes<Acc, N>(from), b = kernel::load_lanes<Acc, N>(from + N);
  if constexpr (N == 8) {
    const kernel::vec<Acc, N> r{__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6, 8, 10, 12, 14)};
    kernel::to_array(r, out);
  } else {
    static_assert(N == 4);
    kernel::to_array(kernel::vec<Acc, N>{__builtin_shufflevector(a.v, b.v, 0, 2, 4, 6)}, out);
  }
}
/// out[i] = from[2*i] for i < count, but for the last few; returns how many. Reads nothing beyond
/// the last element.
template <class Acc>
static i64 copy_most_seconds(const Acc* from, i64 count, Acc* out) {
  constexpr int lanes = Tile<Acc>::kLanes >= 8 ? 8 : 4;
  i64 i = 0;
  for (; i + lanes < count; i += lanes) copy_every_second<lanes>(from + 2 * i, out + i);
  for (; i + 4 < count; i += 4) copy_every_second<4>(from + 2 * i, out + i);
  if (count <= 4) return i;
  copy_every_second<4>(from + 2 * (count - 5), out + count - 5);
  return count - 1;
}

/// Places [0, count) of one phase of a row: the input at first + i * step, or zero outside. Writes
/// up to 15 elements more.
template <class Acc, class T>
static void copy_phase(const T* row, i64 x_stride, const ConvDim& d, i64 first, i64 count,
                       Acc* out) {
  const i64 step = d.stride;
  const i64 lo = first >= 0 ? 0 : smaller((step - 1 - first) / step, count);
  const i64 hi =
      larger(d.input - 1 < first ? 0 : smaller((d.input - 1 - first) / step + 1, count), lo);
  const i64 jump = step * x_stride;
  const T* from = row + first * x_stride;
  clear_from(out, 0, lo);
  i64 i = lo;
  if (jump == 1) {  // the lanes beyond hi are zeros of the padding that follows
    for (; i < hi; i += 16) {
      kernel::to_array(kernel::cast<Acc>(kernel::load_n(from + i, smaller(16, hi - i))), out + i);
    }
  }
  if constexpr (kernel::kSame<T, Acc> && sizeof(T) == 4) {
    if (jump == 2 && hi > lo) i += copy_most_seconds(from + 2 * lo, hi - lo, out + lo);
  }
  for (; i < hi; ++i) out[i] = kernel::cast_scalar<Acc>(kernel::load1(from + i * jump));
  clear_from(out, i, count);
}

/// Rows [row, row + rows) of dim 1 (all of dim 0) of one plane, in the order of memory; up to 15
/// elements more are written. `x` is the channel's first element.
template <class Acc, class T>
static void copy_plane(const ConvShape& s, const Planes& planes, const void* x, i64 row, i64 rows,
                       Acc* out) {
  const auto index = [&](int i, i64 at) {
    const i64 in = at * (s.d[i].kernel == 1 ? s.d[i].stride : 1) - s.d[i].pad;
    return in >= 0 && in < s.d[i].input ? in : -1;
  };
  for (i64 z = 0; z < planes.size[0]; ++z) {
    for (i64 y = row; y < row + rows; ++y, out += planes.pitch) {
      const i64 iz = index(0, z), iy = index(1, y);
      if (iz < 0 || iy < 0) {
        clear_from(out, 0, planes.pitch);
        continue;
      }
      const T* from = static_cast<const T*>(x) + iz * s.x_stride[0] + iy * s.x_stride[1];
      for (i64 phase = 0; phase < planes.phases; ++phase) {
        copy_phase(from, s.x_stride[2], s.d[2], phase - s.d[2].pad, planes.phase_size,
                   out + phase * planes.phase_size);
      }
    }
  }
}

/// Weights of a group: the matrix [oc][k] (panel 1), or for each block of kBlockK of k, one after
/// the other, panels of `panel` output channels, each with its channels side by side at every place
/// of k. The direct kernel reads those in the order of memory.
struct WeightLayout {
  i64 panel, padded_oc, k;

  i64 group_elements() const { return padded_oc * k; }
  i64 offset(i64 o, i64 p) const {
    if (panel == 1) return o * k + p;
    const i64 k0 = p / kBlockK * kBlockK, kc = smaller(kBlockK, k - k0);
    return padded_oc * k0 + (o - o % panel) * kc + (p - k0) * panel + o % panel;
  }
};

template <class Acc>
struct ConvWeights {
  const Acc* data;
  WeightLayout layout;

  /// Output channels [o, o + rows) of group g from p on; o is a multiple of the panel and p of
  /// kBlockK.
  TileRows<Acc> tile(i64 g, i64 o, i64 p, i64 rows) const {
    const Acc* at = data + g * layout.group_elements() + layout.offset(o, p);
    if (layout.panel == 1) return {at, layout.k, 1, rows};
    return {at, 1, layout.panel, rows};
  }
  Acc at(i64 g, i64 o, i64 p) const {
    return data[g * layout.group_elements() + layout.offset(o, p)];
  }
};

}  // namespace coil::templates::COIL_ISA
