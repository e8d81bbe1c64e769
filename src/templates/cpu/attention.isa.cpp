// Attention: a task is a block of query rows of one head. Its scores over all keys stand in
// scratch, so that softmax is exact (no rescaling) and the sums over keys have one order.

#include "templates/cpu/attention.h"

#include "templates/cpu/gemm_core.h"

#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

constexpr i64 kShortKeys = 1024;

/// Query rows of a task: long rows of scores come in smaller blocks, to stay in cache.
i64 rows_per_task(const AttentionArgs& a) {
  return smaller(a.kv_len <= kShortKeys ? 96 : 48, larger(a.q_len, 1));
}

/// The memory of one worker: scores, results, packed keys or values, packed queries.
template <class Acc>
struct AttentionMemory {
  i64 rows, score_ld, value_ld, head_dim;

  explicit AttentionMemory(const AttentionArgs& a)
      : rows(rows_per_task(a) + Tile<Acc>::kRows),
        score_ld(round_up(larger(a.kv_len, 1), kBlockN)),
        value_ld(round_up(larger(a.v_dim, 1), kBlockN)),
        head_dim(larger(a.head_dim, 1)) {}
  i64 bytes_of(i64 elements) const { return round_up(elements * i64(sizeof(Acc)), kCacheLine); }
  i64 scores() const { return bytes_of(rows * score_ld); }
  i64 results() const { return bytes_of(rows * value_ld); }
  i64 panel() const { return bytes_of(kBlockK * Tile<Acc>::kCols); }
  i64 queries() const { return bytes_of(rows * head_dim); }
  i64 total() const { return scores() + results() + panel() + queries(); }
};

/// Adds one row of the mask to `count` scores, or sets them to -inf where a bool mask says no.
template <class Acc, class T>
void apply_mask(Acc* scores, i64 count, const void* mask, i64 stride) {
  const T* m = static_cast<const T*>(mask);
  const auto minus_infinity = kernel::splat16(Acc(-__builtin_inf()));
  for (i64 j = 0; j < count; j += 16) {
    const i64 n = smaller(16, count - j);
    auto lanes =
        stride == 1 ? kernel::load_n(m + j, n) : kernel::load_strided_n(m + j * stride, stride, n);
    auto row = kernel::load_n(scores + j, n);
    if constexpr (kernel::kSame<T, kernel::b8>) {
      kernel::store_n(scores + j, kernel::where(lanes, row, minus_infinity), n);
    } else {
      kernel::store_n(scores + j, kernel::add(row, kernel::cast<Acc>(lanes)), n);
    }
  }
}
template <class Acc>
using MaskFunction = void (*)(Acc*, i64, const void*, i64);
template <class Acc>
MaskFunction<Acc> mask_function(DType dtype) {
  MaskFunction<Acc> r = nullptr;
  const auto pick = [&](auto tag) { r = apply_mask<Acc, typename decltype(tag)::type>; };
  if (dtype == DType::b8) return apply_mask<Acc, kernel::b8>;
  switch (dtype) {
    COIL_FLOAT_CASES(pick)
    COIL_NOT_FLOAT_CASES break;
  }
  if (!r) fail_unsupported(dtype);
  return r;
}

/// Replaces scores by exp(score - largest) and returns their sum; all zero, and 0, where every
/// score is -inf. The row is readable up to the next multiple of 16.
template <class Acc>
Acc exponentials(Acc* scores, i64 count) {
  const i64 padded = round_up(count, 16);
  for (i64 j = count; j < padded; ++j) scores[j] = Acc(-__builtin_inf());
  auto most = kernel::splat16(Acc(-__builtin_inf()));
  for (i64 j = 0; j < padded; j += 16) most = kernel::max(most, kernel::load(scores + j));
  const Acc largest = kernel::fold(most, [](auto a, auto b) { return kernel::max(a, b); });
  if (largest == Acc(-__builtin_inf())) {
    for (i64 j = 0; j < padded; ++j) scores[j] = Acc(0);
    return Acc(0);
  }
  auto sum = kernel::splat16(Acc(0));
  for (i64 j = 0; j < padded; j += 16) {
    auto e = kernel::exp(kernel::sub(kernel::load(scores + j), kernel::splat16(largest)));
    kernel::store(scores + j, e);
    sum = kernel::add(sum, e);
  }
  return kernel::fold(sum, [](auto a, auto b) { return kernel::add(a, b); });
}

template <class Acc>
struct AttentionCall {
  const AttentionArgs& a;
  ElementFunctions<Acc> element;
  MaskFunction<Acc> mask;
  AttentionMemory<Acc> memory;
  char* scratch;
};

/// Query rows [row, row + rows) of one head.
template <class Acc>
struct AttentionTask {
  const AttentionCall<Acc>& call;
  const AttentionArgs& a;
  i64 batch, head, row, rows;
  i64 keys;  // that any row of the block sees
  Acc *scores, *results, *panel, *queries;

  static constexpr i64 kCols = Tile<Acc>::kCols, kRows = Tile<Acc>::kRows;

  AttentionTask(const AttentionCall<Acc>& c, i64 task, i64 row_blocks, i64 block, int worker)
      : call(c), a(c.a) {
    row = task % row_blocks * block;
    rows = smaller(block, a.q_len - row);
    head = task / row_blocks % a.heads;
    batch = task / row_blocks / a.heads;
    keys = a.causal ? smaller(a.kv_len, row + rows) : a.kv_len;
    const AttentionMemory<Acc>& m = c.memory;
    char* base = c.scratch + worker * m.total();
    scores = reinterpret_cast<Acc*>(base);
    results = reinterpret_cast<Acc*>(base + m.scores());
    panel = reinterpret_cast<Acc*>(base + m.scores() + m.results());
    queries = reinterpret_cast<Acc*>(base + m.scores() + m.results() + m.panel());
  }

