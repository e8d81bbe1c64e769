#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/format.h"
#include "base/ids.h"

namespace coil {
namespace {

/// The first 32 bits of the fractional part of a root of each of the first primes: that is how the
/// standard defines its constants, so they are computed rather than listed.
template <std::size_t N>
std::array<u32, N> root_fractions(bool cube) {
  std::array<u32, N> out{};
  std::size_t found = 0;
  for (u64 n = 2; found < N; ++n) {
    bool prime = true;
    for (u64 d = 2; d * d <= n; ++d) prime &= n % d != 0;
    if (!prime) continue;
    const long double root =
        cube ? cbrtl(static_cast<long double>(n)) : sqrtl(static_cast<long double>(n));
    out[found++] = static_cast<u32>((root - floorl(root)) * 4294967296.0L);
  }
  return out;
}

void mix_block(const unsigned char* block, std::array<u32, 8>& state,
               const std::array<u32, 64>& k) {
  std::array<u32, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = u32(block[4 * i]) << 24 | u32(block[4 * i + 1]) << 16 | u32(block[4 * i + 2]) << 8 |
           block[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<u32, 8> mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  const std::array<u32, 64> k = root_fractions<64>(true);
  std::array<u32, 8> state = root_fractions<8>(false);
  std::string tail(bytes.substr(bytes.size() / 64 * 64));
  tail += '\x80';
  while (tail.size() % 64 != 56) tail += '\0';
  const u64 bits = u64(bytes.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift & 0xff);
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (std::size_t at = 0; at + 64 <= bytes.size(); at += 64) mix_block(data + at, state, k);
  const auto* rest = reinterpret_cast<const unsigned char*>(tail.data());
  for (std::size_t at = 0; at < tail.size(); at += 64) mix_block(rest + at, state, k);
  std::string out;
  for (u32 word : state) out += str("{:08x}", word);
  return out;
}

}  // namespace coil
