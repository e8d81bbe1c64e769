#include "extern/kernels/gemm.h"

#include <algorithm>
#include <atomic>

#include "extern/kernels/library.h"

namespace coil::external {
namespace {

using runtime::CallOperand;
using runtime::CallTools;

// A block: large enough for a library to pack its operands, small enough for the second level of
// caches and for a few threads to share a product of 128 rows.
constexpr i64 kBlockRows = 128, kBlockColumns = 256;

i64 blocks_of(i64 extent, i64 block) { return (extent + block - 1) / block; }

/// A matrix operand without its batch dim.
struct Matrix {
  std::byte* data;
  i64 rows, columns, row_stride, column_stride, batch_stride;
};

Matrix matrix(const CallOperand& o) {
  const std::size_t row = o.shape.size() - 2;
  return {o.data,         o.shape[row],       o.shape[row + 1],
          o.strides[row], o.strides[row + 1], row == 1 ? o.strides[0] : 0};
}

/// A product of one call: everything that its tasks share.
class Product {
 public:
  Product(const LibraryGemm& gemm, std::span<const CallOperand> o, const CallTools& tools)
      : gemm_(gemm),
        tools_(tools),
        a_(matrix(o[0])),
        b_(matrix(o[1])),
        c_(matrix(o[2])),
        batch_(o[2].shape.size() == 3 ? o[2].shape[0] : 1),
        dtype_(o[2].dtype) {}

  Status run() {
    const i64 per_matrix = blocks_of(c_.rows, kBlockRows) * blocks_of(c_.columns, kBlockColumns);
    const int threads = tools_.pool.threads();
    std::byte* scratch =
        direct() ? nullptr
                 : static_cast<std::byte*>(COIL_TRY(tools_.scratch.take(block_bytes() * threads)));
    std::atomic<bool> failed{false};
    tools_.pool.parallel_for(0, batch_ * per_matrix, 1, [&](i64 lo, i64 hi, int worker) {
      for (i64 task = lo; task < hi && !failed; ++task)
        if (!block(task / per_matrix, task % per_matrix, scratch + worker * block_bytes()).ok())
          failed = true;
    });
    if (failed) return error("a library's matrix product failed");
    return Ok{};
  }

 private:
  i64 block_bytes() const { return kBlockRows * kBlockColumns * size_of(dtype_); }
  /// The library may write the result where it belongs.
  bool direct() const {
    return !tools_.epilogue && c_.column_stride == 1 && c_.row_stride >= c_.columns;
  }

  Status block(i64 batch, i64 index, std::byte* scratch) const {
    const i64 across = blocks_of(c_.columns, kBlockColumns), size = size_of(dtype_);
    const i64 row0 = index / across * kBlockRows, column0 = index % across * kBlockColumns;
    const auto at = [&](const Matrix& m, i64 row, i64 column) {
      return m.data +
             (batch * m.batch_stride + row * m.row_stride + column * m.column_stride) * size;
    };
    // Where a dim is 1 its stride is anybody's; libraries want one that the other dim fits into.
    const auto leading = [](const Matrix& m, bool transposed) {
      return transposed ? std::max({m.column_stride, m.rows, i64{1}})
                        : std::max({m.row_stride, m.columns, i64{1}});
    };
    GemmBlock g;
    g.m = std::min(kBlockRows, c_.rows - row0);
    g.n = std::min(kBlockColumns, c_.columns - column0);
    g.k = a_.columns;
    g.a = at(a_, row0, 0);
    g.b = at(b_, 0, column0);
    g.a_transposed = gemm_.a_transposed;
    g.b_transposed = gemm_.b_transposed;
    g.lda = leading(a_, g.a_transposed);
    g.ldb = leading(b_, g.b_transposed);
    g.c = direct() ? at(c_, row0, column0) : scratch;
    g.ldc = direct() ? c_.row_stride : g.n;
    COIL_TRY(dtype_ == DType::f64 ? gemm_.routine->multiply_f64(g)
                                  : gemm_.routine->multiply_f32(g));
    if (tools_.epilogue)
      tools_.epilogue(tools_.epilogue_context, batch, row0, g.m, column0, g.n, g.c, g.ldc);
    if (direct() || !c_.data) return Ok{};
    for (i64 i = 0; i < g.m; ++i)
      for (i64 j = 0; j < g.n; ++j)
        std::copy_n(scratch + (i * g.n + j) * size, size, at(c_, row0 + i, column0 + j));
    return Ok{};
  }

  const LibraryGemm& gemm_;
  const CallTools& tools_;
  const Matrix a_, b_, c_;
  const i64 batch_;
  const DType dtype_;
};

template <class T>
Status prove(const GemmRoutine& routine, Status (GemmRoutine::*multiply)(const GemmBlock&) const) {
  constexpr i64 m = 37, n = 29, k = 41;
  std::vector<T> a(m * k), b(k * n), c(m * n);
  for (i64 i = 0; i < m * k; ++i) a[i] = proof_number(i);
  for (i64 i = 0; i < k * n; ++i) b[i] = proof_number(3 * i + 1);
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      std::fill(c.begin(), c.end(), T(99));
      const GemmBlock block{m,
                            n,
                            k,
                            a.data(),
                            b.data(),
                            c.data(),
                            a_transposed ? m : k,
                            b_transposed ? k : n,
                            n,
                            a_transposed,
                            b_transposed};
      COIL_TRY((routine.*multiply)(block));
      for (i64 i = 0; i < m; ++i) {
        for (i64 j = 0; j < n; ++j) {
          T sum = 0;
          for (i64 l = 0; l < k; ++l)
            sum +=
                a[a_transposed ? l * m + i : i * k + l] * b[b_transposed ? j * k + l : l * n + j];
          if (c[i * n + j] != sum)
            return error("its product of two small matrices is wrong: {} where {} is right",
                         c[i * n + j], sum);
        }
      }
    }
  }
  return Ok{};
}

}  // namespace

Status run_library_gemm(const void* attributes, std::span<const CallOperand> operands,
                        const CallTools& tools) {
  return Product(*static_cast<const LibraryGemm*>(attributes), operands, tools).run();
}

Status prove_gemm(const GemmRoutine& routine) {
  return prove<float>(routine, &GemmRoutine::multiply_f32);
}

Status prove_gemm_f64(const GemmRoutine& routine) {
  return prove<double>(routine, &GemmRoutine::multiply_f64);
}

}  // namespace coil::external