  const void* at(const void* data, const i64* strides, i64 h, DType dtype) const {
    return advance(data, batch * strides[0] + h * strides[1], dtype);
  }
  i64 kv_head() const { return head / (a.heads / a.kv_heads); }

  /// scores = q k^T, unscaled.
  void multiply_keys() const {
    const void* q = at(a.q, a.q_strides, head, a.dtype);
    const void* k = at(a.k, a.k_strides, kv_head(), a.dtype);
    for (i64 i = 0; i < rows; ++i) {
      call.element.pack({advance(q, (row + i) * a.q_strides[2], a.dtype), 0, a.q_strides[3]}, 1,
                        a.head_dim, 1, queries + i * a.head_dim);
    }
    for (i64 d0 = 0; d0 < a.head_dim; d0 += kBlockK) {
      const i64 dc = smaller(kBlockK, a.head_dim - d0);
      for (i64 j = 0; j < keys; j += kCols) {
        call.element.pack({advance(k, j * a.k_strides[2] + d0 * a.k_strides[3], a.dtype),
                           a.k_strides[2], a.k_strides[3]},
                          smaller(kCols, keys - j), dc, kCols, panel);
        multiply_all(queries + d0, a.head_dim, dc, scores + j, call.memory.score_ld, d0 == 0);
      }
    }
    if (a.head_dim == 0) clear(scores, rows * call.memory.score_ld);
  }

  /// results = scores times v.
  void multiply_values() const {
    const void* v = at(a.v, a.v_strides, kv_head(), a.dtype);
    for (i64 k0 = 0; k0 < keys; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, keys - k0);
      for (i64 j = 0; j < a.v_dim; j += kCols) {
        call.element.pack({advance(v, k0 * a.v_strides[2] + j * a.v_strides[3], a.dtype),
                           a.v_strides[3], a.v_strides[2]},
                          smaller(kCols, a.v_dim - j), kc, kCols, panel);
        multiply_all(scores + k0, call.memory.score_ld, kc, results + j, call.memory.value_ld,
                     k0 == 0);
      }
    }
    if (keys == 0) clear(results, rows * call.memory.value_ld);
  }

  void multiply_all(const Acc* left, i64 ld, i64 k, Acc* out, i64 out_ld, bool first) const {
    for (i64 i = 0; i < rows; i += kRows) {
      multiply_tile<Acc>({left + i * ld, ld, 1, smaller(kRows, rows - i)}, panel, k,
                         out + i * out_ld, out_ld, first);
    }
  }
  static void clear(Acc* p, i64 n) {
    for (i64 i = 0; i < n; ++i) p[i] = Acc(0);
  }

  /// Scale, mask and softmax; the quotient by the sum is left to store().
  Acc softmax(i64 i) const {
    Acc* s = scores + i * call.memory.score_ld;
    const Acc scale = static_cast<Acc>(a.scale);
    for (i64 j = 0; j < keys; ++j) s[j] *= scale;
    if (a.mask) {
      const i64 offset =
          batch * a.mask_strides[0] + head * a.mask_strides[1] + (row + i) * a.mask_strides[2];
      call.mask(s, keys, advance(a.mask, offset, a.mask_dtype), a.mask_strides[3]);
    }
    if (a.causal) {
      for (i64 j = row + i + 1; j < keys; ++j) s[j] = Acc(-__builtin_inf());
    }
    return exponentials(s, keys);
  }

  void run() const {
    multiply_keys();
    Acc sums[96];
    for (i64 i = 0; i < rows; ++i) sums[i] = softmax(i);
    multiply_values();
    for (i64 i = 0; i < rows; ++i) {
      Acc* r = results + i * call.memory.value_ld;
      const bool is_zero = sums[i] == Acc(0) && !(a.nan_rows && a.kv_len > 0);
      const Acc divisor = is_zero ? Acc(1) : sums[i];
      for (i64 j = 0; j < a.v_dim; ++j) r[j] /= divisor;
    }
    const i64 offset = batch * a.out_strides[0] + head * a.out_strides[1] + row * a.out_strides[2];
    call.element.store(results, call.memory.value_ld, rows, a.v_dim,
                       advance(a.out, offset, a.dtype), a.out_strides[2], a.out_strides[3]);
  }
};

template <class Acc>
void run_attention(const AttentionArgs& a, runtime::ThreadPool& pool, void* scratch) {
  const AttentionCall<Acc> call{a, functions_for<Acc>(a.dtype),
                                a.mask ? mask_function<Acc>(a.mask_dtype) : nullptr,
                                AttentionMemory<Acc>(a), static_cast<char*>(scratch)};
  const i64 block = rows_per_task(a);
  const i64 row_blocks = (a.q_len + block - 1) / block;
  for_each_task(pool, row_blocks * a.heads * a.batch, [&](i64 task, int worker) {
    AttentionTask<Acc>(call, task, row_blocks, block, worker).run();
  });
}

}  // namespace

void attention(const AttentionArgs& a, runtime::ThreadPool& pool, void* scratch) {
  if (a.batch <= 0 || a.heads <= 0 || a.q_len <= 0 || a.v_dim <= 0) return;
  if (a.dtype == DType::f64)
    run_attention<double>(a, pool, scratch);
  else
    run_attention<float>(a, pool, scratch);
}

i64 attention_scratch_bytes(const AttentionArgs& a, int threads) {
  if (a.dtype == DType::f64) return AttentionMemory<double>(a).total() * threads;
  return AttentionMemory<float>(a).total() * threads;
}

}  // namespace coil::templates::COIL_ISA
