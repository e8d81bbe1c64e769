// Convolution as a matrix product per image and group: rows are output channels, columns output
// positions, k runs over (input channel, kernel position). The columns of the input matrix are made
// block by block. A transposed convolution is the same with another map from outputs to inputs:
// it gathers, so no two threads write one element.

#include "templates/cpu/conv.h"

#include "templates/cpu/gemm_core.h"

// After gemm_core.h, which defines COIL_ISA's namespace.
#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

/// ConvArgs with three spatial dims (leading ones of size 1) and what follows from it.
struct Shape {
  ConvDim d[3];
  i64 x_stride[3], w_stride[3], y_stride[3];
  i64 ic, oc;         // of a group
  i64 kernel, k;      // kernel positions; ic * kernel
  i64 positions;      // of the output

  explicit Shape(const ConvArgs& c) : ic(c.ic / c.groups), oc(c.oc / c.groups) {
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
  }
};

/// The input index that output `o` reads at kernel position `tap`, or -1 for padding.
inline i64 input_index(const ConvDim& d, bool transposed, i64 o, i64 tap) {
  i64 i = transposed ? o + d.pad - tap * d.dilation : o * d.stride - d.pad + tap * d.dilation;
  if (transposed && d.stride != 1) {
    if (i < 0 || i % d.stride != 0) return -1;
    i /= d.stride;
  }
  return i >= 0 && i < d.input ? i : -1;
}

/// Output positions o0, o0+1, ... of one row.
struct Run {
  i64 o[3];
  i64 start, count;  // in the block of positions
};

struct ColumnBlock {
  const Shape& s;
  bool transposed;
  const void* x;  // channel 0 of the group
  i64 channel_stride;
};

/// One row of the input matrix for one run: out[i] = x at output o0 + i and kernel column `tap`.
template <class Acc, class T>
[[gnu::always_inline]] inline void fill_run(const T* row, const ConvDim& d, i64 stride,
                                            bool transposed, i64 o0, i64 count, i64 tap, Acc* out) {
  const bool dense = !transposed || d.stride == 1;
  i64 lo = 0, hi = 0;
  if (dense) {  // the outputs whose input exists are one interval
    const i64 step = transposed ? 1 : d.stride;
    const i64 first = transposed ? o0 + d.pad - tap * d.dilation
                                 : o0 * step - d.pad + tap * d.dilation;
    lo = first >= 0 ? 0 : smaller((step - 1 - first) / step, count);
    hi = d.input - 1 < first ? 0 : smaller((d.input - 1 - first) / step + 1, count);
    if (hi < lo) hi = lo;
    for (i64 i = 0; i < lo; ++i) out[i] = Acc(0);
    const i64 jump = step * stride;
    const T* from = row + first * stride;
    if (jump == 1) {
      for (i64 i = lo; i < hi; i += 16) {
        const i64 n = smaller(16, hi - i);
        kernel::store_n(out + i, kernel::cast<Acc>(kernel::load_n(from + i, n)), n);
      }
    } else {
      for (i64 i = lo; i < hi; ++i) {
        out[i] = kernel::cast_scalar<Acc>(kernel::load1(from + i * jump));
      }
    }
    for (i64 i = hi; i < count; ++i) out[i] = Acc(0);
  } else {
    for (i64 i = 0; i < count; ++i) {
      const i64 at = input_index(d, transposed, o0 + i, tap);
      out[i] = at < 0 ? Acc(0) : kernel::cast_scalar<Acc>(kernel::load1(row + at * stride));
    }
  }
}

/// Rows [k0, k0 + kc) of the input matrix, for the runs of one panel of `width` columns.
template <class Acc, class T>
void fill_panel(const ColumnBlock& c, i64 k0, i64 kc, const Run* runs, int run_count, i64 filled,
                i64 width, Acc* out) {
  const Shape& s = c.s;
  i64 channel = k0 / s.kernel, position = k0 % s.kernel;
  for (i64 p = 0; p < kc; ++p, out += width) {
    const i64 tap[3] = {position / (s.d[1].kernel * s.d[2].kernel),
                        position / s.d[2].kernel % s.d[1].kernel, position % s.d[2].kernel};
    const T* plane = static_cast<const T*>(c.x) + channel * c.channel_stride;
    for (int r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      const i64 z = input_index(s.d[0], c.transposed, run.o[0], tap[0]);
      const i64 y = input_index(s.d[1], c.transposed, run.o[1], tap[1]);
      if (z < 0 || y < 0) {
        for (i64 i = 0; i < run.count; ++i) out[run.start + i] = Acc(0);
        continue;
      }
      fill_run(plane + z * s.x_stride[0] + y * s.x_stride[1], s.d[2], s.x_stride[2], c.transposed,
               run.o[2], run.count, tap[2], out + run.start);
    }
    for (i64 i = filled; i < width; ++i) out[i] = Acc(0);
    if (++position == s.kernel) {
      position = 0;
      ++channel;
    }
  }
}

