#pragma once
// Functions used too rarely for own vector code: each lane calls libm, or the scalar code here.

#include "70_math.h"

namespace COIL_KERNEL_NAMESPACE {

#define COIL_LIBM1(NAME)                                    \
  template <class T, class = scalar<T>>                     \
  COIL_INLINE T NAME(T x) {                                 \
    return libm::NAME(x);                                   \
  }                                                         \
  template <class T, int N>                                 \
  COIL_INLINE vec<T, N> NAME(vec<T, N> x) {                 \
    return for_lanes([](T lane) { return NAME(lane); }, x); \
  }
COIL_LIBM1(tan)
COIL_LIBM1(asin)
COIL_LIBM1(acos)
COIL_LIBM1(atan)
COIL_LIBM1(sinh)
COIL_LIBM1(cosh)
COIL_LIBM1(asinh)
COIL_LIBM1(acosh)
COIL_LIBM1(atanh)
COIL_LIBM1(erfc)
#undef COIL_LIBM1

#define COIL_LIBM2(NAME)                                         \
  template <class T, class = scalar<T>>                          \
  COIL_INLINE T NAME(T x, T y) {                                 \
    return libm::NAME(x, y);                                     \
  }                                                              \
  template <class T, int N>                                      \
  COIL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y) {         \
    return for_lanes([](T a, T b) { return NAME(a, b); }, x, y); \
  }
COIL_LIBM2(atan2)
COIL_LIBM2(hypot)
COIL_LIBM2(nextafter)
#undef COIL_LIBM2

/// The x with erf(x) = y: a rough start, then Halley's method; near 1 on erfc, which keeps digits.
template <class = void>  // only a kernel that calls it pays for it
COIL_COLD f64 erfinv_scalar(f64 y) {
  const f64 a = abs(y);
  if (!(a < 1)) return a == 1 ? copysign(__builtin_inf(), y) : __builtin_nan("");
  if (a < 1e-300) return y * 0.88622692545275801;  // sqrt(pi)/2
  const f64 l = libm::log1p(-a * a);
  const f64 m = 4.3307467508 + l * 0.5;  // 2/(pi*0.147)
  f64 x = __builtin_sqrt(__builtin_sqrt(m * m - l * 6.8027210884) - m);
  for (int step = 0; step < 4; ++step) {
    const f64 miss = a < 0.5 ? libm::erf(x) - a : (1 - a) - libm::erfc(x);
    const f64 newton = miss / (1.1283791670955126 * libm::exp(-x * x));
    x -= newton / (1 + x * newton);
  }
  return copysign(x, y);
}

/// The derivative of lgamma: reflected below 0, raised above 10, then its asymptotic series.
template <class = void>
COIL_COLD f64 digamma_scalar(f64 x) {
  if (x == 0) return copysign(__builtin_inf(), -x);
  f64 result = 0;
  if (x < 0) {
    const f64 fraction = x - trunc(x);
    if (fraction == 0 || isinf(x)) return __builtin_nan("");
    const f64 pi = 3.14159265358979323846;
    result = -pi / libm::tan(pi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  if (isinf(x)) return x;
  const f64 z = 1 / (x * x);
  const f64 series =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + libm::log(x) - 0.5 / x - series;
}

template <class T, class = scalar<T>>
COIL_INLINE T erfinv(T y) {
  return T(erfinv_scalar(f64(y)));
}
template <class T, class = scalar<T>>
COIL_INLINE T digamma(T x) {
  return T(digamma_scalar(f64(x)));
}
template <class T, class = scalar<T>>
COIL_INLINE T lgamma(T x) {
  return libm::lgamma(x);
}
#define COIL_RARE(NAME)                                     \
  template <class T, int N>                                 \
  COIL_INLINE vec<T, N> NAME(vec<T, N> x) {                 \
    return for_lanes([](T lane) { return NAME(lane); }, x); \
  }
COIL_RARE(erfinv)
COIL_RARE(digamma)
COIL_RARE(lgamma)
#undef COIL_RARE

}  // namespace COIL_KERNEL_NAMESPACE
