#pragma once
// Special functions of two operands. Those of orthogonal polynomials step all lanes together until
// the last is done; the others go lane by lane, in f64.

#include "80_math_rare.h"

namespace COIL_KERNEL_NAMESPACE {

// ---- greatest common divisor ----

template <class T, class = scalar<T>>
COIL_INLINE T gcd(T a, T b) {
  a = abs(a);
  b = abs(b);
  while (b != 0) {
    const T rest = int_fmod(a, b);
    a = b;
    b = rest;
  }
  return a;
}

// ---- orthogonal polynomials ----

/// Where n, truncated, is a degree that an i64 holds.
template <class V>
COIL_INLINE auto is_degree(V n) {
  using T = elem<V>;
  return bit_and(gt(n, like<V>(T(-1))), lt(n, like<V>(T(0x1p63))));
}
/// 1, or where x is below 0 and n odd -1.
template <class V>
COIL_INLINE V sign_at_end(V x, V n) {
  using T = elem<V>;
  V degree = trunc(n);
  auto is_even = eq(mul(trunc(mul(degree, like<V>(T(0.5)))), like<V>(T(2))), degree);
  return where(bit_or(gt(x, like<V>(T(0))), is_even), like<V>(T(1)), like<V>(T(-1)));
}
/// p[n] of p[0] = 1, p[1] = second, p[k + 1] = step(k, p[k], p[k - 1]), n truncated; 0 for n < 0.
template <class V, class Step>
COIL_INLINE V three_term(V n, V second, Step step) {
  using T = elem<V>;
  const V zero = like<V>(T(0)), one = like<V>(T(1));
  auto valid = is_degree(n);
  V degree = trunc(where(valid, n, zero));
  V before = one, last = where(lt(degree, one), one, second);
  for (i64 k = 1;; ++k) {
    const V at = like<V>(T(k));
    auto goes_on = bit_and(lt(at, degree), eq(last, last));
    if (!any(goes_on)) break;
    V next = step(at, last, before);
    before = where(goes_on, last, before);
    last = where(goes_on, next, last);
  }
  return where(valid, last, zero);
}
/// a * b - c * d of which the first product is not rounded, as eager's compiler contracts it: a
/// recurrence whose terms cancel loses half as much.
template <class V>
COIL_INLINE V difference_of_products(V a, V b, V c, V d) {
  return fma(a, b, neg(mul(c, d)));
}
/// Chebyshev's polynomials. Within -1..1 those of a degree above `low` are `closed`, of the degree
/// and of the angle whose cosine x is, at whose ends they are `end`, of the degree and its sign
/// there.
template <class V, class Closed, class End>
COIL_INLINE V chebyshev(V x, V n, V second, elem<V> low, Closed closed, End end) {
  using T = elem<V>;
  const V one = like<V>(T(1)), zero = like<V>(T(0));
  V degree = trunc(n);
  auto direct =
      bit_and(bit_and(le(abs(x), one), gt(degree, like<V>(low))), lt(n, like<V>(T(0x1p63))));
  V p = three_term(where(direct, zero, n), second,
                   [=](V, V last, V before) { return fma(add(x, x), last, neg(before)); });
  if (!any(direct)) return p;
  V at_end = end(degree, sign_at_end(x, n));
  V inside = closed(degree, acos(x));
  return where(direct, where(eq(abs(x), one), at_end, inside), p);
}
template <class V>
COIL_INLINE V chebyshev_t(V x, V n) {
  return chebyshev(
      x, n, x, 6, [](V degree, V angle) { return cos(mul(degree, angle)); },
      [](V, V sign) { return sign; });
}
template <class V>
COIL_INLINE V chebyshev_u(V x, V n) {
  const V one = like<V>(elem<V>(1));
  return chebyshev(
      x, n, add(x, x), 8,
      [=](V degree, V angle) { return div(sin(mul(add(degree, one), angle)), sin(angle)); },
      [=](V degree, V sign) { return mul(sign, add(degree, one)); });
}
template <class V>
COIL_INLINE V chebyshev_v(V x, V n) {
  const V one = like<V>(elem<V>(1)), half = like<V>(elem<V>(0.5));
  return chebyshev(
      x, n, sub(add(x, x), one), 8,
      [=](V degree, V angle) {
        return div(cos(mul(add(degree, half), angle)), cos(mul(angle, half)));
      },
      [=](V degree, V sign) {
        V both = mul(sign, add(add(degree, degree), one));
        return where(gt(x, like<V>(elem<V>(0))), one, both);
      });
}
template <class V>
COIL_INLINE V chebyshev_w(V x, V n) {
  const V one = like<V>(elem<V>(1)), half = like<V>(elem<V>(0.5));
  return chebyshev(
      x, n, add(add(x, x), one), 8,
      [=](V degree, V angle) {
        return div(sin(mul(add(degree, half), angle)), sin(mul(angle, half)));
      },
      [=](V degree, V sign) {
        V both = add(add(degree, degree), one);
        return where(gt(x, like<V>(elem<V>(0))), both, sign);
      });
}
/// Hermite's polynomials: NaN above the degree from which no value is finite.
template <class V, class Step>
COIL_INLINE V hermite(V n, V second, Step step) {
  using T = elem<V>;
  auto too_high = bit_and(gt(n, like<V>(T(sizeof(T) == 4 ? 128 : 512))), lt(n, like<V>(T(0x1p63))));
  V p = three_term(where(too_high, like<V>(T(0)), n), second, step);
  return where(too_high, like<V>(T(__builtin_nan(""))), p);
}
template <class V>
COIL_INLINE V hermite_h(V x, V n) {
  return hermite(n, add(x, x), [=](V k, V last, V before) {
    return difference_of_products(add(x, x), last, add(k, k), before);
  });
}
template <class V>
COIL_INLINE V hermite_he(V x, V n) {
  return hermite(n, x,
                 [=](V k, V last, V before) { return difference_of_products(x, last, k, before); });
}
template <class V>
COIL_INLINE V laguerre_l(V x, V n) {
  const V one = like<V>(elem<V>(1)), zero = like<V>(elem<V>(0));
  auto is_one = bit_and(eq(x, zero), is_degree(n));  // as the polynomial of degree 0
  return three_term(where(is_one, zero, n), sub(one, x), [=](V k, V last, V before) {
    V factor = add(add(k, k), sub(one, x));
    return div(difference_of_products(factor, last, k, before), add(k, one));
  });
}
template <class V>
COIL_INLINE V legendre_p(V x, V n) {
  const V one = like<V>(elem<V>(1)), zero = like<V>(elem<V>(0));
  auto at_end = bit_and(eq(abs(x), one), is_degree(n));
  V p = three_term(where(at_end, zero, n), x, [=](V k, V last, V before) {
    V factor = mul(add(add(k, k), one), x);
    return div(difference_of_products(factor, last, k, before), add(k, one));
  });
  return where(at_end, sign_at_end(x, n), p);
}

// ---- zeta ----

/// Euler and Maclaurin's formula after twelve terms of the sum of (q + k)^-s, q > 0.
template <class = void>  // only a kernel that calls it pays for it
COIL_COLD f64 zeta_positive(f64 s, f64 q) {
  constexpr f64 bernoulli[] = {// B_2j / (2j)!
                               1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000,
                               1.0 / 74724249600,
                               -3617.0 / 10670622842880000,
                               43867.0 / 5109094217170944000,
                               -174611.0 / 802857662698291200000.0};
  const f64 a = q + 12, power = libm::pow(a, -s);
  f64 sum = libm::pow(a, 1 - s) / (s - 1);
  if (power != 0) {
    f64 term = s * power / a, rest = 0;
    for (int j = 0; j < 10; ++j) {
      rest += bernoulli[j] * term;
      term *= (s + 2 * j + 1) / a * ((s + 2 * j + 2) / a);
    }
    sum += power / 2 + rest;
  }
  for (int k = 11; k >= 0; --k) sum += libm::pow(q + k, -s);  // the smallest first
  return sum;
}
template <class = void>
COIL_COLD f64 zeta_scalar(f64 s, f64 q) {
  const f64 nan = __builtin_nan("");
  if (s == 1) return __builtin_inf();
  if (s < 1) return nan;
  if (q <= 0 && q == floor(q)) return __builtin_inf();
  if (isnan(s) || isnan(q) || isinf(q)) return nan;
  if (isinf(s) && q > 0) return libm::pow(q, -s);
  if (q > 0) return zeta_positive(s, q);
  // Over all integers k the sum has the period 1 in q: what lies below 0 is a difference of sums
  // above it.
  if (s != floor(s)) return nan;
  const f64 fraction = q - floor(q);
  const f64 below = zeta_positive(s, 1 - fraction) - zeta_positive(s, 1 - q);
  return zeta_positive(s, fraction) + (__builtin_fmod(s, 2) == 0 ? below : -below);
}

// ---- incomplete gamma functions ----

/// mu - log(1 + mu); near 0 by log(1 + mu) = 2 atanh(w), w = mu / (2 + mu), mu - 2 w = mu w.
template <class = void>
COIL_COLD f64 gamma_distance(f64 mu) {
  if (abs(mu) > 0.4) return mu - libm::log1p(mu);
  const f64 w = mu / (2 + mu), square = w * w;
  f64 sum = 0, power = 2 * w * square;
  for (int k = 3; abs(power) > 1e-40; k += 2) {
    sum += power / k;
    power *= square;
  }
  return mu * w - sum;
}
/// x^a exp(-x) / gamma(a + 1). Large ones by Loader, "Fast and accurate computation of binomial
/// probabilities" (2000): the exponents of the powers are never formed apart.
template <class = void>
COIL_COLD f64 gamma_density(f64 a, f64 x) {
  if (a < 20) {
    const f64 half = libm::exp(-x / 2);  // exp(-x) may vanish where the product does not
    return libm::pow(x, a) * half / libm::tgamma(a + 1) * half;
  }
  const f64 z = 1 / (a * a);
  const f64 stirling_rest =
      (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / a;
  const f64 exponent = -a * gamma_distance((x - a) / a) - stirling_rest;
  return libm::exp(exponent) / __builtin_sqrt(6.283185307179586 * a);
}
/// P for x up to about a: density * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...).
template <class = void>
COIL_COLD f64 gamma_series(f64 a, f64 x) {
  f64 sum = 1, term = 1;
  for (f64 n = a + 1; term > 0x1p-56 * sum; n += 1) {
    term *= x / n;
    sum += term;
  }
  return gamma_density(a, x) * sum;
}
/// Q for x >= a + 1, or a < 1 <= x, by Legendre's continued fraction, in the way of Lentz.
template <class = void>
COIL_COLD f64 gamma_fraction(f64 a, f64 x) {
  f64 b = x + 1 - a;
  f64 c = 1e300, d = 1 / b, value = d, step = 0;
  for (f64 n = 1; abs(step - 1) > 0x1p-52; n += 1) {
    const f64 factor = n * (a - n);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    step = c * d;
    value *= step;
  }
  return gamma_density(a, x) * a * value;
}
/// log gamma(1 + a) / a for 0 <= a <= 1: a Chebyshev series of 2 a - 1.
template <class = void>
COIL_COLD f64 log_gamma_1p(f64 a) {
  constexpr f64 c[] = {-0.26473623693230252,    0.28587285859139468,     -0.023514576332157502,
                       0.002685079974656731,    -0.00034975527157275606, 4.8807553200032359e-5,
                       -7.0983587904858038e-6,  1.0607466166814589e-6,   -1.6155933858435658e-7,
                       2.4955218012272826e-8,   -3.8966973451197876e-9,  6.1373526583083775e-10,
                       -9.7349661106493962e-11, 1.5533015630980044e-11,  -2.4909467297324569e-12,
                       4.0120228240690907e-13,  -6.4865760147854984e-14, 1.0522714222232994e-14,
                       -1.7121447861626471e-15, 2.7933134227060938e-16,  -4.5682681291581217e-17,
                       7.4875325211390836e-18};
  const f64 t = 2 * a - 1;
  f64 b1 = 0, b2 = 0;
  for (int k = int(sizeof(c) / sizeof(c[0])) - 1; k > 0; --k) {
    const f64 b0 = 2 * t * b1 - b2 + c[k];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + c[0];
}
/// Q for a < 1 and x < 1, where 1 - P would lose it: P is nearly 1 for small a.
template <class = void>
COIL_COLD f64 gamma_upper_small(f64 a, f64 x) {
  const f64 log_power = a * (libm::log(x) - log_gamma_1p(a));
  f64 sum = 0, term = 1;
  for (f64 n = 1; abs(term) > 0x1p-56 * abs(sum); n += 1) {
    term *= -x / n;
    sum += term / (a + n);
  }
  return -libm::expm1(log_power) - libm::exp(log_power) * a * sum;
}
/// Temme, "The asymptotic expansion of the incomplete gamma functions" (1979), two terms, for
/// a >= 1e6. sign: 1 for Q, -1 for P.
template <class = void>
COIL_COLD f64 gamma_uniform(f64 a, f64 x, f64 sign) {
  constexpr f64 c0[] = {
      -1.0 / 3,        1.0 / 12,    -2.0 / 135,         1.0 / 864,          1.0 / 2835,
      -139.0 / 777600, 1.0 / 25515, -571.0 / 261273600, -281.0 / 151559100, 8.2967113409530860e-7};
  constexpr f64 c1[] = {-1.0 / 540, -1.0 / 288, 1.0 / 378, -77.0 / 77760, 2.0576131687242798e-4};
  const f64 mu = (x - a) / a, half_square = gamma_distance(mu);
  const f64 eta = copysign(__builtin_sqrt(2 * half_square), mu);
  f64 first = 0, second = 0;
  for (int k = 9; k >= 0; --k) first = first * eta + c0[k];
  for (int k = 4; k >= 0; --k) second = second * eta + c1[k];
  const f64 rest = libm::exp(-a * half_square) / __builtin_sqrt(6.283185307179586 * a);
  return libm::erfc(sign * eta * __builtin_sqrt(a / 2)) / 2 + sign * rest * (first + second / a);
}
template <class = void>
COIL_COLD f64 igamma_scalar(f64 a, f64 x, bool upper) {
  const f64 nan = __builtin_nan("");
  if (x < 0 || a < 0) return nan;
  if (a == 0) return x > 0 ? f64(!upper) : nan;
  if (x == 0) return upper;
  if (isinf(a)) return isinf(x) ? nan : f64(upper);
  if (isinf(x)) return !upper;
  if (isnan(a) || isnan(x)) return nan;
  if (a >= 1e6 && abs(x - a) < 0.05 * a) return gamma_uniform(a, x, upper ? 1 : -1);
  if (x >= (a < 1 ? 1 : a + 1)) {
    const f64 q = gamma_fraction(a, x);
    return upper ? q : 1 - q;
  }
  if (upper && a < 1) return gamma_upper_small(a, x);
  const f64 p = gamma_series(a, x);
  return upper ? 1 - p : p;
}

// ---- names for every type ----

template <class T, class = scalar<T>>
COIL_INLINE T zeta(T s, T q) {
  return T(zeta_scalar(f64(s), f64(q)));
}
template <class T, class = scalar<T>>
COIL_INLINE T igamma(T a, T x) {
  return T(igamma_scalar(f64(a), f64(x), false));
}
template <class T, class = scalar<T>>
COIL_INLINE T igammac(T a, T x) {
  return T(igamma_scalar(f64(a), f64(x), true));
}
#define COIL_BY_LANE2(NAME)                                      \
  template <class T, int N>                                      \
  COIL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y) {         \
    return for_lanes([](T a, T b) { return NAME(a, b); }, x, y); \
  }
COIL_BY_LANE2(gcd)
COIL_BY_LANE2(zeta)
COIL_BY_LANE2(igamma)
COIL_BY_LANE2(igammac)
#undef COIL_BY_LANE2

}  // namespace COIL_KERNEL_NAMESPACE
