#pragma once
// The Chebyshev series of series.def by name.

#include <span>
#include <string_view>

namespace coil::ops {

/// c0, c1, ... of the function sum c[k] T_k(t), -1 <= t <= 1; empty for an unknown name.
std::span<const double> find_series(std::string_view name);

}  // namespace coil::ops
