#pragma once
// What the structure-aware mutators of the fuzz targets share. Header only: each target is one
// file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ops/schema.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace coil::fuzz {

using Random = std::minstd_rand;

inline std::size_t below(Random& random, std::size_t count) {
  return count == 0 ? 0 : static_cast<std::size_t>(random()) % count;
}

/// Numbers at the edges of what the readers and the checked arithmetic can hold.
inline std::int64_t edge_number(Random& random) {
  constexpr std::int64_t kEdges[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     5,
                                     7,
                                     8,
                                     16,
                                     64,
                                     127,
                                     128,
                                     255,
                                     1024,
                                     65536,
                                     -1,
                                     -2,
                                     -3,
                                     INT32_MAX,
                                     INT32_MIN,
                                     std::int64_t{1} << 32,
                                     std::int64_t{1} << 40,
                                     std::int64_t{1} << 62,
                                     INT64_MAX,
                                     INT64_MAX - 1,
                                     INT64_MIN};
  return kEdges[below(random, std::size(kEdges))];
}

/// The name of any ATen op that coil knows a schema of: "add.Tensor".
inline std::string any_op(Random& random) {
  const auto lines = ops::schema_lines();
  const std::string_view line = lines[below(random, lines.size())];
  return std::string(line.substr(0, line.find('(')));
}

/// One mutation by libFuzzer itself, dictionary included.
inline std::string mutate_bytes(std::string text, std::size_t max_size) {
  const std::size_t size = text.size();
  text.resize(std::max(max_size, size));
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  return text;
}

inline std::size_t put(const std::string& text, std::uint8_t* data, std::size_t max_size) {
  const std::size_t size = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), size);
  return size;
}

}  // namespace coil::fuzz
