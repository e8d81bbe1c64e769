#include "ops/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace coil::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Partial = std::vector<Scalar>;

Combine get(std::string_view combine, DType dtype) {
  auto found = named_combine(combine, dtype);
  EXPECT_TRUE(found) << combine;
  return *found;
}

/// The partial values of one element, by the combine's lift.
Partial lifted(const Combine& combine, const Scalar& element, i64 position) {
  const Scalar inputs[] = {element, Scalar::of_int(DType::i64, position)};
  Partial out;
  for (const RegionInst& inst : lift(combine)) {
    if (inst.constant) {
      out.push_back(*inst.constant);
    } else {
      const Scalar operand[] = {inputs[inst.operands.at(0)]};
      out.push_back(evaluate(inst.op, inst.dtype, operand));
    }
    EXPECT_EQ(out.back().dtype, combine.values.at(out.size() - 1));
  }
  return out;
}

/// Combines elements of one row: split at random into parts, identities strewn in.
Partial reduce(const Combine& combine, const std::vector<Scalar>& row, std::size_t begin,
               std::size_t end, std::mt19937& rng) {
  if (begin == end) return combine.identity;
  if (end - begin == 1) {
    const Partial one = lifted(combine, row[begin], static_cast<i64>(begin));
    if (rng() % 2) return apply(combine, combine.identity, one);
    return rng() % 2 ? apply(combine, one, combine.identity) : one;
  }
  const std::size_t middle = begin + rng() % (end - begin + 1);
  if (middle == begin || middle == end) {
    const std::size_t half = begin + (end - begin) / 2;
    return apply(combine, reduce(combine, row, begin, half, rng),
                 reduce(combine, row, half, end, rng));
  }
  return apply(combine, reduce(combine, row, begin, middle, rng),
               reduce(combine, row, middle, end, rng));
}

std::vector<Scalar> floats(DType dtype, const std::vector<double>& values) {
  std::vector<Scalar> row;
  for (double v : values) row.push_back(Scalar::of_float(dtype, v));
  return row;
}

TEST(OpsCombine, TakesTheDTypesThatMakeSense) {
  EXPECT_FALSE(named_combine("sum", DType::b8));
  EXPECT_FALSE(named_combine("sum", DType::f16));
  EXPECT_FALSE(named_combine("sum", DType::c64));
  EXPECT_FALSE(named_combine("any", DType::i32));
  EXPECT_FALSE(named_combine("welford", DType::i64));
  EXPECT_FALSE(named_combine("median", DType::f32));
  EXPECT_TRUE(named_combine("max", DType::b8));
  EXPECT_TRUE(named_combine("argmin", DType::u8));
}

TEST(OpsCombine, RegionsAreWellTyped) {
  for (auto combine : {"sum", "prod", "min", "max", "any", "all", "xor", "argmin", "argmax",
                       "last_argmin", "last_argmax", "last_nan_argmax", "welford", "logaddexp"}) {
    for (int k = 0; k < kNumDTypes; ++k) {
      const auto found = named_combine(combine, static_cast<DType>(k));
      if (!found) continue;
      ASSERT_EQ(found->identity.size(), found->values.size());
      ASSERT_EQ(found->results.size(), found->values.size());
      const Partial both = apply(*found, found->identity, found->identity);
      for (std::size_t v = 0; v < both.size(); ++v) {
        EXPECT_EQ(both[v].dtype, found->values[v]) << combine;
        EXPECT_EQ(both[v], found->identity[v]) << combine << " " << name(both[v].dtype);
      }
    }
  }
}

TEST(OpsCombine, IntegersDoNotDependOnTheTree) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::i8, DType::u8, DType::i32, DType::u64}) {
    for (auto combine : {"sum", "prod", "min", "max", "xor", "argmin", "argmax", "last_argmin",
                         "last_argmax", "last_nan_argmax"}) {
      std::vector<Scalar> row;
      for (int k = 0; k < 40; ++k) row.push_back(Scalar::of_int(dtype, rng() % 23 - 11));
      const Combine c = get(combine, dtype);
      Partial in_order = c.identity;
      for (std::size_t k = 0; k < row.size(); ++k)
        in_order = apply(c, in_order, lifted(c, row[k], static_cast<i64>(k)));
      for (int tree = 0; tree < 20; ++tree)
        EXPECT_EQ(reduce(c, row, 0, row.size(), rng), in_order) << combine << " " << name(dtype);
    }
  }
}

