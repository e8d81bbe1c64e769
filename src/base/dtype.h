#pragma once
// Element types: their names, sizes, classes, and conversions of the 16- and 8-bit floats.

#include <bit>
#include <optional>
#include <string_view>

#include "base/ids.h"

namespace coil {

// clang-format off
#define COIL_DTYPES(X)                                  \
  /* name       bytes  class      */                    \
  X(u8,         1,     Unsigned)                        \
  X(i8,         1,     Signed)                          \
  X(i16,        2,     Signed)                          \
  X(i32,        4,     Signed)                          \
  X(i64,        8,     Signed)                          \
  X(u16,        2,     Unsigned)                        \
  X(u32,        4,     Unsigned)                        \
  X(u64,        8,     Unsigned)                        \
  X(b8,         1,     Bool)    /* 0 or 1 in memory */  \
  X(f16,        2,     Float)                           \
  X(bf16,       2,     Float)                           \
  X(f32,        4,     Float)                           \
  X(f64,        8,     Float)                           \
  X(f8e4m3fn,   1,     Float)                           \
  X(f8e5m2,     1,     Float)                           \
  X(c32,        4,     Complex)                         \
  X(c64,        8,     Complex)                         \
  X(c128,       16,    Complex)
// clang-format on

enum class DTypeClass : u8 { Unsigned, Signed, Bool, Float, Complex };

enum class DType : u8 {
#define X(name, bytes, kind) name,
  COIL_DTYPES(X)
#undef X
};
inline constexpr int kNumDTypes = 18;

/// The spelling used in every text form: "f32", "i64", "bool" (for b8), ...
std::string_view name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view text);
/// Bytes of one element.
int size_of(DType dtype);
DTypeClass class_of(DType dtype);

inline bool is_float(DType d) { return class_of(d) == DTypeClass::Float; }
inline bool is_complex(DType d) { return class_of(d) == DTypeClass::Complex; }
inline bool is_bool(DType d) { return d == DType::b8; }
/// Signed or unsigned, not bool.
inline bool is_int(DType d) {
  return class_of(d) == DTypeClass::Unsigned || class_of(d) == DTypeClass::Signed;
}
inline bool is_unsigned(DType d) { return class_of(d) == DTypeClass::Unsigned; }
/// f16, bf16 and the 8-bit floats: exist in memory only, arithmetic widens them to f32.
inline bool is_narrow_float(DType d) { return is_float(d) && size_of(d) < 4; }
/// The dtype that arithmetic on `d` uses: f32 for narrow floats, else `d`.
inline DType compute_dtype(DType d) { return is_narrow_float(d) ? DType::f32 : d; }
/// The real part's dtype of a complex one.
DType real_of(DType complex);
DType complex_of(DType real);

// Bit conversions, round to nearest even; NaN stays NaN, infinities and subnormals are kept. f64 to
// the 16-bit floats rounds to f32 first, as eager does. Those of the 16-bit floats are inline: the
// interpreter calls them for every element.
inline float f16_to_f32(u16 bits) {
  const u32 sign = u32(bits & 0x8000) << 16;
  const u32 magnitude = bits & 0x7fff;
  u32 result = (magnitude << 13) + (112u << 23);  // from bias 15 to bias 127
  if (magnitude >= 0x7c00) result |= 0x7f800000u;
  if (magnitude < 0x400) result = std::bit_cast<u32>(static_cast<float>(magnitude) * 0x1p-24f);
  return std::bit_cast<float>(sign | result);
}
inline u16 f32_to_f16(float value) {
  const u32 bits = std::bit_cast<u32>(value);
  const u32 sign = bits >> 16 & 0x8000;
  const u32 magnitude = bits & 0x7fffffff;
  u32 result = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // One unit of a subnormal result is 2^-24, which is also one unit of a float in [0.5, 1).
  if (magnitude < 0x38800000)
    result = std::bit_cast<u32>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  if (magnitude >= 0x477ff000) result = 0x7c00;  // from 65520 on
  if (magnitude > 0x7f800000) result = 0x7e00;
  return static_cast<u16>(sign | result);
}
inline float bf16_to_f32(u16 bits) { return std::bit_cast<float>(u32(bits) << 16); }
inline u16 f32_to_bf16(float value) {
  const u32 bits = std::bit_cast<u32>(value);
  const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<u16>(is_nan ? bits >> 16 | 0x40 : rounded);
}
float f8e4m3fn_to_f32(u8 bits);
/// The format has no infinity. Values above 448, the largest, and infinities give 448 of their
/// sign, as in PyTorch 2.15.
u8 f32_to_f8e4m3fn(float value);
float f8e5m2_to_f32(u8 bits);
u8 f32_to_f8e5m2(float value);

}  // namespace coil