/// Splits positions [first, first + count) at the ends of output rows.
int cut_runs(const Shape& s, i64 first, i64 count, Run* runs) {
  int n = 0;
  for (i64 done = 0; done < count;) {
    const i64 at = first + done;
    const i64 column = at % s.d[2].output, row = at / s.d[2].output;
    const i64 length = smaller(s.d[2].output - column, count - done);
    runs[n++] = {{row / s.d[1].output, row % s.d[1].output, column}, done, length};
    done += length;
  }
  return n;
}

template <class Acc>
using FillPanel = void (*)(const ColumnBlock&, i64, i64, const Run*, int, i64, i64, Acc*);

template <class Acc>
FillPanel<Acc> fill_for(DType dtype) {
  FillPanel<Acc> r = nullptr;
  const auto pick = [&](auto tag) { r = fill_panel<Acc, typename decltype(tag)::type>; };
  if constexpr (kernel::kIsFloat<Acc>) {
    switch (dtype) {
      COIL_FLOAT_CASES(pick)
      COIL_NOT_FLOAT_CASES break;
    }
  } else {
    switch (dtype) {
      COIL_INT_CASES(pick)
      COIL_NOT_INT_CASES break;
    }
  }
  if (!r) fail_unsupported(dtype);
  return r;
}

template <class Acc>
struct ConvCall {
  const ConvArgs& c;
  Shape s;
  ElementFunctions<Acc> in, out;
  FillPanel<Acc> fill;
  const Acc* weights;  // [oc][k] of all groups
  const Acc* bias;     // [oc] or null
  void* scratch;       // of the workers
};

/// Whether the weights already lie as the matrix [oc][k].
template <class Acc>
bool weights_in_place(const ConvArgs& c, const Shape& s) {
  if (c.transposed || !in_place<Acc>(c.in)) return false;
  i64 expected = 1;
  for (int i = 2; i >= 0; --i) {
    if (s.d[i].kernel != 1 && s.w_stride[i] != expected) return false;
    expected *= s.d[i].kernel;
  }
  return (s.ic == 1 || c.w_strides[1] == expected) && (c.oc == 1 || c.w_strides[0] == s.k);
}

template <class Acc>
void pack_weights(const ConvCall<Acc>& call, i64 o, Acc* out) {
  const ConvArgs& c = call.c;
  const Shape& s = call.s;
  const i64 group = o / s.oc;
  for (i64 channel = 0; channel < s.ic; ++channel) {
    const i64 lead = c.transposed ? group * s.ic + channel : o;
    const i64 second = c.transposed ? o % s.oc : channel;
    for (i64 z = 0; z < s.d[0].kernel; ++z) {
      for (i64 y = 0; y < s.d[1].kernel; ++y, out += s.d[2].kernel) {
        const i64 offset = lead * c.w_strides[0] + second * c.w_strides[1] + z * s.w_stride[0] +
                           y * s.w_stride[1];
        call.in.pack({advance(c.w, offset, c.in), 0, s.w_stride[2]}, 1, s.d[2].kernel, 1, out);
      }
    }
  }
}

/// One block: output channels [row, row + rows) of a group, positions [col, col + cols).
template <class Acc>
struct ConvTask {
  const ConvCall<Acc>& call;
  i64 image, group, row, rows, col, cols;
  Workspace<Acc> work;

  static constexpr i64 kCols = Tile<Acc>::kCols, kRows = Tile<Acc>::kRows;

