#pragma once
// Factorisations of dense matrices, and solvers that rest on them: plain loops, one matrix at a
// time, in double whatever the operands are. The interpreter and the CPU template share them, since
// a factor is not unique (signs, phases, bases of equal eigenvalues), and one loop gives one
// answer.

#include <span>

#include "base/result.h"
#include "runtime/factor/kind.h"
#include "runtime/plan.h"

namespace coil::runtime {

/// Operands, then results, as the kind's signature lists them.
struct FactorArgs {
  FactorKind kind = FactorKind::cholesky;
  u8 flags = 0;  // FactorFlag
  std::span<const CallOperand> operands;
};

/// Whether operands and results have dtypes and sizes that go together.
Status check_factor(const FactorArgs& args);
/// Scratch of one matrix, aligned to 64.
i64 factor_scratch_bytes(const FactorArgs& args);
/// Matrix `batch` of operands that check_factor admits. An Error where the matrix cannot be taken
/// apart (not finite, no convergence, pivots that are none).
Status run_factor(const FactorArgs& args, i64 batch, std::byte* scratch);

}  // namespace coil::runtime
