// Sampling an image at the points of a grid, and its gradients.

#include "base/check.h"
#include "lower/pool.h"
#include "lower/resample.h"
#include "lower/tree.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

enum class Mode : u8 { Linear, Nearest, Cubic };
enum class Padding : u8 { Zeros, Border, Reflection };
/// Where padding puts a coordinate that is NaN. Eager: the first element of an image, the last of a
/// volume.
enum class NanAt : u8 { First, Last };

/// A number with its derivative by the grid's coordinate.
struct Coordinate {
  Val place, slope;
};

/// One spatial dim of the image.
struct GridAxis {
  BodyBuilder& b;
  DType dtype;
  Expr extent;
  bool align_corners;
  Padding padding;
  NanAt nan_at;

  Val c(double x) const { return b.constant(dtype, x); }
  Val size() const { return b.value(extent, dtype); }
  Val test(ScalarOp op, Val x, Val y) const { return b.op(op, {x, y}); }

  /// From -1..1 to elements.
  Coordinate unnormalised(Val x) const {
    const Val last = b.sub(size(), c(1)), shifted = b.add(x, c(1));
    if (align_corners) return {b.mul(b.div(shifted, c(2)), last), b.div(last, c(2))};
    return {b.div(b.sub(b.mul(shifted, size()), c(1)), c(2)), b.div(size(), c(2))};
  }
  /// Mirrors x at both ends of the image: the edge elements' centres, or their outer borders.
  Coordinate reflected(Coordinate x) const {
    const Val low = align_corners ? c(0) : c(-0.5);
    const Val span = align_corners ? b.sub(size(), c(1)) : size();
    const Val safe_span = b.max(span, c(1));
    const Val from_low = b.sub(x.place, low), distance = b.op(ScalarOp::abs, {from_low});
    const Val extra = b.op(ScalarOp::fmod, {distance, safe_span});
    const Val flips = b.op(ScalarOp::floor, {b.div(distance, safe_span)});
    const Val is_odd = test(ScalarOp::eq, b.op(ScalarOp::fmod, {flips, c(2)}), c(1));
    const Val forward = b.add(extra, low), backward = b.add(b.sub(span, extra), low);
    const Val below = test(ScalarOp::lt, from_low, c(0));
    const Val turned = b.op(ScalarOp::bits_xor, {below, is_odd});
    return {b.where(is_odd, backward, forward), b.where(turned, b.neg(x.slope), x.slope)};
  }
  /// The slope is 0 at and beyond the edges.
  Coordinate clipped(Coordinate x) const {
    const Val last = b.sub(size(), c(1));
    const Val within = b.op(ScalarOp::bits_and,
                            {test(ScalarOp::gt, x.place, c(0)), test(ScalarOp::lt, x.place, last)});
    const Val above = nan_at == NanAt::First
                          ? b.where(test(ScalarOp::gt, x.place, c(0)), x.place, c(0))
                          : b.max(x.place, c(0));
    const Val place = b.where(test(ScalarOp::lt, above, last), above, last);
    return {place, b.where(within, x.slope, c(0))};
  }
  Coordinate padded(Coordinate x) const {
    switch (padding) {
      case Padding::Zeros: return x;
      case Padding::Border: return clipped(x);
      case Padding::Reflection: return clipped(reflected(x));
    }
    COIL_UNREACHABLE();
  }
  Val inside(Val x) const {
    return b.op(ScalarOp::bits_and, {test(ScalarOp::ge, x, c(0)), test(ScalarOp::lt, x, size())});
  }
};

/// An input element along one dim, its weight, and the weight's derivative by the grid's
/// coordinate.
struct GridTap {
  Val place, weight, slope;  // no weight: 1
};

std::vector<GridTap> linear(const GridAxis& axis, Val x) {
  BodyBuilder& b = axis.b;
  const Coordinate at = axis.padded(axis.unnormalised(x));
  const Val low = b.op(ScalarOp::floor, {at.place}), high = b.add(low, axis.c(1));
  return {{low, b.sub(high, at.place), b.neg(at.slope)}, {high, b.sub(at.place, low), at.slope}};
}

std::vector<GridTap> nearest(const GridAxis& axis, Val x) {
  const Coordinate at = axis.padded(axis.unnormalised(x));
  return {{axis.b.op(ScalarOp::round, {at.place}), Val(), Val()}};
}

