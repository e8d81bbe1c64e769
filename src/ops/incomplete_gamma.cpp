// The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/series.h"
#include "ops/special.h"

namespace coil::ops {
namespace {

// In long double, so that the result rounds once.
using Wide = long double;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Wide kSmallest = std::numeric_limits<Wide>::epsilon() / 8;

/// mu - log(1 + mu), mu = x/a - 1. Near 0 by log(1 + mu) = 2 atanh(w), w = mu / (2 + mu), where
/// mu - 2 w = mu w.
Wide distance(Wide mu) {
  if (std::fabs(mu) > 0.4L) return mu - std::log1p(mu);
  const Wide w = mu / (2 + mu), square = w * w;
  Wide sum = 0, power = 2 * w * square;
  for (int k = 3; std::fabs(power) > kSmallest * kSmallest; k += 2) {
    sum += power / k;
    power *= square;
  }
  return mu * w - sum;
}

/// log gamma(a + 1) less Stirling's (a + 1/2) log a - a + log(2 pi) / 2, for a >= 20.
Wide stirling_rest(Wide a) {
  constexpr Wide kTerms[] = {1.0L / 12,   -1.0L / 360,      1.0L / 1260, -1.0L / 1680,
                             1.0L / 1188, -691.0L / 360360, 1.0L / 156,  -3617.0L / 122400};
  const Wide inverse_square = 1 / (a * a);
  Wide sum = 0;
  for (int k = 7; k >= 0; --k) sum = sum * inverse_square + kTerms[k];
  return sum / a;
}

/// x^a exp(-x) / gamma(a + 1). Large ones by Loader, "Fast and accurate computation of binomial
/// probabilities" (2000): the exponents of the powers are never formed apart.
Wide density(Wide a, Wide x) {
  if (a < 20) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  const Wide root = std::sqrt(2 * std::numbers::pi_v<Wide> * a);
  return std::exp(-a * distance((x - a) / a) - stirling_rest(a)) / root;
}

/// P for x up to about a: density * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...).
Wide lower_series(Wide a, Wide x) {
  Wide sum = 1, term = 1;
  for (Wide n = a + 1; term > kSmallest * sum; n += 1) {
    term *= x / n;
    sum += term;
  }
  return density(a, x) * sum;
}

/// Q for x >= a + 1, or a < 1 <= x, by Legendre's continued fraction, in the way of Lentz.
Wide upper_fraction(Wide a, Wide x) {
  constexpr Wide kTiny = 1e-4000L;
  Wide b = x + 1 - a;
  Wide c = 1 / kTiny, d = 1 / b, value = d, step = 0;
  for (Wide n = 1; std::fabs(step - 1) > kSmallest * 4; n += 1) {
    const Wide factor = n * (a - n);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    step = c * d;
    value *= step;
  }
  return density(a, x) * a * value;
}

/// log gamma(1 + a) for 0 <= a <= 1, to its last digits where a is small.
Wide log_gamma_1p(Wide a) {
  const std::span<const double> c = find_series("lgamma1p");
  const Wide t = 2 * a - 1;
  Wide b1 = 0, b2 = 0;
  for (std::size_t k = c.size() - 1; k > 0; --k) {
    const Wide b0 = 2 * t * b1 - b2 + c[k];
    b2 = b1;
    b1 = b0;
  }
  return a * (t * b1 - b2 + c[0]);
}

/// Q for a < 1 and x < 1, where 1 - P would lose it: P is nearly 1 for small a.
Wide upper_small(Wide a, Wide x) {
  const Wide log_power = a * std::log(x) - log_gamma_1p(a);
  Wide sum = 0, term = 1;
  for (Wide n = 1; std::fabs(term) > kSmallest * std::fabs(sum); n += 1) {
    term *= -x / n;
    sum += term / (a + n);
  }
  return -std::expm1(log_power) - std::exp(log_power) * a * sum;
}

/// Temme, "The asymptotic expansion of the incomplete gamma functions" (1979): Q is
/// erfc(eta sqrt(a/2)) / 2 + exp(-a eta^2/2) / sqrt(2 pi a) (c0(eta) + c1(eta)/a + ...). From
/// a = 1e6 on two terms are enough, and eta is below 0.04 wherever neither P nor Q vanishes.
Wide upper_uniform(Wide a, Wide x, int sign) {
  constexpr Wide kC0[] = {-1.0L / 3,           1.0L / 12,
                          -2.0L / 135,         1.0L / 864,
                          1.0L / 2835,         -139.0L / 777600,
                          1.0L / 25515,        -571.0L / 261273600,
                          -281.0L / 151559100, 8.2967113409530860e-7L};
  constexpr Wide kC1[] = {-1.0L / 540, -1.0L / 288, 1.0L / 378, -77.0L / 77760,
                          2.0576131687242798e-4L};
  const Wide mu = (x - a) / a, half_square = distance(mu);
  const Wide eta = std::copysign(std::sqrt(2 * half_square), mu);
  Wide c0 = 0, c1 = 0;
  for (int k = 9; k >= 0; --k) c0 = c0 * eta + kC0[k];
  for (int k = 4; k >= 0; --k) c1 = c1 * eta + kC1[k];
  const Wide rest = std::exp(-a * half_square) / std::sqrt(2 * std::numbers::pi_v<Wide> * a);
  return std::erfc(sign * eta * std::sqrt(a / 2)) / 2 + sign * rest * (c0 + c1 / a);
}

struct Parts {
  Wide lower, upper;
};
Parts parts(Wide a, Wide x) {
  if (std::isnan(a) || std::isnan(x)) return {kNaN, kNaN};
  if (a >= 1e6L && std::fabs(x - a) < 0.05L * a)
    return {upper_uniform(a, x, -1), upper_uniform(a, x, 1)};
  if (x < (a < 1 ? 1 : a + 1)) {
    const Wide lower = lower_series(a, x);
    return {lower, a < 1 ? upper_small(a, x) : 1 - lower};
  }
  const Wide upper = upper_fraction(a, x);
  return {1 - upper, upper};
}

/// P at the edges of its domain; true if (a, x) is such.
bool lower_at_edge(double a, double x, double& lower) {
  if (x < 0 || a < 0) {
    lower = kNaN;
  } else if (a == 0) {
    lower = x > 0 ? 1 : kNaN;
  } else if (x == 0) {
    lower = 0;
  } else if (std::isinf(a)) {
    lower = std::isinf(x) ? kNaN : 0;
  } else if (std::isinf(x)) {
    lower = 1;
  } else {
    return false;
  }
  return true;
}

}  // namespace

double igamma_of(double a, double x) {
  double lower = 0;
  if (lower_at_edge(a, x, lower)) return lower;
  return static_cast<double>(parts(a, x).lower);
}

double igammac_of(double a, double x) {
  double lower = 0;
  if (lower_at_edge(a, x, lower)) return 1 - lower;
  return static_cast<double>(parts(a, x).upper);
}

}  // namespace coil::ops
