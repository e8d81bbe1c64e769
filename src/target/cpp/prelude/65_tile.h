#pragma once
// Tiles of 16 x 16 elements that are turned between memory and registers: memory is contiguous
// along one axis, the lanes go along the other.

#include "60_memory.h"

namespace COIL_KERNEL_NAMESPACE {

#if COIL_KERNEL_AVX2
/// to[j][i] = from[i][j] for 8 x 8 elements of 4 bytes; strides in elements.
template <class R>
COIL_INLINE void transpose8(const R* from, i64 from_stride, R* to, i64 to_stride) {
  using v8 = native<R, 8>;
  v8 r[8], pairs[8], quads[8];
  for (int i = 0; i < 8; ++i) r[i] = *(const stored<R, 8>*)(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int k = 0; k < 2; ++k) {
      const v8 a = pairs[i + k], b = pairs[i + 2 + k];
      quads[i + 2 * k] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      quads[i + 2 * k + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int k = 0; k < 4; ++k) {
    const v8 a = quads[k], b = quads[4 + k];
    const v8 low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    const v8 high = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    *(stored<R, 8>*)(to + k * to_stride) = low;
    *(stored<R, 8>*)(to + (4 + k) * to_stride) = high;
  }
}
#endif

/// to[j][i] = from[i][j] for 16 x 16 elements; strides in elements.
template <class R>
COIL_INLINE void transpose16(const R* from, i64 from_stride, R* to, i64 to_stride) {
#if COIL_KERNEL_AVX2
  if constexpr (sizeof(R) == 4) {
    for (int i = 0; i < 16; i += 8) {
      for (int j = 0; j < 16; j += 8)
        transpose8(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
    return;
  }
#endif
  for (int j = 0; j < 16; ++j) {
    for (int i = 0; i < 16; ++i)
      put_raw(to + j * to_stride + i, raw_at(from + i * from_stride + j));
  }
}

template <class R>
COIL_COLD void transpose_part(const R* from, i64 from_stride, R* to, i64 to_stride, i64 rows,
                              i64 columns) {
  for (i64 i = 0; i < rows; ++i) {
    for (i64 j = 0; j < columns; ++j)
      put_raw(to + j * to_stride + i, raw_at(from + i * from_stride + j));
  }
}

/// Lane i of to[j] is p[i * stride + j], for i < lanes <= 16 and j < count <= 16. No other element
/// is read, and other lanes are zero.
template <class T, class V>
COIL_INLINE void load_tile(V (&to)[16], const T* p, i64 stride, i64 lanes, i64 count) {
  using R = raw_of<T>;
  alignas(64) R turned[16 * 16];
  if (lanes == 16 && count == 16) [[likely]] {
    transpose16((const R*)p, stride, turned, 16);
  } else {
    __builtin_memset(turned, 0, sizeof(turned));
    transpose_part((const R*)p, stride, turned, 16, lanes, count);
  }
  for (int j = 0; j < 16; ++j) to[j] = load((const T*)(turned + 16 * j));
}

/// p[i * stride + j] = lane i of from[j], for i < lanes <= 16 and j < count <= 16.
template <class T, class V>
COIL_INLINE void store_tile(T* p, i64 stride, const V (&from)[16], i64 lanes, i64 count) {
  using R = raw_of<T>;
  alignas(64) R rows[16 * 16];
  for (int j = 0; j < count; ++j) store((T*)(rows + 16 * j), from[j]);
  if (lanes == 16 && count == 16) [[likely]] {
    transpose16(rows, 16, (R*)p, stride);
  } else {
    transpose_part(rows, 16, (R*)p, stride, count, lanes);
  }
}

}  // namespace COIL_KERNEL_NAMESPACE
