#pragma once
// Elementary functions that the C library lacks or has with side effects. Within 1 ulp of the true
// value, but for digamma next to its zeros, where the error is absolute.

namespace coil::ops {

double erfc_of(double x);
double erfinv_of(double x);
double lgamma_of(double x);
double digamma_of(double x);
/// The Hurwitz zeta function. NaN for s < 1; below 0, q needs a whole s, and whole q are poles.
double zeta_of(double s, double q);
/// P(a, x) and Q(a, x) = 1 - P(a, x), for a, x >= 0.
double igamma_of(double a, double x);
double igammac_of(double a, double x);

}  // namespace coil::ops
