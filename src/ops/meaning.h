#pragma once
// What each scalar op means: one function of its name on C++ values. Only for src/ops.
//
// T is float, double, an integer type or bool, as far as the op's domain goes. Functions of floats
// that are not rounded exactly by IEEE 754 are computed in double and rounded to T.

#include <cmath>
#include <concepts>
#include <type_traits>

#include "ops/polynomial.h"
#include "ops/special.h"

namespace coil::ops::meaning {

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

/// The unsigned type to compute in so that an integer of type T wraps: at least as wide as int,
/// since narrower operands would be promoted to it and could overflow there.
template <class T>
using Wrapping = std::make_unsigned_t<std::conditional_t<(sizeof(T) < sizeof(int)), int, T>>;

// --- arithmetic

template <class T>
T add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
T sub(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <class T>
T mul(T a, T b) {
  if constexpr (kIsFloat<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <class T>
T neg(T a) {
  if constexpr (kIsFloat<T>)
    return -a;
  else
    return sub(T{0}, a);
}
template <class T>
T abs(T a) {
  if constexpr (kIsFloat<T>)
    return std::fabs(a);
  else if constexpr (std::is_unsigned_v<T>)
    return a;
  else
    return a < 0 ? neg(a) : a;
}
template <class T>
T sign(T a) {
  return static_cast<T>(static_cast<T>(a > T{0}) - static_cast<T>(a < T{0}));
}

template <std::floating_point T>
T div(T a, T b) {
  return a / b;
}

// C++ defines neither x / 0 nor the smallest integer / -1.
template <std::integral T>
bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
template <std::integral T>
T truncdiv(T a, T b) {
  if (b == 0) return 0;
  if (is_minus_one(b)) return neg(a);
  return static_cast<T>(a / b);
}
template <class T>
T fmod(T a, T b) {
  if constexpr (kIsFloat<T>)
    return std::fmod(a, b);
  else
    return b == 0 || is_minus_one(b) ? T{0} : static_cast<T>(a % b);
}
template <class T>
T remainder(T a, T b) {
  const T rest = meaning::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}
/// Floats: the quotient of what fmod leaves is whole but for its rounding, so it is rounded to the
/// nearest integer; a zero result has the sign of a / b. (The method of CPython's float_divmod.)
template <class T>
T floordiv(T a, T b) {
  if constexpr (!kIsFloat<T>) {
    const T quotient = truncdiv(a, b);
    const T rest = meaning::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
  } else {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T whole = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) whole -= 1;
    if (whole == 0) return std::copysign(T{0}, a / b);
    const T below = std::floor(whole);
    return whole - below > T{0.5} ? below + 1 : below;
  }
}

// Of two equal operands min and max give the first: it shows for zeros of both signs, where eager's
// clamp gives the number and not the bound. The conditions have no branch, so that loops vectorise.
template <class T>
T min(T a, T b) {
  if constexpr (kIsFloat<T>)
    return ((a <= b) | (a != a)) ? a : b;
  else
    return a < b ? a : b;
}
template <class T>
T max(T a, T b) {
  if constexpr (kIsFloat<T>)
    return ((a >= b) | (a != a)) ? a : b;
  else
    return a > b ? a : b;
}
// fmin and fmax give the first of two equal operands, as the C library does.
template <std::floating_point T>
T fmin(T a, T b) {
  return ((a <= b) | (b != b)) ? a : b;
}
template <std::floating_point T>
T fmax(T a, T b) {
  return ((a >= b) | (b != b)) ? a : b;
}
template <std::floating_point T>
T fma(T a, T b, T c) {
  return std::fma(a, b, c);
}

/// Integers, by repeated squaring.
template <std::integral T>
T integer_pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  T result = 1;
  while (exponent != 0) {
    if (exponent & 1) result = mul(result, base);
    base = mul(base, base);
    exponent = static_cast<T>(exponent / 2);
  }
  return result;
}
template <std::integral T>
T gcd(T a, T b) {
  a = meaning::abs(a);
  b = meaning::abs(b);
  while (b != 0) {
    const T rest = meaning::fmod(a, b);
    a = b;
    b = rest;
  }
  return a;
}
template <class T>
T pow(T a, T b) {
  if constexpr (kIsFloat<T>)
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  else
    return integer_pow(a, b);
}

// --- rounding

template <std::floating_point T>
T floor(T a) {
  return std::floor(a);
}
template <std::floating_point T>
T ceil(T a) {
  return std::ceil(a);
}
template <std::floating_point T>
T trunc(T a) {
  return std::trunc(a);
}
template <std::floating_point T>
T round(T a) {
  return std::nearbyint(a);
}

// --- elementary functions

template <std::floating_point T>
T sqrt(T a) {
  return std::sqrt(a);
}
template <std::floating_point T>
T rsqrt(T a) {
  return T{1} / std::sqrt(a);
}

#define COIL_IN_DOUBLE(name, function)                       \
  template <std::floating_point T>                           \
  T name(T a) {                                              \
    return static_cast<T>(function(static_cast<double>(a))); \
  }
COIL_IN_DOUBLE(exp, std::exp)
COIL_IN_DOUBLE(exp2, std::exp2)
COIL_IN_DOUBLE(expm1, std::expm1)
COIL_IN_DOUBLE(log, std::log)
COIL_IN_DOUBLE(log2, std::log2)
COIL_IN_DOUBLE(log10, std::log10)
COIL_IN_DOUBLE(log1p, std::log1p)
COIL_IN_DOUBLE(sin, std::sin)
COIL_IN_DOUBLE(cos, std::cos)
COIL_IN_DOUBLE(tan, std::tan)
COIL_IN_DOUBLE(asin, std::asin)
COIL_IN_DOUBLE(acos, std::acos)
COIL_IN_DOUBLE(atan, std::atan)
COIL_IN_DOUBLE(sinh, std::sinh)
COIL_IN_DOUBLE(cosh, std::cosh)
COIL_IN_DOUBLE(tanh, std::tanh)
COIL_IN_DOUBLE(asinh, std::asinh)
COIL_IN_DOUBLE(acosh, std::acosh)
COIL_IN_DOUBLE(atanh, std::atanh)
COIL_IN_DOUBLE(erf, std::erf)
COIL_IN_DOUBLE(erfc, erfc_of)
COIL_IN_DOUBLE(erfinv, erfinv_of)
COIL_IN_DOUBLE(lgamma, lgamma_of)
COIL_IN_DOUBLE(digamma, digamma_of)
#undef COIL_IN_DOUBLE

#define COIL_IN_DOUBLE_2(name, function)                                             \
  template <std::floating_point T>                                                   \
  T name(T a, T b) {                                                                 \
    return static_cast<T>(function(static_cast<double>(a), static_cast<double>(b))); \
  }
COIL_IN_DOUBLE_2(zeta, zeta_of)
COIL_IN_DOUBLE_2(igamma, igamma_of)
COIL_IN_DOUBLE_2(igammac, igammac_of)
#undef COIL_IN_DOUBLE_2

template <std::floating_point T>
T atan2(T a, T b) {
  return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
}
template <std::floating_point T>
T hypot(T a, T b) {
  return static_cast<T>(std::hypot(static_cast<double>(a), static_cast<double>(b)));
}
template <std::floating_point T>
T copysign(T a, T b) {
  return std::copysign(a, b);
}
template <std::floating_point T>
T nextafter(T a, T b) {
  return std::nextafter(a, b);
}

// --- orthogonal polynomials: polynomial.h

// --- bits

template <std::integral T>
T bits_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <std::integral T>
T bits_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <std::integral T>
T bits_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <std::integral T>
T bits_not(T a) {
  if constexpr (std::same_as<T, bool>)
    return !a;
  else
    return static_cast<T>(~a);
}
template <std::integral T>
bool is_shift_count(T count) {
  return count >= 0 && count < static_cast<T>(8 * sizeof(T));
}
template <std::integral T>
T shl(T a, T count) {
  return is_shift_count(count) ? static_cast<T>(static_cast<Wrapping<T>>(a) << count) : T{0};
}
template <std::integral T>
T shr(T a, T count) {
  if (is_shift_count(count)) return static_cast<T>(a >> count);
  return a < 0 ? static_cast<T>(-1) : T{0};
}

// --- random numbers

/// The first two words that Philox 4x32-10 makes of the counter (index, stream) and the key seed,
/// low words first (J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel Random Numbers: As Easy as
/// 1, 2, 3, 2011).
inline i64 philox(i64 seed, i64 stream, i64 index) {
  constexpr u64 kFactor0 = 0xD2511F53, kFactor1 = 0xCD9E8D57;
  constexpr u32 kStep0 = 0x9E3779B9, kStep1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  const auto low = [](u64 x) { return static_cast<u32>(x); };
  const auto high = [](u64 x) { return static_cast<u32>(x >> 32); };
  u32 key0 = low(static_cast<u64>(seed)), key1 = high(static_cast<u64>(seed));
  u32 w0 = low(static_cast<u64>(index)), w1 = high(static_cast<u64>(index));
  u32 w2 = low(static_cast<u64>(stream)), w3 = high(static_cast<u64>(stream));
  for (int round = 0; round < kRounds; ++round) {
    const u64 p0 = kFactor0 * w0, p1 = kFactor1 * w2;
    w0 = high(p1) ^ w1 ^ key0;
    w2 = high(p0) ^ w3 ^ key1;
    w1 = low(p1);
    w3 = low(p0);
    key0 += kStep0;
    key1 += kStep1;
  }
  return static_cast<i64>(u64{w1} << 32 | w0);
}

// --- tests

template <class T>
bool eq(T a, T b) {
  return a == b;
}
template <class T>
bool ne(T a, T b) {
  return a != b;
}
template <class T>
bool lt(T a, T b) {
  return a < b;
}
template <class T>
bool le(T a, T b) {
  return a <= b;
}
template <class T>
bool gt(T a, T b) {
  return a > b;
}
template <class T>
bool ge(T a, T b) {
  return a >= b;
}
template <std::floating_point T>
bool isnan(T a) {
  return a != a;
}
template <std::floating_point T>
bool isinf(T a) {
  return std::isinf(a);
}
template <std::floating_point T>
bool signbit(T a) {
  return std::signbit(a);
}
template <class T>
T where(bool condition, T a, T b) {
  return condition ? a : b;
}

}  // namespace coil::ops::meaning
