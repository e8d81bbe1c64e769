#include "lower/tree.h"

namespace coil::lowering {
namespace {

constexpr u16 kLanes = 16;             // elements that a row takes side by side
constexpr u16 kAccumulators = 4;       // chains in flight: they hide the latency of an addition
constexpr i64 kShortRowElements = 64;  // below it, one step of all slots would stay part empty

}  // namespace

ops::Tree choose_tree(const RowFacts& row) {
  if (!row.contiguous) return {1, kAccumulators, 0};
  const bool is_short = row.extent && *row.extent < kShortRowElements;
  return {kLanes, is_short ? u16{1} : kAccumulators, 0};
}

}  // namespace coil::lowering