/// Derivatives of cubic_near and cubic_far by x.
Val near_slope(const GridAxis& axis, Val x) {  // (3(a+2)x - 2(a+3))x
  BodyBuilder& b = axis.b;
  const double a = kCubicSharp;
  return b.mul(b.sub(b.mul(axis.c(3 * (a + 2)), x), axis.c(2 * (a + 3))), x);
}
Val far_slope(const GridAxis& axis, Val x) {  // (3ax - 10a)x + 8a
  BodyBuilder& b = axis.b;
  const double a = kCubicSharp;
  return b.add(b.mul(b.sub(b.mul(axis.c(3 * a), x), axis.c(10 * a)), x), axis.c(8 * a));
}

/// The padding is of each tap apart.
std::vector<GridTap> cubic(const GridAxis& axis, Val x) {
  BodyBuilder& b = axis.b;
  const Coordinate at = axis.unnormalised(x);
  const Val low = b.op(ScalarOp::floor, {at.place});
  const Val t = b.sub(at.place, low), one = axis.c(1);
  const Val rest = b.sub(one, t), before = b.add(t, one), after = b.add(rest, one);
  const Val weights[] = {cubic_far(b, before, kCubicSharp), cubic_near(b, t, kCubicSharp),
                         cubic_near(b, rest, kCubicSharp), cubic_far(b, after, kCubicSharp)};
  const Val slopes[] = {far_slope(axis, before), near_slope(axis, t), b.neg(near_slope(axis, rest)),
                        b.neg(far_slope(axis, after))};
  std::vector<GridTap> taps;
  for (int j = 0; j < 4; ++j) {
    const Val place = axis.padded({b.add(low, axis.c(j - 1)), axis.c(0)}).place;
    taps.push_back({place, weights[j], b.mul(slopes[j], at.slope)});
  }
  return taps;
}

/// The input elements that one point of the grid is made of: the taps of each spatial dim, dim 0
/// (of the image) first.
struct Sampler {
  std::vector<GridAxis> axes;
  std::vector<std::vector<GridTap>> taps;
  Access input;
  DType dtype;
};

/// `at` is the point's index: batch, then the grid's spatial dims.
Sampler make_sampler(BodyBuilder& b, const Args& args, const Exprs& at) {
  Lowering& l = b.lowering();
  const Access grid = l.access(args.tensor("grid"));
  Sampler s{{}, {}, l.access(args.tensor("input")), DType::f32};
  s.dtype = compute_dtype(l.dtype_of(s.input));
  const auto padding = static_cast<Padding>(args.integer("padding_mode"));
  const auto mode = static_cast<Mode>(args.integer("interpolation_mode"));
  const std::size_t n = s.input.extents.size() - 2;
  for (std::size_t k = 0; k < n; ++k) {
    const GridAxis axis{b,
                        s.dtype,
                        s.input.extents[2 + k],
                        args.flag("align_corners"),
                        padding,
                        n == 2 ? NanAt::First : NanAt::Last};
    Exprs point = at;
    point.push_back(l.syms.constant(static_cast<i64>(n - 1 - k)));  // x, the last dim, comes first
    const Val x = b.cast(b.load(grid, point), s.dtype);
    s.axes.push_back(axis);
    s.taps.push_back(mode == Mode::Linear    ? linear(axis, x)
                     : mode == Mode::Nearest ? nearest(axis, x)
                                             : cubic(axis, x));
  }
  return s;
}

/// One element of the input with the number of its tap in each dim.
struct Corner {
  std::vector<const GridTap*> taps;
  Val inside;
  Exprs point;  // spatial dims only
};

/// All combinations of taps, the last dim's fastest.
std::vector<Corner> corners_of(BodyBuilder& b, const Sampler& s) {
  std::size_t count = 1;
  for (const auto& taps : s.taps) count *= taps.size();
  std::vector<Corner> corners(count);
  for (std::size_t i = 0; i < count; ++i) {
    Corner& corner = corners[i];
    std::size_t rest = i, repeat = count;
    for (std::size_t k = 0; k < s.taps.size(); ++k) {
      repeat /= s.taps[k].size();
      const GridTap& tap = s.taps[k][rest / repeat];
      rest %= repeat;
      corner.taps.push_back(&tap);
      const Val inside = s.axes[k].inside(tap.place);
      corner.inside =
          corner.inside.valid() ? b.op(ScalarOp::bits_and, {corner.inside, inside}) : inside;
      corner.point.push_back(clamped(b, tap.place, s.axes[k].extent));
    }
  }
  return corners;
}

/// The product of the corner's weights, that of dim `by` replaced with its slope; invalid for 1.
Val weight_of(BodyBuilder& b, const Corner& corner, std::size_t by) {
  Val weight;
  for (std::size_t k = corner.taps.size(); k-- > 0;) {
    const Val factor = k == by ? corner.taps[k]->slope : corner.taps[k]->weight;
    if (!factor.valid()) continue;
    weight = weight.valid() ? b.mul(weight, factor) : factor;
  }
  return weight;
}
constexpr std::size_t kNoDim = ~std::size_t{0};

