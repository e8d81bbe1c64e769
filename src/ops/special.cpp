#include "ops/special.h"

#include <math.h>  // lgammal_r is POSIX and not in <cmath>

#include <cmath>
#include <limits>
#include <numbers>

namespace coil::ops {
namespace {

// The work is done in long double (64 bits or more of significand on the machines of interest), so
// that the result rounds once.
using Wide = long double;
constexpr Wide kPi = std::numbers::pi_v<Wide>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Winitzki's closed form ("A handy approximation for the error function and its inverse", 2008)
/// for 0 < x < 1, right to 0.4 %; for small x the first term of the series, which does not cancel.
Wide erfinv_start(Wide x) {
  if (x < 1e-3L) return x * std::sqrt(kPi) / 2;
  constexpr Wide kA = 0.147L;
  const Wide log = std::log((1 - x) * (1 + x));
  const Wide t = 2 / (kPi * kA) + log / 2;
  return std::sqrt(std::sqrt(t * t - log / kA) - t);
}

/// The asymptotic series log(x) - 1/(2x) - sum B_2k / (2k x^2k), for x >= 16.
Wide digamma_far(Wide x) {
  constexpr Wide kTerms[] = {1.0L / 12,  -1.0L / 120,     1.0L / 252, -1.0L / 240,
                             1.0L / 132, -691.0L / 32760, 1.0L / 12,  -3617.0L / 8160};
  const Wide inverse_square = 1 / (x * x);
  Wide sum = 0;
  for (int k = 7; k >= 0; --k) sum = (sum + kTerms[k]) * inverse_square;
  return std::log(x) - 1 / (2 * x) - sum;
}

/// By psi(x) = psi(x + 1) - 1/x up to where the series holds.
Wide digamma_positive(Wide x) {
  Wide sum = 0;
  for (; x < 16; x += 1) sum -= 1 / x;
  return sum + digamma_far(x);
}

/// Euler and Maclaurin's formula after twelve terms of the sum, for q > 0.
Wide zeta_positive(Wide s, Wide q) {
  constexpr Wide kBernoulli[] = {// B_2j / (2j)!
                                 1.0L / 12,
                                 -1.0L / 720,
                                 1.0L / 30240,
                                 -1.0L / 1209600,
                                 1.0L / 47900160,
                                 -691.0L / 1307674368000,
                                 1.0L / 74724249600,
                                 -3617.0L / 10670622842880000,
                                 43867.0L / 5109094217170944000,
                                 -174611.0L / 802857662698291200000.0L,
                                 77683.0L / 14101100039391805440000.0L,
                                 -236364091.0L / 1693824136731743669452800000.0L};
  Wide sum = 0;
  for (int k = 0; k < 12; ++k) sum += std::pow(q + k, -s);
  const Wide a = q + 12, power = std::pow(a, -s);
  sum += std::pow(a, 1 - s) / (s - 1);
  if (power == 0) return sum;
  sum += power / 2;
  Wide term = s * power / a;
  for (int j = 0; j < 12; ++j) {
    sum += kBernoulli[j] * term;
    term *= (s + 2 * j + 1) / a * ((s + 2 * j + 2) / a);
  }
  return sum;
}

}  // namespace

double erfc_of(double x) { return static_cast<double>(std::erfc(static_cast<Wide>(x))); }

double lgamma_of(double x) {
  int sign = 0;  // the plain function stores it in a global
  return static_cast<double>(::lgammal_r(x, &sign));
}

double erfinv_of(double x) {
  const Wide magnitude = std::fabs(x);
  if (std::isnan(x) || magnitude > 1) return kNaN;
  if (magnitude == 1) return std::copysign(kInfinity, x);
  if (x == 0) return x;
  // Halley's steps triple the right digits. Near 1, erfc keeps what 1 - erf would lose.
  Wide y = erfinv_start(magnitude);
  for (int step = 0; step < 3; ++step) {
    const Wide miss = magnitude > 0.5L ? (1 - magnitude) - std::erfc(y) : std::erf(y) - magnitude;
    const Wide newton = miss * std::sqrt(kPi) / 2 * std::exp(y * y);
    y -= newton / (1 + y * newton);
  }
  return std::copysign(static_cast<double>(y), x);
}

double digamma_of(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x > 0) return std::isinf(x) ? x : static_cast<double>(digamma_positive(x));
  // psi(x) = psi(1 - x) - pi / tan(pi x); the tangent repeats at each integer, where the poles are.
  if (std::isnan(x) || std::isinf(x) || x == std::floor(x)) return kNaN;
  const Wide fraction = x - std::nearbyint(x);
  return static_cast<double>(digamma_positive(1 - static_cast<Wide>(x)) -
                             kPi / std::tan(kPi * fraction));
}

double zeta_of(double s, double q) {
  if (s == 1) return kInfinity;
  if (s < 1) return kNaN;
  if (q <= 0 && q == std::floor(q)) return kInfinity;
  if (std::isnan(s) || std::isnan(q) || std::isinf(q)) return kNaN;
  if (std::isinf(s) && q > 0) return std::pow(q, -s);
  if (q > 0) return static_cast<double>(zeta_positive(s, q));
  // Over all integers k the sum of (q + k)^-s has the period 1 in q, so that what lies below 0 is
  // a difference of sums above 0.
  if (s != std::floor(s)) return kNaN;
  const Wide fraction = q - std::floor(static_cast<Wide>(q)), wide_q = q;
  const Wide below = zeta_positive(s, 1 - fraction) - zeta_positive(s, 1 - wide_q);
  const Wide sign = std::fmod(s, 2.0) == 0 ? 1 : -1;
  return static_cast<double>(zeta_positive(s, fraction) + sign * below);
}

}  // namespace coil::ops
