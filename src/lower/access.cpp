#include "lower/access.h"

#include <algorithm>

#include "base/check.h"

namespace coil::lowering {

Expr fresh_var(sym::Arena& syms, std::string name, sym::Role role, Expr extent) {
  // A dim of extent 0 has no point; its variable still needs a range that is not empty.
  const i64 most = syms.range(extent).hi;
  const i64 last = most == sym::kMaxInt ? sym::kMaxInt : std::max<i64>(most - 1, 0);
  return syms.variable({std::move(name), role, {0, last}, extent});
}

Exprs fresh_vars(sym::Arena& syms, std::span<const Expr> extents) {
  Exprs vars;
  for (std::size_t k = 0; k < extents.size(); ++k)
    vars.push_back(fresh_var(syms, str("d{}", k), sym::Role::Loop, extents[k]));
  return vars;
}

Access identity(sym::Arena& syms, BufferId buffer, std::span<const Expr> shape) {
  Exprs vars = fresh_vars(syms, shape);
  return {buffer, vars, Exprs(shape.begin(), shape.end()), vars};
}

bool is_identity(const Access& access, const Buffer& buffer) {
  return access.index == access.vars && access.extents == buffer.shape;
}

Exprs index_at(sym::Arena& syms, const Access& access, std::span<const Expr> point) {
  COIL_CHECK(point.size() == access.vars.size(), "a tensor of rank {} is read at {} indices",
             access.vars.size(), point.size());
  std::vector<std::pair<Expr, Expr>> map;
  for (std::size_t k = 0; k < point.size(); ++k) map.push_back({access.vars[k], point[k]});
  Exprs index;
  for (Expr e : access.index) index.push_back(syms.substitute(e, map));
  return index;
}

Access view_of(sym::Arena& syms, const Access& access, Exprs vars, Exprs extents,
               std::span<const Expr> point) {
  Exprs index = index_at(syms, access, point);
  return {access.buffer, std::move(vars), std::move(extents), std::move(index)};
}

bool is_empty(const sym::Arena& syms, std::span<const Expr> shape) {
  return std::ranges::any_of(shape, [&](Expr size) { return syms.is_const(size, 0); });
}

Exprs unravel(sym::Arena& syms, Expr flat, std::span<const Expr> shape) {
  Exprs point(shape.size(), syms.constant(0));
  if (is_empty(syms, shape)) return point;  // of no element: nothing is divided by 0
  Expr below = syms.constant(1);
  for (std::size_t k = shape.size(); k-- > 0;) {
    point[k] = syms.floordiv(flat, below);
    if (k > 0) point[k] = syms.mod(point[k], shape[k]);
    below = syms.mul(below, shape[k]);
  }
  return point;
}

Expr ravel(sym::Arena& syms, std::span<const Expr> point, std::span<const Expr> shape) {
  Expr flat = syms.constant(0);
  for (std::size_t k = 0; k < shape.size(); ++k)
    flat = syms.add(syms.mul(flat, shape[k]), point[k]);
  return flat;
}

namespace {

/// Dims of the old and the new shape, as ranges of positions, that hold the same elements.
struct DimGroup {
  std::size_t old_begin, old_end, new_begin, new_end;
};

/// Cuts two shapes of equal products into the smallest groups with provably equal products.
std::vector<DimGroup> match_dims(sym::Arena& syms, const sym::Prover& prover,
                                 std::span<const Expr> from, std::span<const Expr> to) {
  std::vector<DimGroup> groups;
  std::size_t a = 0, b = 0;
  while (a < from.size() && b < to.size()) {
    DimGroup group{a, a + 1, b, b + 1};
    Expr left = from[a], right = to[b];
    while (!prover.is_equal(left, right)) {
      const bool more_left = group.old_end < from.size(), more_right = group.new_end < to.size();
      if (!more_left && !more_right) break;
      const auto l = syms.as_const(left), r = syms.as_const(right);
      const bool left_smaller = l && r ? *l < *r : prover.divides(left, right) == sym::Answer::Yes;
      const bool right_smaller = l && r ? *l > *r : prover.divides(right, left) == sym::Answer::Yes;
      // Where neither is known to be the smaller one, all that is left forms one group.
      if (more_left && (left_smaller || !right_smaller || !more_right))
        left = syms.mul(left, from[group.old_end++]);
      if (more_right && (right_smaller || !left_smaller || !more_left))
        right = syms.mul(right, to[group.new_end++]);
    }
    groups.push_back(group);
    a = group.old_end;
    b = group.new_end;
  }
  if (!groups.empty()) {
    groups.back().old_end = from.size();
    groups.back().new_end = to.size();
  }
  return groups;
}

/// The dims whose extent is not the constant 1.
std::vector<std::size_t> long_dims(const sym::Arena& syms, std::span<const Expr> shape) {
  std::vector<std::size_t> dims;
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (!syms.is_const(shape[k], 1)) dims.push_back(k);
  return dims;
}

Exprs pick(std::span<const Expr> all, std::span<const std::size_t> dims) {
  Exprs out;
  for (std::size_t k : dims) out.push_back(all[k]);
  return out;
}

}  // namespace

Access reshape(sym::Arena& syms, const sym::Prover& prover, const Access& access,
               std::span<const Expr> shape) {
  const Exprs vars = fresh_vars(syms, shape);
  Exprs point(access.extents.size(), syms.constant(0));
  const std::vector<std::size_t> old_dims = long_dims(syms, access.extents);
  const std::vector<std::size_t> new_dims = long_dims(syms, shape);
  const Exprs from = pick(access.extents, old_dims), to = pick(shape, new_dims);
  const Exprs to_vars = pick(vars, new_dims);
  if (!is_empty(syms, from)) {
    for (const DimGroup& g : match_dims(syms, prover, from, to)) {
      const std::size_t old_count = g.old_end - g.old_begin, new_count = g.new_end - g.new_begin;
      const Expr flat = ravel(syms, std::span(to_vars).subspan(g.new_begin, new_count),
                              std::span(to).subspan(g.new_begin, new_count));
      const Exprs part = unravel(syms, flat, std::span(from).subspan(g.old_begin, old_count));
      for (std::size_t k = 0; k < old_count; ++k) point[old_dims[g.old_begin + k]] = part[k];
    }
  }
  return view_of(syms, access, vars, Exprs(shape.begin(), shape.end()), point);
}

Access permute(sym::Arena& syms, const Access& access, std::span<const i64> order) {
  const i64 rank = static_cast<i64>(access.extents.size());
  Exprs extents;
  std::vector<std::size_t> old_dims;
  for (i64 dim : order) {
    old_dims.push_back(static_cast<std::size_t>(dim < 0 ? dim + rank : dim));
    extents.push_back(access.extents.at(old_dims.back()));
  }
  const Exprs vars = fresh_vars(syms, extents);
  Exprs point(access.extents.size());
  for (std::size_t k = 0; k < old_dims.size(); ++k) point[old_dims[k]] = vars[k];
  return view_of(syms, access, vars, extents, point);
}

Access broadcast_to(sym::Arena& syms, const Access& access, std::span<const Expr> shape) {
  const std::size_t lead = shape.size() - access.extents.size();
  const Exprs vars = fresh_vars(syms, shape);
  Exprs point;
  for (std::size_t k = 0; k < access.extents.size(); ++k)
    point.push_back(syms.is_const(access.extents[k], 1) ? syms.constant(0) : vars[lead + k]);
  return view_of(syms, access, vars, Exprs(shape.begin(), shape.end()), point);
}

Access part_of(sym::Arena& syms, const Access& pairs, i64 which) {
  Exprs vars = pairs.vars, extents = pairs.extents;
  vars.pop_back();
  extents.pop_back();
  Exprs point = vars;
  point.push_back(syms.constant(which));
  return view_of(syms, pairs, vars, extents, point);
}

Access unsqueeze(sym::Arena& syms, const Access& access, std::size_t dim) {
  const auto at = static_cast<std::ptrdiff_t>(dim);
  Access out = access;
  const Expr one = syms.constant(1);
  out.extents.insert(out.extents.begin() + at, one);
  out.vars.insert(out.vars.begin() + at, fresh_var(syms, "d", sym::Role::Loop, one));
  return out;
}

}  // namespace coil::lowering
