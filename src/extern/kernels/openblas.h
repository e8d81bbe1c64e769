#pragma once
// OpenBLAS 0.3.10 or newer: matrix products of f32 and f64.

#include "extern/kernels/gemm.h"
#include "extern/kernels/library.h"

namespace coil::external {

/// Opens the library (`setting`: "auto" or a path) and proves it, or the reason why it is not used.
/// Sets it to one thread, which it keeps for the whole process: older ones have no other way.
Result<std::shared_ptr<const GemmRoutine>> open_openblas(const std::string& setting,
                                                         int proof_limit_ms = kProofLimitMs);

}  // namespace coil::external
