// Interpolation: each result element is a weighted sum of a few input elements along each dim.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// One input position along a dim and its weight.
struct Tap {
  Expr index;
  Val weight;
};

struct Resample {
  Access in;
  std::size_t lead = 2;                       // batch and channel dims
  std::vector<std::optional<double>> scales;  // the user's factor of each spatial dim
  bool align_corners = false;
  DType dtype = DType::f32;  // of positions and weights
};

Resample resample_args(Lowering& l, const Args& args) {
  Resample r;
  const bool vec = args.schema().arg_index("input") >= 0;
  r.in = l.access(args.tensor(vec ? "input" : "self"));
  const std::size_t n = r.in.extents.size() - r.lead;
  r.scales.resize(n);
  if (args.has("scale_factors")) {
    const std::vector<double> factors = args.numbers("scale_factors");
    for (std::size_t k = 0; k < n && k < factors.size(); ++k) r.scales[k] = factors[k];
  }
  constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
  for (std::size_t k = 0; k < n; ++k) {
    const std::string_view name = n == 1 ? "scales" : kNames[3 - n + k];
    if (args.has(name)) r.scales[k] = args.number(name);
  }
  r.align_corners = args.flag("align_corners");
  r.dtype = compute_dtype(l.dtype_of(r.in));
  return r;
}

/// Input positions per output position.
Val step_of(BodyBuilder& b, const Resample& r, std::size_t k, Expr in, Expr out, DType dtype) {
  sym::Arena& syms = b.syms();
  if (r.align_corners) {
    if (syms.is_const(out, 1)) return b.constant(dtype, 0);
    const Expr one = syms.constant(1);
    return b.div(b.value(syms.sub(in, one), dtype), b.value(syms.sub(out, one), dtype));
  }
  if (r.scales[k] && *r.scales[k] > 0) return b.constant(dtype, 1.0 / *r.scales[k]);
  return b.div(b.value(in, dtype), b.value(out, dtype));
}

/// The position in the input of output position `at`, in units of elements.
Val source_position(BodyBuilder& b, const Resample& r, Val step, Expr at) {
  const Val place = b.value(at, r.dtype);
  if (r.align_corners) return b.mul(step, place);
  const Val half = b.constant(r.dtype, 0.5);
  return b.sub(b.mul(step, b.add(place, half)), half);
}

/// An element position in `dtype` as an index; outside it is the nearest element.
Expr clamped(BodyBuilder& b, Val position, Expr extent) {
  return b.index(b.cast(position, DType::i64), extent, IndexPolicy::Clamp);
}

std::vector<Tap> linear_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out) {
  const Expr extent = r.in.extents[r.lead + k];
  const Val zero = b.constant(r.dtype, 0), one = b.constant(r.dtype, 1);
  Val position = source_position(b, r, step_of(b, r, k, extent, out, r.dtype), at);
  position = b.max(position, zero);
  const Val low = b.op(ScalarOp::floor, {position});
  const Val fraction = b.min(b.max(b.sub(position, low), zero), one);
  return {{clamped(b, low, extent), b.sub(one, fraction)},
          {clamped(b, b.add(low, one), extent), fraction}};
}

/// Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -0.75.
std::vector<Val> cubic_weights(BodyBuilder& b, Val t, DType dtype) {
  const double a = -0.75;
  const auto c = [&](double x) { return b.constant(dtype, x); };
  const auto near = [&](Val x) {  // |x| <= 1: ((a+2)x - (a+3))x*x + 1
    const Val inner = b.sub(b.mul(c(a + 2), x), c(a + 3));
    return b.add(b.mul(b.mul(inner, x), x), c(1));
  };
  const auto far = [&](Val x) {  // 1 < |x| < 2: ((ax - 5a)x + 8a)x - 4a
    const Val first = b.add(b.mul(b.sub(b.mul(c(a), x), c(5 * a)), x), c(8 * a));
    return b.sub(b.mul(first, x), c(4 * a));
  };
  const Val rest = b.sub(c(1), t);
  return {far(b.add(t, c(1))), near(t), near(rest), far(b.add(rest, c(1)))};
}

