// Matrix product: tasks are blocks of C, each loops over the blocks of k and packs what it needs.

#include "templates/cpu/gemm.h"

#include "templates/cpu/gemm_core.h"
#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

struct Blocks {
  i64 rows;               // of a task
  i64 row_blocks, col_blocks;
  i64 tasks;
};

/// Big blocks for little packing, but enough of them for the threads. Does not change the result.
Blocks cut(const GemmArgs& g, int threads) {
  const i64 col_blocks = (g.n + kBlockN - 1) / kBlockN;
  i64 rows = larger(smaller(g.m, Workspace<float>::kMaxRows), 1);
  const auto tasks = [&] { return (g.m + rows - 1) / rows * col_blocks * g.batch; };
  while (threads > 1 && rows > 48 && tasks() < 3 * threads) rows = round_up(rows / 2, 24);
  const i64 row_blocks = (g.m + rows - 1) / rows;
  rows = smaller(rows, round_up((g.m + row_blocks - 1) / row_blocks, 24));
  return {rows, row_blocks, col_blocks, tasks()};
}

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
  void* scratch;
};

/// One block of C.
template <class Acc>
struct BlockTask {
  const Call<Acc>& call;
  const GemmArgs& g;
  i64 batch;
  Range rows, cols;
  Workspace<Acc> work;

  static constexpr i64 kCols = Tile<Acc>::kCols, kRows = Tile<Acc>::kRows;

  struct Panels {
    const Acc* first;
    i64 stride;
  };
  /// The panels of B for rows [k0, k0 + kc) of this block's columns.
  Panels panels_of_b(i64 k0, i64 kc) const {
    if (g.packed_b) {
      const i64 copies = g.b.batch_stride == 0 ? 0 : packed_bytes<Acc>(g) / i64(sizeof(Acc));
      const Acc* base = static_cast<const Acc*>(g.packed_b) + batch * copies;
      return {base + cols.start * g.k + k0 * kCols, g.k * kCols};
    }
    const i64 start = batch * g.b.batch_stride + k0 * g.b.row_stride;
    const i64 offset = start + cols.start * g.b.col_stride;
    call.in.pack({advance(g.b.data, offset, g.in), g.b.col_stride, g.b.row_stride}, cols.count, kc,
                 kCols, work.b);
    return {work.b, kc * kCols};
  }

  /// The rows of A from k0 on, packed where they need a conversion.
  const Acc* prepare_a(i64 k0, i64 kc) const {
    const i64 start = batch * g.a.batch_stride + rows.start * g.a.row_stride + k0 * g.a.col_stride;
    if (call.a_in_place) return static_cast<const Acc*>(advance(g.a.data, start, g.in));
    call.in.pack({advance(g.a.data, start, g.in), g.a.row_stride, g.a.col_stride}, rows.count, kc,
                 kRows, work.a);
    return work.a;
  }
  TileRows<Acc> tile_rows(const Acc* a, i64 i, i64 kc) const {
    const i64 count = smaller(kRows, rows.count - i);
    if (!call.a_in_place) return {a + i * kc, 1, kRows, count};
    return {a + i * g.a.row_stride, g.a.row_stride, g.a.col_stride, count};
  }

  /// One row of A against a full block of B's rows where they lie: packing would be all the work.
  /// The same operations on each element, hence the same bits.
  bool is_plain_row() const {
    return rows.count == 1 && cols.count == kBlockN && !g.packed_b && call.a_in_place &&
           g.b.col_stride == 1;
  }
  void multiply_row() const {
    constexpr int vectors = 6;
    constexpr i64 width = Tile<Acc>::kLanes * vectors;
    static_assert(kBlockN % width == 0);
    for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, g.k - k0);
      const Acc* a = prepare_a(k0, kc);
      const i64 start = batch * g.b.batch_stride + k0 * g.b.row_stride + cols.start;
      const Acc* b = static_cast<const Acc*>(advance(g.b.data, start, g.in));
      for (i64 j = 0; j < kBlockN; j += width) {
        multiply_rows<Acc, 1, vectors>(tile_rows(a, 0, kc), b + j, g.b.row_stride, kc,
                                       work.sums + j, kBlockN, k0 == 0);
      }
    }
  }

  void multiply() const {
    if (is_plain_row() && g.k > 0) return multiply_row();
    for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, g.k - k0);
      const Panels b = panels_of_b(k0, kc);
      const Acc* a = prepare_a(k0, kc);
      for (i64 j = 0; j < cols.count; j += kCols) {
        for (i64 i = 0; i < rows.count; i += kRows) {
          multiply_tile<Acc>(tile_rows(a, i, kc), b.first + j / kCols * b.stride, kc,
                             work.sums + i * kBlockN + j, kBlockN, k0 == 0);
        }
      }
    }
    if (g.k == 0) {
      for (i64 i = 0; i < rows.count * kBlockN; ++i) work.sums[i] = Acc(0);
    }
  }

  void finish() const {
    if (g.epilogue) {
      g.epilogue(g.epilogue_context, batch, rows.start, rows.count, cols.start, cols.count,
                 work.sums, kBlockN);
    }
    if (!g.c.data) return;
    const i64 offset = batch * g.c.batch_stride + rows.start * g.c.row_stride +
                       cols.start * g.c.col_stride;
    call.out.store(work.sums, kBlockN, rows.count, cols.count, advance(g.c.data, offset, g.out),
                   g.c.row_stride, g.c.col_stride);
  }
};

template <class Acc>
void run_gemm(const GemmArgs& g, runtime::ThreadPool& pool, void* scratch) {
  const Blocks blocks = cut(g, pool.threads());
  const Call<Acc> call{g, functions_for<Acc>(g.in), functions_for<Acc>(g.out),
                       in_place<Acc>(g.in), scratch};
  for_each_task(pool, blocks.tasks, [&](i64 task, int worker) {
    const i64 row = task % blocks.row_blocks * blocks.rows;
    const i64 rest = task / blocks.row_blocks;
    const i64 col = rest % blocks.col_blocks * kBlockN;
    const BlockTask<Acc> block{call,
                               g,
                               rest / blocks.col_blocks,
                               {row, smaller(blocks.rows, g.m - row)},
                               {col, smaller(kBlockN, g.n - col)},
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
    in.pack({advance(g.b.data, batch * g.b.batch_stride, g.in), g.b.col_stride, g.b.row_stride}, g.n,
            g.k, cols, out);
    out += packed_bytes<Acc>(g) / i64(sizeof(Acc));
  }
}

}  // namespace

void gemm(const GemmArgs& g, runtime::ThreadPool& pool, void* scratch) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  with_accumulator(g.in, g.out, [&](auto acc) {
    run_gemm<typename decltype(acc)::type>(g, pool, scratch);
  });
}

i64 gemm_scratch_bytes(const GemmArgs& g, int threads) {
  i64 bytes = 0;
  with_accumulator(g.in, g.out, [&](auto acc) {
    bytes = Workspace<typename decltype(acc)::type>::kBytes;
  });
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
