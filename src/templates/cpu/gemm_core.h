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

/// c (Rows x Vectors registers, row stride ld) = or += A times b, whose k rows are b_stride apart.
template <class Acc, int Rows, int Vectors>
[[gnu::noinline]] static void multiply_rows(TileRows<Acc> a, const Acc* b, i64 b_stride, i64 k,
                                            Acc* c, i64 ld, bool first) {
  using T = Tile<Acc>;
  using V = typename T::Vector;
  const Acc* row[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) row[i] = a.data + smaller(i, a.rows - 1) * a.row_stride;
  V sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < Vectors; ++j) sum[i][j] = kernel::like<V>(Acc(0));
  }
  i64 at = 0;
  for (i64 p = 0; p < k; ++p, at += a.k_stride, b += b_stride) {
    V bs[Vectors];
#pragma GCC unroll 6
    for (int j = 0; j < Vectors; ++j) {
      bs[j] = kernel::load_lanes<Acc, T::kLanes>(b + j * T::kLanes);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V x = kernel::like<V>(row[i][at]);
#pragma GCC unroll 6
      for (int j = 0; j < Vectors; ++j) sum[i][j] = multiply_add(x, bs[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 6
    for (int j = 0; j < Vectors; ++j) {
      Acc* out = c + i * ld + j * T::kLanes;
      V result = sum[i][j];
      if (!first) result = kernel::add(kernel::load_lanes<Acc, T::kLanes>(out), result);
      kernel::to_array(result, out);
    }
  }
}
/// One tile of at most kRows rows; c has room for kRows.
template <class Acc>
static void multiply_tile(TileRows<Acc> a, const Acc* b, i64 k, Acc* c, i64 ld, bool first) {
  using T = Tile<Acc>;
  if (a.rows == 1) multiply_rows<Acc, 1, T::kVectors>(a, b, T::kCols, k, c, ld, first);
  else multiply_rows<Acc, T::kRows, T::kVectors>(a, b, T::kCols, k, c, ld, first);
}

/// Elements (i, p) at data + i*i_stride + p*p_stride, of any type.
struct Source {
  const void* data;
  i64 i_stride, p_stride;
};

/// One panel: out[p*width + i] = element (i, p) of `in` for i < count, p < k; zero for
/// count <= i < width.
template <class Acc, class T>
static void pack_one_panel(const T* data, Source in, i64 count, i64 k, i64 width, Acc* out) {
  if (in.p_stride == 1) {  // 16 lanes along k, spread over 16 rows of the panel
    for (i64 i = 0; i < count; ++i) {
      const T* row = data + i * in.i_stride;
      for (i64 p = 0; p < k; p += 16) {
        Acc lanes[16];
        const i64 n = smaller(16, k - p);
        kernel::to_array(kernel::cast<Acc>(kernel::load_n(row + p, n)), lanes);
        for (i64 q = 0; q < n; ++q) out[(p + q) * width + i] = lanes[q];
      }
    }
  } else {
    for (i64 p = 0; p < k; ++p) {
      const T* column = data + p * in.p_stride;
      for (i64 i = 0; i < count; ++i) {
        out[p * width + i] = kernel::cast_scalar<Acc>(kernel::load1(column + i * in.i_stride));
      }
    }
  }
  for (i64 p = 0; count < width && p < k; ++p) {
    for (i64 i = count; i < width; ++i) out[p * width + i] = Acc(0);
  }
}

/// Panels of `width` elements along i, one after the other; each as pack_one_panel.
template <class Acc, class T>
static void pack_panels(Source in, i64 count, i64 k, i64 width, Acc* out) {
  const T* data = static_cast<const T*>(in.data);
  if (in.i_stride == 1 && width % 16 == 0) {  // row by row, in the order of memory
    for (i64 p = 0; p < k; ++p, out += width) {
      const T* row = data + p * in.p_stride;
      Acc* panel = out;
      for (i64 start = 0; start < count; start += width, panel += k * width) {
        for (i64 i = 0; i < width; i += 16) {
          auto lanes = kernel::load_n(row + start + i, larger(count - start - i, 0));
          kernel::to_array(kernel::cast<Acc>(lanes), panel + i);
        }
      }
    }
    return;
  }
  for (i64 start = 0; start < count; start += width, out += k * width) {
    pack_one_panel<Acc>(data + start * in.i_stride, in, smaller(width, count - start), k, width,
                        out);
  }
}

/// Rounds a row-major block of accumulators to T and stores it.
template <class Acc, class T>
static void store_block(const Acc* block, i64 ld, i64 rows, i64 cols, void* out, i64 row_stride,
                        i64 col_stride) {
  using Value = decltype(kernel::load1(static_cast<T*>(out)));
  for (i64 i = 0; i < rows; ++i) {
    const Acc* from = block + i * ld;
    T* to = static_cast<T*>(out) + i * row_stride;
    for (i64 j = 0; j < cols; j += 16) {
      const i64 n = smaller(16, cols - j);
      auto lanes = kernel::cast<Value>(kernel::load_n(from + j, n));
      if (col_stride == 1) kernel::store_n(to + j, lanes, n);
      else kernel::store_strided_n(to + j * col_stride, col_stride, lanes, n);
    }
  }
}

/// The code that knows an element type: everything else is compiled once per accumulator.
template <class Acc>
struct ElementFunctions {
  void (*pack)(Source in, i64 count, i64 k, i64 width, Acc* out);
  void (*store)(const Acc* block, i64 ld, i64 rows, i64 cols, void* out, i64 row_stride,
                i64 col_stride);
};
template <class Acc>
static ElementFunctions<Acc> functions_for(DType dtype) {
  ElementFunctions<Acc> r{};
  const auto pick = [&](auto tag) {
    using T = typename decltype(tag)::type;
    r = {pack_panels<Acc, T>, store_block<Acc, T>};
  };
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
  if (!r.pack) fail_unsupported(dtype);
  return r;
}

inline const void* advance(const void* p, i64 elements, DType dtype) {
  return static_cast<const char*>(p) + elements * size_of(dtype);
}
inline void* advance(void* p, i64 elements, DType dtype) {
  return static_cast<char*>(p) + elements * size_of(dtype);
}

/// Calls f(TypeTag<Acc>) with the accumulator type.
template <class F>
[[gnu::always_inline]] inline void with_accumulator(DType in, DType out, F f) {
  if (is_float(in)) return in == DType::f64 ? f(TypeTag<double>{}) : f(TypeTag<float>{});
  return size_of(in) == 8 || size_of(out) == 8 ? f(TypeTag<i64>{}) : f(TypeTag<i32>{});
}

/// Whether the kernel can read elements of `dtype` where they lie.
template <class Acc>
static bool in_place(DType dtype) {
  if constexpr (kernel::kSame<Acc, float>) return dtype == DType::f32;
  else if constexpr (kernel::kSame<Acc, double>) return dtype == DType::f64;
  else if constexpr (sizeof(Acc) == 8) return dtype == DType::i64 || dtype == DType::u64;
  else return dtype == DType::i32 || dtype == DType::u32;
}

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
