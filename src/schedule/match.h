#pragma once
// Finds how the loops of a body run along the axes of a group.

#include <optional>

#include "schedule/accesses.h"

namespace coil {

/// The group's axes afterwards, its old axes in terms of them, and the body's dims in terms of
/// them. Every point of the body is one point of the axes that its dims name, and the other way
/// round.
struct Fit {
  std::vector<Axis> grid, inner;
  std::vector<std::pair<sym::Expr, sym::Expr>> moved;  // old axis -> expression; others stay
  std::vector<sym::Expr> dims;
  bool is_row = false;  // the body runs over the inner axes too
};

/// Two index tuples of one buffer: in the group's axes, and in the body's dims.
struct SharedAccess {
  std::vector<sym::Expr> group, body;
};

/// A fit under which the tuples of the given accesses agree, the earlier ones first, or why there
/// is none. The caller checks what it needs to agree: a tuple that does not fit is passed over.
std::variant<Fit, std::string> match(const LoopProgram& program, const Group& group,
                                     const Body& body, const std::vector<SharedAccess>& shared);

}  // namespace coil
