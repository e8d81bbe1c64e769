#include <cmath>

#include "interp_support.h"

namespace coil {
namespace {

using namespace interp_test;
using runtime::Value;
constexpr float kNan = __builtin_nanf("");
constexpr float kInf = __builtin_inff();

TEST(InterpBody, MasksViewsAndIndexExpressions) {
  // A pad by one on each side, then a transpose by index: masked-off loads read nothing.
  const std::string text = R"(
    size s0 in 0..100
    buffer %x : f32[s0, 3] input
    buffer %y : f32[5, s0] output
    body pad {
      dims i0 < 5, i1 < s0
      v0 = value i0 - 1
      v1 = const i64 0
      v2 = ge v0, v1
      v3 = const i64 3
      v4 = lt v0, v3
      v5 = bits_and v2, v4
      v6 = load f32 %x[i1, i0 - 1] if v5 else 9
      store %y[i0, i1], v6
    })";
  const auto y = run(text, {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{9, 9, 1, 4, 2, 5, 3, 6, 9, 9}));
  EXPECT_EQ(elements<float>(run(text, {floats({0, 3}, {})})[0]), std::vector<float>{});
}

TEST(InterpBody, LongBodiesCrossChunks) {
  const auto y = run(R"(
    buffer %y : i64[3, 1000, 2] output
    body b {
      dims i0 < 3, i1 < 1000, i2 < 2
      v0 = value (i0*1000 + i1)*2 + i2 + i1 // 7 % 3
      store %y[i0, i1, i2], v0
    })",
                     {});
  const std::vector<i64> data = elements<i64>(y[0]);
  for (i64 i = 0; i < 6000; ++i) ASSERT_EQ(data[i], i + i / 2 % 1000 / 7 % 3) << i;
}

/// The order that ops::Tree states, written out for a row of one dim.
float tree_sum(const std::vector<float>& x, int lanes, int accs, int block) {
  const int length = static_cast<int>(x.size());
  std::vector<float> totals;
  for (int from = 0; from < length; from += block) {
    std::vector<float> slots(static_cast<std::size_t>(lanes * accs), 0.0f);
    for (int r = from; r < std::min(length, from + block); ++r) slots[r % (lanes * accs)] += x[r];
    for (int a = 1; a < accs; ++a)
      for (int l = 0; l < lanes; ++l) slots[l] += slots[a * lanes + l];
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) slots[l] += slots[l + half];
    totals.push_back(slots[0]);
  }
  float total = totals[0];
  for (std::size_t i = 1; i < totals.size(); ++i) total += totals[i];
  return total;
}

TEST(InterpBody, ReductionsFollowTheirTree) {
  std::vector<float> x(3 * 2500);
  u32 state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 1000.0f - 7000.0f;
  }
  struct Row {
    const char* tree;
    int lanes, accs, block;
  };
  for (const Row& row : {Row{"1x1", 1, 1, 2500}, Row{"16x4", 16, 4, 2500}, Row{"8x3", 8, 3, 2500},
                         Row{"16x4 block 1024", 16, 4, 1024}, Row{"4x1 block 12", 4, 1, 12}}) {
    const auto y = run(std::string(R"(
      buffer %x : f32[3, 2500] input
      buffer %y : f32[3] output
      body b {
        dims i0 < 3 | reduce r0 < 2500
        v0 = load f32 %x[i0, r0]
        v1 = reduce.sum v0 over r0 tree )") +
                           row.tree + "\n store %y[i0], v1 }",
                       {floats({3, 2500}, x)});
    const std::vector<float> sums = elements<float>(y[0]);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(sums[i], tree_sum({x.begin() + i * 2500, x.begin() + (i + 1) * 2500}, row.lanes,
                                  row.accs, row.block))
          << row.tree;
  }
}

TEST(InterpBody, OuterReducedDimsCarryTheSlotsOn) {
  // Positions 0, 1 of each row go to slots 0, 1: (1e8 + 1) and (1 - 1e8) do not cancel exactly.
  const auto y = run(R"(
    buffer %x : f32[2, 2] input
    buffer %y : f32[] output
    body b {
      dims i0 < 1 | reduce r0 < 2, r1 < 2
      v0 = load f32 %x[r0, r1]
      v1 = reduce.sum v0 over r0, r1 tree 2x1
      store %y[], v1
    })",
                     {floats({2, 2}, {1e8f, -1e8f, 1, 3})});
  EXPECT_EQ(elements<float>(y[0])[0], (1e8f + 1) + (-1e8f + 3));
}

