// The op table, Scalar, and what the golden file leaves out.

#include "ops/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace coil::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Scalar f32(double value) { return Scalar::of_float(DType::f32, value); }
Scalar i32_of(i64 value) { return Scalar::of_int(DType::i32, value); }
Scalar run(ScalarOp op, DType to, std::vector<Scalar> operands) {
  return evaluate(op, to, operands);
}

TEST(OpsScalar, NamesLeadBackToOps) {
  for (int k = 0; k < kNumScalarOps; ++k) {
    const auto op = static_cast<ScalarOp>(k);
    EXPECT_EQ(scalar_from_name(info(op).name), op);
    EXPECT_GE(info(op).arity, 1);
    EXPECT_LE(info(op).arity, 3);
  }
  EXPECT_FALSE(scalar_from_name("ad"));
  EXPECT_FALSE(scalar_from_name(""));
}

TEST(OpsScalar, AcceptsByDomain) {
  EXPECT_TRUE(accepts(ScalarOp::add, DType::u32));
  EXPECT_TRUE(accepts(ScalarOp::add, DType::f64));
  EXPECT_FALSE(accepts(ScalarOp::add, DType::b8));
  EXPECT_FALSE(accepts(ScalarOp::add, DType::f16));
  EXPECT_FALSE(accepts(ScalarOp::div, DType::i32));
  EXPECT_FALSE(accepts(ScalarOp::shl, DType::b8));
  EXPECT_TRUE(accepts(ScalarOp::bits_not, DType::b8));
  EXPECT_FALSE(accepts(ScalarOp::bits_not, DType::f32));
  EXPECT_TRUE(accepts(ScalarOp::max, DType::b8));
  EXPECT_FALSE(accepts(ScalarOp::max, DType::bf16));
  EXPECT_TRUE(accepts(ScalarOp::cast, DType::f8e5m2));
  EXPECT_FALSE(accepts(ScalarOp::cast, DType::c64));
  EXPECT_TRUE(accepts(ScalarOp::bitcast, DType::bf16));
  EXPECT_FALSE(accepts(ScalarOp::bitcast, DType::b8));
}

/// The known answers that the authors publish with the method.
TEST(OpsScalar, PhiloxGivesItsKnownAnswers) {
  const auto bits = [](u64 seed, u64 stream, u64 index) {
    std::vector<Scalar> operands;
    for (u64 word : {seed, stream, index})
      operands.push_back(Scalar::of_int(DType::i64, static_cast<i64>(word)));
    return static_cast<u64>(run(ScalarOp::philox, DType::i64, operands).i);
  };
  EXPECT_EQ(bits(0, 0, 0), 0xE169C58D6627E8D5u);
  EXPECT_EQ(bits(~u64{0}, ~u64{0}, ~u64{0}), 0x41C83B0E408F276Du);
  EXPECT_EQ(bits(0x299F31D0A4093822u, 0x0370734413198A2Eu, 0x85A308D3243F6A88u),
            0x94FDCCEBD16CFE09u);
  EXPECT_FALSE(accepts(ScalarOp::philox, DType::i32));
}

TEST(OpsScalar, ValuesWrapAndRoundToTheirDType) {
  EXPECT_EQ(Scalar::of_int(DType::i8, 200).i, -56);
  EXPECT_EQ(Scalar::of_int(DType::u8, -1).i, 255);
  EXPECT_EQ(Scalar::of_int(DType::b8, 7).i, 1);
  EXPECT_EQ(Scalar::of_int(DType::f32, 16777217).f, 16777216.0);
  EXPECT_EQ(f32(0.1).f, static_cast<double>(0.1f));
  EXPECT_EQ(Scalar::of_float(DType::f16, 65520).f, kInf);
  EXPECT_EQ(Scalar::of_int(DType::u64, -1).as_double(), 18446744073709551616.0);
  EXPECT_EQ(f32(-2.75).as_int(), -2);
  EXPECT_EQ(f32(kNaN).as_int(), std::numeric_limits<i64>::min());
}

TEST(OpsScalar, EqualityIsOfBits) {
  EXPECT_EQ(f32(kNaN), f32(kNaN));
  EXPECT_FALSE(f32(0.0) == f32(-0.0));
  EXPECT_FALSE(f32(1) == Scalar::of_float(DType::f64, 1));
}

TEST(OpsScalar, ElementsKeepTheirBitsThroughMemory) {
  for (int k = 0; k < kNumDTypes; ++k) {
    const auto dtype = static_cast<DType>(k);
    if (is_complex(dtype)) continue;
    u64 memory[4] = {};
    for (i64 index = 0; index < 3; ++index)
      write_element(dtype, memory, index, Scalar::of_int(dtype, index));
    for (i64 index = 0; index < 3; ++index)
      EXPECT_EQ(read_element(dtype, memory, index), Scalar::of_int(dtype, index)) << name(dtype);
  }
}

TEST(OpsScalar, IntegerDivisionIsTotal) {
  using enum ScalarOp;
  const Scalar smallest = i32_of(std::numeric_limits<i32>::min());
  for (ScalarOp op : {truncdiv, floordiv, fmod, remainder})
    EXPECT_EQ(run(op, DType::i32, {i32_of(5), i32_of(0)}), i32_of(0)) << info(op).name;
  for (ScalarOp op : {truncdiv, floordiv})
    EXPECT_EQ(run(op, DType::i32, {smallest, i32_of(-1)}), smallest) << info(op).name;
  for (ScalarOp op : {fmod, remainder})
    EXPECT_EQ(run(op, DType::i32, {smallest, i32_of(-1)}), i32_of(0)) << info(op).name;
}

