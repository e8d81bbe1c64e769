#pragma once
// Arithmetic that is exact or correctly rounded: + - * /, comparisons, bits, masks, selection.
// Every function has a form for vectors and one for plain scalars under the same name. (bitand and
// bitor are alternative tokens of C++ for & and |, hence bit_and, bit_or, bit_xor, bit_not.)

#include "10_types.h"

namespace COIL_KERNEL_NAMESPACE {

// Defines NAME(a, b) on vectors from an expression on native vectors; NT is their type.
#define COIL_LANEWISE1(NAME, ...)               \
  template <class T, int N>                     \
  COIL_INLINE vec<T, N> NAME(vec<T, N> a) {     \
    if constexpr (vec<T, N>::kNative) {         \
      using NT [[maybe_unused]] = native<T, N>; \
      return {__VA_ARGS__};                     \
    } else {                                    \
      return {NAME(a.lo), NAME(a.hi)};          \
    }                                           \
  }
#define COIL_LANEWISE2(NAME, ...)                          \
  template <class T, int N>                                \
  COIL_INLINE vec<T, N> NAME(vec<T, N> a, vec<T, N> b) {   \
    if constexpr (vec<T, N>::kNative) {                    \
      using NT [[maybe_unused]] = native<T, N>;            \
      using WT [[maybe_unused]] = native<wrapping<T>, N>;  \
      using UT [[maybe_unused]] = native<uint_like<T>, N>; \
      return {__VA_ARGS__};                                \
    } else {                                               \
      return {NAME(a.lo, b.lo), NAME(a.hi, b.hi)};         \
    }                                                      \
  }

// ---- integers wrap; floats are IEEE ----

COIL_LANEWISE2(add, (NT)((WT)a.v + (WT)b.v))
COIL_LANEWISE2(sub, (NT)((WT)a.v - (WT)b.v))
COIL_LANEWISE2(mul, (NT)((WT)a.v*(WT)b.v))

template <class T, class = scalar<T>>
COIL_INLINE T add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a + b;
  else
    return T(u64(a) + u64(b));
}
template <class T, class = scalar<T>>
COIL_INLINE T sub(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a - b;
  else
    return T(u64(a) - u64(b));
}
template <class T, class = scalar<T>>
COIL_INLINE T mul(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a * b;
  else
    return T(u64(a) * u64(b));
}

// ---- bits ----

/// The same bits as another element type of the same size.
template <class To, class T, int N>
COIL_INLINE vec<To, N> bitcast(vec<T, N> a) {
  static_assert(sizeof(To) == sizeof(T));
  if constexpr (vec<T, N>::kNative)
    return {(native<To, N>)a.v};
  else
    return {bitcast<To>(a.lo), bitcast<To>(a.hi)};
}
template <class To, class From>
COIL_INLINE To bitcast(From a) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  __builtin_memcpy(&r, &a, sizeof(r));
  return r;
}

/// `bitcast` as an op of a program. g++ 12 fails with an internal error on float lanes that were
/// gathered, seen as integers and then widened, unless it is kept from looking through this.
template <class To, class T, int N>
COIL_INLINE vec<To, N> seen_as(vec<T, N> a) {
  if constexpr (vec<T, N>::kNative) {
#if defined(__x86_64__)
    asm("" : "+x"(a.v));
#else
    asm("" : "+m"(a.v));
#endif
    return bitcast<To>(a);
  } else {
    return {seen_as<To>(a.lo), seen_as<To>(a.hi)};
  }
}
template <class To, class From>
COIL_INLINE To seen_as(From a) {
  return bitcast<To>(a);
}

COIL_LANEWISE2(bit_and, (NT)((UT)a.v&(UT)b.v))
COIL_LANEWISE2(bit_or, (NT)((UT)a.v | (UT)b.v))
COIL_LANEWISE2(bit_xor, (NT)((UT)a.v ^ (UT)b.v))
COIL_LANEWISE1(bit_not, (NT)(~(native<uint_like<T>, N>)a.v))

