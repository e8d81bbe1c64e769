#include "templates_common.h"

namespace coil::templates {
namespace {

struct Case {
  i64 batch = 1, heads = 1, kv_heads = 1, q_len = 1, kv_len = 1, head_dim = 1, v_dim = 1;
  bool causal = false;
  DType dtype = DType::f32;
  int mask = 0;  // 0 none, 1 one row for all, 2 full
  DType mask_dtype = DType::b8;
  bool heads_inside = false;  // [batch, length, head, dim], as projections leave it
};

struct Problem {
  Case c;
  AttentionArgs a;
  Array q, k, v, out, mask;

  static void set_strides(i64* s, i64 heads, i64 length, i64 dim, bool heads_inside) {
    s[0] = heads * length * dim;
    s[1] = heads_inside ? dim : length * dim;
    s[2] = heads_inside ? heads * dim : dim;
    s[3] = 1;
  }
  explicit Problem(const Case& s)
      : c(s),
        q(s.dtype, s.batch * s.heads * s.q_len * s.head_dim),
        k(s.dtype, s.batch * s.kv_heads * s.kv_len * s.head_dim),
        v(s.dtype, s.batch * s.kv_heads * s.kv_len * s.v_dim),
        out(s.dtype, s.batch * s.heads * s.q_len * s.v_dim),
        mask(s.mask_dtype, s.batch * s.heads * s.q_len * s.kv_len) {
    q.fill(1);
    k.fill(2);
    v.fill(3);
    mask.fill(4);
    a.batch = c.batch;
    a.heads = c.heads;
    a.kv_heads = c.kv_heads;
    a.q_len = c.q_len;
    a.kv_len = c.kv_len;
    a.head_dim = c.head_dim;
    a.v_dim = c.v_dim;
    a.scale = 0.7;
    a.causal = c.causal;
    a.dtype = c.dtype;
    set_strides(a.q_strides, c.heads, c.q_len, c.head_dim, c.heads_inside);
    set_strides(a.k_strides, c.kv_heads, c.kv_len, c.head_dim, c.heads_inside);
    set_strides(a.v_strides, c.kv_heads, c.kv_len, c.v_dim, c.heads_inside);
    set_strides(a.out_strides, c.heads, c.q_len, c.v_dim, c.heads_inside);
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    if (c.mask) a.mask = mask.data();
    a.mask_dtype = c.mask_dtype;
    a.mask_strides[3] = 1;
    if (c.mask == 2) set_strides(a.mask_strides, c.heads, c.q_len, c.kv_len, false);
  }
  void run(Isa isa, int threads) {
    runtime::ThreadPool pool(threads);
    const CpuTemplates& table = cpu_templates(isa);
    Scratch scratch(table.attention_scratch_bytes(a, threads));
    out = Array(c.dtype, out.size());
    a.out = out.data();
    table.attention(a, pool, scratch.data());
  }
  double score(i64 b, i64 h, i64 i, i64 j) const {
    const i64 g = h / (c.heads / c.kv_heads);
    if (c.causal && j > i) return -INFINITY;
    double s = 0;
    for (i64 d = 0; d < c.head_dim; ++d) {
      s += q.get(b * a.q_strides[0] + h * a.q_strides[1] + i * a.q_strides[2] + d) *
           k.get(b * a.k_strides[0] + g * a.k_strides[1] + j * a.k_strides[2] + d);
    }
    s *= a.scale;
    if (!c.mask) return s;
    const double m = mask.get(b * a.mask_strides[0] + h * a.mask_strides[1] +
                              i * a.mask_strides[2] + j * a.mask_strides[3]);
    if (is_bool(c.mask_dtype)) return m != 0 ? s : -INFINITY;
    return s + m;
  }
  void check_row(i64 b, i64 h, i64 i) const {
    std::vector<double> p(static_cast<size_t>(c.kv_len));
    double most = -INFINITY, sum = 0;
    for (i64 j = 0; j < c.kv_len; ++j) most = std::max(most, p[size_t(j)] = score(b, h, i, j));
    for (double& x : p) sum += x = most == -INFINITY ? 0 : std::exp(x - most);
    const i64 g = h / (c.heads / c.kv_heads);
    for (i64 d = 0; d < c.v_dim; ++d) {
      double want = 0;
      for (i64 j = 0; j < c.kv_len; ++j) {
        want +=
            p[size_t(j)] * v.get(b * a.v_strides[0] + g * a.v_strides[1] + j * a.v_strides[2] + d);
      }
      if (sum != 0) want /= sum;
      const double got =
          out.get(b * a.out_strides[0] + h * a.out_strides[1] + i * a.out_strides[2] + d);
      ASSERT_NEAR(got, want, rounding_of(c.dtype) * 2 + 2e-3 * (size_of(c.dtype) == 1))
          << b << ", " << h << ", " << i << ", " << d;
    }
  }
};

void check_case(const Case& spec) {
  for (Isa isa : runnable_isas()) {
    Problem p(spec);
    p.run(isa, 1);
    for (i64 b = 0; b < spec.batch; ++b) {
      for (i64 h = 0; h < spec.heads; ++h) {
        for (i64 i = 0; i < spec.q_len; ++i) p.check_row(b, h, i);
      }
    }
    const std::vector<u8> bits = p.out.bytes();
    for (int threads : {2, 7}) {
      p.run(isa, threads);
      EXPECT_EQ(p.out.bytes(), bits) << name(isa) << " " << threads << " threads";
    }
  }
}

TEST(TemplatesAttention, Lengths) {
  for (i64 q : {1, 15, 17, 100}) {
    for (i64 kv : {1, 16, 33, 300}) {
      check_case({.heads = 2, .kv_heads = 2, .q_len = q, .kv_len = kv, .head_dim = 17, .v_dim = 9});
      check_case({.q_len = q, .kv_len = kv, .head_dim = 8, .v_dim = 33, .causal = true});
    }
  }
  check_case({.q_len = 50, .kv_len = 1100, .head_dim = 300, .v_dim = 100});
}

TEST(TemplatesAttention, GroupedHeadsAndLayouts) {
  check_case({.batch = 2,
              .heads = 6,
              .kv_heads = 2,
              .q_len = 7,
              .kv_len = 9,
              .head_dim = 16,
              .v_dim = 16,
              .heads_inside = true});
  check_case({.batch = 2,
              .heads = 4,
              .kv_heads = 1,
              .q_len = 7,
              .kv_len = 9,
              .head_dim = 16,
              .v_dim = 16,
              .causal = true});
}

TEST(TemplatesAttention, Masks) {
  for (int mask : {1, 2}) {
    for (DType d : {DType::b8, DType::f32, DType::f64, DType::bf16, DType::f16}) {
      check_case({.batch = 2,
                  .heads = 2,
                  .kv_heads = 2,
                  .q_len = 5,
                  .kv_len = 21,
                  .head_dim = 4,
                  .v_dim = 3,
                  .mask = mask,
                  .mask_dtype = d});
    }
  }
}

TEST(TemplatesAttention, ElementTypes) {
  for (DType d : {DType::f64, DType::bf16, DType::f16, DType::f8e5m2, DType::f8e4m3fn}) {
    check_case({.heads = 2,
                .kv_heads = 1,
                .q_len = 19,
                .kv_len = 35,
                .head_dim = 16,
                .v_dim = 20,
                .dtype = d});
  }
}

TEST(TemplatesAttention, NothingKeptGivesZeros) {
  for (Isa isa : runnable_isas()) {
    Problem p({.q_len = 3, .kv_len = 20, .head_dim = 4, .v_dim = 5, .mask = 2});
    for (i64 j = 0; j < 20; ++j) p.mask.set(20 + j, 0);
    p.run(isa, 1);
    for (i64 d = 0; d < 5; ++d) EXPECT_EQ(p.out.get(5 + d), 0);
    EXPECT_NE(p.out.get(0), 0);
    p.a.nan_rows = true;
    p.run(isa, 1);
    for (i64 d = 0; d < 5; ++d) EXPECT_TRUE(std::isnan(p.out.get(5 + d)));
    EXPECT_FALSE(std::isnan(p.out.get(0)));
  }
  check_case({.q_len = 3, .kv_len = 0, .head_dim = 4, .v_dim = 5});
  check_case({.q_len = 0, .kv_len = 4, .head_dim = 4, .v_dim = 5});
}

}  // namespace
}  // namespace coil::templates
