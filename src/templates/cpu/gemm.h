#pragma once
// Matrix products of any strides and element types, batched.

#include "base/dtype.h"

namespace coil::runtime {
class ThreadPool;
}

namespace coil::templates {

/// A batch of matrices: element (b, i, j) is data[b*batch_stride + i*row_stride + j*col_stride].
/// Strides are in elements and may be zero or negative.
struct ConstMatrix {
  const void* data = nullptr;
  i64 row_stride = 0, col_stride = 0, batch_stride = 0;
};
struct Matrix {
  void* data = nullptr;
  i64 row_stride = 0, col_stride = 0, batch_stride = 0;
};

/// Sees (and may change) a finished block of the result before it is rounded and stored. `block` is
/// rows x cols of the accumulator type, row-major with `ld` elements between rows, in cache; its
/// first element is (row0, col0) of the result.
///
/// Called once for each block, from several threads at once for different ones. The blocks of a
/// call cover every element of the result exactly once; their sizes depend on shapes, instruction
/// set and number of threads. An empty sum (k = 0) is a block of zeros.
using BlockEpilogue = void (*)(void* context, i64 batch, i64 row0, i64 rows, i64 col0, i64 cols,
                               void* block, i64 ld);

/// c[b] = a[b] (m x k) times b[b] (k x n).
///
/// Narrow floats and f32 accumulate in f32, f64 in f64, integers wrap. Each element of c is the
/// sum, in order, of the partial sums over blocks of 256 of k, and a partial sum takes its products
/// in order (fused where the instruction set has that). So an element's bits depend neither on the
/// number of threads, nor on packing, nor on strides, nor on m and n. One rounding to `out` at the
/// end. k = 0 gives zeros.
struct GemmArgs {
  i64 m = 0, n = 0, k = 0, batch = 1;
  ConstMatrix a, b;
  Matrix c;  // data may be null when the epilogue writes the result
  DType in = DType::f32, out = DType::f32;
  const void* packed_b = nullptr;  // from pack_b; then b.data is not read
  BlockEpilogue epilogue = nullptr;
  void* epilogue_context = nullptr;
};

/// Whether gemm (and conv) have these element types: real, not bool, both float or both integer.
bool gemm_supports(DType in, DType out);

/// The type of the block that an epilogue sees: f32, f64, i32 or i64.
DType accumulator_of(DType in, DType out);

}  // namespace coil::templates
