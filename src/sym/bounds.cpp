// Ranges of expressions, and what follows from them and from symbolic extents.

#include <algorithm>

#include "sym/arena.h"
#include "sym/tree.h"

namespace coil::sym {
namespace {

using Wide = __int128;

// Bounds without end; far from any product of two i64, and sums of a few stay within 128 bits.
constexpr Wide kInfinite = Wide{1} << 126;

Wide low(Range r) { return r.lo == kMinInt ? -kInfinite : Wide{r.lo}; }
Wide high(Range r) { return r.hi == kMaxInt ? kInfinite : Wide{r.hi}; }
bool infinite(Wide bound) { return bound == kInfinite || bound == -kInfinite; }

i64 saturate(Wide value) { return static_cast<i64>(std::clamp<Wide>(value, kMinInt, kMaxInt)); }

Wide mul_bound(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  return a * b;
}

/// The floor of a bound by a divisor bound that is not 0.
Wide div_bound(Wide a, Wide b) {
  if (infinite(b)) return (a < 0) == (b < 0) || a == 0 ? 0 : -1;
  if (infinite(a)) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Range hull(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Range div_ranges(Range a, Range b) {
  Wide lo = kInfinite;
  Wide hi = -kInfinite;
  auto with = [&](Wide divisor) {
    for (Wide x : {div_bound(low(a), divisor), div_bound(high(a), divisor)}) {
      lo = std::min(lo, x);
      hi = std::max(hi, x);
    }
  };
  if (b.hi >= 1) {
    with(std::max<Wide>(low(b), 1));
    with(high(b));
  }
  if (b.lo <= -1) {
    with(low(b));
    with(std::min<Wide>(high(b), -1));
  }
  return lo <= hi ? Range{saturate(lo), saturate(hi)} : Range{};
}

Range mod_ranges(Range a, Range b) {
  if (b.lo >= 0) {
    const i64 hi = b.hi == kMaxInt ? kMaxInt : std::max<i64>(b.hi - 1, 0);
    return {0, a.lo >= 0 ? std::min(hi, a.hi) : hi};
  }
  if (b.hi <= 0) return {b.lo == kMinInt ? kMinInt : std::min<i64>(b.lo + 1, 0), 0};
  return {b.lo == kMinInt ? kMinInt : b.lo + 1, b.hi == kMaxInt ? kMaxInt : b.hi - 1};
}

}  // namespace

Range add_ranges(Range a, Range b) {
  return {a.lo == kMinInt || b.lo == kMinInt ? kMinInt : saturate(Wide{a.lo} + b.lo),
          a.hi == kMaxInt || b.hi == kMaxInt ? kMaxInt : saturate(Wide{a.hi} + b.hi)};
}

Range mul_ranges(Range a, Range b) {
  const Wide corners[] = {mul_bound(low(a), low(b)), mul_bound(low(a), high(b)),
                          mul_bound(high(a), low(b)), mul_bound(high(a), high(b))};
  return {saturate(*std::ranges::min_element(corners)),
          saturate(*std::ranges::max_element(corners))};
}

Range Arena::Impl::range(Expr e) {
  if (node(e).range_epoch != epoch) {
    for (Expr x : reachable(e)) {
      if (node(x).range_epoch == epoch) continue;
      nodes[x.index].range_epoch = epoch;
      const Range fresh = compute_range(x);
      nodes[x.index].range = fresh;
    }
  }
  return node(e).range;
}

Range Arena::Impl::compute_range(Expr e) {
  const std::span<const Expr> in = operands(e);
  switch (kind(e)) {
    case Kind::Const: return {node(e).value, node(e).value};
    case Kind::Var: {
      const Variable& v = var(e);
      Range out = v.range;
      if (v.extent.valid()) {
        const i64 most = range(v.extent).hi;
        out.lo = std::max<i64>(out.lo, 0);
        out.hi = std::min(out.hi, most == kMaxInt ? most : std::max<i64>(most, 1) - 1);
      }
      return out;
    }
    case Kind::Add:
    case Kind::Mul: return range_of(poly(e));
    case Kind::FloorDiv: return div_ranges(range(in[0]), range(in[1]));
    case Kind::Mod: return mod_ranges(range(in[0]), range(in[1]));
    case Kind::Min:
    case Kind::Max: {
      Range out = range(in[0]);
      for (Expr o : in) {
        const Range r = range(o);
        const bool least = kind(e) == Kind::Min;
        out.lo = least ? std::min(out.lo, r.lo) : std::max(out.lo, r.lo);
        out.hi = least ? std::min(out.hi, r.hi) : std::max(out.hi, r.hi);
      }
      return out;
    }
    case Kind::Select: return hull(range(in[1]), range(in[2]));
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not: return {0, 1};
  }
  COIL_UNREACHABLE();
}

Range Arena::Impl::range_of(const Poly& p) {
  Range out{0, 0};
  for (const auto& [m, c] : p) {
    Range product{c, c};
    for (std::size_t i = 0; i < m.size();) {
      Range power{1, 1};
      std::size_t n = 0;
      for (; i < m.size() && (n == 0 || m[i] == m[i - 1]); ++i, ++n)
        power = mul_ranges(power, range(m[i]));
      if (n % 2 == 0) power.lo = std::max<i64>(power.lo, 0);
      product = mul_ranges(product, power);
    }
    out = add_ranges(out, product);
  }
  return out;
}

/// A proof search for p >= 0 that eliminates one atom after the other by a bound of it.
class BoundSearch {
 public:
  explicit BoundSearch(Arena::Impl& impl) : impl_(impl) {}

  bool prove(const Poly& p, int depth) {
    if (--budget_ < 0) return false;
    const Range r = impl_.range_of(p);
    if (r.lo >= 0) return true;
    if (r.hi < 0 || depth == 0) return false;
    std::vector<Expr> atoms;
    for (const auto& [m, c] : p) atoms.insert(atoms.end(), m.begin(), m.end());
    std::ranges::sort(atoms);
    atoms.erase(std::ranges::unique(atoms).begin(), atoms.end());
    // Variables below a symbolic extent go first, and for good: their extreme is attained.
    for (Expr a : atoms) {
      if (!has_symbolic_extent(a)) continue;
      const std::optional<Linear> linear = linear_in(p, a);
      const int s = linear ? sign(linear->factor, depth) : 0;
      if (s < 0 || (s > 0 && !poly_as_const(linear->factor))) return eliminate(a, *linear, depth);
    }
    for (Expr a : atoms) {
      if (has_symbolic_extent(a)) continue;
      const std::optional<Linear> linear = linear_in(p, a);
      if (linear && eliminate(a, *linear, depth)) return true;
    }
    return false;
  }

 private:
  bool has_symbolic_extent(Expr a) const {
    return impl_.kind(a) == Kind::Var && impl_.var(a).extent.valid() &&
           !impl_.as_const(impl_.var(a).extent);
  }

  int sign(const Poly& factor, int depth) {
    const Range r = impl_.range_of(factor);
    if (r.lo >= 0) return 1;
    if (r.hi <= 0) return -1;
    if (depth < 2 || factor.size() < 2) return 0;
    if (prove(factor, 2)) return 1;
    const std::optional<Poly> negative = poly_add({}, factor, -1);
    return negative && prove(*negative, 2) ? -1 : 0;
  }

  /// Whether scale*rest + bound*factor >= 0.
  bool with(const std::optional<Poly>& bound, const Linear& linear, int depth,
            const Poly& scale = poly_constant(1)) {
    const std::optional<Poly> product = bound ? poly_mul(*bound, linear.factor) : std::nullopt;
    const std::optional<Poly> rest = product ? poly_mul(linear.rest, scale) : std::nullopt;
    const std::optional<Poly> total = rest ? poly_add(*product, *rest) : std::nullopt;
    return total && prove(*total, depth - 1);
  }

  bool eliminate(Expr a, const Linear& linear, int depth) {
    const Range r = impl_.range(a);
    const int s = sign(linear.factor, depth);
    const std::span<const Expr> in = impl_.operands(a);
    auto by = [&](Expr o) { return with(impl_.poly(o), linear, depth); };
    auto any = [&](std::span<const Expr> bounds) { return std::ranges::any_of(bounds, by); };
    auto all = [&](std::span<const Expr> bounds) { return std::ranges::all_of(bounds, by); };
    const Kind kind = impl_.kind(a);
    if (kind == Kind::Min) return s < 0 ? any(in) : all(in);
    if (kind == Kind::Max) return s > 0 ? any(in) : all(in);
    if (kind == Kind::Select) return all(in.subspan(1));
    if (s == 0) return false;
    if (kind == Kind::Var && has_symbolic_extent(a) && s < 0)
      return with(poly_add(impl_.poly(impl_.var(a).extent), poly_constant(1), -1), linear, depth);
    if (kind == Kind::FloorDiv && quotient(in, linear, s, depth)) return true;
    if (kind == Kind::Mod && s < 0 && impl_.range(in[1]).lo >= 0) {
      if (with(poly_add(impl_.poly(in[1]), poly_constant(1), -1), linear, depth)) return true;
      if (impl_.range(in[0]).lo >= 0 && with(impl_.poly(in[0]), linear, depth)) return true;
    }
    // For a constant factor the interval of p has this bound in it already.
    const i64 bound = s > 0 ? r.lo : r.hi;
    if (bound == kMinInt || bound == kMaxInt || poly_as_const(linear.factor)) return false;
    return with(poly_constant(bound), linear, depth);
  }

  /// With n > 0: x - n + 1 <= n*(x // n) <= x, in n*p.
  bool quotient(std::span<const Expr> in, const Linear& linear, int s, int depth) {
    if (impl_.range(in[1]).lo < 0) return false;
    const Poly x = impl_.poly(in[0]);
    const Poly n = impl_.poly(in[1]);
    if (s < 0) return with(x, linear, depth, n);
    std::optional<Poly> low = poly_add(x, n, -1);
    if (low) low = poly_add(*low, poly_constant(1));
    return with(low, linear, depth, n);
  }

  Arena::Impl& impl_;
  int budget_ = 64;
};

bool Arena::Impl::nonnegative(const Poly& p) {
  constexpr int kMaxDepth = 12;
  return BoundSearch(*this).prove(p, kMaxDepth);
}

}  // namespace coil::sym
