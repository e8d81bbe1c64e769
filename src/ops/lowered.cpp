#include "ops/lowered.h"

#include <algorithm>
#include <array>

namespace coil::ops {
namespace {

constexpr auto kLowered = [] {
  auto rows = std::to_array<std::string_view>({
#define ROW(op, dtype, formula) op,
#define FORMULA(op, formula) op,
#define DTYPE(op, dtype)
#include "ops/pointwise.def"
#undef ROW
#undef FORMULA
#undef DTYPE
#define LOWERED(op, family) op,
#include "ops/lowered.def"
#undef LOWERED
  });
  std::ranges::sort(rows);
  return rows;
}();
static_assert(std::ranges::adjacent_find(kLowered) == kLowered.end(), "an op has two rows");

}  // namespace

bool is_lowered(std::string_view full_name) {
  return std::ranges::binary_search(kLowered, full_name);
}

std::span<const std::string_view> lowered_ops() { return kLowered; }

}  // namespace coil::ops
