#include "lower/tree.h"

namespace coil::lowering {
namespace {

constexpr u16 kLanes = 16;             // elements that a row takes side by side
constexpr u16 kAccumulators = 4;       // chains in flight: they hide the latency of an addition
constexpr i64 kShortRowElements = 64;  // below it, one step of all slots would stay part empty
constexpr u32 kStepsOfSlot = 128;      // of a block: longer chains lose digits

}  // namespace

ops::Tree choose_tree(const RowFacts& row) {
  const bool is_short = row.contiguous && row.extent && *row.extent < kShortRowElements;
  const u16 lanes = row.contiguous ? kLanes : u16{1}, accs = is_short ? u16{1} : kAccumulators;
  const u32 block = u32{lanes} * accs * kStepsOfSlot;
  return {lanes, accs, row.extent && *row.extent <= block ? 0 : block};
}

}  // namespace coil::lowering
