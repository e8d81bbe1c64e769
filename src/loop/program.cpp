#include "loop/program.h"

#include <algorithm>
#include <cmath>

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

double scale_of(const Fft& fft, i64 n) {
  switch (fft.scale) {
    case FftScale::None: return 1;
    case FftScale::ByRootN: return 1 / std::sqrt(static_cast<double>(n));
    case FftScale::ByN: return 1 / static_cast<double>(n);
  }
  COIL_UNREACHABLE();
}

Status check_fft_sizes(const Fft& fft, i64 x, i64 y) {
  if (y == 0) return Ok{};
  const i64 n = fft.kind == FftKind::C2r ? y : x;
  if (n == 0) return error("a transform of no elements");
  const bool fits = fft.kind == FftKind::C2r   ? x >= n / 2 + 1
                    : fft.kind == FftKind::R2c ? y <= n
                                               : y == n;
  if (!fits) return error("a transform of {} elements into {}", x, y);
  return Ok{};
}

}  // namespace coil
