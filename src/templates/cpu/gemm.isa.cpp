// Matrix product: tasks are blocks of C. Three ways to the same bits: blocks of k outside for many
// rows, panels of B outside for few (each element of B is read once), and few rows against rows of
// B that are read where they lie.

#include "templates/cpu/gemm.h"

#include "templates/cpu/entries.inc"
#include "templates/cpu/gemm_core.h"

namespace coil::templates::COIL_ISA {

namespace {

// Up to so many rows the reading of B decides, not the multiplications.
constexpr i64 kFewRows = 8;

template <class Acc>
i64 packed_bytes(const GemmArgs& g) {
  return round_up(g.n, Tile<Acc>::kCols) * g.k * i64(sizeof(Acc));
}

struct Range {
  i64 start, count;
};

/// What all tasks of a call share.
template <class Acc>
struct Call {
  const GemmArgs& g;
  ElementFunctions<Acc> in, out;
  bool a_in_place;
  bool one_column;  // the caller's product has n = 1 and is computed as its transpose
  void* scratch;
};

/// One block of C.
template <class Acc>
struct BlockTask {
  const Call<Acc>& call;
  const GemmArgs& g;
  i64 batch;
  Range rows, cols;
  i64 ld;  // of sums
  Workspace<Acc> work;

  static constexpr i64 kCols = Tile<Acc>::kCols, kRows = Tile<Acc>::kRows;

  struct Panels {
    const Acc* first;
    i64 stride;
  };
  /// The panels of B for rows [k0, k0 + kc) and columns [j, j + count) of this block.
  Panels panels_of_b(i64 k0, i64 kc, i64 j, i64 count) const {
    const i64 column = cols.start + j;
    if (g.packed_b) {
      const i64 copies = g.b.batch_stride == 0 ? 0 : packed_bytes<Acc>(g) / i64(sizeof(Acc));
      const Acc* base = static_cast<const Acc*>(g.packed_b) + batch * copies;
      return {base + column * g.k + k0 * kCols, g.k * kCols};
    }
    const i64 start = batch * g.b.batch_stride + k0 * g.b.row_stride + column * g.b.col_stride;
    call.in.pack({advance(g.b.data, start, g.in), g.b.col_stride, g.b.row_stride}, count, kc, kCols,
                 work.b);
    return {work.b, kc * kCols};
  }

  /// Rows of A from k0 on: where they lie, or converted; then row by row if they are contiguous.
  struct Left {
    const Acc* data;
    i64 row_stride, k_stride;
    bool panels;  // of kRows rows and kc columns
    TileRows<Acc> tile(i64 i, i64 count, i64 kc) const {
      if (panels) return {data + i * kc, 1, kRows, count};
      return {data + i * row_stride, row_stride, k_stride, count};
    }
  };
  Left prepare_a(i64 k0, i64 kc) const {
    const i64 start = batch * g.a.batch_stride + rows.start * g.a.row_stride + k0 * g.a.col_stride;
    const void* from = advance(g.a.data, start, g.in);
    if (call.a_in_place) {
      return {static_cast<const Acc*>(from), g.a.row_stride, g.a.col_stride, false};
    }
    const bool by_rows = g.a.col_stride == 1;
    call.in.pack({from, g.a.row_stride, g.a.col_stride}, rows.count, kc, by_rows ? 1 : kRows,
                 work.a);
    return {work.a, kc, 1, !by_rows};
  }
  i64 height(const Left& a) const { return a.panels ? kRows : tile_height<Acc>(rows.count); }

  void multiply_panel(const Left& a, const Acc* b, i64 k0, i64 kc, i64 j) const {
    const i64 step = height(a);
    for (i64 i = 0; i < rows.count; i += step) {
      multiply_tile<Acc>(a.tile(i, smaller(step, rows.count - i), kc), b, kc,
                         work.sums + i * ld + j, ld, k0 == 0, cols.count - j);
    }
  }

  void multiply_many_rows() const {
    for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, g.k - k0);
      const Panels b = panels_of_b(k0, kc, 0, cols.count);
      const Left a = prepare_a(k0, kc);
      for (i64 j = 0; j < cols.count; j += kCols) {
        multiply_panel(a, b.first + j / kCols * b.stride, k0, kc, j);
      }
    }
  }

