#pragma once
// Orthogonal polynomials of x, of a degree that is data. Only for src/ops.
//
// Each is computed in T by the three-term recurrence of its family, one step a degree, as eager
// does for most arguments. (Abramowitz and Stegun, "Handbook of Mathematical Functions", 22.7.)

#include <cmath>
#include <concepts>
#include <limits>

namespace coil::ops::meaning {

/// Whether n, truncated, is a degree: none is below 0, or larger than all i64.
template <std::floating_point T>
bool is_degree(T n) {
  return n > -1 && n < T(0x1p63);
}

/// The polynomial of degree n with p[0] = 1, p[1] = `second`, p[k + 1] = step(k, p[k], p[k - 1]).
/// A NaN never goes away again. It is 0 where n is no degree.
template <std::floating_point T, class Step>
T three_term(T n, T second, Step step) {
  if (!is_degree(n)) return 0;
  const auto degree = static_cast<long long>(n);
  T before = 1, last = second;
  if (degree == 0) return before;
  for (long long k = 1; k < degree && last == last; ++k) {
    const T next = step(static_cast<T>(k), last, before);
    before = last;
    last = next;
  }
  return last;
}

/// a * b - c * d of which the first product is not rounded, as eager's compiler contracts it: a
/// recurrence whose terms cancel loses half as much.
template <std::floating_point T>
T difference_of_products(T a, T b, T c, T d) {
  return std::fma(a, b, -(c * d));
}

template <std::floating_point T>
T chebyshev(T x, T n, T second) {
  return three_term(n, second, [x](T, T last, T before) { return std::fma(x + x, last, -before); });
}

/// Whether eager has the polynomial of degree n > `low` from the angle whose cosine x is: there the
/// recurrence does not grow, and would take n steps. (Abramowitz and Stegun, 22.3.15 and 22.3.16.)
template <std::floating_point T>
bool by_angle(T x, T n, T low) {
  return std::abs(x) <= 1 && std::trunc(n) > low && n < T(0x1p63);
}
/// 1, or for -1 to an odd power -1.
template <std::floating_point T>
T sign_at_end(T x, T n) {
  return x > 0 || std::trunc(n / 2) * 2 == std::trunc(n) ? T(1) : T(-1);
}
template <std::floating_point T>
T chebyshev_t(T x, T n) {
  if (!by_angle(x, n, T(6))) return chebyshev(x, n, x);
  return std::abs(x) == 1 ? sign_at_end(x, n) : std::cos(std::trunc(n) * std::acos(x));
}
template <std::floating_point T>
T chebyshev_u(T x, T n) {
  if (!by_angle(x, n, T(8))) return chebyshev(x, n, x + x);
  const T next = std::trunc(n) + 1, angle = std::acos(x);
  if (std::abs(x) == 1) return sign_at_end(x, n) * next;
  return std::sin(next * angle) / std::sin(angle);
}
template <std::floating_point T>
T chebyshev_v(T x, T n) {
  if (!by_angle(x, n, T(8))) return chebyshev(x, n, x + x - 1);
  const T degree = std::trunc(n), angle = std::acos(x);
  if (std::abs(x) == 1) return x > 0 ? T(1) : sign_at_end(x, n) * (degree + degree + 1);
  return std::cos((degree + T(0.5)) * angle) / std::cos(angle / 2);
}
template <std::floating_point T>
T chebyshev_w(T x, T n) {
  if (!by_angle(x, n, T(8))) return chebyshev(x, n, x + x + 1);
  const T degree = std::trunc(n), angle = std::acos(x);
  if (std::abs(x) == 1) return x > 0 ? degree + degree + 1 : sign_at_end(x, n);
  return std::sin((degree + T(0.5)) * angle) / std::sin(angle / 2);
}

/// From this degree on the values of Hermite's polynomials are taken not to fit the type.
template <class T>
constexpr T kHermiteEnd = sizeof(T) == 4 ? 128 : 512;
template <std::floating_point T>
bool above_hermite(T n) {
  return n > kHermiteEnd<T> && n < T(0x1p63);
}

template <std::floating_point T>
T hermite_h(T x, T n) {
  if (above_hermite(n)) return std::numeric_limits<T>::quiet_NaN();
  return three_term(n, x + x, [x](T k, T last, T before) {
    return difference_of_products(x + x, last, k + k, before);
  });
}
template <std::floating_point T>
T hermite_he(T x, T n) {
  if (above_hermite(n)) return std::numeric_limits<T>::quiet_NaN();
  return three_term(
      n, x, [x](T k, T last, T before) { return difference_of_products(x, last, k, before); });
}
template <std::floating_point T>
T laguerre_l(T x, T n) {
  if (x == 0 && is_degree(n))
    return 1;  // of any degree: the recurrence would round, and take n steps
  return three_term(n, 1 - x, [x](T k, T last, T before) {
    return difference_of_products(k + k + (1 - x), last, k, before) / (k + 1);
  });
}
template <std::floating_point T>
T legendre_p(T x, T n) {
  if (std::abs(x) == 1 && is_degree(n)) return sign_at_end(x, n);
  return three_term(n, x, [x](T k, T last, T before) {
    return difference_of_products((k + k + 1) * x, last, k, before) / (k + 1);
  });
}

}  // namespace coil::ops::meaning