TEST(OpsCombine, ArgExtremesTakeTheFirstAndNaNFirstOfAll) {
  std::mt19937 rng(2);
  struct Row {
    std::vector<double> values;
    i64 argmin;
    i64 argmax;
  };
  const Row rows[] = {
      {{3, 1, 2, 1, 3}, 1, 0},       {{1, kNaN, 5, kNaN, -kInf}, 1, 1}, {{kInf, kInf}, 0, 0},
      {{-kInf, -kInf, -kInf}, 0, 0}, {{-0.0, 0.0, -0.0}, 0, 0},         {{2, 7, -kInf, kInf}, 2, 3},
  };
  for (const Row& row : rows) {
    for (int tree = 0; tree < 20; ++tree) {
      const auto values = floats(DType::f32, row.values);
      const auto low = reduce(get("argmin", DType::f32), values, 0, values.size(), rng);
      const auto high = reduce(get("argmax", DType::f32), values, 0, values.size(), rng);
      EXPECT_EQ(low[1].i, row.argmin);
      EXPECT_EQ(high[1].i, row.argmax);
      EXPECT_EQ(low[0], values[row.argmin]);
      EXPECT_EQ(high[0], values[row.argmax]);
    }
  }
}

TEST(OpsCombine, ArgExtremesDoNotNeedOrderedParts) {
  const Combine c = get("argmax", DType::f64);
  const auto late = lifted(c, Scalar::of_float(DType::f64, kNaN), 9);
  const auto early = lifted(c, Scalar::of_float(DType::f64, kNaN), 4);
  EXPECT_EQ(apply(c, late, early)[1].i, 4);
  EXPECT_EQ(apply(c, early, late)[1].i, 4);
}

TEST(OpsCombine, BooleansReduce) {
  const Scalar yes = Scalar::of_bool(true), no = Scalar::of_bool(false);
  const Combine any = get("any", DType::b8), all = get("all", DType::b8);
  EXPECT_EQ(apply(any, {{no}}, {{yes}})[0], yes);
  EXPECT_EQ(apply(any, {{no}}, {{no}})[0], no);
  EXPECT_EQ(apply(all, {{no}}, {{yes}})[0], no);
  EXPECT_EQ(apply(all, {{yes}}, {{yes}})[0], yes);
  EXPECT_EQ(any.identity[0], no);
  EXPECT_EQ(all.identity[0], yes);
}

TEST(OpsCombine, WelfordAgreesWithTwoPasses) {
  std::mt19937 rng(3);
  std::normal_distribution<double> normal(1000, 2);
  std::vector<double> values(500);
  for (double& v : values) v = normal(rng);
  double mean = 0, m2 = 0;
  for (double v : values) mean += v / 500;
  for (double v : values) m2 += (v - mean) * (v - mean);
  const auto row = floats(DType::f64, values);
  for (int tree = 0; tree < 10; ++tree) {
    const Partial found = reduce(get("welford", DType::f64), row, 0, row.size(), rng);
    EXPECT_NEAR(found[0].f, mean, 1e-10);
    EXPECT_NEAR(found[1].f, m2, 1e-7);
    EXPECT_EQ(found[2].f, 500);
  }
}

TEST(OpsCombine, WelfordKeepsAPartBesideAnEmptyOne) {
  const Combine c = get("welford", DType::f32);
  // The square of 1e30 overflows f32; the weight of an empty part is still exactly zero.
  for (double x : {1e30, -3.5, 0.0, 1e-40}) {
    const Partial one = lifted(c, Scalar::of_float(DType::f32, x), 0);
    EXPECT_EQ(apply(c, c.identity, one), one);
    EXPECT_EQ(apply(c, one, c.identity), one);
  }
}

TEST(OpsCombine, LogAddExpIsTheLogarithmOfTheSum) {
  std::mt19937 rng(4);
  const auto log_sum_exp = [&](const std::vector<double>& values) {
    const auto row = floats(DType::f64, values);
    const Partial p = reduce(get("logaddexp", DType::f64), row, 0, row.size(), rng);
    return p[0].f + std::log(p[1].f);
  };
  EXPECT_NEAR(log_sum_exp({1, 2, 3}), std::log(std::exp(1) + std::exp(2) + std::exp(3)), 1e-14);
  EXPECT_NEAR(log_sum_exp({1000, 1000}), 1000 + std::log(2), 1e-12);
  EXPECT_EQ(log_sum_exp({-kInf, 5, -kInf}), 5);
  EXPECT_EQ(log_sum_exp({-kInf, -kInf}), -kInf);
  EXPECT_EQ(log_sum_exp({3, kInf, -kInf}), kInf);
  EXPECT_TRUE(std::isnan(log_sum_exp({3, kNaN, 2})));
}

}  // namespace
}  // namespace coil::ops
