#pragma once
// Elementary functions that the C library lacks or has with side effects. Within 1 ulp of the true
// value, but for digamma next to its zeros, where the error is absolute.

namespace coil::ops {

double erfc_of(double x);
double erfinv_of(double x);
double lgamma_of(double x);
double digamma_of(double x);

}  // namespace coil::ops