TEST(OpsScalar, NarrowIntegersDoNotOverflowInPromotion) {
  const Scalar big = Scalar::of_int(DType::u16, 65535);
  EXPECT_EQ(run(ScalarOp::mul, DType::u16, {big, big}).i, 1);
}

TEST(OpsScalar, ShiftCountMayHaveAnotherDType) {
  const Scalar x = Scalar::of_int(DType::i8, -128);
  EXPECT_EQ(run(ScalarOp::shr, DType::i8, {x, Scalar::of_int(DType::i64, 256)}).i, -1);
  EXPECT_EQ(run(ScalarOp::shl, DType::i8, {x, Scalar::of_int(DType::i64, 256)}).i, 0);
  EXPECT_EQ(run(ScalarOp::shr, DType::i8, {x, Scalar::of_int(DType::i64, 3)}).i, -16);
  EXPECT_EQ(run(ScalarOp::shr, DType::i8, {x, Scalar::of_int(DType::i64, -1)}).i, -1);
}

TEST(OpsScalar, FmaRoundsOnce) {
  const double e = std::ldexp(1.0, -12);
  const Scalar a = f32(1 + e);
  const Scalar fused = run(ScalarOp::fma, DType::f32, {a, a, f32(-1 - 2 * e)});
  EXPECT_EQ(fused.f, e * e);
  const Scalar product = run(ScalarOp::mul, DType::f32, {a, a});
  EXPECT_EQ(run(ScalarOp::add, DType::f32, {product, f32(-1 - 2 * e)}).f, 0.0);
}

/// Terms that cancel: one product of each step is not rounded. The numbers are eager's.
TEST(OpsScalar, PolynomialsLoseLittleToCancellation) {
  const auto at = [](ScalarOp op, double x, double degree) {
    return run(op, DType::f32, {f32(x), f32(degree)});
  };
  EXPECT_EQ(at(ScalarOp::hermite_he, -2.852169f, 5), f32(0.492288f));
  EXPECT_EQ(at(ScalarOp::hermite_h, 2.6518474f, 7), f32(-5.5286694f));
  EXPECT_EQ(at(ScalarOp::laguerre_l, 2.0461147f, 8), f32(0.3004108f));
  EXPECT_EQ(at(ScalarOp::legendre_p, 0.88388604f, 9), f32(-0.29527676f));
  EXPECT_EQ(at(ScalarOp::chebyshev_t, 1.0418777f, 9), f32(6.739905f));
}

TEST(OpsScalar, WhereAndBitcastMoveBits) {
  const Scalar yes = Scalar::of_bool(true), no = Scalar::of_bool(false);
  EXPECT_EQ(run(ScalarOp::where, DType::f32, {yes, f32(1), f32(kNaN)}), f32(1));
  EXPECT_EQ(run(ScalarOp::where, DType::f32, {no, f32(1), f32(-0.0)}), f32(-0.0));
  EXPECT_EQ(run(ScalarOp::bitcast, DType::i32, {f32(-0.0)}).i, std::numeric_limits<i32>::min());
  EXPECT_EQ(run(ScalarOp::bitcast, DType::f32, {i32_of(0x3f800000)}), f32(1));
  EXPECT_EQ(run(ScalarOp::bitcast, DType::u16, {Scalar::of_float(DType::bf16, 1)}).i, 0x3f80);
}

TEST(OpsScalar, LongArraysMayBeEvaluatedInPlace) {
  constexpr i64 kCount = 64 * 3 + 17;  // whole blocks and a tail
  std::vector<float> a(kCount), b(kCount);
  std::iota(a.begin(), a.end(), -100.0f);
  std::iota(b.begin(), b.end(), 0.5f);
  const void* operands[] = {a.data(), b.data()};
  evaluate(ScalarOp::mul, DType::f32, DType::f32, kCount, operands, a.data());
  for (i64 k = 0; k < kCount; ++k)
    EXPECT_EQ(a[k], (static_cast<float>(k) - 100.0f) * (static_cast<float>(k) + 0.5f));
  evaluate(ScalarOp::add, DType::f32, DType::f32, 0, operands, nullptr);
}

TEST(OpsScalar, WrongTypesAreDefects) {
  EXPECT_THROW(run(ScalarOp::add, DType::f32, {f32(1), i32_of(1)}), InternalError);
  EXPECT_THROW(run(ScalarOp::add, DType::b8, {f32(1), f32(1)}), InternalError);
  EXPECT_THROW(run(ScalarOp::lt, DType::f32, {f32(1), f32(1)}), InternalError);
  EXPECT_THROW(run(ScalarOp::div, DType::i32, {i32_of(1), i32_of(1)}), InternalError);
  EXPECT_THROW(run(ScalarOp::neg, DType::f32, {f32(1), f32(1)}), InternalError);
  EXPECT_THROW(run(ScalarOp::bitcast, DType::i64, {f32(1)}), InternalError);
  EXPECT_THROW(Scalar::of_int(DType::c64, 0), InternalError);
}

}  // namespace
}  // namespace coil::ops
