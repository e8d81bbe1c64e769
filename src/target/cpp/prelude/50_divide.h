#pragma once
// Division and its relatives. Integer division never traps: by zero it gives 0, and the smallest
// integer divided by -1 is itself.

#include "40_machine.h"

namespace COIL_KERNEL_NAMESPACE {

template <class T, class = scalar<T>>
COIL_INLINE T int_div(T a, T b) {
  if (b == 0) return 0;
  if constexpr (kIsSigned<T>) {
    if (b == T(-1)) return neg(a);
  }
  return T(a / b);
}
template <class T, class = scalar<T>>
COIL_INLINE T int_floordiv(T a, T b) {
  T q = int_div(a, b);
  if constexpr (kIsSigned<T>) {
    if (b != 0 && (a < 0) != (b < 0) && mul(q, b) != a) q = sub(q, T(1));
  }
  return q;
}
template <class T, class = scalar<T>>
COIL_INLINE T int_fmod(T a, T b) {
  return b == 0 ? T(0) : sub(a, mul(int_div(a, b), b));
}
template <class T, class = scalar<T>>
COIL_INLINE T int_remainder(T a, T b) {
  return b == 0 ? T(0) : sub(a, mul(int_floordiv(a, b), b));
}

COIL_INLINE f32 float_fmod(f32 a, f32 b) { return __builtin_fmodf(a, b); }
COIL_INLINE f64 float_fmod(f64 a, f64 b) { return __builtin_fmod(a, b); }

// The four operations on one pair of scalars; `What` picks.
enum class Division { Trunc, Floor, Fmod, Remainder };
template <Division What, class T>
COIL_INLINE T divide_one(T a, T b) {
  if constexpr (!kIsFloat<T>) {
    if constexpr (What == Division::Trunc) return int_div(a, b);
    if constexpr (What == Division::Floor) return int_floordiv(a, b);
    if constexpr (What == Division::Fmod) return int_fmod(a, b);
    if constexpr (What == Division::Remainder) return int_remainder(a, b);
  } else if constexpr (What == Division::Trunc) {
    return trunc(a / b);
  } else if constexpr (What == Division::Fmod) {
    return float_fmod(a, b);
  } else {
    T rest = float_fmod(a, b);
    const bool adjust = rest != 0 && (b < 0) != (rest < 0);
    if constexpr (What == Division::Remainder) return adjust ? rest + b : rest;
    // As Python's float //: the quotient of what fmod left is whole but for rounding.
    if (b == 0) return a / b;
    T quotient = (a - rest) / b;
    if (adjust) quotient -= 1;
    if (quotient == 0) return copysign(T(0), a / b);
    T whole = floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  }
}

template <class T, int N, class F>
COIL_INLINE vec<T, N> for_lanes(F f, vec<T, N> a) {
  T x[N];
  to_array(a, x);
  for (int i = 0; i < N; ++i) x[i] = f(x[i]);
  return load_lanes<T, N>(x);
}
template <class T, int N, class F>
COIL_INLINE vec<T, N> for_lanes(F f, vec<T, N> a, vec<T, N> b) {
  T x[N], y[N];
  to_array(a, x);
  to_array(b, y);
  for (int i = 0; i < N; ++i) x[i] = f(x[i], y[i]);
  return load_lanes<T, N>(x);
}

template <class T, int N>
COIL_INLINE vec<T, N> float_quotient(vec<T, N> a, vec<T, N> b) {
  if constexpr (vec<T, N>::kNative)
    return {a.v / b.v};
  else
    return {float_quotient(a.lo, b.lo), float_quotient(a.hi, b.hi)};
}

#define COIL_DIVISION(NAME, WHAT)                                                      \
  template <class T, int N>                                                            \
  COIL_INLINE vec<T, N> NAME(vec<T, N> a, vec<T, N> b) {                               \
    return for_lanes([](T x, T y) { return divide_one<Division::WHAT>(x, y); }, a, b); \
  }                                                                                    \
  template <class T, class = scalar<T>>                                                \
  COIL_INLINE T NAME(T a, T b) {                                                       \
    return divide_one<Division::WHAT>(a, b);                                           \
  }
COIL_DIVISION(floordiv, Floor)
COIL_DIVISION(fmod, Fmod)
COIL_DIVISION(remainder, Remainder)  // the sign of the divisor, as in Python
COIL_DIVISION(truncdiv_any, Trunc)
#undef COIL_DIVISION

/// a / b; integers truncate.
template <class T, int N>
COIL_INLINE vec<T, N> div(vec<T, N> a, vec<T, N> b) {
  if constexpr (kIsFloat<T>)
    return float_quotient(a, b);
  else
    return truncdiv_any(a, b);
}
template <class T, class = scalar<T>>
COIL_INLINE T div(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a / b;
  else
    return truncdiv_any(a, b);
}
/// The quotient rounded towards zero.
template <class T, int N>
COIL_INLINE vec<T, N> truncdiv(vec<T, N> a, vec<T, N> b) {
  if constexpr (kIsFloat<T>)
    return trunc(float_quotient(a, b));
  else
    return truncdiv_any(a, b);
}
template <class T, class = scalar<T>>
COIL_INLINE T truncdiv(T a, T b) {
  return truncdiv_any(a, b);
}

/// 1 / sqrt(a), each rounded.
template <class V>
COIL_INLINE V rsqrt(V a) {
  return div(like<V>(elem<V>(1)), sqrt(a));
}

}  // namespace COIL_KERNEL_NAMESPACE
