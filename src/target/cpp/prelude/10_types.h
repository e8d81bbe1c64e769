#pragma once
// The value types of generated kernels: 16 lanes of every element type, whatever the machine.
//
// A vec<T, N> that fits a register of the target is one native vector; a wider one is two halves.
// The halves are always operated on in the same way, so the compiler sees straight-line code over
// native vectors and the text of a kernel does not depend on the instruction set.
//
// No header is included: the fixed cost of compiling a kernel is this prelude alone.

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__) && !defined(COIL_FORCE_PLAIN)
#define COIL_KERNEL_AVX512 1
#else
#define COIL_KERNEL_AVX512 0
#endif
#if defined(__AVX2__) && defined(__FMA__) && !defined(COIL_FORCE_PLAIN)
#define COIL_KERNEL_AVX2 1  // also set with AVX-512: its 256-bit forms are used on halves
#else
#define COIL_KERNEL_AVX2 0
#endif
#if defined(__aarch64__) && !defined(COIL_FORCE_PLAIN)
#define COIL_KERNEL_NEON 1
#else
#define COIL_KERNEL_NEON 0
#endif

#define COIL_INLINE static inline __attribute__((always_inline))
#define COIL_MEMBER inline __attribute__((always_inline))
#define COIL_COLD static __attribute__((noinline, cold, unused))

// Tests put differently compiled copies of the prelude side by side under other names.
#ifndef COIL_KERNEL_NAMESPACE
#define COIL_KERNEL_NAMESPACE coil_kernel
#endif

namespace COIL_KERNEL_NAMESPACE {

using i8 = __INT8_TYPE__;
using i16 = __INT16_TYPE__;
using i32 = __INT32_TYPE__;
using i64 = __INT64_TYPE__;
using u8 = __UINT8_TYPE__;
using u16 = __UINT16_TYPE__;
using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;
using f32 = float;
using f64 = double;

// Elements that exist in memory only; loading them gives f32 (or bool for b8).
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct f8e4m3fn {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
};
struct b8 {
  u8 v;  // 0 or 1
};

// ---- facts about types ----

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class T>
inline constexpr bool kIsFloat = kSame<T, f32> || kSame<T, f64>;
template <class T>
inline constexpr bool kIsSigned = T(-1) < T(0);

/// As a second template parameter, admits plain scalars only: the vector forms are other overloads.
template <bool>
struct admit;
template <>
struct admit<true> {
  using type = void;
};
template <class T>
using scalar = typename admit<!__is_class(T)>::type;

template <int Bytes>
struct int_of_bytes;
template <>
struct int_of_bytes<1> {
  using s = i8;
  using u = u8;
};
template <>
struct int_of_bytes<2> {
  using s = i16;
  using u = u16;
};
template <>
struct int_of_bytes<4> {
  using s = i32;
  using u = u32;
};
template <>
struct int_of_bytes<8> {
  using s = i64;
  using u = u64;
};
/// The signed or unsigned integer as wide as T.
template <class T>
using int_like = typename int_of_bytes<sizeof(T)>::s;
template <class T>
using uint_like = typename int_of_bytes<sizeof(T)>::u;

template <bool Condition, class A, class B>
struct choose {
  using type = A;
};
template <class A, class B>
struct choose<false, A, B> {
  using type = B;
};
/// The type that T's arithmetic runs in: integers wrap, so theirs is unsigned.
template <class T>
using wrapping = typename choose<kIsFloat<T>, T, uint_like<T>>::type;

// ---- vectors ----

#if COIL_KERNEL_AVX512
inline constexpr int kRegisterBytes = 64;
#elif COIL_KERNEL_AVX2
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

template <class T, int N>
struct native_of {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using native = typename native_of<T, N>::type;

template <class T, int N, bool Fits = (N * int(sizeof(T)) <= kRegisterBytes)>
struct vec;
template <class T, int N>
struct vec<T, N, true> {
  static constexpr bool kNative = true;
  native<T, N> v;
};
template <class T, int N>
struct vec<T, N, false> {
  static constexpr bool kNative = false;
  vec<T, N / 2> lo, hi;
};

/// N truth values, each -1 or 0 in an integer of W bytes: the width of what was compared, so that
/// selecting among operands of that width needs no conversion. Widths convert implicitly.
template <int W, int N>
struct mask;

using f32x16 = vec<f32, 16>;
using f64x16 = vec<f64, 16>;
using i8x16 = vec<i8, 16>;
using u8x16 = vec<u8, 16>;
using i16x16 = vec<i16, 16>;
using u16x16 = vec<u16, 16>;
using i32x16 = vec<i32, 16>;
using u32x16 = vec<u32, 16>;
using i64x16 = vec<i64, 16>;
using u64x16 = vec<u64, 16>;
using mask16 = mask<1, 16>;

template <class V>
struct traits {  // a scalar
  using elem = V;
  static constexpr int lanes = 1;
  template <class T>
  using rebind = T;
};
template <class E, int N>
struct traits<vec<E, N>> {
  using elem = E;
  static constexpr int lanes = N;
  template <class T>
  using rebind = vec<T, N>;
};
template <class V>
using elem = typename traits<V>::elem;
/// V with elements of type T.
template <class V, class T>
using rebind = typename traits<V>::template rebind<T>;

// ---- halves ----

template <class T, int N>
COIL_INLINE vec<T, N / 2> low_half(vec<T, N> a) {
  if constexpr (!vec<T, N>::kNative) {
    return a.lo;
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(a.v, a.v, 0, 1, 2, 3, 4, 5, 6, 7)};
  } else if constexpr (N == 8) {
    return {__builtin_shufflevector(a.v, a.v, 0, 1, 2, 3)};
  } else {
    static_assert(N == 4);
    return {__builtin_shufflevector(a.v, a.v, 0, 1)};
  }
}

template <class T, int N>
COIL_INLINE vec<T, N / 2> high_half(vec<T, N> a) {
  if constexpr (!vec<T, N>::kNative) {
    return a.hi;
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(a.v, a.v, 8, 9, 10, 11, 12, 13, 14, 15)};
  } else if constexpr (N == 8) {
    return {__builtin_shufflevector(a.v, a.v, 4, 5, 6, 7)};
  } else {
    static_assert(N == 4);
    return {__builtin_shufflevector(a.v, a.v, 2, 3)};
  }
}

