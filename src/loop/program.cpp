#include "loop/program.h"

#include <algorithm>

namespace coil {
namespace {

/// The next larger factor with which the same dim is split, or nothing.
std::optional<i64> next_factor(const Layout& layout, const LayoutEntry& entry) {
  std::optional<i64> next;
  for (const LayoutEntry& other : layout.entries)
    if (other.dim == entry.dim && other.factor > entry.factor)
      next = next ? std::min(*next, other.factor) : other.factor;
  return next;
}

}  // namespace

sym::Expr address(sym::Arena& syms, const Layout& layout, std::span<const sym::Expr> index) {
  std::vector<sym::Expr> terms;
  if (layout.offset.valid()) terms.push_back(layout.offset);
  for (const LayoutEntry& entry : layout.entries) {
    COIL_CHECK(entry.dim < index.size(), "layout of dim {} for {} indices", entry.dim,
               index.size());
    sym::Expr part = index[entry.dim];
    if (entry.factor != 1) part = syms.floordiv(part, syms.constant(entry.factor));
    if (const std::optional<i64> next = next_factor(layout, entry))
      part = syms.mod(part, syms.constant(*next / entry.factor));
    terms.push_back(syms.mul(part, entry.stride));
  }
  return syms.sum(terms);
}

Layout strided_layout(std::span<const sym::Expr> strides, sym::Expr offset) {
  Layout layout;
  for (std::size_t d = 0; d < strides.size(); ++d)
    layout.entries.push_back({static_cast<u32>(d), 1, strides[d]});
  layout.offset = offset;
  return layout;
}

}  // namespace coil