/// The corner's element of an image and channel; 0 outside.
Val element_of(BodyBuilder& b, const Sampler& s, const Corner& corner, Expr image, Expr channel) {
  Exprs point = {image, channel};
  point.insert(point.end(), corner.point.begin(), corner.point.end());
  const DType dtype = b.lowering().dtype_of(s.input);
  return b.cast(b.load_if(corner.inside, ops::Scalar::of_int(dtype, 0), s.input, point), s.dtype);
}

/// at without its channel: the index of a point of the grid.
Exprs grid_point(const Exprs& at) {
  Exprs point = at;
  point.erase(point.begin() + 1);
  return point;
}

void input_gradient(Lowering& l, const Node& node, const Args& args, const Access& gradient) {
  const BufferId sums = begin_sums(l, node.outs[0]);
  BodyBuilder b(l, l.fresh_body_name(l.name()));
  const Exprs at = b.dims(gradient.extents);
  const Sampler s = make_sampler(b, args, grid_point(at));
  const Val g = b.cast(b.load(gradient, at), s.dtype), zero = b.constant(s.dtype, 0);
  for (const Corner& corner : corners_of(b, s)) {
    const Val weight = weight_of(b, corner, kNoDim);
    Exprs point = {at[0], at[1]};
    point.insert(point.end(), corner.point.begin(), corner.point.end());
    const Val part = weight.valid() ? b.mul(g, weight) : g;
    b.store_combining(StoreCombine::Sum, sums, point, b.where(corner.inside, part, zero));
  }
  b.finish();
  finish_sums(l, node.outs[0], sums);
}

/// The sum over channels of the gradient times the slope of the sample along each dim.
void grid_gradient(Lowering& l, const Node& node, const Args& args, const Access& gradient) {
  const ValueId out = node.outs[1];
  BodyBuilder b(l, l.fresh_body_name(l.name_of(out)));
  const Exprs shape = l.type(out).shape;
  const Exprs at = b.dims(std::span(shape).first(shape.size() - 1));
  const Expr channel = b.reduce_dim(gradient.extents[1]);
  const Sampler s = make_sampler(b, args, at);
  Exprs point = at;
  point.insert(point.begin() + 1, channel);
  const Val g = b.cast(b.load(gradient, point), s.dtype);
  const std::vector<Corner> corners = corners_of(b, s);
  const ops::Tree tree = choose_tree({s.dtype, l.syms.as_const(gradient.extents[1]), false});
  std::vector<Val> sums;
  for (std::size_t k = 0; k < s.taps.size(); ++k) {
    Val slope = b.constant(s.dtype, 0);
    for (const Corner& corner : corners)
      if (corner.taps[k]->slope.valid())
        slope =
            b.add(slope, b.mul(element_of(b, s, corner, at[0], channel), weight_of(b, corner, k)));
    sums.push_back(b.mul(g, slope));
  }
  for (Val& sum : sums) sum = b.reduce("sum", sum, tree)[0];
  const BufferId result = l.result(out);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    Exprs place = at;
    place.push_back(l.syms.constant(static_cast<i64>(sums.size() - 1 - k)));
    b.store(result, place, sums[k]);
  }
  b.finish();
}

}  // namespace

Status lower_grid_sampler(Lowering& l, const Node& node, const Args& args) {
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.type(node.outs[0]).shape);
  const Sampler s = make_sampler(b, args, grid_point(at));
  if (s.taps.size() != 2 && s.taps[0].size() == 4) return l.unsupported_case("bicubic in 3-d");
  Val sum;
  for (const Corner& corner : corners_of(b, s)) {
    const Val element = element_of(b, s, corner, at[0], at[1]);
    const Val weight = weight_of(b, corner, kNoDim);
    const Val term = weight.valid() ? b.mul(element, weight) : element;
    sum = sum.valid() ? b.add(sum, term) : term;
  }
  b.store(out, at, sum);
  b.finish();
  return Ok{};
}

Status lower_grid_sampler_backward(Lowering& l, const Node& node, const Args& args) {
  const Access gradient = l.access(args.tensor("grad_output"));
  if (gradient.extents.size() != 4 && args.integer("interpolation_mode") == 2)
    return l.unsupported_case("bicubic in 3-d");
  input_gradient(l, node, args, gradient);
  grid_gradient(l, node, args, gradient);
  return Ok{};
}

}  // namespace coil::lowering