TEST(InterpBody, NamedCombines) {
  const auto y = run(R"(
    size s0 in 0..10
    buffer %x : f32[2, s0] input
    buffer %best, %mean, %m2, %n, %top, %rest, %least : f32[2] output
    buffer %where : i64[2] output
    body b {
      dims i0 < 2 | reduce r0 < s0
      v0 = load f32 %x[i0, r0]
      v1, v2 = reduce.argmax v0 over r0 tree 4x2
      v3, v4, v5 = reduce.welford v0 over r0 tree 2x1
      v6, v7 = reduce.logaddexp v0 over r0 tree 1x1
      v8 = reduce.min v0 over r0 tree 2x2
      store %best[i0], v1
      store %where[i0], v2
      store %mean[i0], v3
      store %m2[i0], v4
      store %n[i0], v5
      store %top[i0], v6
      store %rest[i0], v7
      store %least[i0], v8
    })",
                     {floats({2, 4}, {1, kNan, 5, kNan, 2, 7, 7, -4})});
  EXPECT_TRUE(std::isnan(elements<float>(y[0])[0]));
  EXPECT_EQ(elements<float>(y[0])[1], 7);
  EXPECT_EQ(elements<float>(y[1])[1], 3);
  EXPECT_EQ(elements<float>(y[2])[1], 82);  // 1 + 16 + 16 + 49
  EXPECT_EQ(elements<float>(y[3])[1], 4);
  EXPECT_EQ(elements<float>(y[4])[1], 7);
  EXPECT_NEAR(elements<float>(y[5])[1], 2 + std::exp(-5.0) + std::exp(-11.0), 1e-6);
  EXPECT_TRUE(std::isnan(elements<float>(y[6])[0]));
  EXPECT_EQ(elements<float>(y[6])[1], -4);
  EXPECT_EQ(elements<i64>(y[7]), (std::vector<i64>{1, 1}));
}

TEST(InterpBody, EmptyReductionsGiveTheIdentity) {
  const auto y = run(R"(
    size s0 in 0..10
    buffer %x : f32[3, s0] input
    buffer %sum, %max : f32[3] output
    body b {
      dims i0 < 3 | reduce r0 < s0
      v0 = load f32 %x[i0, r0]
      v1 = reduce.sum v0 over r0 tree 16x4 block 64
      v2 = reduce.max v0 over r0 tree 2x1
      store %sum[i0], v1
      store %max[i0], v2
    })",
                     {floats({3, 0}, {})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(elements<float>(y[1]), (std::vector<float>{-kInf, -kInf, -kInf}));
}

TEST(InterpBody, CustomCombine) {
  const auto y = run(R"(
    buffer %x : i64[5] input
    buffer %y : i64[] output
    body b {
      dims reduce_free < 1 | reduce r0 < 5
      v0 = load i64 %x[r0]
      v1 = const i64 1
      v2, v3 = reduce v0, v1 over r0 tree 2x1 from i64 0, i64 0 {
        c0 = add a0, b0
        c1 = add a1, b1
        return c0, c1
      }
      v4 = floordiv v2, v3
      store %y[], v4
    })",
                     {ints({5}, {1, 2, 3, 4, 15})});
  EXPECT_EQ(elements<i64>(y[0])[0], 5);
}

TEST(InterpBody, Scans) {
  const auto y = run(R"(
    buffer %x : i64[2, 1500] input
    buffer %y, %z, %at : i64[2, 1500] output
    body b {
      dims i0 < 2 | scan t < 1500
      v0 = load i64 %x[i0, t]
      v1 = scan.sum v0 over t
      v2, v3 = scan.argmax v0 over t
      store %y[i0, t], v1
      store %z[i0, t], v2
      store %at[i0, t], v3
    })",
                     {[] {
                       std::vector<i64> x(3000);
                       for (i64 i = 0; i < 3000; ++i) x[static_cast<std::size_t>(i)] = i * 37 % 101;
                       return Value(ints({2, 1500}, x));
                     }()});
  const auto sums = elements<i64>(y[0]), best = elements<i64>(y[1]), at = elements<i64>(y[2]);
  for (int row = 0; row < 2; ++row) {
    i64 sum = 0, most = -1, where = 0;
    for (int t = 0; t < 1500; ++t) {
      const i64 x = (row * 1500 + t) * 37 % 101;
      sum += x;
      if (x > most) most = x, where = t;
      ASSERT_EQ(sums[row * 1500 + t], sum);
      ASSERT_EQ(best[row * 1500 + t], most);
      ASSERT_EQ(at[row * 1500 + t], where);
    }
  }
}

