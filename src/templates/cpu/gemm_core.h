#pragma once
// The matrix kernel that gemm, convolution and attention share: a register tile over panels of B.
// Included by *.isa.cpp only.

#include "templates/cpu/gemm_pack.h"
#include "templates/cpu/isa.h"

namespace coil::templates::COIL_ISA {

// k is cut into blocks of this length whose partial sums are added in order: part of the result.
constexpr i64 kBlockK = 256;
// Columns of a block of C: a multiple of every tile width.
constexpr i64 kBlockN = 96;

/// The register tile for an accumulator type: kRows x kCols, as rows of kVectors registers. The
/// sums, one row of B and one broadcast element of A fill the registers.
template <class Acc>
struct Tile {
  static constexpr int kLanes = kernel::kRegisterBytes / static_cast<int>(sizeof(Acc));
#if COIL_KERNEL_AVX512
  static constexpr int kRows = 8, kVectors = 3;
#elif COIL_KERNEL_AVX2
  static constexpr int kRows = 6, kVectors = 2;
#elif COIL_KERNEL_NEON
  static constexpr int kRows = 6, kVectors = 3;
#else
  static constexpr int kRows = 4, kVectors = 2;
#endif
  static constexpr int kCols = kLanes * kVectors;
  static_assert(kBlockN % kCols == 0);
  using Vector = kernel::vec<Acc, kLanes>;
};

template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
  if constexpr (kernel::kIsFloat<kernel::elem<V>>)
    return kernel::mad(a, b, c);
  else
    return kernel::add(kernel::mul(a, b), c);
}

/// Rows of A for one tile: element (i, p) is data[i*row_stride + p*k_stride], i < rows.
template <class Acc>
struct TileRows {
  const Acc* data;
  i64 row_stride, k_stride;
  i64 rows;  // 1 to kRows
};

/// Where row p of B begins: a fixed step apart, or by a table.
struct EvenRows {
  i64 stride;
  i64 at(i64 p) const { return p * stride; }
};
struct ListedRows {
  const i64* offsets;
  i64 at(i64 p) const { return offsets[p]; }
};

