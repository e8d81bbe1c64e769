#pragma once
// Stable sort and the k extreme elements of each row, with the order that PyTorch has: NaN is the
// largest value, equal elements keep their order.

#include "base/dtype.h"

namespace coil::templates {

/// Rows of n elements. Strides are in elements; `values` and `indices` may be null.
struct SortArgs {
  i64 rows = 0, n = 0;
  const void* in = nullptr;
  i64 in_row_stride = 0, in_stride = 1;
  void* values = nullptr;
  i64 values_row_stride = 0, values_stride = 1;
  i64* indices = nullptr;
  i64 indices_row_stride = 0, indices_stride = 1;
  DType dtype = DType::f32;  // any but complex
  bool descending = false;
};

/// The first k of each row in descending order (`largest`) or ascending order; always sorted.
struct TopkArgs {
  SortArgs row;  // `descending` is `largest`
  i64 k = 0;
};

bool sort_supports(DType dtype);

}  // namespace coil::templates
