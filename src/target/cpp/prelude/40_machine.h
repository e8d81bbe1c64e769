#pragma once
// The operations for which a compiler needs to be told the machine's instruction: square root,
// minimum and maximum, rounding to integers, fused multiply-add.

#include "20_arith.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_roundeven) && __has_builtin(__builtin_elementwise_fma) && \
    __has_builtin(__builtin_elementwise_sqrt)
#define COIL_KERNEL_ELEMENTWISE 1  // clang spells these for every machine
#endif
#endif
#ifndef COIL_KERNEL_ELEMENTWISE
#define COIL_KERNEL_ELEMENTWISE 0
#endif

// Whether a multiply-add of vectors is one instruction.
#if COIL_KERNEL_AVX2 || COIL_KERNEL_AVX512 || (COIL_KERNEL_NEON && COIL_KERNEL_ELEMENTWISE)
#define COIL_KERNEL_FMA 1
#else
#define COIL_KERNEL_FMA 0
#endif

namespace COIL_KERNEL_NAMESPACE {

template <class V, class T, int N>
inline constexpr bool kIs = kSame<V, vec<T, N>>;

// ---- minimum and maximum ----

/// b < a ? b : a. Hence `a` where either is NaN; one instruction on x86.
template <class T, int N>
COIL_INLINE vec<T, N> lesser(vec<T, N> a, vec<T, N> b) {
  using V [[maybe_unused]] = vec<T, N>;
  if constexpr (!V::kNative) {
    return {lesser(a.lo, b.lo), lesser(a.hi, b.hi)};
  } else {
#if COIL_KERNEL_AVX2 && !COIL_KERNEL_ELEMENTWISE
    if constexpr (kIs<V, f32, 8>) return {__builtin_ia32_minps256(b.v, a.v)};
    if constexpr (kIs<V, f64, 4>) return {__builtin_ia32_minpd256(b.v, a.v)};
#endif
#if COIL_KERNEL_AVX512 && !COIL_KERNEL_ELEMENTWISE
    if constexpr (kIs<V, f32, 16>) return {__builtin_ia32_minps512_mask(b.v, a.v, a.v, -1, 4)};
    if constexpr (kIs<V, f64, 8>) return {__builtin_ia32_minpd512_mask(b.v, a.v, a.v, -1, 4)};
#endif
    return {b.v < a.v ? b.v : a.v};
  }
}
/// b > a ? b : a. Hence `a` where either is NaN.
template <class T, int N>
COIL_INLINE vec<T, N> greater(vec<T, N> a, vec<T, N> b) {
  using V [[maybe_unused]] = vec<T, N>;
  if constexpr (!V::kNative) {
    return {greater(a.lo, b.lo), greater(a.hi, b.hi)};
  } else {
#if COIL_KERNEL_AVX2 && !COIL_KERNEL_ELEMENTWISE
    if constexpr (kIs<V, f32, 8>) return {__builtin_ia32_maxps256(b.v, a.v)};
    if constexpr (kIs<V, f64, 4>) return {__builtin_ia32_maxpd256(b.v, a.v)};
#endif
#if COIL_KERNEL_AVX512 && !COIL_KERNEL_ELEMENTWISE
    if constexpr (kIs<V, f32, 16>) return {__builtin_ia32_maxps512_mask(b.v, a.v, a.v, -1, 4)};
    if constexpr (kIs<V, f64, 8>) return {__builtin_ia32_maxpd512_mask(b.v, a.v, a.v, -1, 4)};
#endif
    return {b.v > a.v ? b.v : a.v};
  }
}
template <class T, class = scalar<T>>
COIL_INLINE T lesser(T a, T b) {
  return b < a ? b : a;
}
template <class T, class = scalar<T>>
COIL_INLINE T greater(T a, T b) {
  return b > a ? b : a;
}

// NaN where either operand is, as torch.minimum and torch.maximum.
template <class V>
COIL_INLINE V min_max_nan(V extreme_or_a, V b) {
  return where(isnan(b), b, extreme_or_a);
}
template <class T, int N>
COIL_INLINE vec<T, N> min(vec<T, N> a, vec<T, N> b) {
  if constexpr (kIsFloat<T>)
    return min_max_nan(lesser(a, b), b);
  else
    return lesser(a, b);
}
template <class T, int N>
COIL_INLINE vec<T, N> max(vec<T, N> a, vec<T, N> b) {
  if constexpr (kIsFloat<T>)
    return min_max_nan(greater(a, b), b);
  else
    return greater(a, b);
}
template <class T, class = scalar<T>>
COIL_INLINE T min(T a, T b) {
  if constexpr (kIsFloat<T>)
    return min_max_nan(lesser(a, b), b);
  else
    return lesser(a, b);
}
template <class T, class = scalar<T>>
COIL_INLINE T max(T a, T b) {
  if constexpr (kIsFloat<T>)
    return min_max_nan(greater(a, b), b);
  else
    return greater(a, b);
}
// The other operand where one is NaN.
template <class V>
COIL_INLINE V fmin(V a, V b) {
  return where(isnan(a), b, lesser(a, b));
}
template <class V>
COIL_INLINE V fmax(V a, V b) {
  return where(isnan(a), b, greater(a, b));
}

// ---- square root ----

template <class T, int N>
COIL_INLINE vec<T, N> sqrt(vec<T, N> a) {
  using V [[maybe_unused]] = vec<T, N>;
  if constexpr (!V::kNative) {
    return {sqrt(a.lo), sqrt(a.hi)};
  } else {
#if COIL_KERNEL_ELEMENTWISE
    return {__builtin_elementwise_sqrt(a.v)};
#else
#if COIL_KERNEL_AVX2
    if constexpr (kIs<V, f32, 8>) return {__builtin_ia32_sqrtps256(a.v)};
    if constexpr (kIs<V, f64, 4>) return {__builtin_ia32_sqrtpd256(a.v)};
#endif
#if COIL_KERNEL_AVX512
    if constexpr (kIs<V, f32, 16>) return {__builtin_ia32_sqrtps512_mask(a.v, a.v, -1, 4)};
    if constexpr (kIs<V, f64, 8>) return {__builtin_ia32_sqrtpd512_mask(a.v, a.v, -1, 4)};
#endif
    return build<T, N>([=](int i) { return T(__builtin_sqrt(a.v[i])); });
#endif
  }
}
COIL_INLINE f32 sqrt(f32 a) { return __builtin_sqrtf(a); }
COIL_INLINE f64 sqrt(f64 a) { return __builtin_sqrt(a); }

// ---- rounding to whole numbers ----

/// Nearest whole number, ties to even, by adding and taking away 2^mantissa; keeps the sign of
/// zero.
template <class V>
COIL_INLINE V round_by_adding(V a) {
  using T = elem<V>;
  const V magic = like<V>(sizeof(T) == 4 ? T(0x1p23) : T(0x1p52));
  const V magnitude = abs(a);
  V rounded = sub(add(magnitude, magic), magic);
  return copysign(where(lt(magnitude, magic), rounded, magnitude), a);
}

#if COIL_KERNEL_ELEMENTWISE
#define COIL_ROUND_PORTABLE(CLANG, ...) return {CLANG(a.v)};
#else
#define COIL_ROUND_PORTABLE(CLANG, ...) __VA_ARGS__
#endif
#if COIL_KERNEL_AVX2 && !COIL_KERNEL_ELEMENTWISE
#define COIL_ROUND_AVX2(MODE)                                                  \
  if constexpr (kIs<V, f32, 8>) return {__builtin_ia32_roundps256(a.v, MODE)}; \
  if constexpr (kIs<V, f64, 4>) return {__builtin_ia32_roundpd256(a.v, MODE)};
#else
#define COIL_ROUND_AVX2(MODE)
#endif
#if COIL_KERNEL_AVX512 && !COIL_KERNEL_ELEMENTWISE
#define COIL_ROUND_AVX512(MODE)                                                                  \
  if constexpr (kIs<V, f32, 16>) return {__builtin_ia32_rndscaleps_mask(a.v, MODE, a.v, -1, 4)}; \
  if constexpr (kIs<V, f64, 8>) return {__builtin_ia32_rndscalepd_mask(a.v, MODE, a.v, -1, 4)};
#else
#define COIL_ROUND_AVX512(MODE)
#endif
// NAME on vectors and scalars; the last argument is a body without machine instructions.
#define COIL_ROUNDING(NAME, MODE, CLANG, SCALAR, ...) \
  template <class T, int N>                           \
  COIL_INLINE vec<T, N> NAME(vec<T, N> a) {           \
    using V [[maybe_unused]] = vec<T, N>;             \
    if constexpr (!kIsFloat<T>) {                     \
      return a;                                       \
    } else if constexpr (!V::kNative) {               \
      return {NAME(a.lo), NAME(a.hi)};                \
    } else {                                          \
      COIL_ROUND_AVX2(MODE)                           \
      COIL_ROUND_AVX512(MODE)                         \
      COIL_ROUND_PORTABLE(CLANG, __VA_ARGS__)         \
    }                                                 \
  }                                                   \
  template <class T, class = scalar<T>>               \
  COIL_INLINE T NAME(T a) {                           \
    if constexpr (kSame<T, f32>)                      \
      return SCALAR##f(a);                            \
    else if constexpr (kSame<T, f64>)                 \
      return SCALAR(a);                               \
    else                                              \
      return a;                                       \
  }

COIL_ROUNDING(round, 8, __builtin_elementwise_roundeven, __builtin_rint, return round_by_adding(a);)
COIL_ROUNDING(floor, 9, __builtin_elementwise_floor, __builtin_floor, V r = round_by_adding(a);
              return copysign(sub(r, where(gt(r, a), like<V>(T(1)), like<V>(T(0)))), a);)
COIL_ROUNDING(ceil, 10, __builtin_elementwise_ceil, __builtin_ceil, V r = round_by_adding(a);
              return copysign(add(r, where(lt(r, a), like<V>(T(1)), like<V>(T(0)))), a);)
COIL_ROUNDING(trunc, 11, __builtin_elementwise_trunc, __builtin_trunc, V m = abs(a);
              V r = round_by_adding(m);
              return copysign(sub(r, where(gt(r, m), like<V>(T(1)), like<V>(T(0)))), a);)
#undef COIL_ROUNDING

// ---- fused multiply-add ----

/// a*b + c rounded once.
template <class T, int N>
COIL_INLINE vec<T, N> fma(vec<T, N> a, vec<T, N> b, vec<T, N> c) {
  using V [[maybe_unused]] = vec<T, N>;
  if constexpr (!V::kNative) {
    return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)};
  } else {
#if COIL_KERNEL_ELEMENTWISE
    return {__builtin_elementwise_fma(a.v, b.v, c.v)};
#else
#if COIL_KERNEL_AVX2
    if constexpr (kIs<V, f32, 8>) return {__builtin_ia32_vfmaddps256(a.v, b.v, c.v)};
    if constexpr (kIs<V, f64, 4>) return {__builtin_ia32_vfmaddpd256(a.v, b.v, c.v)};
#endif
#if COIL_KERNEL_AVX512
    if constexpr (kIs<V, f32, 16>) {
      return {__builtin_ia32_vfmaddps512_mask(a.v, b.v, c.v, -1, 4)};
    }
    if constexpr (kIs<V, f64, 8>) {
      return {__builtin_ia32_vfmaddpd512_mask(a.v, b.v, c.v, -1, 4)};
    }
#endif
    return build<T, N>([=](int i) {
      if constexpr (sizeof(T) == 4)
        return __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
      else
        return __builtin_fma(a.v[i], b.v[i], c.v[i]);
    });
#endif
  }
}
COIL_INLINE f32 fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
COIL_INLINE f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }

/// a*b + c as the machine does it fastest: fused where that is one instruction.
template <class V>
COIL_INLINE V mad(V a, V b, V c) {
#if COIL_KERNEL_FMA
  return fma(a, b, c);
#else
  return add(mul(a, b), c);
#endif
}

}  // namespace COIL_KERNEL_NAMESPACE
