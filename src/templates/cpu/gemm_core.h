#pragma once
// The matrix kernel shared by gemm and convolution: a register tile over packed panels of B, and
// the packing. Included by *.isa.cpp only.

#include "templates/cpu/isa.h"

namespace coil::templates::COIL_ISA {

// k is cut into blocks of this length whose partial sums are added in order: part of the result.
constexpr i64 kBlockK = 256;
// Columns of a block of C: a multiple of every tile width.
constexpr i64 kBlockN = 96;

/// The register tile for an accumulator type: kRows x kCols, as rows of kVectors registers.
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
  if constexpr (kernel::kIsFloat<kernel::elem<V>>) return kernel::mad(a, b, c);
  else return kernel::add(kernel::mul(a, b), c);
}

/// Rows of A for one tile: element (i, p) is data[i*row_stride + p*k_stride], i < rows.
template <class Acc>
struct TileRows {
  const Acc* data;
  i64 row_stride, k_stride;
  i64 rows;  // at least 1; a tile computes its last row again where there are fewer than kRows
};

/// c (kRows x kCols, row stride ld) = or += A times the panel b (k rows of kCols).
template <class Acc>
[[gnu::noinline]] static void multiply_tile(TileRows<Acc> a, const Acc* b, i64 k, Acc* c, i64 ld,
                                            bool first) {
  using T = Tile<Acc>;
  using V = typename T::Vector;
  const Acc* row[T::kRows];
#pragma GCC unroll 8
  for (int i = 0; i < T::kRows; ++i) row[i] = a.data + smaller(i, a.rows - 1) * a.row_stride;
  V sum[T::kRows][T::kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < T::kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < T::kVectors; ++j) sum[i][j] = kernel::like<V>(Acc(0));
  }
  i64 at = 0;
  for (i64 p = 0; p < k; ++p, at += a.k_stride, b += T::kCols) {
    V bs[T::kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < T::kVectors; ++j) {
      bs[j] = kernel::load_lanes<Acc, T::kLanes>(b + j * T::kLanes);
    }
#pragma GCC unroll 8
    for (int i = 0; i < T::kRows; ++i) {
      const V x = kernel::like<V>(row[i][at]);
#pragma GCC unroll 3
      for (int j = 0; j < T::kVectors; ++j) sum[i][j] = multiply_add(x, bs[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < T::kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < T::kVectors; ++j) {
      Acc* out = c + i * ld + j * T::kLanes;
      V result = sum[i][j];
      if (!first) result = kernel::add(kernel::load_lanes<Acc, T::kLanes>(out), result);
      kernel::to_array(result, out);
    }
  }
}

template <class Acc, class T>
[[gnu::always_inline]] inline Acc load_as(const T* p) {
  return kernel::cast_scalar<Acc>(kernel::load1(p));
}

/// out[p*width + i] = element (i, p) of `in` for i < count, p < k; zero for count <= i < width.
template <class Acc, class T>
static void pack_panel(const T* in, i64 i_stride, i64 p_stride, i64 count, i64 k, i64 width,
                       Acc* out) {
  if (i_stride == 1 && width % 16 == 0) {  // 16 lanes at a time along i
    for (i64 p = 0; p < k; ++p) {
      for (i64 i = 0; i < width; i += 16) {
        auto lanes = kernel::load_n(in + p * p_stride + i, larger(count - i, 0));
        kernel::to_array(kernel::cast<Acc>(lanes), out + p * width + i);
      }
    }
    return;
  }
  if (p_stride == 1) {  // 16 lanes along k, spread over 16 rows of the panel
    for (i64 i = 0; i < count; ++i) {
      const T* row = in + i * i_stride;
      for (i64 p = 0; p < k; p += 16) {
        Acc lanes[16];
        const i64 n = smaller(16, k - p);
        kernel::to_array(kernel::cast<Acc>(kernel::load_n(row + p, n)), lanes);
        for (i64 q = 0; q < n; ++q) out[(p + q) * width + i] = lanes[q];
      }
    }
  } else {
    for (i64 p = 0; p < k; ++p) {
      const T* column = in + p * p_stride;
      for (i64 i = 0; i < count; ++i) out[p * width + i] = load_as<Acc>(column + i * i_stride);
    }
  }
  for (i64 p = 0; count < width && p < k; ++p) {
    for (i64 i = count; i < width; ++i) out[p * width + i] = Acc(0);
  }
}

/// Rounds a row-major block of accumulators to T and stores it.
template <class T, class Acc>
static void store_block(const Acc* block, i64 ld, i64 rows, i64 cols, T* out, i64 row_stride,
                        i64 col_stride) {
  using Value = decltype(kernel::load1(out));
  for (i64 i = 0; i < rows; ++i) {
    const Acc* from = block + i * ld;
    T* to = out + i * row_stride;
    for (i64 j = 0; j < cols; j += 16) {
      const i64 n = smaller(16, cols - j);
      auto lanes = kernel::cast<Value>(kernel::load_n(from + j, n));
      if (col_stride == 1) kernel::store_n(to + j, lanes, n);
      else kernel::store_strided_n(to + j * col_stride, col_stride, lanes, n);
    }
  }
}

/// Calls f(TypeTag<Acc>) with the accumulator type.
template <class F>
[[gnu::always_inline]] inline void with_accumulator(DType in, DType out, F f) {
  if (is_float(in)) return in == DType::f64 ? f(TypeTag<double>{}) : f(TypeTag<float>{});
  return size_of(in) == 8 || size_of(out) == 8 ? f(TypeTag<i64>{}) : f(TypeTag<i32>{});
}

/// Whether elements of type T, summed in Acc, are used where they lie.
template <class Acc, class T>
inline constexpr bool kSameInMemory = kernel::kSame<Acc, T>;

/// The memory one worker needs, cut from scratch.
template <class Acc>
struct Workspace {
  static constexpr i64 kMaxRows = 384;
  static constexpr i64 kPaddedRows = kMaxRows + Tile<Acc>::kRows;
  static constexpr i64 kSumBytes = round_up(kPaddedRows * kBlockN * i64(sizeof(Acc)), kCacheLine);
  static constexpr i64 kBBytes = kBlockK * kBlockN * i64(sizeof(Acc));
  static constexpr i64 kABytes = round_up(kPaddedRows * kBlockK * i64(sizeof(Acc)), kCacheLine);
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
