#pragma once
// libm's functions of numbers that the compiler does not see. Of one that it knows it would take
// the correctly rounded result, and that is not always libm's: an op would give other bits where
// fusion shows it a constant.

#include "10_types.h"

extern "C" {
double lgamma_r(double, int*) noexcept;
float lgammaf_r(float, int*) noexcept;
}

namespace COIL_KERNEL_NAMESPACE {
namespace libm {

template <class T>
COIL_INLINE T unseen(T x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

#define COIL_LIBM1(NAME)                                                 \
  COIL_INLINE f32 NAME(f32 x) { return __builtin_##NAME##f(unseen(x)); } \
  COIL_INLINE f64 NAME(f64 x) { return __builtin_##NAME(unseen(x)); }
COIL_LIBM1(exp)
COIL_LIBM1(exp2)
COIL_LIBM1(expm1)
COIL_LIBM1(log)
COIL_LIBM1(log2)
COIL_LIBM1(log10)
COIL_LIBM1(log1p)
COIL_LIBM1(sin)
COIL_LIBM1(cos)
COIL_LIBM1(tan)
COIL_LIBM1(asin)
COIL_LIBM1(acos)
COIL_LIBM1(atan)
COIL_LIBM1(sinh)
COIL_LIBM1(cosh)
COIL_LIBM1(tanh)
COIL_LIBM1(asinh)
COIL_LIBM1(acosh)
COIL_LIBM1(atanh)
COIL_LIBM1(erf)
COIL_LIBM1(erfc)
COIL_LIBM1(tgamma)
#undef COIL_LIBM1

#define COIL_LIBM2(NAME)                                                                   \
  COIL_INLINE f32 NAME(f32 x, f32 y) { return __builtin_##NAME##f(unseen(x), unseen(y)); } \
  COIL_INLINE f64 NAME(f64 x, f64 y) { return __builtin_##NAME(unseen(x), unseen(y)); }
COIL_LIBM2(pow)
COIL_LIBM2(atan2)
COIL_LIBM2(hypot)
COIL_LIBM2(nextafter)
#undef COIL_LIBM2

COIL_INLINE f32 lgamma(f32 x) {
  int sign;  // the form without it writes a global
  return lgammaf_r(unseen(x), &sign);
}
COIL_INLINE f64 lgamma(f64 x) {
  int sign;
  return lgamma_r(unseen(x), &sign);
}

}  // namespace libm
}  // namespace COIL_KERNEL_NAMESPACE
