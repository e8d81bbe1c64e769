#include "base/dtype.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace coil {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bytes;
  DTypeClass kind;
};

constexpr std::array<Row, kNumDTypes> kRows = {{
#define X(name, bytes, kind) {DType::name, #name, bytes, DTypeClass::kind},
    COIL_DTYPES(X)
#undef X
}};

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

/// Rounds a float to `mantissa` bits with the given exponent bias; returns sign|exponent|mantissa.
/// Values above the range give `overflow` bits. Works for every IEEE-like format below f32.
u32 narrow(float value, int exponent_bits, int mantissa_bits, u32 overflow, u32 nan) {
  const u32 bits = std::bit_cast<u32>(value);
  const u32 sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | nan;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int smallest = 1 - bias;  // exponent of the smallest normal number
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (magnitude == 0x7f800000u || exponent > bias + 1) return sign | overflow;
  // Drop bits from the 24-bit significand, more of them for a subnormal result.
  u32 significand = magnitude >> 23 ? (magnitude & 0x7fffffu) | 0x800000u : magnitude & 0x7fffffu;
  const int e = magnitude >> 23 ? exponent : -126;
  const int drop = 23 - mantissa_bits + (e < smallest ? smallest - e : 0);
  if (drop > 24) return sign;
  const u32 half = 1u << (drop - 1);
  const u32 rest = significand & ((1u << drop) - 1);
  significand >>= drop;
  if (rest > half || (rest == half && (significand & 1))) ++significand;
  u32 result = significand;
  // A normal number's implicit bit adds one to the exponent field.
  if (e >= smallest) result += static_cast<u32>(e - smallest) << mantissa_bits;
  return sign | (result > overflow ? overflow : result);
}

float widen(u32 bits, int exponent_bits, int mantissa_bits) {
  const u32 sign = bits >> (exponent_bits + mantissa_bits) & 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const u32 mantissa = bits & ((1u << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  float magnitude = exponent == 0
                        ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                        : std::ldexp(static_cast<float>(mantissa | 1u << mantissa_bits),
                                     exponent - bias - mantissa_bits);
  return sign ? -magnitude : magnitude;
}

}  // namespace

std::string_view name(DType dtype) { return dtype == DType::b8 ? "bool" : row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (const Row& r : kRows)
    if (name(r.dtype) == text) return r.dtype;
  return std::nullopt;
}

int size_of(DType dtype) { return row(dtype).bytes; }
DTypeClass class_of(DType dtype) { return row(dtype).kind; }

DType real_of(DType complex) {
  if (complex == DType::c32) return DType::f16;
  if (complex == DType::c64) return DType::f32;
  COIL_CHECK(complex == DType::c128, "{} is not complex", name(complex));
  return DType::f64;
}

DType complex_of(DType real) {
  if (real == DType::f16) return DType::c32;
  if (real == DType::f32) return DType::c64;
  COIL_CHECK(real == DType::f64, "no complex type has parts of {}", name(real));
  return DType::c128;
}

float f8e4m3fn_to_f32(u8 bits) {
  if ((bits & 0x7f) == 0x7f) return std::nanf("");
  return widen(bits, 4, 3);
}
u8 f32_to_f8e4m3fn(float value) {
  // A result of 0x7f would be NaN: the largest finite value stands for all that is too large.
  return static_cast<u8>(narrow(value, 4, 3, 0x7e, 0x7f));
}
float f8e5m2_to_f32(u8 bits) { return f16_to_f32(static_cast<u16>(bits << 8)); }
u8 f32_to_f8e5m2(float value) { return static_cast<u8>(narrow(value, 5, 2, 0x7c, 0x7f)); }

}  // namespace coil
