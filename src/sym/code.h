#pragma once
// From Expr to the code that a plan holds.

#include "runtime/expr_code.h"
#include "sym/expr.h"

namespace coil::sym {

/// The op of a kind; the folding one for kinds with any number of operands.
runtime::ExprOp op_of(Kind kind);

/// `slot` numbers the variables. An Error if one has no slot, or if the expression needs more stack
/// or is longer than code may be. The result passes runtime::valid.
Result<runtime::ExprCode> compile(const Arena& arena, Expr e,
                                  const std::function<std::optional<u32>(Expr)>& slot);

}  // namespace coil::sym
