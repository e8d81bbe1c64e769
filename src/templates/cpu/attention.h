#pragma once
// softmax(q k^T * scale + mask) v, one block of query rows at a time.

#include "base/dtype.h"

namespace coil::templates {

/// Strides are in elements, in the order batch, head, row, column; 0 broadcasts. Key and value
/// heads are shared by consecutive groups of heads / kv_heads query heads.
///
/// A bool mask keeps where it is true; a float mask is added. `causal` keeps keys up to the query's
/// own index. A row in which nothing is kept gives zeros, or NaN with `nan_rows`. Accumulates in
/// f32 (f64 for f64); the bits do not depend on the number of threads.
struct AttentionArgs {
  i64 batch = 1, heads = 1, kv_heads = 1, q_len = 0, kv_len = 0, head_dim = 0, v_dim = 0;
  double scale = 1.0;
  bool causal = false, nan_rows = false;
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* out = nullptr;
  i64 q_strides[4] = {}, k_strides[4] = {}, v_strides[4] = {}, out_strides[4] = {};
  const void* mask = nullptr;  // may be null
  DType mask_dtype = DType::f32;
  i64 mask_strides[4] = {};
  DType dtype = DType::f32;  // of q, k, v and out: a float
};

bool attention_supports(DType dtype, DType mask_dtype);

}  // namespace coil::templates