template <class T, int H>
COIL_INLINE vec<T, 2 * H> join(vec<T, H> lo, vec<T, H> hi) {
  if constexpr (!vec<T, 2 * H>::kNative) {
    return {lo, hi};
  } else if constexpr (H == 8) {
    return {
        __builtin_shufflevector(lo.v, hi.v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
  } else if constexpr (H == 4) {
    return {__builtin_shufflevector(lo.v, hi.v, 0, 1, 2, 3, 4, 5, 6, 7)};
  } else {
    static_assert(H == 2);
    return {__builtin_shufflevector(lo.v, hi.v, 0, 1, 2, 3)};
  }
}

// ---- making vectors and taking them apart ----

/// Lane i is f(first + i).
template <class T, int N, class F>
COIL_INLINE vec<T, N> build(F f, int first = 0) {
  if constexpr (!vec<T, N>::kNative) {
    return {build<T, N / 2>(f, first), build<T, N / 2>(f, first + N / 2)};
  } else if constexpr (N == 16) {
    return {native<T, N>{f(first), f(first + 1), f(first + 2), f(first + 3), f(first + 4),
                         f(first + 5), f(first + 6), f(first + 7), f(first + 8), f(first + 9),
                         f(first + 10), f(first + 11), f(first + 12), f(first + 13), f(first + 14),
                         f(first + 15)}};
  } else if constexpr (N == 8) {
    return {native<T, N>{f(first), f(first + 1), f(first + 2), f(first + 3), f(first + 4),
                         f(first + 5), f(first + 6), f(first + 7)}};
  } else if constexpr (N == 4) {
    return {native<T, N>{f(first), f(first + 1), f(first + 2), f(first + 3)}};
  } else {
    static_assert(N == 2);
    return {native<T, N>{f(first), f(first + 1)}};
  }
}

template <class T, int N>
COIL_INLINE vec<T, N> splat(T x) {
  if constexpr (vec<T, N>::kNative) {
    return {x - native<T, N>{}};  // x - 0 is x, for -0.0 too; every compiler makes it a broadcast
  } else {
    return {splat<T, N / 2>(x), splat<T, N / 2>(x)};
  }
}
template <class T>
COIL_INLINE vec<T, 16> splat16(T x) {
  return splat<T, 16>(x);
}
/// `x` in every lane of a V, or `x` itself where V is a scalar.
template <class V>
COIL_INLINE V like(elem<V> x) {
  if constexpr (traits<V>::lanes == 1) {
    return x;
  } else {
    return splat<elem<V>, traits<V>::lanes>(x);
  }
}

/// start, start + 1, ..., start + 15
COIL_INLINE i64x16 iota16(i64 start) {
  return build<i64, 16>([=](int i) { return i64(u64(start) + u64(i)); });
}

template <class T, int N>
COIL_INLINE vec<T, N> load_lanes(const T* p) {
  if constexpr (vec<T, N>::kNative) {
    vec<T, N> r;
    __builtin_memcpy(&r.v, p, sizeof(r.v));
    return r;
  } else {
    return {load_lanes<T, N / 2>(p), load_lanes<T, N / 2>(p + N / 2)};
  }
}

/// Stored as a vector: gcc 12 turns a copy of the bytes of a constant into a wide integer, and takes
/// one whose high half is 0 for its low half repeated.
template <class T, int N>
COIL_INLINE void to_array(vec<T, N> a, T* out) {
  if constexpr (vec<T, N>::kNative) {
    typedef decltype(a.v) Lanes __attribute__((aligned(alignof(T)), may_alias));
    *(Lanes*)out = a.v;
  } else {
    to_array(a.lo, out);
    to_array(a.hi, out + N / 2);
  }
}

template <class T, int N>
COIL_INLINE T get_lane(vec<T, N> a, int i) {
  if constexpr (vec<T, N>::kNative) {
    return a.v[i];
  } else {
    return i < N / 2 ? get_lane(a.lo, i) : get_lane(a.hi, i - N / 2);
  }
}

}  // namespace COIL_KERNEL_NAMESPACE
