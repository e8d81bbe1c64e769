#pragma once
// SHA-256 (FIPS 180-4), for cache keys.

#include <string>
#include <string_view>

namespace coil {

/// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace coil