  /// Panels outside: a packed B is read from its beginning to its end, each row of an n-major B
  /// too.
  void multiply_few_rows() const {
    constexpr int vectors = 6;
    constexpr i64 width = vectors / Tile<Acc>::kVectors * kCols;
    for (i64 j = 0; j < cols.count;) {
      const bool wide = rows.count == 1 && j + width <= round_up(cols.count, kCols);
      const i64 step = wide ? width : kCols;
      for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
        const i64 kc = smaller(kBlockK, g.k - k0);
        const Panels b = panels_of_b(k0, kc, j, smaller(step, cols.count - j));
        const Left a = prepare_a(k0, kc);
        if (wide) {
          multiply_rows<Acc, 1, vectors>(a.tile(0, 1, kc), b.first, EvenRows{kCols}, b.stride, kc,
                                         work.sums + j, ld, k0 == 0);
        } else {
          multiply_panel(a, b.first, k0, kc, j);
        }
      }
      j += step;
    }
  }

  /// Whole rows of B, some at a time, each added to every row of the block: see stream_rows.
  void multiply_streamed() const {
    constexpr i64 width = kStreamVectors * Tile<Acc>::kLanes;
    const i64 whole = cols.count / width * width, rest = cols.count - whole;
    Acc* const partial = work.sums + rows.count * ld;
    for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, g.k - k0);
      const Left a = prepare_a(k0, kc);
      const TileRows<Acc> left = a.tile(0, rows.count, kc);
      const i64 start = batch * g.b.batch_stride + k0 * g.b.row_stride + cols.start;
      const Acc* b = static_cast<const Acc*>(advance(g.b.data, start, g.in));
      clear(partial, rows.count * ld);
      stream_rows(left, b, g.b.row_stride, kc, whole, partial, ld);
      if (rest > 0) {
        call.in.pack({b + whole, 1, g.b.row_stride}, rest, kc, width, work.b);
        stream_rows(left, work.b, width, kc, width, partial + whole, ld);
      }
      for (i64 i = 0; i < rows.count * ld; ++i) {
        work.sums[i] = k0 == 0 ? partial[i] : kernel::add(work.sums[i], partial[i]);
      }
    }
  }
  static void clear(Acc* p, i64 count) {
    for (i64 i = 0; i < count; ++i) p[i] = Acc(0);
  }

  void multiply() const {
    if (g.k == 0) return clear(work.sums, rows.count * ld);
    if (ld > kBlockN) return multiply_streamed();
    return rows.count <= kFewRows ? multiply_few_rows() : multiply_many_rows();
  }

  void finish() const {
    if (g.epilogue && call.one_column) {
      g.epilogue(g.epilogue_context, batch, cols.start, cols.count, 0, 1, work.sums, 1);
    } else if (g.epilogue) {
      g.epilogue(g.epilogue_context, batch, rows.start, rows.count, cols.start, cols.count,
                 work.sums, ld);
    }
    if (!g.c.data) return;
    const i64 offset =
        batch * g.c.batch_stride + rows.start * g.c.row_stride + cols.start * g.c.col_stride;
    call.out.store(work.sums, ld, rows.count, cols.count, advance(g.c.data, offset, g.out),
                   g.c.row_stride, g.c.col_stride);
  }

  static constexpr int kStreamVectors = 2;

  /// c[i][j] += a[i][p] * b[p][j] for Depth rows p in order; cols is a multiple of the step.
  template <int Depth>
  static void stream_some(TileRows<Acc> a, const Acc* b, i64 b_stride, i64 cols, Acc* c, i64 ld) {
    constexpr int lanes = Tile<Acc>::kLanes;
    using V = typename Tile<Acc>::Vector;
    for (i64 j = 0; j < cols; j += kStreamVectors * lanes) {
      V bs[Depth][kStreamVectors];
#pragma GCC unroll 4
      for (int p = 0; p < Depth; ++p) {
#pragma GCC unroll 2
        for (int v = 0; v < kStreamVectors; ++v) {
          bs[p][v] = kernel::load_lanes<Acc, lanes>(b + p * b_stride + j + v * lanes);
        }
      }
      const Acc* x = a.data;
      Acc* to = c + j;
      for (i64 i = 0; i < a.rows; ++i, x += a.row_stride, to += ld) {
        V sum[kStreamVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kStreamVectors; ++v) {
          sum[v] = kernel::load_lanes<Acc, lanes>(to + v * lanes);
        }
#pragma GCC unroll 4
        for (int p = 0; p < Depth; ++p) {
          const V factor = kernel::like<V>(x[p * a.k_stride]);
#pragma GCC unroll 2
          for (int v = 0; v < kStreamVectors; ++v) sum[v] = multiply_add(factor, bs[p][v], sum[v]);
        }
#pragma GCC unroll 2
        for (int v = 0; v < kStreamVectors; ++v) kernel::to_array(sum[v], to + v * lanes);
      }
    }
  }
  static void stream_rows(TileRows<Acc> a, const Acc* b, i64 b_stride, i64 k, i64 cols, Acc* c,
                          i64 ld) {
    constexpr i64 depth = 4;
    for (; k >= depth; k -= depth) {
      stream_some<depth>(a, b, b_stride, cols, c, ld);
      a.data += depth * a.k_stride;
      b += depth * b_stride;
    }
    for (; k > 0; --k) {
      stream_some<1>(a, b, b_stride, cols, c, ld);
      a.data += a.k_stride;
      b += b_stride;
    }
  }
};

