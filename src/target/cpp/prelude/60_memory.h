#pragma once
// Loads and stores of 16 lanes (whole, the first n, strided, gathered, masked) and of one element.
// The element type in memory picks the type in registers: narrow floats load as f32 and are rounded
// to nearest even when stored; b8 loads as a mask. Addresses need only the element's alignment.

#include "30_cast.h"
#include "40_machine.h"

namespace COIL_KERNEL_NAMESPACE {

// ---- how an element type travels: its raw bits, and the value they stand for ----

template <class T>
struct memory_of {
  using raw = T;
  static COIL_MEMBER auto widen(vec<T, 16> x) { return x; }
  static COIL_MEMBER auto narrow(vec<T, 16> x) { return x; }
  static COIL_MEMBER T widen1(T x) { return x; }
  static COIL_MEMBER T narrow1(T x) { return x; }
};
template <class Tag, class Bits>
struct narrow_float_memory {
  using raw = Bits;
  static COIL_MEMBER f32x16 widen(vec<Bits, 16> x) { return decode(convert<u32>(x), Tag{}); }
  static COIL_MEMBER vec<Bits, 16> narrow(f32x16 x) { return convert<Bits>(encode(x, Tag{})); }
  static COIL_MEMBER f32 widen1(Bits x) { return decode(u32(x), Tag{}); }
  static COIL_MEMBER Bits narrow1(f32 x) { return Bits(encode(x, Tag{})); }
};
template <>
struct memory_of<bf16> : narrow_float_memory<bf16, u16> {};
template <>
struct memory_of<f8e4m3fn> : narrow_float_memory<f8e4m3fn, u8> {};
template <>
struct memory_of<f8e5m2> : narrow_float_memory<f8e5m2, u8> {};
template <>
struct memory_of<f16> : narrow_float_memory<f16, u16> {
#if defined(__F16C__) && COIL_KERNEL_AVX2
  typedef short v8i16 __attribute__((vector_size(16)));
  static COIL_MEMBER f32x16 widen(u16x16 x) {
    vec<f32, 8> lo{__builtin_ia32_vcvtph2ps256((v8i16)low_half(x).v)};
    vec<f32, 8> hi{__builtin_ia32_vcvtph2ps256((v8i16)high_half(x).v)};
    return join(lo, hi);
  }
  static COIL_MEMBER u16x16 narrow(f32x16 x) {
    vec<u16, 8> lo{(native<u16, 8>)__builtin_ia32_vcvtps2ph256(low_half(x).v, 0)};
    vec<u16, 8> hi{(native<u16, 8>)__builtin_ia32_vcvtps2ph256(high_half(x).v, 0)};
    return join(lo, hi);
  }
#endif
};
template <>
struct memory_of<b8> {
  using raw = u8;
  static COIL_MEMBER mask16 widen(u8x16 x) { return ne(x, splat16(u8(0))); }
  static COIL_MEMBER u8x16 narrow(mask16 m) { return bit_and(bitcast<u8>(m.v), splat16(u8(1))); }
  static COIL_MEMBER bool widen1(u8 x) { return x != 0; }
  static COIL_MEMBER u8 narrow1(bool x) { return u8(x); }
};
template <>
struct memory_of<bool> : memory_of<b8> {};

template <class T>
using raw_of = typename memory_of<T>::raw;
template <class T>
COIL_INLINE raw_of<T> raw_at(const T* p) {
  raw_of<T> r;
  __builtin_memcpy(&r, p, sizeof(r));
  return r;
}
template <class T>
COIL_INLINE void put_raw(T* p, raw_of<T> x) {
  __builtin_memcpy(p, &x, sizeof(x));
}

// ---- the first n of 16 elements ----

/// -1 in lanes 0..n-1.
template <class T>
COIL_INLINE vec<int_like<T>, 16> first_lanes(i64 n) {
  using I = int_like<T>;
  auto lane = build<I, 16>([](int i) { return I(i); });
  return lt_lanes(lane, splat16(I(n > 16 ? 16 : n)));
}

/// Copies n < 16 elements in pieces of 8, 4, 2 and 1.
template <class T>
COIL_INLINE void copy_first(T* to, const T* from, i64 n) {
#define COIL_PIECE(COUNT)                          \
  if (n & COUNT) {                                 \
    __builtin_memcpy(to, from, COUNT * sizeof(T)); \
    to += COUNT;                                   \
    from += COUNT;                                 \
  }
  COIL_PIECE(8)
  COIL_PIECE(4)
  COIL_PIECE(2)
  COIL_PIECE(1)
#undef COIL_PIECE
}

#if COIL_KERNEL_AVX2
// Masked moves of 4- and 8-byte elements; lanes off are neither read nor written.
template <class T, int N>
COIL_INLINE vec<T, N> masked_move_in(const T* p, vec<int_like<T>, N> m) {
  using long_ [[maybe_unused]] = long long;
  if constexpr (N * sizeof(T) > 32) {
    return join(masked_move_in<T, N / 2>(p, low_half(m)),
                masked_move_in<T, N / 2>(p + N / 2, high_half(m)));
  } else if constexpr (sizeof(T) == 4) {
    typedef f32 v8f32 __attribute__((vector_size(32)));
    return {(native<T, N>)__builtin_ia32_maskloadps256((const v8f32*)p, m.v)};
  } else {
    typedef f64 v4f64 __attribute__((vector_size(32)));
    typedef long long v4i64 __attribute__((vector_size(32)));
    return {(native<T, N>)__builtin_ia32_maskloadpd256((const v4f64*)p, (v4i64)m.v)};
  }
}
template <class T, int N>
COIL_INLINE void masked_move_out(T* p, vec<int_like<T>, N> m, vec<T, N> x) {
  if constexpr (N * sizeof(T) > 32) {
    masked_move_out<T, N / 2>(p, low_half(m), low_half(x));
    masked_move_out<T, N / 2>(p + N / 2, high_half(m), high_half(x));
  } else if constexpr (sizeof(T) == 4) {
    typedef f32 v8f32 __attribute__((vector_size(32)));
    __builtin_ia32_maskstoreps256((v8f32*)p, m.v, (v8f32)x.v);
  } else {
    typedef f64 v4f64 __attribute__((vector_size(32)));
    typedef long long v4i64 __attribute__((vector_size(32)));
    __builtin_ia32_maskstorepd256((v4f64*)p, (v4i64)m.v, (v4f64)x.v);
  }
}
#endif

template <class R>
COIL_INLINE vec<R, 16> load_raw_n(const R* p, i64 n) {
  if (n >= 16) return load_lanes<R, 16>(p);
#if COIL_KERNEL_AVX2
  if constexpr (sizeof(R) >= 4) return masked_move_in<R, 16>(p, first_lanes<R>(n));
#endif
  R lanes[16] = {};
  copy_first(lanes, p, n);
  return load_lanes<R, 16>(lanes);
}
template <class R>
COIL_INLINE void store_raw_n(R* p, vec<R, 16> x, i64 n) {
  if (n >= 16) return to_array(x, p);
#if COIL_KERNEL_AVX2
  if constexpr (sizeof(R) >= 4) return masked_move_out<R, 16>(p, first_lanes<R>(n), x);
#endif
  R lanes[16];
  to_array(x, lanes);
  copy_first(p, lanes, n);
}

// ---- loads ----

template <class T>
COIL_INLINE auto load(const T* p) {
  return memory_of<T>::widen(load_lanes<raw_of<T>, 16>((const raw_of<T>*)p));
}
/// Lanes n and up are zero and not read.
template <class T>
COIL_INLINE auto load_n(const T* p, i64 n) {
  return memory_of<T>::widen(load_raw_n<raw_of<T>>((const raw_of<T>*)p, n));
}
/// Lane i is p[i * stride].
template <class T>
COIL_INLINE auto load_strided(const T* p, i64 stride) {
  return memory_of<T>::widen(build<raw_of<T>, 16>([=](int i) { return raw_at(p + i * stride); }));
}
template <class T>
COIL_INLINE auto load_strided_n(const T* p, i64 stride, i64 n) {
  raw_of<T> lanes[16] = {};
  for (int i = 0; i < 16 && i < n; ++i) lanes[i] = raw_at(p + i * stride);
  return memory_of<T>::widen(load_lanes<raw_of<T>, 16>(lanes));
}
/// Lane i is p[i] where the mask is true; other lanes are zero and not read.
template <class T>
COIL_INLINE auto load_mask(const T* p, mask16 m) {
#if COIL_KERNEL_AVX2
  if constexpr (sizeof(T) >= 4) {
    return masked_move_in<T, 16>(p, mask<int(sizeof(T)), 16>(m).v);
  } else
#endif
  {
    raw_of<T> lanes[16] = {};
    bool on[16];
    to_array(m, on);
    for (int i = 0; i < 16; ++i) {
      if (on[i]) lanes[i] = raw_at(p + i);
    }
    return memory_of<T>::widen(load_lanes<raw_of<T>, 16>(lanes));
  }
}
/// Lane i is base[index[i]] where the mask is true; other lanes are zero and not read.
template <class T, class I>
COIL_INLINE auto gather(const T* base, vec<I, 16> index, mask16 m) {
  raw_of<T> lanes[16];
  I at[16];
  bool on[16];
  to_array(index, at);
  to_array(m, on);
  for (int i = 0; i < 16; ++i) lanes[i] = on[i] ? raw_at(base + at[i]) : raw_of<T>(0);
  return memory_of<T>::widen(load_lanes<raw_of<T>, 16>(lanes));
}
template <class T, class I>
COIL_INLINE auto gather(const T* base, vec<I, 16> index) {
  I at[16];
  to_array(index, at);
  return memory_of<T>::widen(build<raw_of<T>, 16>([&](int i) { return raw_at(base + at[i]); }));
}
template <class T>
COIL_INLINE auto load1(const T* p) {
  return memory_of<T>::widen1(raw_at(p));
}

// ---- stores ----

template <class T, class V>
COIL_INLINE void store(T* p, V x) {
  to_array(memory_of<T>::narrow(x), (raw_of<T>*)p);
}
/// Elements n and up are not written.
template <class T, class V>
COIL_INLINE void store_n(T* p, V x, i64 n) {
  store_raw_n<raw_of<T>>((raw_of<T>*)p, memory_of<T>::narrow(x), n);
}
template <class T, class V>
COIL_INLINE void store_strided_n(T* p, i64 stride, V x, i64 n) {
  raw_of<T> lanes[16];
  to_array(memory_of<T>::narrow(x), lanes);
  for (int i = 0; i < 16 && i < n; ++i) put_raw(p + i * stride, lanes[i]);
}
template <class T, class V>
COIL_INLINE void store_strided(T* p, i64 stride, V x) {
  store_strided_n(p, stride, x, 16);
}
template <class T, class V>
COIL_INLINE void store_mask(T* p, V x, mask16 m) {
#if COIL_KERNEL_AVX2
  if constexpr (sizeof(T) >= 4) {
    masked_move_out<T, 16>(p, mask<int(sizeof(T)), 16>(m).v, x);
  } else
#endif
  {
    raw_of<T> lanes[16];
    bool on[16];
    to_array(memory_of<T>::narrow(x), lanes);
    to_array(m, on);
    for (int i = 0; i < 16; ++i) {
      if (on[i]) put_raw(p + i, lanes[i]);
    }
  }
}
/// base[index[i]] = lane i where the mask is true, in lane order: of equal indices the last wins.
template <class T, class I, class V>
COIL_INLINE void scatter(T* base, vec<I, 16> index, V x, mask16 m) {
  raw_of<T> lanes[16];
  I at[16];
  bool on[16];
  to_array(memory_of<T>::narrow(x), lanes);
  to_array(index, at);
  to_array(m, on);
  for (int i = 0; i < 16; ++i) {
    if (on[i]) put_raw(base + at[i], lanes[i]);
  }
}
template <class T, class X>
COIL_INLINE void store1(T* p, X x) {
  put_raw(p, memory_of<T>::narrow1(x));
}

// ---- reductions over lanes ----

/// f(f(lane i, lane i + 8), ...) down to one lane: i with i+8, then i+4, i+2, i+1. f takes two
/// values of any width: `[](auto a, auto b) { return add(a, b); }`.
template <class T, int N, class F>
COIL_INLINE T fold(vec<T, N> a, F f) {
  if constexpr (N > 2)
    return fold(f(low_half(a), high_half(a)), f);
  else
    return f(get_lane(a, 0), get_lane(a, 1));
}
template <int W, int N, class F>
COIL_INLINE bool fold(mask<W, N> m, F f) {
  bool lanes[N];
  to_array(m, lanes);
  for (int half = N / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = f(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

}  // namespace COIL_KERNEL_NAMESPACE