template <class T, class = scalar<T>>
COIL_INLINE T bit_and(T a, T b) {
  return T(a & b);
}
template <class T, class = scalar<T>>
COIL_INLINE T bit_or(T a, T b) {
  return T(a | b);
}
template <class T, class = scalar<T>>
COIL_INLINE T bit_xor(T a, T b) {
  return T(a ^ b);
}
template <class T, class = scalar<T>>
COIL_INLINE T bit_not(T a) {
  if constexpr (kSame<T, bool>)
    return !a;
  else
    return T(~a);
}

/// Shifts by a compile-time count in 0..bits-1.
template <int Count, class T, int N>
COIL_INLINE vec<T, N> shl_by(vec<T, N> a) {
  if constexpr (vec<T, N>::kNative)
    return {a.v << Count};
  else
    return {shl_by<Count>(a.lo), shl_by<Count>(a.hi)};
}
template <int Count, class T, int N>
COIL_INLINE vec<T, N> shr_by(vec<T, N> a) {
  if constexpr (vec<T, N>::kNative)
    return {a.v >> Count};
  else
    return {shr_by<Count>(a.lo), shr_by<Count>(a.hi)};
}
template <int Count, class T>
COIL_INLINE T shl_by(T a) {
  return T(u64(a) << Count);
}
template <int Count, class T>
COIL_INLINE T shr_by(T a) {
  return T(a >> Count);
}

// ---- masks and comparisons ----

template <class To, class T, int N>
COIL_INLINE vec<To, N> convert(vec<T, N> a);  // 30_cast.h

template <int W, int N>
struct mask {
  using lane = typename int_of_bytes<W>::s;
  vec<lane, N> v;

  mask() = default;
  COIL_MEMBER explicit mask(vec<lane, N> lanes) : v(lanes) {}
  template <int From>
  COIL_MEMBER mask(mask<From, N> other) : v(convert<lane>(other.v)) {}
};
template <int W, int N>
COIL_INLINE mask<W, N> make_mask(vec<typename int_of_bytes<W>::s, N> lanes) {
  return mask<W, N>(lanes);
}