/// Whether rows of B are read where they lie by multiply_streamed.
template <class Acc>
bool is_streamed(const GemmArgs& g) {
  return g.m <= kFewRows && g.n > kBlockN && !g.packed_b && in_place<Acc>(g.in) &&
         g.b.col_stride == 1;
}

template <class Acc>
Blocks cut(const GemmArgs& g, int threads) {
  if (is_streamed<Acc>(g)) {
    constexpr i64 most_sums = 2048;  // with the partial ones they stay in the first cache
    const i64 share = (g.n * g.batch + threads - 1) / threads;
    const i64 cols =
        larger(smaller(round_up(share, kBlockN), round_up(most_sums / g.m, kBlockN)), 2 * kBlockN);
    return {g.m, cols, 1, (g.n + cols - 1) / cols};
  }
  const BlockCosts costs{.height = Tile<Acc>::kRows,
                         .max_rows = Workspace<Acc>::kMaxRows,
                         .columns_setup = g.packed_b ? 1 : 12,
                         .rows_setup = in_place<Acc>(g.in) ? 4 : 24,
                         .lanes = Tile<Acc>::kLanes,
                         .width = Tile<Acc>::kCols};
  return cut_blocks(g.m, g.n, g.batch, threads, costs);
}

/// A product with one column is the transpose of one with one row, which reads the matrix once.
template <class Acc>
bool turn_one_column(GemmArgs& g) {
  if (g.n != 1 || g.m == 1 || (g.packed_b && !in_place<Acc>(g.in))) return false;
  ConstMatrix column = {g.b.data, 0, g.b.row_stride, g.b.batch_stride};
  if (g.packed_b) {
    const i64 copy = g.b.batch_stride == 0 ? 0 : packed_bytes<Acc>(g) / i64(sizeof(Acc));
    column = {g.packed_b, 0, Tile<Acc>::kCols, copy};
  }
  g.b = {g.a.data, g.a.col_stride, g.a.row_stride, g.a.batch_stride};
  g.a = column;
  g.c = {g.c.data, g.c.col_stride, g.c.row_stride, g.c.batch_stride};
  g.packed_b = nullptr;
  g.n = g.m;
  g.m = 1;
  return true;
}

template <class Acc>
void run_gemm(GemmArgs g, runtime::ThreadPool& pool, void* scratch) {
  const bool one_column = turn_one_column<Acc>(g);
  const Blocks blocks = cut<Acc>(g, pool.threads());
  const Call<Acc> call{
      g,      functions_for<Acc>(g.in), functions_for<Acc>(g.out), in_place<Acc>(g.in), one_column,
      scratch};
  for_each_task(pool, blocks.count() * g.batch, [&](i64 task, int worker) {
    const auto [copy, row, col] = blocks.place(task);
    const BlockTask<Acc> block{call,
                               g,
                               copy,
                               {row, smaller(blocks.rows, g.m - row)},
                               {col, smaller(blocks.cols, g.n - col)},
                               larger(blocks.cols, kBlockN),
                               Workspace<Acc>(call.scratch, worker)};
    block.multiply();
    block.finish();
  });
}

template <class Acc>
void pack_all_of_b(const GemmArgs& g, Acc* out) {
  constexpr i64 cols = Tile<Acc>::kCols;
  const ElementFunctions<Acc> in = functions_for<Acc>(g.in);
  const i64 copies = g.b.batch_stride == 0 ? 1 : g.batch;
  for (i64 batch = 0; batch < copies; ++batch) {
    in.pack({advance(g.b.data, batch * g.b.batch_stride, g.in), g.b.col_stride, g.b.row_stride},
            g.n, g.k, cols, out);
    out += packed_bytes<Acc>(g) / i64(sizeof(Acc));
  }
}

}  // namespace

void gemm(const GemmArgs& g, runtime::ThreadPool& pool, void* scratch) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  with_accumulator(g.in, g.out,
                   [&](auto acc) { run_gemm<typename decltype(acc)::type>(g, pool, scratch); });
}

i64 gemm_scratch_bytes(const GemmArgs& g, int threads) {
  i64 bytes = 0;
  with_accumulator(g.in, g.out,
                   [&](auto acc) { bytes = Workspace<typename decltype(acc)::type>::kBytes; });
  return bytes * threads;
}

i64 packed_b_bytes(const GemmArgs& g) {
  i64 bytes = 0;
  with_accumulator(g.in, g.out,
                   [&](auto acc) { bytes = packed_bytes<typename decltype(acc)::type>(g); });
  return bytes * (g.b.batch_stride == 0 ? 1 : g.batch);
}

void pack_b(const GemmArgs& g, void* packed) {
  with_accumulator(g.in, g.out, [&](auto acc) {
    pack_all_of_b(g, static_cast<typename decltype(acc)::type*>(packed));
  });
}

}  // namespace coil::templates::COIL_ISA