  void multiply() const {
    const Shape& s = call.s;
    const ConvArgs& c = call.c;
    const i64 offset = image * c.x_strides[0] + group * s.ic * c.x_strides[1];
    const ColumnBlock block{s, c.transposed, advance(c.x, offset, c.in), c.x_strides[1]};
    const Acc* weights = call.weights + (group * s.oc + row) * s.k;
    for (i64 k0 = 0; k0 < s.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, s.k - k0);
      for (i64 j = 0; j < cols; j += kCols) {
        Run runs[kCols];
        const i64 filled = smaller(kCols, cols - j);
        const int n = cut_runs(s, col + j, filled, runs);
        call.fill(block, k0, kc, runs, n, filled, kCols, work.b);
        for (i64 i = 0; i < rows; i += kRows) {
          multiply_tile<Acc>({weights + i * s.k + k0, s.k, 1, smaller(kRows, rows - i)}, work.b, kc,
                             work.sums + i * kBlockN + j, kBlockN, k0 == 0);
        }
      }
    }
    if (s.k == 0) {
      for (i64 i = 0; i < rows * kBlockN; ++i) work.sums[i] = Acc(0);
    }
  }

  void add_bias() const {
    if (!call.bias) return;
    const Acc* bias = call.bias + group * call.s.oc + row;
    for (i64 i = 0; i < rows; ++i) {
      Acc* sums = work.sums + i * kBlockN;
      for (i64 j = 0; j < kBlockN; ++j) sums[j] = kernel::add(sums[j], bias[i]);
    }
  }

  void store() const {
    const Shape& s = call.s;
    const ConvArgs& c = call.c;
    const i64 base = image * c.y_strides[0] + (group * s.oc + row) * c.y_strides[1];
    Run runs[kBlockN];
    const int n = cut_runs(s, col, cols, runs);
    for (int r = 0; r < n; ++r) {
      const Run& run = runs[r];
      const i64 offset = base + run.o[0] * s.y_stride[0] + run.o[1] * s.y_stride[1] +
                         run.o[2] * s.y_stride[2];
      call.out.store(work.sums + run.start, kBlockN, rows, run.count, advance(c.y, offset, c.out),
                     c.y_strides[1], s.y_stride[2]);
    }
  }
};

template <class Acc>
void prepare_weights(ConvCall<Acc>& call, runtime::ThreadPool& pool, char* scratch) {
  const ConvArgs& c = call.c;
  const Shape& s = call.s;
  if (weights_in_place<Acc>(c, s)) {
    call.weights = static_cast<const Acc*>(c.w);
  } else {
    Acc* packed = reinterpret_cast<Acc*>(scratch);
    for_each_task(pool, c.oc, [&](i64 o, int) { pack_weights(call, o, packed + o * s.k); });
    call.weights = packed;
  }
  call.bias = nullptr;
  if (c.bias) {
    Acc* bias = reinterpret_cast<Acc*>(scratch) + c.oc * s.k;
    call.in.pack({c.bias, 0, c.bias_stride}, 1, c.oc, 1, bias);
    call.bias = bias;
  }
}

template <class Acc>
i64 weight_bytes(const ConvArgs& c, const Shape& s) {
  return round_up((c.oc * s.k + c.oc) * i64(sizeof(Acc)), kCacheLine);
}

template <class Acc>
void run_conv(const ConvArgs& c, runtime::ThreadPool& pool, void* scratch) {
  const Shape s(c);
  if (c.n <= 0 || c.oc <= 0 || s.positions <= 0) return;
  char* workers = static_cast<char*>(scratch) + weight_bytes<Acc>(c, s);
  ConvCall<Acc> call{c,       s,       functions_for<Acc>(c.in), functions_for<Acc>(c.out),
                     fill_for<Acc>(c.in), nullptr, nullptr,      workers};
  prepare_weights(call, pool, static_cast<char*>(scratch));
  const i64 rows = smaller(s.oc, Workspace<Acc>::kMaxRows);
  const i64 row_blocks = (s.oc + rows - 1) / rows;
  const i64 col_blocks = (s.positions + kBlockN - 1) / kBlockN;
  for_each_task(pool, row_blocks * col_blocks * c.groups * c.n, [&](i64 task, int worker) {
    const i64 row = task % row_blocks * rows;
    const i64 col = task / row_blocks % col_blocks * kBlockN;
    const i64 rest = task / row_blocks / col_blocks;
    const ConvTask<Acc> block{call,
                              rest / c.groups,
                              rest % c.groups,
                              row,
                              smaller(rows, s.oc - row),
                              col,
                              smaller(kBlockN, s.positions - col),
                              Workspace<Acc>(call.scratch, worker)};
    block.multiply();
    block.add_bias();
    block.store();
  });
}

}  // namespace

void conv(const ConvArgs& c, runtime::ThreadPool& pool, void* scratch) {
  with_accumulator(c.in, c.out, [&](auto acc) {
    run_conv<typename decltype(acc)::type>(c, pool, scratch);
  });
}

i64 conv_scratch_bytes(const ConvArgs& c, int threads) {
  i64 bytes = 0;
  with_accumulator(c.in, c.out, [&](auto acc) {
    using Acc = typename decltype(acc)::type;
    bytes = weight_bytes<Acc>(c, Shape(c)) + Workspace<Acc>::kBytes * threads;
  });
  return bytes;
}

}  // namespace coil::templates::COIL_ISA