/// c (Rows x Vectors registers, row stride ld) = or += A times b, over k rows of b. Beyond a tile's
/// width the registers are those of the next panels, `panel_stride` elements apart.
template <class Acc, int Rows, int Vectors, class RowsOfB>
[[gnu::noinline]] static void multiply_rows(TileRows<Acc> a, const Acc* b, RowsOfB rows_of_b,
                                            i64 panel_stride, i64 k, Acc* c, i64 ld, bool first) {
  using T = Tile<Acc>;
  using V = typename T::Vector;
  const Acc* row[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) row[i] = a.data + i * a.row_stride;
  V sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sum[i][j] = kernel::like<V>(Acc(0));
  }
  i64 at = 0;
  for (i64 p = 0; p < k; ++p, at += a.k_stride) {
    const Acc* row_of_b = b + rows_of_b.at(p);
    V bs[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      bs[j] = kernel::load_lanes<Acc, T::kLanes>(row_of_b + j / T::kVectors * panel_stride +
                                                 j % T::kVectors * T::kLanes);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V x = kernel::like<V>(row[i][at]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] = multiply_add(x, bs[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      Acc* out = c + i * ld + j * T::kLanes;
      V result = sum[i][j];
      if (!first) result = kernel::add(kernel::load_lanes<Acc, T::kLanes>(out), result);
      kernel::to_array(result, out);
    }
  }
}

/// multiply_rows for one panel, or its first Vectors registers, and the number of rows that `a`
/// has.
template <class Acc, int Vectors, class RowsOfB, int Rows = 1>
[[gnu::always_inline]] inline void multiply_tile_by(TileRows<Acc> a, const Acc* b,
                                                    RowsOfB rows_of_b, i64 k, Acc* c, i64 ld,
                                                    bool first) {
  if constexpr (Rows < Tile<Acc>::kRows) {
    if (a.rows > Rows) {
      return multiply_tile_by<Acc, Vectors, RowsOfB, Rows + 1>(a, b, rows_of_b, k, c, ld, first);
    }
  }
  multiply_rows<Acc, Rows, Vectors>(a, b, rows_of_b, 0, k, c, ld, first);
}
/// One tile of at most kRows rows over a packed panel, of which at least `cols` columns are made.
template <class Acc>
static void multiply_tile(TileRows<Acc> a, const Acc* b, i64 k, Acc* c, i64 ld, bool first,
                          i64 cols = Tile<Acc>::kCols) {
  using T = Tile<Acc>;
  if (cols <= T::kLanes)
    multiply_tile_by<Acc, 1>(a, b, EvenRows{T::kCols}, k, c, ld, first);
  else
    multiply_tile_by<Acc, T::kVectors>(a, b, EvenRows{T::kCols}, k, c, ld, first);
}

/// Columns of a panel so few that lanes along the rows are quicker than a register with one of
/// each.
constexpr i64 kFewCols = 4;
/// Whether kRows rows of A, packed, are a vector.
template <class Acc>
constexpr bool kRowsAreLanes = (Tile<Acc>::kRows & (Tile<Acc>::kRows - 1)) == 0;
/// Tiles of rows that multiply_columns takes at once, so that enough sums are in flight.
constexpr int kTilesOfRows = 4;

/// The first Cols columns of kTilesOfRows tiles of packed rows, `tile` elements apart, with the
/// sums of multiply_rows in their order.
template <class Acc, int Cols>
[[gnu::noinline]] static void multiply_columns(const Acc* a, i64 tile, const Acc* b, i64 b_stride,
                                               i64 k, Acc* c, i64 ld, bool first) {
  constexpr int rows = Tile<Acc>::kRows;
  using V = kernel::vec<Acc, rows>;
  V sum[kTilesOfRows][Cols];
#pragma GCC unroll 8
  for (int t = 0; t < kTilesOfRows; ++t) {
#pragma GCC unroll 8
    for (int j = 0; j < Cols; ++j) sum[t][j] = kernel::like<V>(Acc(0));
  }
  for (i64 p = 0; p < k; ++p, a += rows, b += b_stride) {
    V bs[Cols];
#pragma GCC unroll 8
    for (int j = 0; j < Cols; ++j) bs[j] = kernel::like<V>(b[j]);
#pragma GCC unroll 8
    for (int t = 0; t < kTilesOfRows; ++t) {
      const V x = kernel::load_lanes<Acc, rows>(a + t * tile);
#pragma GCC unroll 8
      for (int j = 0; j < Cols; ++j) sum[t][j] = multiply_add(x, bs[j], sum[t][j]);
    }
  }
  for (int t = 0; t < kTilesOfRows; ++t) {
    for (int j = 0; j < Cols; ++j) {
      Acc lanes[rows];
      kernel::to_array(sum[t][j], lanes);
      for (int i = 0; i < rows; ++i) {
        Acc& out = c[(t * rows + i) * ld + j];
        out = first ? lanes[i] : kernel::add(out, lanes[i]);
      }
    }
  }
}
template <class Acc>
static void multiply_few_columns(const Acc* a, i64 tile, const Acc* b, i64 b_stride, i64 cols,
                                 i64 k, Acc* c, i64 ld, bool first) {
  switch (cols) {
    case 1: return multiply_columns<Acc, 1>(a, tile, b, b_stride, k, c, ld, first);
    case 2: return multiply_columns<Acc, 2>(a, tile, b, b_stride, k, c, ld, first);
    case 3: return multiply_columns<Acc, 3>(a, tile, b, b_stride, k, c, ld, first);
    default: return multiply_columns<Acc, kFewCols>(a, tile, b, b_stride, k, c, ld, first);
  }
}

/// Rows of the tiles that `rows` rows are cut into: as even as can be.
template <class Acc>
static i64 tile_height(i64 rows) {
  constexpr i64 most = Tile<Acc>::kRows;
  const i64 tiles = (rows + most - 1) / most;
  return tiles == 0 ? 1 : (rows + tiles - 1) / tiles;
}

/// How a product is cut into blocks of C, which are the tasks. Does not change the result.
struct Blocks {
  i64 rows, cols;  // of a task
  i64 row_blocks, col_blocks;
  bool rows_first = true;  // whether the task that follows is the next block of rows, or of columns

  i64 count() const { return row_blocks * col_blocks; }
  struct Place {
    i64 copy, row, col;
  };
  Place place(i64 task) const {
    const i64 copy = task / count(), at = task % count();
    return rows_first ? Place{copy, at % row_blocks * rows, at / row_blocks * cols}
                      : Place{copy, at / col_blocks * rows, at % col_blocks * cols};
  }
};

/// What a block costs beside its multiplications, as rows or columns more.
struct BlockCosts {
  i64 height;         // row blocks are multiples of it
  i64 max_rows;       // a multiple of `height`
  i64 columns_setup;  // each column is prepared at the price of so many rows
  i64 rows_setup;
  i64 lanes, width;  // of a register and of a tile
};

/// What the first tasks of a cut cost, in elements of C: blocks are products of a length of rows
/// and one of columns, and so are sums over whole rows or columns of blocks.
struct CutCost {
  const Blocks& b;
  i64 m, n;
  const BlockCosts& costs;

  i64 of_rows(i64 blocks) const {
    return smaller(blocks * b.rows, m) + blocks * costs.columns_setup;
  }
  i64 of_cols(i64 blocks) const {
    return smaller(blocks * b.cols, round_up(n, costs.lanes)) + blocks * costs.rows_setup;
  }
  i64 of_first(i64 tasks) const {
    const i64 copies = tasks / b.count(), at = tasks % b.count();
    const i64 inner = b.rows_first ? b.row_blocks : b.col_blocks;
    const i64 outer = at / inner, rest = at % inner;
    const auto across = [&](i64 i) { return b.rows_first ? of_cols(i) : of_rows(i); };
    const auto along = [&](i64 i) { return b.rows_first ? of_rows(i) : of_cols(i); };
    return copies * of_rows(b.row_blocks) * of_cols(b.col_blocks) + across(outer) * along(inner) +
           (across(outer + 1) - across(outer)) * along(rest);
  }
  /// What the busiest thread does of so many copies (ThreadPool::parallel_for says who does what).
  i64 of_busiest(i64 copies, i64 threads) const {
    const i64 tasks = copies * b.count(), share = tasks / threads, more = tasks % threads;
    i64 most = 0, before = 0;
    for (i64 i = 1; i <= threads && share + more > 0; ++i) {
      const i64 until = of_first(i * share + smaller(i, more));
      most = larger(most, until - before);
      before = until;
    }
    return most;
  }
};

/// The cut of copies x (m x n) under which the busiest of `threads` has least to do; m and n are
/// positive.
static inline Blocks cut_blocks(i64 m, i64 n, i64 copies, int threads, const BlockCosts& costs) {
  constexpr i64 most_tries = 32;
  Blocks best{};
  i64 least = 0;
  const i64 fewest = (m + costs.max_rows - 1) / costs.max_rows;
  const i64 across = (n + kBlockN - 1) / kBlockN;
  const i64 even = round_up((n + across - 1) / across, costs.width);
  for (i64 cols : {kBlockN, even, kBlockN / 2}) {
    for (i64 tries = 0; tries < most_tries; ++tries) {
      const i64 wanted = (m + fewest + tries - 1) / (fewest + tries);
      const i64 rows = round_up(wanted, costs.height);
      Blocks b{rows, cols, (m + rows - 1) / rows, (n + cols - 1) / cols};
      const CutCost cost{b, m, n, costs};
      const auto is_worth = [&](i64 work) { return least == 0 || work < least - least / 100; };
      // More blocks cost more in all, and the busiest does at least an even share of that.
      if (!is_worth(cost.of_first(copies * b.count()) / threads)) break;
      for (bool rows_first : {true, false}) {
        b.rows_first = rows_first;
        const i64 work = cost.of_busiest(copies, threads);
        if (is_worth(work)) {
          least = work;
          best = b;
        }
      }
      if (threads == 1) return best;
      if (rows <= costs.height || b.count() * copies > 16 * threads) break;
    }
  }
  return best;
}

/// The memory one worker needs, cut from scratch.
template <class Acc>
struct Workspace {
  static constexpr i64 kMaxRows = 384;
  static constexpr i64 kSumBytes = kMaxRows * kBlockN * i64(sizeof(Acc));
  static constexpr i64 kBBytes = kBlockK * kBlockN * i64(sizeof(Acc)) + kCacheLine * 2;
  static constexpr i64 kABytes = kMaxRows * kBlockK * i64(sizeof(Acc));
  static constexpr i64 kBytes = kSumBytes + kBBytes + kABytes;
  Acc *sums, *b, *a;

  Workspace(void* scratch, int worker) {
    char* base = static_cast<char*>(scratch) + worker * kBytes;
    sums = reinterpret_cast<Acc*>(base);
    b = reinterpret_cast<Acc*>(base + kSumBytes);
    a = reinterpret_cast<Acc*>(base + kSumBytes + kBBytes);
  }
};

}  // namespace coil::templates::COIL_ISA
