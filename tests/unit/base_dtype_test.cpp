// Element types. Conversions to narrow floats are compared with the definition: the nearest of all
// values of the format, ties to the even bit pattern.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/check.h"

namespace coil {
namespace {

TEST(DType, NamesReadBack) {
  int n = 0;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType d = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(d)), d);
    ++n;
  }
  EXPECT_EQ(n, 18);
  EXPECT_EQ(name(DType::b8), "bool");
  EXPECT_EQ(dtype_from_name("b8"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, Classes) {
  EXPECT_TRUE(is_int(DType::u64));
  EXPECT_FALSE(is_int(DType::b8));
  EXPECT_TRUE(is_unsigned(DType::u8));
  EXPECT_TRUE(is_narrow_float(DType::bf16));
  EXPECT_FALSE(is_narrow_float(DType::f32));
  EXPECT_FALSE(is_narrow_float(DType::i16));
  EXPECT_EQ(compute_dtype(DType::f16), DType::f32);
  EXPECT_EQ(compute_dtype(DType::f64), DType::f64);
  EXPECT_EQ(size_of(DType::c128), 16);
}

TEST(DType, ComplexAndItsParts) {
  for (const DType c : {DType::c32, DType::c64, DType::c128}) {
    EXPECT_EQ(complex_of(real_of(c)), c);
    EXPECT_EQ(size_of(c), 2 * size_of(real_of(c)));
  }
  EXPECT_THROW(real_of(DType::f32), InternalError);
  EXPECT_THROW(complex_of(DType::bf16), InternalError);
}

/// A narrow format with all of its finite values that are not negative, by bit pattern.
struct Format {
  const char* name;
  u32 max_finite;  // bits of the largest finite value
  u32 overflow;    // bits of what is out of range: infinity, or the largest where there is none
  u32 sign;
  double (*widen)(u32);
  u32 (*narrow)(float);
};

const Format kFormats[] = {
    {"f16", 0x7bff, 0x7c00, 0x8000, [](u32 b) { return double(f16_to_f32(static_cast<u16>(b))); },
     [](float f) { return u32(f32_to_f16(f)); }},
    {"bf16", 0x7f7f, 0x7f80, 0x8000, [](u32 b) { return double(bf16_to_f32(static_cast<u16>(b))); },
     [](float f) { return u32(f32_to_bf16(f)); }},
    {"f8e4m3fn", 0x7e, 0x7e, 0x80,
     [](u32 b) { return double(f8e4m3fn_to_f32(static_cast<u8>(b))); },
     [](float f) { return u32(f32_to_f8e4m3fn(f)); }},
    {"f8e5m2", 0x7b, 0x7c, 0x80, [](u32 b) { return double(f8e5m2_to_f32(static_cast<u8>(b))); },
     [](float f) { return u32(f32_to_f8e5m2(f)); }},
};

/// The definition of round to nearest even, for a value >= 0.
u32 nearest_bits(const Format& format, const std::vector<double>& values, double value) {
  const auto above = std::lower_bound(values.begin(), values.end(), value);
  const u32 high = static_cast<u32>(above - values.begin());
  if (above == values.end()) {
    // Out of range from the middle between the largest value and what would come after it.
    const double last = values[format.max_finite];
    const double middle = last + (last - values[format.max_finite - 1]) / 2;
    const bool tie_stays = format.max_finite % 2 == 0;
    return value < middle || (value == middle && tie_stays) ? format.max_finite : format.overflow;
  }
  if (*above == value || high == 0) return high;
  const double up = *above - value;
  const double down = value - values[high - 1];
  if (up != down) return up < down ? high : high - 1;
  return high % 2 == 0 ? high : high - 1;
}

std::vector<double> finite_values(const Format& format) {
  std::vector<double> values;
  for (u32 b = 0; b <= format.max_finite; ++b) values.push_back(format.widen(b));
  return values;
}

TEST(DType, NarrowFormatsAreOrderedAndReadBack) {
  for (const Format& format : kFormats) {
    const std::vector<double> values = finite_values(format);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end(), std::less_equal<>())) << format.name;
    for (u32 b = 0; b <= format.max_finite; ++b) {
      ASSERT_EQ(format.narrow(static_cast<float>(values[b])), b) << format.name;
      ASSERT_EQ(format.narrow(-static_cast<float>(values[b])), b | format.sign) << format.name;
    }
  }
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(1), std::ldexp(1.0f, -24));
  EXPECT_EQ(f8e4m3fn_to_f32(0x7e), 448.0f);
  EXPECT_EQ(f8e4m3fn_to_f32(1), std::ldexp(1.0f, -9));
  EXPECT_EQ(f8e5m2_to_f32(0x7b), 57344.0f);
  EXPECT_EQ(bf16_to_f32(0x3fc0), 1.5f);
}

TEST(DType, NarrowingRoundsToNearestEven) {
  std::mt19937 random(7);
  for (const Format& format : kFormats) {
    const std::vector<double> values = finite_values(format);
    auto expect_nearest = [&](float value) {
      ASSERT_EQ(format.narrow(value), nearest_bits(format, values, value))
          << format.name << " of " << value;
    };
    // The middle between two neighbours, and the floats beside it, decide the rule.
    const u32 step = format.max_finite > 1000 ? 3 : 1;
    for (u32 b = 0; b < format.max_finite; b += step) {
      const float middle = static_cast<float>((values[b] + values[b + 1]) / 2);
      expect_nearest(middle);
      expect_nearest(std::nextafter(middle, 0.0f));
      expect_nearest(std::nextafter(middle, HUGE_VALF));
    }
    for (int i = 0; i < 20000; ++i) {
      const float value = std::bit_cast<float>(u32(random()) & 0x7fffffffu);
      if (std::isfinite(value)) expect_nearest(value);
    }
    const double last = values[format.max_finite];
    const double half_step = (last - values[format.max_finite - 1]) / 2;
    for (const float f : {static_cast<float>(last + half_step), static_cast<float>(last)}) {
      if (std::isinf(f)) continue;
      expect_nearest(f);
      expect_nearest(std::nextafter(f, 0.0f));
      if (f < std::numeric_limits<float>::max()) expect_nearest(std::nextafter(f, HUGE_VALF));
    }
    expect_nearest(std::numeric_limits<float>::max());
  }
}

TEST(DType, InfinitiesAndNansAreKept) {
  for (const Format& format : kFormats) {
    EXPECT_EQ(format.narrow(HUGE_VALF), format.overflow) << format.name;
    EXPECT_EQ(format.narrow(-HUGE_VALF), format.overflow | format.sign) << format.name;
    for (const u32 bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
      EXPECT_TRUE(std::isnan(format.widen(format.narrow(std::bit_cast<float>(bits)))))
          << format.name << " of NaN " << std::hex << bits;
  }
  EXPECT_EQ(f16_to_f32(0xfc00), -HUGE_VALF);
  EXPECT_EQ(f8e5m2_to_f32(0x7c), HUGE_VALF);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7c01)));
  EXPECT_TRUE(std::isnan(bf16_to_f32(0x7f81)));
}

}  // namespace
}  // namespace coil
