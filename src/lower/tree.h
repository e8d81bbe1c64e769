#pragma once
// The order in which a reduction adds up: fixed here, once, for every target.

#include <vector>

#include "loop/program.h"

namespace coil::lowering {

/// What the choice of a tree may depend on: facts of level 0 alone, so that neither fusion nor the
/// machine changes the bits of a result.
struct RowFacts {
  DType dtype = DType::f32;   // the partial values'
  std::optional<i64> extent;  // of the innermost reduced dim, if constant
  bool contiguous = false;    // whether neighbours along it are neighbours in memory
};
ops::Tree choose_tree(const RowFacts& row);

}  // namespace coil::lowering