TEST(InterpBody, ScattersWithDuplicates) {
  const std::string text = R"(
    buffer %base : f32[4] input
    buffer %at : i64[5] input
    buffer %v : f32[5] input
    buffer %put, %sum, %most : f32[4] starts %base output
    body b {
      dims i0 < 5
      v0 = load i64 %at[i0]
      n0 = index v0 in 0..3 wrap
      v1 = load f32 %v[i0]
      store %put[n0], v1
      store.sum %sum[n0], v1
      store.max %most[n0], v1
    })";
  const std::vector<Value> inputs = {floats({4}, {10, 20, 30, 40}), ints({5}, {0, -1, 0, 1, 0}),
                                     floats({5}, {1, 2, 3, 25, 5})};
  const auto y = run(text, inputs);
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{5, 25, 30, 2}));
  EXPECT_EQ(elements<float>(y[1]), (std::vector<float>{19, 45, 30, 42}));
  EXPECT_EQ(elements<float>(y[2]), (std::vector<float>{10, 25, 30, 40}));
  EXPECT_EQ(elements<float>(inputs[0]), (std::vector<float>{10, 20, 30, 40}));
}

TEST(InterpBody, IndexErrorsNameBufferPositionAndValue) {
  const std::string head = R"(
    buffer %x : f32[4] input
    buffer %at : i64[2, 2] input
    buffer %y : f32[2, 2] output
    body gather @ model.py:7 {
      dims i0 < 2, i1 < 2
      v0 = load i64 %at[i0, i1]
      v1 = const i64 9
      v2 = ne v0, v1
      n0 = index v0 in 0..3 )";
  const std::string plain = "\n v3 = load f32 %x[n0]\n store %y[i0, i1], v3 }";
  const std::string masked = "\n v3 = load f32 %x[n0] if v2 else 0\n store %y[i0, i1], v3 }";
  const Value x = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(run_error(head + "assert" + plain, {x, ints({2, 2}, {0, 1, -1, 2})}),
            "body gather (model.py:7): index -1 of %x at [i0=1, i1=0] is outside 0..3");
  EXPECT_EQ(run_error(head + "wrap" + plain, {x, ints({2, 2}, {0, 1, -4, -5})}),
            "body gather (model.py:7): index -5 of %x at [i0=1, i1=1] is outside -4..3");
  EXPECT_EQ(elements<float>(run(head + "clamp" + plain, {x, ints({2, 2}, {7, 1, -9, 2})})[0]),
            (std::vector<float>{4, 2, 1, 3}));
  // Only the masked load uses the index: what the mask switches off is not checked.
  EXPECT_EQ(elements<float>(run(head + "assert" + masked, {x, ints({2, 2}, {0, 9, 1, 2})})[0]),
            (std::vector<float>{1, 0, 2, 3}));
  EXPECT_EQ(run_error(head + "assert" + masked, {x, ints({2, 2}, {0, 9, 8, 2})}),
            "body gather (model.py:7): index 8 of %x at [i0=1, i1=0] is outside 0..3");
}

TEST(InterpBody, WidenedFloatsAreDoubles) {
  const std::string text = R"(
    buffer %x : f32[2] input
    buffer %y : f32[2] output
    buffer %bits : i32[2] output
    body b {
      dims i0 < 2
      v0 = load f32 %x[i0]
      v1 = const f32 1e-10
      v2 = add v0, v1
      v3 = cast bf16 v2
      v4 = cast f32 v3
      store %y[i0], v4
      v5 = bitcast i32 v0
      store %bits[i0], v5
    })";
  const std::vector<Value> inputs = {floats({2}, {1, 1.0039062f})};
  const auto plain = run(text, inputs);
  EXPECT_EQ(elements<float>(plain[0]), (std::vector<float>{1, 1}));
  const auto wide = run(text, inputs, {.widen = true, .f64_outputs = true});
  EXPECT_EQ(elements<double>(wide[0])[0], 1.0 + static_cast<double>(1e-10f));
  EXPECT_EQ(elements<i32>(wide[1])[0], 0x3f800000);
  const auto narrowed = run(text, inputs, {.widen = true});
  EXPECT_EQ(elements<float>(narrowed[0])[1], 1.0039062f);
}

}  // namespace
}  // namespace coil
