#pragma once
// Random bits from a counter: Philox 4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel
// Random Numbers: As Easy as 1, 2, 3, 2011). Words of 32 bits lie in lanes of 64, so that a product
// is one instruction.

#include "40_machine.h"

namespace COIL_KERNEL_NAMESPACE {

/// a * b of lanes below 2^32.
template <int N>
COIL_INLINE vec<u64, N> word_product(vec<u64, N> a, vec<u64, N> b) {
  using V [[maybe_unused]] = vec<u64, N>;
  if constexpr (!V::kNative) {
    return {word_product(a.lo, b.lo), word_product(a.hi, b.hi)};
  } else {
#if COIL_KERNEL_AVX2 && !defined(__clang__)
    if constexpr (N == 4)
      return {(native<u64, N>)__builtin_ia32_pmuludq256((native<i32, 8>)a.v, (native<i32, 8>)b.v)};
#endif
#if COIL_KERNEL_AVX512 && !defined(__clang__)  // clang finds it by itself
    if constexpr (N == 8) {
      const native<long long, 8> zero{};
      return {(native<u64, N>)__builtin_ia32_pmuludq512_mask((native<i32, 16>)a.v,
                                                             (native<i32, 16>)b.v, zero, -1)};
    }
#endif
    return {(a.v & 0xFFFFFFFF) * (b.v & 0xFFFFFFFF)};
  }
}
COIL_INLINE u64 word_product(u64 a, u64 b) { return a * b; }

/// 64 random bits of (seed, stream, index): the first two words of the counter (index, stream)
/// under the key seed.
template <class V>
COIL_INLINE V philox(V seed, V stream, V index) {
  using U = rebind<V, u64>;
  const U word = like<U>(0xFFFFFFFF);
  const U factor0 = like<U>(0xD2511F53), factor1 = like<U>(0xCD9E8D57);
  const U step0 = like<U>(0x9E3779B9), step1 = like<U>(0xBB67AE85);
  U key0 = bit_and(bitcast<u64>(seed), word), key1 = shr_by<32>(bitcast<u64>(seed));
  U w0 = bit_and(bitcast<u64>(index), word), w1 = shr_by<32>(bitcast<u64>(index));
  U w2 = bit_and(bitcast<u64>(stream), word), w3 = shr_by<32>(bitcast<u64>(stream));
  for (int round = 0; round < 10; ++round) {
    const U p0 = word_product(factor0, w0), p1 = word_product(factor1, w2);
    w0 = bit_xor(bit_xor(shr_by<32>(p1), w1), key0);
    w2 = bit_xor(bit_xor(shr_by<32>(p0), w3), key1);
    w1 = bit_and(p1, word);
    w3 = bit_and(p0, word);
    key0 = bit_and(add(key0, step0), word);
    key1 = bit_and(add(key1, step1), word);
  }
  return bitcast<i64>(bit_or(shl_by<32>(w1), w0));
}

}  // namespace COIL_KERNEL_NAMESPACE
