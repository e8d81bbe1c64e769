#include "lower/registry.h"

#include "lower/pointwise.h"

namespace coil::lowering {
namespace {

struct Row {
  std::string_view op;
  LowerFn lower;
};

constexpr Row kRows[] = {
#define LOWERED(op, family) {op, lower_##family},
#include "ops/lowered.def"
#undef LOWERED
};

}  // namespace

LowerFn find_lowering(std::string_view op) {
  if (pointwise_formula(op)) return lower_pointwise;
  for (const Row& row : kRows)
    if (row.op == op) return row.lower;
  return nullptr;
}

}  // namespace coil::lowering