#define COIL_COMPARE(NAME, OP)                                             \
  template <class T, int N>                                                \
  COIL_INLINE vec<int_like<T>, N> NAME##_lanes(vec<T, N> a, vec<T, N> b) { \
    if constexpr (vec<T, N>::kNative)                                      \
      return {(native<int_like<T>, N>)(a.v OP b.v)};                       \
    else                                                                   \
      return {NAME##_lanes(a.lo, b.lo), NAME##_lanes(a.hi, b.hi)};         \
  }                                                                        \
  template <class T, int N>                                                \
  COIL_INLINE mask<int(sizeof(T)), N> NAME(vec<T, N> a, vec<T, N> b) {     \
    return mask<int(sizeof(T)), N>(NAME##_lanes(a, b));                    \
  }                                                                        \
  template <class T, class = scalar<T>>                                    \
  COIL_INLINE bool NAME(T a, T b) {                                        \
    return a OP b;                                                         \
  }
COIL_COMPARE(eq, ==)
COIL_COMPARE(ne, !=)
COIL_COMPARE(lt, <)
COIL_COMPARE(le, <=)
COIL_COMPARE(gt, >)
COIL_COMPARE(ge, >=)
#undef COIL_COMPARE

// Logic on masks. The result has the width of the first operand.
#define COIL_MASK2(NAME, ...)                                \
  template <int W, int V, int N>                             \
  COIL_INLINE mask<W, N> NAME(mask<W, N> x, mask<V, N> y) {  \
    vec<typename int_of_bytes<W>::s, N> a = x.v;             \
    vec<typename int_of_bytes<W>::s, N> b = mask<W, N>(y).v; \
    return mask<W, N>(__VA_ARGS__);                          \
  }
COIL_MASK2(bit_and, bit_and(a, b))
COIL_MASK2(bit_or, bit_or(a, b))
COIL_MASK2(bit_xor, bit_xor(a, b))
COIL_MASK2(ne, bit_xor(a, b))
COIL_MASK2(eq, bit_not(bit_xor(a, b)))
COIL_MASK2(lt, bit_and(bit_not(a), b))  // false < true
COIL_MASK2(gt, bit_and(a, bit_not(b)))
COIL_MASK2(le, bit_or(bit_not(a), b))
COIL_MASK2(ge, bit_or(a, bit_not(b)))
COIL_MASK2(add, bit_or(a, b))  // bool arithmetic as in ATen: + is or, * is and
COIL_MASK2(max, bit_or(a, b))
COIL_MASK2(mul, bit_and(a, b))
COIL_MASK2(min, bit_and(a, b))
#undef COIL_MASK2
template <int W, int N>
COIL_INLINE mask<W, N> bit_not(mask<W, N> a) {
  return mask<W, N>(bit_not(a.v));
}

template <int N>
COIL_INLINE mask<1, N> splat_mask(bool x) {
  return mask<1, N>(splat<i8, N>(i8(x ? -1 : 0)));
}
COIL_INLINE mask16 splat16(bool x) { return splat_mask<16>(x); }

template <int W, int N>
COIL_INLINE void to_array(mask<W, N> m, bool* out) {
  i8 lanes[N];
  to_array(mask<1, N>(m).v, lanes);
  for (int i = 0; i < N; ++i) out[i] = lanes[i] != 0;
}
template <int W, int N>
COIL_INLINE bool get_lane(mask<W, N> m, int i) {
  return get_lane(m.v, i) != 0;
}

template <class T, int N>
COIL_INLINE bool any_bits(vec<T, N> a) {
  if constexpr (!vec<T, N>::kNative) {
    return any_bits(bit_or(a.lo, a.hi));
  } else {
    u64 words[sizeof(a.v) < 8 ? 1 : sizeof(a.v) / 8] = {};
    __builtin_memcpy(words, &a.v, sizeof(a.v));
    u64 all = 0;
    for (u64 word : words) all |= word;
    return all != 0;
  }
}
/// Whether any, or every, lane is true.
template <int W, int N>
COIL_INLINE bool any(mask<W, N> m) {
  return any_bits(m.v);
}
template <int W, int N>
COIL_INLINE bool all(mask<W, N> m) {
  return !any_bits(bit_not(m.v));
}
COIL_INLINE bool any(bool m) { return m; }
COIL_INLINE bool all(bool m) { return m; }

template <class M, class T, int N>
COIL_INLINE vec<T, N> select_lanes(vec<M, N> m, vec<T, N> a, vec<T, N> b) {
  if constexpr (vec<T, N>::kNative)
    return {m.v ? a.v : b.v};
  else
    return {select_lanes(m.lo, a.lo, b.lo), select_lanes(m.hi, a.hi, b.hi)};
}
/// Lane by lane: m ? a : b.
template <int W, class T, int N>
COIL_INLINE vec<T, N> where(mask<W, N> m, vec<T, N> a, vec<T, N> b) {
  return select_lanes(mask<int(sizeof(T)), N>(m).v, a, b);
}
template <int W, int V, int U, int N>
COIL_INLINE mask<V, N> where(mask<W, N> m, mask<V, N> a, mask<U, N> b) {
  return bit_or(bit_and(a, m), bit_and(mask<V, N>(b), bit_not(m)));
}
template <class T, class = scalar<T>>
COIL_INLINE T where(bool m, T a, T b) {
  return m ? a : b;
}

// ---- shifts by data: counts out of range give 0, or the sign for signed shr ----

template <class T, int N>
COIL_INLINE vec<T, N> shl(vec<T, N> a, vec<T, N> b) {
  using U = uint_like<T>;
  if constexpr (vec<T, N>::kNative) {
    constexpr U bits = 8 * sizeof(T);
    auto count = bitcast<U>(b);
    vec<U, N> shifted{bitcast<U>(a).v << (count.v & U(bits - 1))};
    return bitcast<T>(where(lt(count, splat<U, N>(bits)), shifted, splat<U, N>(0)));
  } else {
    return {shl(a.lo, b.lo), shl(a.hi, b.hi)};
  }
}
template <class T, int N>
COIL_INLINE vec<T, N> shr(vec<T, N> a, vec<T, N> b) {
  using U = uint_like<T>;
  if constexpr (vec<T, N>::kNative) {
    constexpr U bits = 8 * sizeof(T);
    auto count = bitcast<U>(b);
    auto inside = lt(count, splat<U, N>(bits));
    if constexpr (kIsSigned<T>) {
      auto clamped = bitcast<T>(where(inside, count, splat<U, N>(U(bits - 1))));
      return {a.v >> clamped.v};
    } else {
      vec<T, N> shifted{a.v >> (b.v & T(bits - 1))};
      return where(inside, shifted, splat<T, N>(0));
    }
  } else {
    return {shr(a.lo, b.lo), shr(a.hi, b.hi)};
  }
}
template <class T, class = scalar<T>>
COIL_INLINE T shl(T a, T b) {
  return u64(b) < 8 * sizeof(T) ? T(u64(a) << u64(b)) : T(0);
}
template <class T, class = scalar<T>>
COIL_INLINE T shr(T a, T b) {
  const bool inside = u64(b) < 8 * sizeof(T);
  if constexpr (kIsSigned<T>)
    return T(a >> (inside ? int(b) : int(8 * sizeof(T) - 1)));
  else
    return inside ? T(a >> int(b)) : T(0);
}

// ---- sign, absolute value ----

template <class V>
COIL_INLINE V neg(V a) {
  using T = elem<V>;
  if constexpr (kIsFloat<T>) {
    using U = uint_like<T>;
    return bitcast<T>(bit_xor(bitcast<U>(a), like<rebind<V, U>>(U(1) << (8 * sizeof(T) - 1))));
  } else {
    return sub(like<V>(T(0)), a);
  }
}
template <class V>
COIL_INLINE V abs(V a) {
  using T = elem<V>;
  if constexpr (kIsFloat<T>) {
    using U = uint_like<T>;
    return bitcast<T>(bit_and(bitcast<U>(a), like<rebind<V, U>>(U(~U(0)) >> 1)));
  } else if constexpr (kIsSigned<T>) {
    return where(lt(a, like<V>(T(0))), neg(a), a);
  } else {
    return a;
  }
}
/// Whether the sign bit is set, for -0.0 and NaN too.
template <class V>
COIL_INLINE auto signbit(V a) {
  using T = elem<V>;
  return lt(bitcast<int_like<T>>(a), like<rebind<V, int_like<T>>>(int_like<T>(0)));
}
template <class V>
COIL_INLINE V copysign(V magnitude, V sign_of) {
  using T = elem<V>;
  using U = uint_like<T>;
  auto top = like<rebind<V, U>>(U(1) << (8 * sizeof(T) - 1));
  return bitcast<T>(
      bit_or(bit_and(bitcast<U>(magnitude), bit_not(top)), bit_and(bitcast<U>(sign_of), top)));
}
/// -1, 0 or 1; 0 for NaN, as in ATen.
template <class V>
COIL_INLINE V sign(V a) {
  using T = elem<V>;
  const V zero = like<V>(T(0));
  V positive = where(gt(a, zero), like<V>(T(1)), zero);
  if constexpr (kIsSigned<T>)
    return where(lt(a, zero), like<V>(T(-1)), positive);
  else
    return positive;
}
template <class V>
COIL_INLINE auto isnan(V a) {
  return ne(a, a);
}
template <class V>
COIL_INLINE auto isinf(V a) {
  using T = elem<V>;
  if constexpr (kIsFloat<T>)
    return eq(abs(a), like<V>(T(__builtin_inff())));
  else
    return ne(a, a);
}

}  // namespace COIL_KERNEL_NAMESPACE