std::vector<Tap> cubic_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out) {
  const Expr extent = r.in.extents[r.lead + k];
  const Val position = source_position(b, r, step_of(b, r, k, extent, out, r.dtype), at);
  const Val low = b.op(ScalarOp::floor, {position});
  const std::vector<Val> weights = cubic_weights(b, b.sub(position, low), r.dtype);
  std::vector<Tap> taps;
  for (int j = 0; j < 4; ++j)
    taps.push_back({clamped(b, b.add(low, b.constant(r.dtype, j - 1)), extent),
                    weights[static_cast<std::size_t>(j)]});
  return taps;
}

/// The sum over the taps of dims k.. of the input at `point`, innermost dim first.
Val weighted(BodyBuilder& b, const Resample& r, const std::vector<std::vector<Tap>>& taps,
             std::size_t k, Exprs& point) {
  if (k == taps.size()) return b.cast(b.load(r.in, point), r.dtype);
  Val sum;
  for (const Tap& tap : taps[k]) {
    point[r.lead + k] = tap.index;
    const Val term = b.mul(weighted(b, r, taps, k + 1, point), tap.weight);
    sum = sum.valid() ? b.add(sum, term) : term;
  }
  return sum;
}

template <class MakeTaps>
Status interpolate(Lowering& l, const Node& node, const Args& args, MakeTaps make_taps) {
  const Resample r = resample_args(l, args);
  const Exprs shape = l.type(node.outs[0]).shape;
  if (!is_float(l.dtype_of(r.in))) return l.unsupported_case("integer images");
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(shape);
  std::vector<std::vector<Tap>> taps;
  for (std::size_t k = 0; k < r.scales.size(); ++k)
    taps.push_back(make_taps(b, r, k, at[r.lead + k], shape[r.lead + k]));
  Exprs point = at;
  b.store(out, at, weighted(b, r, taps, 0, point));
  b.finish();
  return Ok{};
}

/// floor(at * step) or floor((at + 0.5) * step), in f32 as eager whatever the dtype.
Expr nearest_source(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out,
                    double shift) {
  sym::Arena& syms = b.syms();
  const Expr extent = r.in.extents[r.lead + k];
  if (b.lowering().prover.is_equal(extent, out)) return at;
  // Twice as large: no rounding is involved.
  if (b.lowering().prover.is_equal(syms.mul(extent, syms.constant(2)), out))
    return syms.floordiv(at, syms.constant(2));
  const Val step = step_of(b, r, k, extent, out, DType::f32);
  Val place = b.value(at, DType::f32);
  if (shift != 0) place = b.add(place, b.constant(DType::f32, shift));
  return clamped(b, b.op(ScalarOp::floor, {b.mul(place, step)}), extent);
}

}  // namespace

Status lower_upsample_nearest(Lowering& l, const Node& node, const Args& args) {
  const Resample r = resample_args(l, args);
  const double shift = node.op.find("exact") != std::string::npos ? 0.5 : 0;
  const Exprs shape = l.type(node.outs[0]).shape;
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(shape);
  Exprs point = at;
  for (std::size_t k = r.lead; k < at.size(); ++k)
    point[k] = nearest_source(b, r, k - r.lead, at[k], shape[k], shift);
  b.store(out, at, b.load(r.in, point));
  b.finish();
  return Ok{};
}

Status lower_upsample_linear(Lowering& l, const Node& node, const Args& args) {
  return interpolate(l, node, args, linear_taps);
}

Status lower_upsample_bicubic(Lowering& l, const Node& node, const Args& args) {
  return interpolate(l, node, args, cubic_taps);
}

namespace {

enum class Padding : u8 { Zeros, Border, Reflection };

struct GridAxis {
  BodyBuilder& b;
  DType dtype;
  Expr extent;
  bool align_corners;
  Padding padding;

  Val c(double x) const { return b.constant(dtype, x); }
  Val size() const { return b.value(extent, dtype); }

