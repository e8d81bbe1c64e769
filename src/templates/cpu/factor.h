#pragma once
// Factorisations of a batch of matrices (runtime/factor), spread over threads. One compilation for
// all instruction sets: the bits of a factor are the same everywhere.

#include "runtime/factor/factor.h"
#include "runtime/threads.h"

namespace coil::templates {

i64 factor_scratch_bytes(const runtime::FactorArgs& args, int threads);
/// Operands that runtime::check_factor admits. An Error is that of the first matrix that has one.
Status factor(const runtime::FactorArgs& args, runtime::ThreadPool& pool, void* scratch);

}  // namespace coil::templates
