#pragma once
// The pass table: every step of a compilation is one row.

#include <span>

#include "driver/compile.h"

namespace coil {

enum class Level : u8 { Graph, Loops, Schedule, Plan, Code };
std::string_view name(Level level);

struct Pass {
  std::string_view name;
  Level in, out;
  Status (*run)(Compilation&);
  bool (*applies)(const Compilation&);
  bool optional;  // may be left out with -O disable=
};

std::span<const Pass> pass_table();

/// Runs the table: times each pass, honours `disable` and `stop_after`, and verifies the level that
/// a pass made where option `verify` is on.
Status run_pipeline(Compilation& compilation);

}  // namespace coil
