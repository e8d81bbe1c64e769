#pragma once
// Element types: their names, sizes, classes, and conversions of the 16- and 8-bit floats.

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

// Bit conversions, round to nearest even; NaN stays NaN, infinities and subnormals are kept.
float f16_to_f32(u16 bits);
u16 f32_to_f16(float value);
float bf16_to_f32(u16 bits);
u16 f32_to_bf16(float value);
/// f64 to the 16-bit floats rounds to f32 first, as eager does.
float f8e4m3fn_to_f32(u8 bits);
u8 f32_to_f8e4m3fn(float value);  // above the largest finite value: NaN, as in PyTorch
float f8e5m2_to_f32(u8 bits);
u8 f32_to_f8e5m2(float value);

}  // namespace coil
