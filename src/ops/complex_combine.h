#pragma once
// Combines of complex numbers: regions without a name, whose elements are their partial values.

#include "ops/combine.h"

namespace coil::ops {

/// The product. 2 values of the dtype `part`: its real and imaginary part, which an element has
/// too.
Combine complex_prod(DType part);
/// The sum of exp(z) as the largest real part m and the parts of the sum of exp(z - m): 3 values of
/// the dtype `part`. An element x + iy is (x, cos y, sin y). Where m is infinite the sum is that of
/// exp(z), so that log(sum) + (m, or 0 if infinite) is the logarithm in every case.
Combine complex_sum_of_exp(DType part);
/// log(exp(x) + exp(y)) as 2 values, x and y being logarithms themselves: the one with the larger
/// real part and log1p of what the other is to it, so that the imaginary part is not brought into
/// (-pi, pi]: eager's running sums keep it.
Combine complex_log_add_exp(DType part);

}  // namespace coil::ops