  /// From -1..1 to elements.
  Val unnormalise(Val x) const {
    if (align_corners) return b.mul(b.div(b.add(x, c(1)), c(2)), b.sub(size(), c(1)));
    return b.div(b.sub(b.mul(b.add(x, c(1)), size()), c(1)), c(2));
  }
  /// Mirrors x at both ends of the image: the edge elements' centres, or their outer borders.
  Val reflect(Val x) const {
    const Val low = align_corners ? c(0) : c(-0.5);
    const Val span = align_corners ? b.sub(size(), c(1)) : size();
    const Val safe_span = b.max(span, c(1));
    const Val distance = b.op(ScalarOp::abs, {b.sub(x, low)});
    const Val extra = b.op(ScalarOp::fmod, {distance, safe_span});
    const Val flips = b.op(ScalarOp::floor, {b.div(distance, safe_span)});
    const Val is_odd = b.op(ScalarOp::eq, {b.op(ScalarOp::fmod, {flips, c(2)}), c(1)});
    const Val forward = b.add(extra, low), backward = b.add(b.sub(span, extra), low);
    return b.where(is_odd, backward, forward);
  }
  Val clip(Val x) const { return b.min(b.max(x, c(0)), b.sub(size(), c(1))); }
  Val position(Val x) const {
    x = unnormalise(x);
    switch (padding) {
      case Padding::Zeros: return x;
      case Padding::Border: return clip(x);
      case Padding::Reflection: return clip(reflect(x));
    }
    COIL_UNREACHABLE();
  }
  Val inside(Val x) const {
    return b.op(ScalarOp::bits_and,
                {b.op(ScalarOp::ge, {x, c(0)}), b.op(ScalarOp::lt, {x, size()})});
  }
};

struct Corner {
  Val x, y, weight;
};

}  // namespace

Status lower_grid_sampler(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("input")), grid = l.access(args.tensor("grid"));
  const i64 mode = args.integer("interpolation_mode");
  if (mode == 2) return l.unsupported_case("bicubic mode");
  const DType dtype = compute_dtype(l.dtype_of(in));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.type(node.outs[0]).shape);
  const auto padding = static_cast<Padding>(args.integer("padding_mode"));
  const bool align = args.flag("align_corners");
  const GridAxis across{b, dtype, in.extents[3], align, padding};
  const GridAxis down{b, dtype, in.extents[2], align, padding};
  const auto coordinate = [&](i64 which) {
    return b.cast(b.load(grid, Exprs{at[0], at[2], at[3], l.syms.constant(which)}), dtype);
  };
  const Val x = across.position(coordinate(0)), y = down.position(coordinate(1));
  std::vector<Corner> corners;
  if (mode == 1) {
    corners.push_back({b.op(ScalarOp::round, {x}), b.op(ScalarOp::round, {y}), Val()});
  } else {
    const Val one = b.constant(dtype, 1);
    const Val left = b.op(ScalarOp::floor, {x}), top = b.op(ScalarOp::floor, {y});
    const Val right = b.add(left, one), bottom = b.add(top, one);
    const Val to_left = b.sub(x, left), to_right = b.sub(right, x);
    const Val to_top = b.sub(y, top), to_bottom = b.sub(bottom, y);
    corners = {{left, top, b.mul(to_right, to_bottom)},
               {right, top, b.mul(to_left, to_bottom)},
               {left, bottom, b.mul(to_right, to_top)},
               {right, bottom, b.mul(to_left, to_top)}};
  }
  Val sum;
  for (const Corner& corner : corners) {
    const Val inside = b.op(ScalarOp::bits_and, {across.inside(corner.x), down.inside(corner.y)});
    const Expr column = clamped(b, corner.x, in.extents[3]),
               row = clamped(b, corner.y, in.extents[2]);
    const Val loaded = b.load_if(inside, ops::Scalar::of_int(l.dtype_of(in), 0), in,
                                 Exprs{at[0], at[1], row, column});
    Val term = b.cast(loaded, dtype);
    if (corner.weight.valid()) term = b.mul(term, corner.weight);
    sum = sum.valid() ? b.add(sum, term) : term;
  }
  b.store(out, at, sum);
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
