#pragma once
// Compiled programs on disk: the plan and which objects hold its kernels. A hit takes the place of
// all passes from decompose to compile.

#include "driver/compile.h"

namespace coil {

/// Looks the graph up. A hit fills in `model` but for what `init` makes, `program` as far as a
/// caller sees it, and sets `from_cache`. A miss sets `program_key` alone, under which
/// `keep_program` stores what the passes then make.
Status find_program(Compilation& c);
/// Stores plan and objects. A cache that cannot be written is no error: the next process compiles.
Status keep_program(Compilation& c);

/// The names of the plan that the passes make of the graph: what the marks in a plan from the cache
/// stand for (runtime/plan_format.h). Runs the passes up to plan.
std::vector<std::string> present_names(const Compilation& c);

}  // namespace coil
