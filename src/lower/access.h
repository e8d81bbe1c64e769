#pragma once
// Views as index substitutions: the arithmetic of Access.

#include <span>
#include <string_view>
#include <vector>

#include "loop/program.h"

namespace coil::lowering {

using sym::Expr;
using Exprs = std::vector<sym::Expr>;

/// A variable with 0 <= var < extent.
Expr fresh_var(sym::Arena& syms, std::string name, sym::Role role, Expr extent);
/// One Loop variable for each extent: d0, d1, ...
Exprs fresh_vars(sym::Arena& syms, std::span<const Expr> extents);

/// The whole buffer, unchanged.
Access identity(sym::Arena& syms, BufferId buffer, std::span<const Expr> shape);
bool is_identity(const Access& access, const Buffer& buffer);
/// The buffer index of the element at `point`, one expression for each logical dim.
Exprs index_at(sym::Arena& syms, const Access& access, std::span<const Expr> point);
/// A tensor over `vars` and `extents` whose element is the one that `access` has at `point`.
Access view_of(sym::Arena& syms, const Access& access, Exprs vars, Exprs extents,
               std::span<const Expr> point);
/// `access` with another shape of as many elements, both in row-major order.
Access reshape(sym::Arena& syms, const sym::Prover& prover, const Access& access,
               std::span<const Expr> shape);
Access permute(sym::Arena& syms, const Access& access, std::span<const i64> order);
/// Dims of 1 are repeated and missing leading dims added, as PyTorch's broadcasting does.
Access broadcast_to(sym::Arena& syms, const Access& access, std::span<const Expr> shape);
/// One part of each pair in a tensor whose last dim holds pairs.
Access part_of(sym::Arena& syms, const Access& pairs, i64 which);
/// A new dim of extent 1 at position `dim`.
Access unsqueeze(sym::Arena& syms, const Access& access, std::size_t dim);

/// Whether there is known to be no element.
bool is_empty(const sym::Arena& syms, std::span<const Expr> shape);
/// The coordinates of row-major position `flat` in `shape`.
Exprs unravel(sym::Arena& syms, Expr flat, std::span<const Expr> shape);
/// The row-major position of `point` in `shape`.
Expr ravel(sym::Arena& syms, std::span<const Expr> point, std::span<const Expr> shape);

}  // namespace coil::lowering
