#pragma once
// How each dtype lies in memory and as what C++ type it is computed with. Only for src/ops.

#include <concepts>
#include <limits>

#include "base/check.h"
#include "base/dtype.h"

namespace coil::ops {

/// Stored: an element in memory. Value: the element in a computation; f32 for narrow floats.
template <class V>
struct PlainMemory {
  using Stored = V;
  using Value = V;
  static Value load(Stored x) { return x; }
  static Stored store(Value x) { return x; }
};
template <class S, float (*widen)(S), S (*narrow)(float)>
struct NarrowMemory {
  using Stored = S;
  using Value = float;
  static Value load(Stored x) { return widen(x); }
  static Stored store(Value x) { return narrow(x); }
};
struct BoolMemory {
  using Stored = u8;
  using Value = bool;
  static Value load(Stored x) { return x != 0; }
  static Stored store(Value x) { return x ? 1 : 0; }
};

/// Calls `f` with the memory type of a dtype that is not complex.
template <class F>
decltype(auto) with_memory(DType dtype, F f) {
  switch (dtype) {
    case DType::u8: return f(PlainMemory<u8>());
    case DType::i8: return f(PlainMemory<i8>());
    case DType::i16: return f(PlainMemory<i16>());
    case DType::i32: return f(PlainMemory<i32>());
    case DType::i64: return f(PlainMemory<i64>());
    case DType::u16: return f(PlainMemory<u16>());
    case DType::u32: return f(PlainMemory<u32>());
    case DType::u64: return f(PlainMemory<u64>());
    case DType::b8: return f(BoolMemory());
    case DType::f16: return f(NarrowMemory<u16, f16_to_f32, f32_to_f16>());
    case DType::bf16: return f(NarrowMemory<u16, bf16_to_f32, f32_to_bf16>());
    case DType::f32: return f(PlainMemory<float>());
    case DType::f64: return f(PlainMemory<double>());
    case DType::f8e4m3fn: return f(NarrowMemory<u8, f8e4m3fn_to_f32, f32_to_f8e4m3fn>());
    case DType::f8e5m2: return f(NarrowMemory<u8, f8e5m2_to_f32, f32_to_f8e5m2>());
    case DType::c32:
    case DType::c64:
    case DType::c128: break;
  }
  fail_check(__FILE__, __LINE__, "not complex", str("{} is no scalar dtype", name(dtype)));
}

/// A float cut to a signed integer; what does not fit and NaN give the smallest integer, as the
/// x86 instructions do. Both selects are on values at hand, so that a loop of it vectorises.
template <std::signed_integral To, std::floating_point From>
To truncate(From x) {
  constexpr From kLimit = -static_cast<From>(std::numeric_limits<To>::min());
  // From may have a value between -kLimit - 1 and -kLimit: it is cut to -kLimit too.
  constexpr bool kFractions = std::numeric_limits<From>::digits > std::numeric_limits<To>::digits;
  const bool above = kFractions ? x > -kLimit - 1 : x >= -kLimit;
  const bool fits = above & (x < kLimit);
  const To cut = static_cast<To>(fits ? x : From{0});
  return fits ? cut : std::numeric_limits<To>::min();
}

/// static_cast with every case defined, as ATen's builds for x86-64 have it: a float goes to i32
/// and i64 directly, to u64 in two halves, to i8, i16 and u16 by the low bits of an i32, and to u8
/// and u32 by the low bits of an i64. Integers wrap. To bool: x != 0, so NaN is true.
template <class To, class From>
To convert(From x) {
  if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (!std::floating_point<From> || std::floating_point<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::same_as<To, i32> || std::same_as<To, i64>) {
    return truncate<To>(x);
  } else if constexpr (std::same_as<To, u64>) {
    constexpr From kHalf = 9223372036854775808.0;
    constexpr u64 kHighBit = u64{1} << 63;
    return x >= kHalf ? static_cast<u64>(truncate<i64>(x - kHalf)) ^ kHighBit
                      : static_cast<u64>(truncate<i64>(x));
  } else if constexpr (std::same_as<To, u8> || std::same_as<To, u32>) {
    return static_cast<To>(truncate<i64>(x));
  } else {
    return static_cast<To>(truncate<i32>(x));
  }
}

}  // namespace coil::ops
