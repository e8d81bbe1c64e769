#pragma once
// Joining of grid axes that are one in memory, the list of a kernel's symbols, and names.

#include "kernel/kernel.h"

namespace coil {

/// Drops grid axes of extent 1, and replaces neighbours p, q by one axis m (p = m // E, q = m % E)
/// wherever every access walks p and q as one line, so that loops are long and have no division.
void merge_grid_axes(Kernel& kernel);

/// Fills in `symbols` and `scalars`: what the kernel's expressions need from outside.
void collect_symbols(Kernel& kernel);

/// Gives axes and indices whose name is taken another one: the text of a kernel knows them by name.
void name_apart(Kernel& kernel);

/// Calls `f(Expr&)` for every index expression of an instruction.
template <class F>
void for_each_expr(Inst& inst, F f) {
  for (sym::Expr& e : inst.index) f(e);
  if (inst.kind == InstKind::Value) f(inst.expr);
  if (inst.extent.valid()) f(inst.extent);
}

}  // namespace coil
