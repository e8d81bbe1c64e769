#pragma once
// Matrix products through a library's gemm, cut into blocks for coil's thread pool.

#include "runtime/plan.h"

namespace coil::external {

/// c (m x n, rows of ldc) = a (m x k) times b (k x n), of f32 or f64. Rows of a and b are in one
/// piece, `lda` and `ldb` elements apart; columns are where they are transposed.
struct GemmBlock {
  i64 m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  i64 lda = 1, ldb = 1, ldc = 1;
  bool a_transposed = false, b_transposed = false;
};

/// A library's product: one thread, callable from many at once.
class GemmRoutine {
 public:
  virtual ~GemmRoutine() = default;
  virtual Status multiply_f32(const GemmBlock& block) const = 0;
  virtual Status multiply_f64(const GemmBlock& block) const = 0;
};

/// Attributes of `run_library_gemm`.
struct LibraryGemm {
  std::shared_ptr<const GemmRoutine> routine;
  bool a_transposed = false, b_transposed = false;
};

/// Operands a, b, c, each with a leading batch dim or none, all f32 or all f64. One task is a block
/// of c of fixed size; the epilogue runs on each finished one.
Status run_library_gemm(const void* attributes, std::span<const runtime::CallOperand> operands,
                        const runtime::CallTools& tools);

/// Compares a small product of whole numbers with the exact one; in a child process.
Status prove_gemm(const GemmRoutine& routine);
Status prove_gemm_f64(const GemmRoutine& routine);

}  // namespace coil::external
