#pragma once
// Plans as bytes: what the program cache keeps. They hold no names, so that equal programs with
// other names and places share them.

#include <span>
#include <string_view>

#include "runtime/plan.h"

namespace coil::runtime {

/// Fills in `function` and `bound` of a Call from its name and attributes, or an Error.
using BindCall = Status (*)(Call& call);

/// What a plan refers to outside itself.
struct PlanSurroundings {
  std::size_t kernels = 0, constants = 0;
  BindCall bind = nullptr;
};

std::string pack(const Plan& plan);
/// Reads what `pack` wrote; an Error if the bytes are damaged. Then every reference of the plan
/// names something that is there, and every expression can be evaluated. In place of each name
/// stands a mark, its number among the plan's names.
Result<Plan> unpack(std::string_view bytes, const PlanSurroundings& surroundings);

/// The names of a plan, in the order of their marks.
std::vector<std::string> names_of(const Plan& plan);
bool has_marks(std::string_view text);
/// `text`, a message of a plan with marks, with `names` in their place.
std::string with_names(std::string_view text, std::span<const std::string> names);

}  // namespace coil::runtime
