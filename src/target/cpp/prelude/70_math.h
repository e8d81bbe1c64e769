#pragma once
// Elementary functions of f32 as inlined polynomials, the same code for 16 lanes and for a scalar,
// within 4 units in the last place; NaN, infinities, signed zeros and subnormals as in C's libm.
// The f64 forms call libm for each lane.
//
// The coefficients are minimax fits (Remez, weighted by the relative error of the result).

#include "30_cast.h"
#include "50_divide.h"
#include "55_random.h"
#include "67_libm.h"

namespace COIL_KERNEL_NAMESPACE {

/// `convert` for vectors and scalars alike.
template <class To, class V>
COIL_INLINE rebind<V, To> cast_lanes(V x) {
  if constexpr (traits<V>::lanes == 1)
    return To(x);
  else
    return convert<To>(x);
}
template <class V>
COIL_INLINE void store_lanes(V x, elem<V>* out) {
  if constexpr (traits<V>::lanes == 1)
    *out = x;
  else
    to_array(x, out);
}
template <class V>
COIL_INLINE V load_from(const elem<V>* in) {
  if constexpr (traits<V>::lanes == 1)
    return *in;
  else
    return load_lanes<elem<V>, traits<V>::lanes>(in);
}

/// c0 + c1*x + c2*x^2 + ...
template <class V>
COIL_INLINE V poly(V, elem<V> c0) {
  return like<V>(c0);
}
template <class V, class... C>
COIL_INLINE V poly(V x, elem<V> c0, C... higher) {
  return mad(poly(x, elem<V>(higher)...), x, like<V>(c0));
}

/// 2^n for whole n in -126..127.
template <class V>
COIL_INLINE V power_of_two(V n) {
  // Added to 2^23, n + 127 stands in the low bits. NaN gives some number; the other factor is NaN.
  return bitcast<f32>(shl_by<23>(bitcast<u32>(add(n, like<V>(0x1p23f + 127)))));
}
/// x * 2^n for whole n in -252..254; the result may be subnormal or infinite.
template <class V>
COIL_INLINE V scale_by(V x, V n) {
  V first = floor(mul(n, like<V>(0.5f)));
  return mul(mul(x, power_of_two(first)), power_of_two(sub(n, first)));
}

// ---- exponentials ----

/// x - n*ln2 with ln2 in two parts; the product with the first is exact for |n| < 2^15.
template <class V>
COIL_INLINE V minus_ln2_times(V x, V n) {
  V r = mad(n, like<V>(-0.693359375f), x);
  return mad(n, like<V>(2.12194440e-4f), r);
}
/// (e^r - 1 - r) / r^2 for |r| <= ln2/2
template <class V>
COIL_INLINE V exp_tail(V r) {
  return poly(r, 0.500000004923429274f, 0.166666668262300483f, 0.0416663421301957635f,
              0.00833327062738751497f, 0.00139420459343366573f, 0.000199156214594158555f);
}

template <class V>
COIL_INLINE V exp_f32(V x) {
  // Beyond the clamp the result is 0 or infinite anyway. NaN stays NaN: lesser and greater keep
  // `x`.
  x = lesser(x, like<V>(89.0f));
  x = greater(x, like<V>(-105.0f));
  V n = round(mul(x, like<V>(1.44269504f)));
  V r = minus_ln2_times(x, n);
  V p = mad(mul(r, r), exp_tail(r), r);
  return scale_by(add(p, like<V>(1.0f)), n);
}
template <class V>
COIL_INLINE V exp2_f32(V x) {
  x = lesser(x, like<V>(129.0f));
  x = greater(x, like<V>(-151.0f));
  V n = round(x);
  V r = sub(x, n);
  V p = poly(r, 0.693147206869508147f, 0.240226513616563589f, 0.0555032645485556143f,
             0.0096180018748561248f, 0.00134008047833269939f, 0.000154768839864189365f);
  return scale_by(mad(p, r, like<V>(1.0f)), n);
}
template <class V>
COIL_INLINE V expm1_f32(V x) {
  V bounded = lesser(x, like<V>(89.0f));
  bounded = greater(bounded, like<V>(-20.0f));
  V n = round(mul(bounded, like<V>(1.44269504f)));
  V r = minus_ln2_times(bounded, n);
  V p = mad(mul(r, r), exp_tail(r), r);
  // 2^n * p + (2^n - 1), all halved: 2^128 would overflow where the result does not.
  V half_scale = power_of_two(sub(n, like<V>(1.0f)));
  V half = mad(half_scale, p, sub(half_scale, like<V>(0.5f)));
  V result = add(half, half);
  return where(eq(x, like<V>(0.0f)), x, result);  // keeps -0
}

// ---- logarithms ----

/// x = mantissa * 2^exponent with mantissa - 1 in [sqrt(1/2) - 1, sqrt(2) - 1], for finite x > 0.
template <class V>
struct split_float {
  V fraction;  // mantissa - 1
  V exponent;
};
template <class V>
COIL_INLINE split_float<V> split(V x) {
  using I = rebind<V, i32>;
  auto tiny = lt(x, like<V>(0x1p-126f));
  x = where(tiny, mul(x, like<V>(0x1p23f)), x);
  constexpr i32 root_half = 0x3f3504f3;
  I offset = sub(bitcast<i32>(x), like<I>(root_half));
  I exponent = shr_by<23>(offset);
  V mantissa = bitcast<f32>(add(bit_and(offset, like<I>(0x7fffff)), like<I>(root_half)));
  V e = cast_lanes<f32>(exponent);
  return {sub(mantissa, like<V>(1.0f)), where(tiny, sub(e, like<V>(23.0f)), e)};
}
/// log(1 + f) - f for f as in split
template <class V>
COIL_INLINE V log_tail(V f) {
  V p = poly(f, 0.333333101701289336f, -0.249999858139207014f, 0.200022476599041489f,
             -0.166693100064285721f, 0.142182281509829752f, -0.123829978837906577f,
             0.118751043149387877f, -0.117991635917623952f, 0.0692170767393434631f);
  V square = mul(f, f);
  return mad(mul(square, f), p, mul(square, like<V>(-0.5f)));
}
/// The result for arguments that have no logarithm: -inf for 0, NaN below, inf and NaN themselves.
template <class V>
COIL_INLINE V log_special(V x, V result) {
  const V inf = like<V>(__builtin_inff());
  result = where(lt(x, inf), result, x);
  result = where(eq(x, like<V>(0.0f)), neg(inf), result);
  return where(lt(x, like<V>(0.0f)), like<V>(__builtin_nanf("")), result);
}

template <class V>
COIL_INLINE V log_f32(V x) {
  split_float<V> s = split(x);
  V tail = mad(s.exponent, like<V>(-2.12194440e-4f), log_tail(s.fraction));
  V sum = add(s.fraction, tail);
  return log_special(x, mad(s.exponent, like<V>(0.693359375f), sum));
}
template <class V>
COIL_INLINE V log2_f32(V x) {
  split_float<V> s = split(x);
  // log2(e) = 1 + 0.4427: the fraction itself enters exactly.
  V tail = log_tail(s.fraction);
  V more = mul(add(s.fraction, tail), like<V>(0.442695041f));
  V sum = add(add(more, tail), s.fraction);
  return log_special(x, add(sum, s.exponent));
}
template <class V>
COIL_INLINE V log10_f32(V x) {
  split_float<V> s = split(x);
  V sum = mul(add(s.fraction, log_tail(s.fraction)), like<V>(0.434294482f));
  sum = mad(s.exponent, like<V>(4.60503785e-6f), sum);  // log10(2) = 0.301025390625 + this
  return log_special(x, mad(s.exponent, like<V>(0.301025390625f), sum));
}
template <class V>
COIL_INLINE V log1p_f32(V x) {
  const V one = like<V>(1.0f);
  V u = add(x, one);
  // What rounding u lost, relative to u.
  V lost = where(ge(x, one), sub(one, sub(u, x)), sub(x, sub(u, one)));
  split_float<V> s = split(u);
  V correction = div(lost, u);
  V tail = mad(s.exponent, like<V>(-2.12194440e-4f), add(log_tail(s.fraction), correction));
  V result = mad(s.exponent, like<V>(0.693359375f), add(s.fraction, tail));
  result = log_special(u, result);
  return where(lt(abs(x), like<V>(0x1p-30f)), x, result);
}

// ---- hyperbolic tangent and the error function ----

template <class V>
COIL_INLINE V tanh_f32(V x) {
  V m = expm1_f32(mul(abs(x), like<V>(-2.0f)));
  return copysign(div(m, add(m, like<V>(2.0f))), x);
}
template <class V>
COIL_INLINE V erf_f32(V x) {
  V a = abs(x);
  V square = mul(x, x);
  V small = poly(square, 1.12837916657981354f, -0.376126331884596876f, 0.112836871891340422f,
                 -0.026858941530116217f, 0.00519990671410170242f, -0.000813001311907968849f,
                 0.0000831677691254672799f);
  V t = lesser(a, like<V>(4.0f));
  V log_erfc = poly(t, 0.000174683154631167058f, -1.12951492399344174f, -0.633346920060447168f,
                    -0.108280073532347605f, 0.0251194165735135423f, -0.00417105870381739238f,
                    0.000434461676420661808f, -0.0000210949646649802147f);
  V large = copysign(sub(like<V>(1.0f), exp_f32(log_erfc)), x);
  return where(lt(a, like<V>(0.92f)), mul(small, x), where(isnan(x), x, large));
}

// ---- sine and cosine ----

// Above this, and for infinities, sine and cosine go to libm lane by lane.
inline constexpr f32 kTrigLimit = 0x1p20f;

template <class V>
struct quarter_turns {
  V rest;  // x - quadrant * pi/2, in [-pi/4, pi/4]
  rebind<V, i32> quadrant;
};
/// The reduction runs in f64: pi/2 in two parts, the product with the first (33 bits) exact.
template <class V>
COIL_INLINE quarter_turns<V> reduce_angle(V x) {
  using D = rebind<V, f64>;
  D wide = cast_lanes<f64>(x);
  D n = round(mul(wide, like<D>(0.63661977236758138)));
  D rest = mad(n, like<D>(-0x1.921fb544p+0), wide);
  rest = mad(n, like<D>(-0x1.0b4611a626331p-34), rest);
  return {cast_lanes<f32>(rest), cast_lanes<i32>(n)};
}
template <class V>
COIL_INLINE V sin_or_cos(V x, i32 first_quadrant) {
  using I = rebind<V, i32>;
  quarter_turns<V> t = reduce_angle(x);
  I quadrant = add(t.quadrant, like<I>(first_quadrant));
  V square = mul(t.rest, t.rest);
  V s = poly(square, -0.166666666414266198f, 0.00833332936229201767f, -0.000198393271401097994f,
             2.71823730768120087e-6f);
  V sine = mad(mul(s, square), t.rest, t.rest);
  V c = poly(square, 0.0416666467478030005f, -0.00138873614515474267f, 0.0000244377302429883735f);
  V cosine = mad(mul(square, square), c, mad(square, like<V>(-0.5f), like<V>(1.0f)));
  auto odd = ne(bit_and(quadrant, like<I>(1)), like<I>(0));
  V result = where(odd, cosine, sine);
  I negate = shl_by<30>(bit_and(quadrant, like<I>(2)));
  return bitcast<f32>(bit_xor(bitcast<i32>(result), negate));
}
template <class V>
COIL_COLD V large_angles(V x, V result, i32 first_quadrant) {
  constexpr int lanes = traits<V>::lanes;
  f32 in[lanes], out[lanes];
  store_lanes(x, in);
  store_lanes(result, out);
  for (int i = 0; i < lanes; ++i) {
    if (!(abs(in[i]) > kTrigLimit)) continue;
    out[i] = first_quadrant ? libm::cos(in[i]) : libm::sin(in[i]);
  }
  return load_from<V>(out);
}
template <class V>
COIL_INLINE V sin_f32(V x) {
  V result = sin_or_cos(x, 0);
  if (__builtin_expect(any(gt(abs(x), like<V>(kTrigLimit))), 0)) {
    result = large_angles(x, result, 0);
  }
  return where(eq(x, like<V>(0.0f)), x, result);  // keeps -0
}
template <class V>
COIL_INLINE V cos_f32(V x) {
  V result = sin_or_cos(x, 1);
  if (__builtin_expect(any(gt(abs(x), like<V>(kTrigLimit))), 0)) {
    result = large_angles(x, result, 1);
  }
  return result;
}

// ---- power, through log2 and exp2 in f64 ----

/// log2 of finite d > 0 with an error below 2^-36 of its size.
template <class D>
COIL_INLINE D log2_wide(D d) {
  using L = rebind<D, i64>;
  constexpr i64 root_half = 0x3fe6a09e667f3bcd;
  L offset = sub(bitcast<i64>(d), like<L>(root_half));
  // The exponent is small: its bits under those of 2^52 + 2^51 make it a double without a cast.
  auto raised = bitcast<u64>(add(offset, like<L>(i64(1) << 62)));  // no negative exponent
  L biased = add(bitcast<i64>(shr_by<52>(raised)), like<L>(0x4338000000000000));
  D exponent = sub(bitcast<f64>(biased), like<D>(0x1.8p52 + 1024));
  D m = bitcast<f64>(add(bit_and(offset, like<L>(0xfffffffffffff)), like<L>(root_half)));
  D s = div(sub(m, like<D>(1)), add(m, like<D>(1)));
  D p = poly(mul(s, s), 2.88539008179017177, 0.961796673225733176, 0.577083608585090082,
             0.41167122310079296, 0.340759112749989166);
  return mad(s, p, exponent);
}
/// 2^d for |d| < 1000 with a relative error below 2^-33.
template <class D>
COIL_INLINE D exp2_wide(D d) {
  D shifted = add(d, like<D>(0x1.8p52));  // its low bits are the nearest whole number
  D r = sub(d, sub(shifted, like<D>(0x1.8p52)));
  D p = poly(r, 0.999999999961378867, 0.693147180729799848, 0.240226512011459582,
             0.0555041035034791412, 0.00961802684896075606, 0.00133339240419943078,
             0.00015469421956915818, 0.0000152018147626512683);
  return bitcast<f64>(add(bitcast<i64>(p), shl_by<52>(bitcast<i64>(shifted))));
}
template <class V>
COIL_INLINE V pow_f32(V x, V y) {
  using D = rebind<V, f64>;
  const V zero = like<V>(0.0f), one = like<V>(1.0f), inf = like<V>(__builtin_inff());
  V a = abs(x);
  D exponent = mul(cast_lanes<f64>(y), log2_wide(cast_lanes<f64>(a)));
  exponent = lesser(exponent, like<D>(400.0));
  exponent = greater(exponent, like<D>(-400.0));
  V result = cast_lanes<f32>(exp2_wide(exponent));
  // |x| is 0 or infinite, or y infinite: the result is 0, 1 or infinite.
  auto grows = eq(lt(a, one), lt(y, zero));
  V extreme = where(eq(a, one), one, where(grows, inf, zero));
  auto at_the_end = bit_or(bit_or(eq(a, zero), eq(a, inf)), eq(abs(y), inf));
  result = where(at_the_end, extreme, result);
  // The sign of x: odd whole y keep it, others take it away, fractions have no result.
  auto whole = eq(trunc(y), y);
  V half = mul(y, like<V>(0.5f));
  auto odd = bit_and(whole, ne(trunc(half), half));
  result = where(bit_and(odd, signbit(x)), neg(result), result);
  auto fails = bit_and(bit_and(lt(x, zero), bit_not(whole)), ne(a, inf));
  result = where(fails, like<V>(__builtin_nanf("")), result);
  result = where(bit_or(isnan(x), isnan(y)), add(x, y), result);
  return where(bit_or(eq(y, zero), eq(x, one)), one, result);
}

// ---- names for every type ----

#define COIL_MATH1(NAME)                                            \
  template <int N>                                                  \
  COIL_INLINE vec<f32, N> NAME(vec<f32, N> x) {                     \
    return NAME##_f32(x);                                           \
  }                                                                 \
  template <int N>                                                  \
  COIL_INLINE vec<f64, N> NAME(vec<f64, N> x) {                     \
    return for_lanes([](f64 lane) { return libm::NAME(lane); }, x); \
  }                                                                 \
  template <class T, class = scalar<T>>                             \
  COIL_INLINE T NAME(T x) {                                         \
    if constexpr (kSame<T, f32>)                                    \
      return NAME##_f32(x);                                         \
    else                                                            \
      return libm::NAME(x);                                         \
  }
COIL_MATH1(exp)
COIL_MATH1(exp2)
COIL_MATH1(expm1)
COIL_MATH1(log)
COIL_MATH1(log2)
COIL_MATH1(log10)
COIL_MATH1(log1p)
COIL_MATH1(tanh)
COIL_MATH1(erf)
COIL_MATH1(sin)
COIL_MATH1(cos)
#undef COIL_MATH1

/// Integers: by squaring, wrapping; a negative exponent gives what truncated division would.
template <class T, class = scalar<T>>
COIL_INLINE T int_pow(T base, T exponent) {
  if constexpr (kIsSigned<T>) {
    if (exponent < 0) {
      if (base == T(1)) return 1;
      return base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
    }
  }
  T result = 1;
  for (; exponent; exponent = T(exponent >> 1)) {
    if (exponent & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
template <class T, class = scalar<T>>
COIL_INLINE T pow(T x, T y) {
  if constexpr (kSame<T, f32>)
    return pow_f32(x, y);
  else if constexpr (kSame<T, f64>)
    return libm::pow(x, y);
  else
    return int_pow(x, y);
}
template <class T, int N>
COIL_INLINE vec<T, N> pow(vec<T, N> x, vec<T, N> y) {
  if constexpr (kSame<T, f32>)
    return pow_f32(x, y);
  else
    return for_lanes([](T a, T b) { return pow(a, b); }, x, y);
}

}  // namespace COIL_KERNEL_NAMESPACE
