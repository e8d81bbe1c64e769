#pragma once
// Conversions between element types, with the results of eager on x86: integers wrap, a float that
// does not fit an integer gives what cvttss2si and cvttsd2si give (truncated to narrow integers).

#include "20_arith.h"

namespace COIL_KERNEL_NAMESPACE {

// ---- scalars ----

/// Truncates towards zero; the smallest I where the value does not fit.
template <class I, class F>
COIL_INLINE I float_to_int(F x) {
  constexpr I lowest = I(u64(1) << (8 * sizeof(I) - 1));
  constexpr F limit = -F(lowest);
  // Between -limit - 1 and -limit the truncation is -limit, which is the smallest I too.
  return x >= -limit && x < limit ? I(x) : lowest;
}

template <class To, class From>
COIL_INLINE To cast_scalar(From x) {
  if constexpr (kSame<To, bool>) {
    return x != From(0);
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    if constexpr (kSame<To, u64>) {
      constexpr From top = From(9223372036854775808.0);
      if (x < top || x != x) return u64(float_to_int<i64>(x));
      return u64(float_to_int<i64>(x - top)) ^ (u64(1) << 63);
    } else if constexpr (sizeof(To) == 8 || kSame<To, u32>) {
      return To(float_to_int<i64>(x));
    } else {
      return To(float_to_int<i32>(x));
    }
  } else {
    return To(x);
  }
}

// ---- vectors ----

template <class To, class T, int N>
COIL_INLINE vec<To, N> convert_halves(vec<T, N> a) {
  return join(convert<To>(low_half(a)), convert<To>(high_half(a)));
}

/// Lanes as static_cast would give them for values that fit.
template <class To, class T, int N>
COIL_INLINE vec<To, N> convert(vec<T, N> a) {
  if constexpr (kSame<To, T>) {
    return a;
  } else if constexpr (sizeof(To) == sizeof(T) && !kIsFloat<To> && !kIsFloat<T>) {
    return bitcast<To>(a);
  } else if constexpr (!vec<T, N>::kNative || !vec<To, N>::kNative) {
    return convert_halves<To>(a);
  } else if constexpr (kIsFloat<T> && kSame<To, u64>) {
    auto top = splat<T, N>(T(9223372036854775808.0));
    vec<i64, N> direct = convert<i64>(a), wrapped = convert<i64>(sub(a, top));
    auto flipped = bit_xor(bitcast<u64>(wrapped), splat<u64, N>(u64(1) << 63));
    return where(ge(a, top), flipped, bitcast<u64>(direct));
  } else if constexpr (kIsFloat<T> && (kSame<To, u32>)) {
    return convert<u32>(convert<i64>(a));
  } else if constexpr (kIsFloat<T> && !kIsFloat<To> && sizeof(To) < 4) {
    return convert<To>(convert<i32>(a));
  } else if constexpr (kIsFloat<To> && !kIsFloat<T> && sizeof(T) < 4) {
    return {__builtin_convertvector(convert<i32>(a).v, native<To, N>)};
  } else if constexpr (kIsFloat<T> && !kIsFloat<To>) {
    vec<To, N> r{__builtin_convertvector(a.v, native<To, N>)};
#if !defined(__x86_64__)  // other machines saturate
    constexpr To lowest = To(u64(1) << (8 * sizeof(To) - 1));
    auto inside = bit_and(ge(a, splat<T, N>(T(lowest))), lt(a, splat<T, N>(-T(lowest))));
    r = where(inside, r, splat<To, N>(lowest));
#endif
    return r;
  } else {
    return {__builtin_convertvector(a.v, native<To, N>)};
  }
}

// ---- 16- and 8-bit floats: as bits in u32 (vector or scalar) to f32 and back ----

template <class U>
COIL_INLINE auto decode(U bits, f16) {
  using F = rebind<U, f32>;
  U magnitude = shl_by<13>(bit_and(bits, like<U>(0x7fff)));
  U sign = shl_by<16>(bit_and(bits, like<U>(0x8000)));
  F value = mul(bitcast<f32>(magnitude), like<F>(0x1p112f));
  U special = bit_or(magnitude, like<U>(0x7f800000));
  U result = where(ge(magnitude, like<U>(0x7c00 << 13)), special, bitcast<u32>(value));
  return bitcast<f32>(bit_or(result, sign));
}
template <class U>
COIL_INLINE auto decode(U bits, bf16) {
  return bitcast<f32>(shl_by<16>(bits));
}
template <class U>
COIL_INLINE auto decode(U bits, f8e4m3fn) {
  using F = rebind<U, f32>;
  U magnitude = bit_and(bits, like<U>(0x7f));
  U sign = shl_by<24>(bit_and(bits, like<U>(0x80)));
  F value = mul(bitcast<f32>(shl_by<20>(magnitude)), like<F>(0x1p120f));
  U result = where(eq(magnitude, like<U>(0x7f)), like<U>(0x7fc00000), bitcast<u32>(value));
  return bitcast<f32>(bit_or(result, sign));
}
template <class U>
COIL_INLINE auto decode(U bits, f8e5m2) {
  return decode(shl_by<8>(bits), f16{});
}

/// Rounds the magnitude of a float to one of fewer bits, to nearest even: `Mantissa` bits of it are
/// kept, the smallest normal number is 2^MinExponent. NaN and overflow are the caller's.
template <int Mantissa, int MinExponent, class U>
COIL_INLINE U round_magnitude(U magnitude) {
  using F = rebind<U, f32>;
  constexpr int drop = 23 - Mantissa;
  // Adding 2^(drop + MinExponent) to a subnormal leaves its rounded bits at the low end.
  constexpr u32 magic_bits = u32(127 + drop + MinExponent) << 23;
  F magic = bitcast<f32>(like<U>(magic_bits));
  U subnormal = sub(bitcast<u32>(add(bitcast<f32>(magnitude), magic)), like<U>(magic_bits));
  U odd = bit_and(shr_by<drop>(magnitude), like<U>(1));
  constexpr u32 rebias = u32(126 + MinExponent) << 23;  // exponent field of 2^MinExponent becomes 1
  U rounded = add(sub(magnitude, like<U>(rebias)), add(odd, like<U>((1u << (drop - 1)) - 1)));
  return where(lt(magnitude, like<U>(u32(127 + MinExponent) << 23)), subnormal,
               shr_by<drop>(rounded));
}

template <class F>
COIL_INLINE auto encode(F value, f16) {
  using U = rebind<F, u32>;
  U bits = bitcast<u32>(value);
  U magnitude = bit_and(bits, like<U>(0x7fffffff));
  U result = round_magnitude<10, -14>(magnitude);
  result = where(ge(magnitude, like<U>(0x477ff000)), like<U>(0x7c00), result);  // 65520
  result = where(gt(magnitude, like<U>(0x7f800000)), like<U>(0x7e00), result);
  return bit_or(result, shl_by<15>(shr_by<31>(bits)));
}
template <class F>
COIL_INLINE auto encode(F value, bf16) {
  using U = rebind<F, u32>;
  U bits = bitcast<u32>(value);
  U odd = bit_and(shr_by<16>(bits), like<U>(1));
  U rounded = shr_by<16>(add(bits, add(odd, like<U>(0x7fff))));
  U quiet = bit_or(shr_by<16>(bits), like<U>(0x40));
  return where(ne(value, value), quiet, rounded);
}
template <class F>
COIL_INLINE auto encode(F value, f8e4m3fn) {  // no infinity: what is above 448 gives 448
  using U = rebind<F, u32>;
  U bits = bitcast<u32>(value);
  U magnitude = bit_and(bits, like<U>(0x7fffffff));
  U result = round_magnitude<3, -6>(magnitude);
  result = where(gt(magnitude, like<U>(0x43e00000)), like<U>(0x7e), result);  // 448
  result = where(gt(magnitude, like<U>(0x7f800000)), like<U>(0x7f), result);
  return bit_or(result, shl_by<7>(shr_by<31>(bits)));
}
template <class F>
COIL_INLINE auto encode(F value, f8e5m2) {
  using U = rebind<F, u32>;
  U bits = bitcast<u32>(value);
  U magnitude = bit_and(bits, like<U>(0x7fffffff));
  U result = round_magnitude<2, -14>(magnitude);
  result = where(ge(magnitude, like<U>(0x47700000)), like<U>(0x7c), result);  // 61440
  result = where(gt(magnitude, like<U>(0x7f800000)), like<U>(0x7f), result);
  return bit_or(result, shl_by<7>(shr_by<31>(bits)));
}

template <class T>
inline constexpr bool kIsNarrow =
    kSame<T, f16> || kSame<T, bf16> || kSame<T, f8e4m3fn> || kSame<T, f8e5m2>;

// ---- cast<To>: To is an arithmetic type, bool, or a narrow float, which rounds an f32 to it ----

template <class To, class From>
COIL_INLINE auto cast(From x) {
  if constexpr (kIsNarrow<To>)
    return decode(encode(cast_scalar<f32>(x), To{}), To{});
  else
    return cast_scalar<To>(x);
}
template <class To, class T, int N>
COIL_INLINE auto cast(vec<T, N> a) {
  if constexpr (kSame<To, bool>)
    return ne(a, splat<T, N>(T(0)));
  else if constexpr (kIsNarrow<To>)
    return decode(encode(convert<f32>(a), To{}), To{});
  else
    return convert<To>(a);
}
template <class To, int W, int N>
COIL_INLINE auto cast(mask<W, N> m) {
  if constexpr (kSame<To, bool>) {
    return m;
  } else if constexpr (kIsNarrow<To>) {
    return where(m, splat<f32, N>(1), splat<f32, N>(0));
  } else {
    return where(m, splat<To, N>(To(1)), splat<To, N>(To(0)));
  }
}

// ---- the bits of an f16 or bf16 that is held as an f32, exactly: a NaN keeps its own ----

template <class F>
COIL_INLINE auto bits_of(F value, bf16) {
  return shr_by<16>(bitcast<u32>(value));
}
template <class F>
COIL_INLINE auto bits_of(F value, f16) {
  using U = rebind<F, u32>;
  U magnitude = bit_and(bitcast<u32>(value), like<U>(0x7fffffff));
  U own = bit_or(bit_and(shr_by<13>(magnitude), like<U>(0x3ff)), like<U>(0x7c00));
  U sign = shl_by<15>(shr_by<31>(bitcast<u32>(value)));
  return where(gt(magnitude, like<U>(0x7f800000)), bit_or(own, sign), encode(value, f16{}));
}
/// As integers of 16 bits; `Narrow` is the float's dtype.
template <class Narrow, class F>
COIL_INLINE auto to_bits16(F value) {
  return cast<i16>(bits_of(value, Narrow{}));
}
template <class Narrow, class I>
COIL_INLINE auto of_bits16(I bits) {
  return decode(cast<u32>(bitcast<u16>(bits)), Narrow{});
}

}  // namespace COIL_KERNEL_NAMESPACE
