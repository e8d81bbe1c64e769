#pragma once
// Between memory of any element type and panels or blocks of the accumulator type. Included by
// *.isa.cpp only.

#include "templates/cpu/isa.h"

namespace coil::templates::COIL_ISA {

/// Writes the first n of 16 lanes as values of type T. In pieces: masked stores are slow on some
/// processors.
template <class T, class V>
[[gnu::always_inline]] inline void store_first(T* p, V x, i64 n) {
  if (n >= 16) return kernel::store(p, x);
  kernel::raw_of<T> lanes[16];
  kernel::to_array(kernel::memory_of<T>::narrow(x), lanes);
  kernel::copy_first(reinterpret_cast<kernel::raw_of<T>*>(p), lanes, n);
}

/// Elements (i, p) at data + i*i_stride + p*p_stride, of any type.
struct Source {
  const void* data;
  i64 i_stride, p_stride;
};

// Elements of a 16-byte lane: shuffles within those are cheap on every machine.
template <class Acc>
constexpr int kGroup = 16 / int(sizeof(Acc));

/// The even (Odd = 0) or odd elements of a and b in turn, within each 16-byte lane; of 8-byte
/// elements, or of pairs of 4-byte ones.
template <int Odd, class W, int N>
[[gnu::always_inline]] inline kernel::vec<W, N> take_alternate(kernel::vec<W, N> a,
                                                               kernel::vec<W, N> b) {
  static_assert(sizeof(W) == 8);
  constexpr int o = Odd;
  if constexpr (N == 2)
    return {__builtin_shufflevector(a.v, b.v, o, 2 + o)};
  else if constexpr (N == 4)
    return {__builtin_shufflevector(a.v, b.v, o, 4 + o, 2 + o, 6 + o)};
  else
    return {
        __builtin_shufflevector(a.v, b.v, o, 8 + o, 2 + o, 10 + o, 4 + o, 12 + o, 6 + o, 14 + o)};
}
/// The low (High = 0) or high two 4-byte elements of each 16-byte lane of a and b, interleaved.
template <int High, class T, int N>
[[gnu::always_inline]] inline kernel::vec<T, N> interleave(kernel::vec<T, N> a,
                                                           kernel::vec<T, N> b) {
  static_assert(sizeof(T) == 4);
  constexpr int h = 2 * High;
  if constexpr (N == 4)
    return {__builtin_shufflevector(a.v, b.v, h, 4 + h, 1 + h, 5 + h)};
  else if constexpr (N == 8) {
    return {
        __builtin_shufflevector(a.v, b.v, h, 8 + h, 1 + h, 9 + h, 4 + h, 12 + h, 5 + h, 13 + h)};
  } else {
    return {__builtin_shufflevector(a.v, b.v, h, 16 + h, 1 + h, 17 + h, 4 + h, 20 + h, 5 + h,
                                    21 + h, 8 + h, 24 + h, 9 + h, 25 + h, 12 + h, 28 + h, 13 + h,
                                    29 + h)};
  }
}

/// A register of which 16-byte lane q is the kGroup elements at data + q*kGroup*stride.
template <class Acc, int N>
[[gnu::always_inline]] inline kernel::vec<Acc, N> load_groups(const Acc* data, i64 stride) {
  if constexpr (N == kGroup<Acc>) {
    return kernel::load_lanes<Acc, N>(data);
  } else {
    return kernel::join(load_groups<Acc, N / 2>(data, stride),
                        load_groups<Acc, N / 2>(data + N / 2 * stride, stride));
  }
}

/// out[p*width + i] = data[i*stride + p] for a register of i and kGroup of p.
template <class Acc, int N>
[[gnu::always_inline]] inline void transpose_group(const Acc* data, i64 stride, Acc* out,
                                                   i64 width) {
  using V = kernel::vec<Acc, N>;
  constexpr int group = kGroup<Acc>;
  V r[group];
  for (int i = 0; i < group; ++i) r[i] = load_groups<Acc, N>(data + i * stride, stride);
  if constexpr (group == 4) {
    using Pair = kernel::vec<double, N / 2>;
    const V low01 = interleave<0>(r[0], r[1]), low23 = interleave<0>(r[2], r[3]);
    const V high01 = interleave<1>(r[0], r[1]), high23 = interleave<1>(r[2], r[3]);
    const auto pairs = [](V x) { return Pair{(kernel::native<double, N / 2>)x.v}; };
    const auto put = [&](int p, Pair x) { __builtin_memcpy(out + p * width, &x, sizeof(V)); };
    put(0, take_alternate<0>(pairs(low01), pairs(low23)));
    put(1, take_alternate<1>(pairs(low01), pairs(low23)));
    put(2, take_alternate<0>(pairs(high01), pairs(high23)));
    put(3, take_alternate<1>(pairs(high01), pairs(high23)));
  } else {
    kernel::to_array(take_alternate<0>(r[0], r[1]), out);
    kernel::to_array(take_alternate<1>(r[0], r[1]), out + width);
  }
}

/// out[p*width + i] = row i of data at p, for a register of rows that are contiguous along p.
template <class Acc, class T>
static void pack_register_of_rows(const T* data, i64 i_stride, i64 k, i64 width, Acc* out) {
  constexpr int lanes = kernel::kRegisterBytes / int(sizeof(Acc));
  i64 p = 0;
  if constexpr (kernel::kSame<T, Acc>) {
    for (; p + kGroup<Acc> <= k; p += kGroup<Acc>) {
      transpose_group<Acc, lanes>(data + p, i_stride, out + p * width, width);
    }
  }
  for (; p < k; p += 16) {
    const i64 n = smaller(16, k - p);
    Acc rows[lanes * 16];
    for (int i = 0; i < lanes; ++i) {
      kernel::to_array(kernel::cast<Acc>(kernel::load_n(data + i * i_stride + p, n)),
                       rows + i * 16);
    }
    i64 q = 0;
    for (; q + kGroup<Acc> <= n; q += kGroup<Acc>) {
      transpose_group<Acc, lanes>(rows + q, 16, out + (p + q) * width, width);
    }
    for (; q < n; ++q) {
      for (int i = 0; i < lanes; ++i) out[(p + q) * width + i] = rows[i * 16 + q];
    }
  }
}

/// One panel: out[p*width + i] = element (i, p) of `in` for i < count, p < k; zero for
/// count <= i < width.
template <class Acc, class T>
static void pack_one_panel(const T* data, Source in, i64 count, i64 k, i64 width, Acc* out) {
  if (width == 1 && in.p_stride == 1) {  // a row by itself: no transposition
    for (i64 p = 0; p < k; p += 16) {
      const i64 n = smaller(16, k - p);
      store_first(out + p, kernel::cast<Acc>(kernel::load_n(data + p, n)), n);
    }
    return;
  }
  i64 done = 0;
  if (in.p_stride == 1) {
    constexpr i64 lanes = kernel::kRegisterBytes / i64(sizeof(Acc));
    for (; done + lanes <= count; done += lanes) {
      pack_register_of_rows(data + done * in.i_stride, in.i_stride, k, width, out + done);
    }
  }
  if (done < count) {
    for (i64 p = 0; p < k; ++p) {
      const T* column = data + p * in.p_stride;
      for (i64 i = done; i < count; ++i) {
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
  if (in.i_stride == 1 && width > 1) {  // row by row, in the order of memory
    for (i64 p = 0; p < k; ++p, out += width) {
      const T* row = data + p * in.p_stride;
      Acc* panel = out;
      for (i64 start = 0; start < count; start += width, panel += k * width) {
        for (i64 i = 0; i < width; i += 16) {
          const i64 n = smaller(16, width - i);
          const i64 there = smaller(n, larger(count - start - i, 0));
          store_first(panel + i, kernel::cast<Acc>(kernel::load_n(row + start + i, there)), n);
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
      if (col_stride == 1)
        store_first(to + j, lanes, n);
      else
        kernel::store_strided_n(to + j * col_stride, col_stride, lanes, n);
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
  if constexpr (kernel::kSame<Acc, float>)
    return dtype == DType::f32;
  else if constexpr (kernel::kSame<Acc, double>)
    return dtype == DType::f64;
  else if constexpr (sizeof(Acc) == 8)
    return dtype == DType::i64 || dtype == DType::u64;
  else
    return dtype == DType::i32 || dtype == DType::u32;
}

}  // namespace coil::templates::COIL_ISA
