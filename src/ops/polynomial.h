#pragma once
// Orthogonal polynomials of x, of a degree that is data. Only for src/ops.
//
// Each is computed in T by the three-term recurrence of its family, one step a degree, as eager
// does for most arguments. (Abramowitz and Stegun, "Handbook of Mathematical Functions", 22.7.)

#include <cmath>
#include <concepts>
#include <limits>

namespace coil::ops::meaning {

/// The polynomial of degree n with p[0] = 1, p[1] = `second`, p[k + 1] = step(k, p[k], p[k - 1]).
/// A NaN never goes away again. Degrees that no i64 holds count as below 0.
template <std::floating_point T, class Step>
T three_term(T n, T second, Step step) {
  if (!(n > -1 && n < T(0x1p63))) return 0;
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

template <std::floating_point T>
T chebyshev(T x, T n, T second) {
  return three_term(n, second, [x](T, T last, T before) { return (x + x) * last - before; });
}
template <std::floating_point T>
T chebyshev_t(T x, T n) {
  return chebyshev(x, n, x);
}
template <std::floating_point T>
T chebyshev_u(T x, T n) {
  return chebyshev(x, n, x + x);
}
template <std::floating_point T>
T chebyshev_v(T x, T n) {
  return chebyshev(x, n, x + x - 1);
}
template <std::floating_point T>
T chebyshev_w(T x, T n) {
  return chebyshev(x, n, x + x + 1);
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
  return three_term(n, x + x,
                    [x](T k, T last, T before) { return (x + x) * last - (k + k) * before; });
}
template <std::floating_point T>
T hermite_he(T x, T n) {
  if (above_hermite(n)) return std::numeric_limits<T>::quiet_NaN();
  return three_term(n, x, [x](T k, T last, T before) { return x * last - k * before; });
}
template <std::floating_point T>
T laguerre_l(T x, T n) {
  return three_term(n, 1 - x, [x](T k, T last, T before) {
    return ((k + k + (1 - x)) * last - k * before) / (k + 1);
  });
}
template <std::floating_point T>
T legendre_p(T x, T n) {
  return three_term(
      n, x, [x](T k, T last, T before) { return ((k + k + 1) * x * last - k * before) / (k + 1); });
}

}  // namespace coil::ops::meaning
