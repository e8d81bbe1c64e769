// Matrix product: tasks are blocks of C, each loops over the blocks of k and packs what it needs.

#include "templates/cpu/gemm.h"

#include "templates/cpu/gemm_core.h"
#include "templates/cpu/isa_entries.h"

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

/// One block of C.
template <class Acc, class T>
struct BlockTask {
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
    const T* b = static_cast<const T*>(g.b.data) + batch * g.b.batch_stride +
                 k0 * g.b.row_stride + cols.start * g.b.col_stride;
    for (i64 j = 0; j < cols.count; j += kCols) {
      pack_panel<Acc>(b + j * g.b.col_stride, g.b.col_stride, g.b.row_stride,
                      smaller(kCols, cols.count - j), kc, kCols, work.b + j * kc);
    }
    return {work.b, kc * kCols};
  }

  /// Packs the rows of A where they need a conversion.
  void prepare_a(const T* a, i64 kc) const {
    if constexpr (!kSameInMemory<Acc, T>) {
      for (i64 i = 0; i < rows.count; i += kRows) {
        pack_panel<Acc>(a + i * g.a.row_stride, g.a.row_stride, g.a.col_stride,
                        smaller(kRows, rows.count - i), kc, kRows, work.a + i * kc);
      }
    }
  }
  TileRows<Acc> tile_rows(const T* a, i64 i, i64 kc) const {
    const i64 count = smaller(kRows, rows.count - i);
    if constexpr (kSameInMemory<Acc, T>) {
      return {a + i * g.a.row_stride, g.a.row_stride, g.a.col_stride, count};
    } else {
      return {work.a + i * kc, 1, kRows, count};
    }
  }

  void multiply() const {
    for (i64 k0 = 0; k0 < g.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, g.k - k0);
      const Panels b = panels_of_b(k0, kc);
      const T* a = static_cast<const T*>(g.a.data) + batch * g.a.batch_stride +
                   rows.start * g.a.row_stride + k0 * g.a.col_stride;
      prepare_a(a, kc);
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
    with_number(g.out, [&](auto tag) {
      using Out = typename decltype(tag)::type;
      store_block(work.sums, kBlockN, rows.count, cols.count, static_cast<Out*>(g.c.data) + offset,
                  g.c.row_stride, g.c.col_stride);
    });
  }
};

template <class Acc, class T>
void run_gemm(const GemmArgs& g, runtime::ThreadPool& pool, void* scratch) {
  const Blocks blocks = cut(g, pool.threads());
  for_each_task(pool, blocks.tasks, [&](i64 task, int worker) {
    const i64 row = task % blocks.row_blocks * blocks.rows;
    const i64 rest = task / blocks.row_blocks;
    const i64 col = rest % blocks.col_blocks * kBlockN;
    const BlockTask<Acc, T> block{g,
                                  rest / blocks.col_blocks,
                                  {row, smaller(blocks.rows, g.m - row)},
                                  {col, smaller(kBlockN, g.n - col)},
                                  Workspace<Acc>(scratch, worker)};
    block.multiply();
    block.finish();
  });
}

/// f(accumulator tag, element tag) for the input's type and its accumulator.
template <class F>
void with_types(const GemmArgs& g, F f) {
  with_number(g.in, [&](auto element) {
    using T = typename decltype(element)::type;
    if constexpr (kernel::kIsNarrow<T> || kernel::kSame<T, float>) {
      f(TypeTag<float>{}, element);
    } else if constexpr (kernel::kSame<T, double>) {
      f(TypeTag<double>{}, element);
    } else if constexpr (sizeof(T) == 8) {
      f(TypeTag<i64>{}, element);
    } else if (size_of(g.out) == 8) {
      f(TypeTag<i64>{}, element);
    } else {
      f(TypeTag<i32>{}, element);
    }
  });
}

}  // namespace

void gemm(const GemmArgs& g, runtime::ThreadPool& pool, void* scratch) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  with_types(g, [&](auto acc, auto element) {
    run_gemm<typename decltype(acc)::type, typename decltype(element)::type>(g, pool, scratch);
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
  with_types(g, [&](auto acc, auto element) {
    using Acc = typename decltype(acc)::type;
    using T = typename decltype(element)::type;
    constexpr i64 cols = Tile<Acc>::kCols;
    Acc* out = static_cast<Acc*>(packed);
    const i64 copies = g.b.batch_stride == 0 ? 1 : g.batch;
    for (i64 batch = 0; batch < copies; ++batch) {
      const T* b = static_cast<const T*>(g.b.data) + batch * g.b.batch_stride;
      for (i64 j = 0; j < g.n; j += cols, out += g.k * cols) {
        pack_panel<Acc>(b + j * g.b.col_stride, g.b.col_stride, g.b.row_stride,
                        smaller(cols, g.n - j), g.k, cols, out);
      }
    }
  });
}

}  // namespace coil::templates::COIL_ISA
