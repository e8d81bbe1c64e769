// Interpolation: each result element is a weighted sum of a few input elements along each dim.

#include "lower/resample.h"

#include "base/check.h"
#include "lower/pool.h"

namespace coil::lowering {

using ops::ScalarOp;

Resample resample_args(const Args& args, Access in, DType dtype) {
  Resample r;
  r.in = std::move(in);
  r.dtype = dtype;
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
  return r;
}

Val step_of(BodyBuilder& b, const Resample& r, std::size_t k, Expr out, DType dtype) {
  sym::Arena& syms = b.syms();
  const Expr in = r.in.extents[r.lead + k];
  if (r.align_corners) {
    if (syms.is_const(out, 1)) return b.constant(dtype, 0);
    const Expr one = syms.constant(1);
    return b.div(b.value(syms.sub(in, one), dtype), b.value(syms.sub(out, one), dtype));
  }
  if (r.scales[k] && *r.scales[k] > 0) return b.constant(dtype, 1.0 / *r.scales[k]);
  return b.div(b.value(in, dtype), b.value(out, dtype));
}

Expr clamped(BodyBuilder& b, Val position, Expr extent) {
  return b.index(b.cast(position, DType::i64), extent, IndexPolicy::Clamp);
}

namespace {

/// The position in the input of output position `at`, in units of elements.
Val source_position(BodyBuilder& b, const Resample& r, Val step, Expr at) {
  const Val place = b.value(at, r.dtype);
  if (r.align_corners) return b.mul(step, place);
  const Val half = b.constant(r.dtype, 0.5);
  return b.sub(b.mul(step, b.add(place, half)), half);
}

/// The element at or before a position: the last one if a scale leads beyond it.
Val element_before(BodyBuilder& b, const Resample& r, std::size_t k, Val position) {
  const Val low = b.op(ScalarOp::floor, {position});
  if (!r.scales[k] || r.align_corners) return low;
  const Expr last = b.syms().sub(r.in.extents[r.lead + k], b.syms().constant(1));
  return b.min(low, b.value(last, r.dtype));
}

}  // namespace

/// A dim that keeps its size is left as it is, whatever its scale; both taps are its element then.
std::vector<Tap> linear_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out) {
  const Expr extent = r.in.extents[r.lead + k], is_kept = b.syms().eq(extent, out);
  const Val zero = b.constant(r.dtype, 0), one = b.constant(r.dtype, 1);
  if (b.syms().is_const(is_kept, 1)) return {{at, one}, {at, zero}};
  Val position = source_position(b, r, step_of(b, r, k, out, r.dtype), at), next = one;
  if (!b.syms().is_const(is_kept, 0)) {
    position = b.where(b.test(is_kept), b.value(at, r.dtype), position);
    next = b.where(b.test(is_kept), zero, one);
  }
  position = b.max(position, zero);
  const Val low = element_before(b, r, k, position);
  const Val fraction = b.min(b.max(b.sub(position, low), zero), one);
  return {{clamped(b, low, extent), b.sub(one, fraction)},
          {clamped(b, b.add(low, next), extent), fraction}};
}

Val cubic_near(BodyBuilder& b, Val x, double a) {  // ((a+2)x - (a+3))x*x + 1
  const DType dtype = b.dtype(x);
  const Val inner = b.sub(b.mul(b.constant(dtype, a + 2), x), b.constant(dtype, a + 3));
  return b.add(b.mul(b.mul(inner, x), x), b.constant(dtype, 1));
}
Val cubic_far(BodyBuilder& b, Val x, double a) {  // ((ax - 5a)x + 8a)x - 4a
  const DType dtype = b.dtype(x);
  const Val inner = b.sub(b.mul(b.constant(dtype, a), x), b.constant(dtype, 5 * a));
  const Val outer = b.add(b.mul(inner, x), b.constant(dtype, 8 * a));
  return b.sub(b.mul(outer, x), b.constant(dtype, 4 * a));
}

std::vector<Tap> cubic_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out) {
  const Expr extent = r.in.extents[r.lead + k];
  const Val position = source_position(b, r, step_of(b, r, k, out, r.dtype), at);
  const Val low = b.op(ScalarOp::floor, {position});
  const Val t = b.sub(position, low), one = b.constant(r.dtype, 1), rest = b.sub(one, t);
  const Val weights[] = {cubic_far(b, b.add(t, one), kCubicSharp), cubic_near(b, t, kCubicSharp),
                         cubic_near(b, rest, kCubicSharp),
                         cubic_far(b, b.add(rest, one), kCubicSharp)};
  std::vector<Tap> taps;
  for (int j = 0; j < 4; ++j)
    taps.push_back({clamped(b, b.add(low, b.constant(r.dtype, j - 1)), extent), weights[j]});
  return taps;
}

namespace {

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

/// floor(at * step) or floor((at + 0.5) * step), in f32 as eager whatever the dtype.
Expr nearest_source(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out,
                    double shift) {
  sym::Arena& syms = b.syms();
  const Expr extent = r.in.extents[r.lead + k];
  if (b.lowering().prover.is_equal(extent, out)) return at;
  // Twice as large: no rounding is involved.
  if (b.lowering().prover.is_equal(syms.mul(extent, syms.constant(2)), out))
    return syms.floordiv(at, syms.constant(2));
  const Val step = step_of(b, r, k, out, DType::f32);
  Val place = b.value(at, DType::f32);
  if (shift != 0) place = b.add(place, b.constant(DType::f32, shift));
  return clamped(b, b.op(ScalarOp::floor, {b.mul(place, step)}), extent);
}

}  // namespace

std::vector<Tap> nearest_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out) {
  return {{nearest_source(b, r, k, at, out, 0), Val()}};
}
std::vector<Tap> nearest_exact_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at,
                                    Expr out) {
  return {{nearest_source(b, r, k, at, out, 0.5), Val()}};
}

MakeTaps taps_of(std::string_view op) {
  const auto has = [&](std::string_view word) { return op.find(word) != std::string_view::npos; };
  if (has("nearest_exact")) return nearest_exact_taps;
  if (has("nearest")) return nearest_taps;
  return has("cubic") ? cubic_taps : linear_taps;
}

Status lower_upsample(Lowering& l, const Node& node, const Args& args) {
  const bool vec = args.schema().arg_index("input") >= 0;
  const Access in = l.access(args.tensor(vec ? "input" : "self"));
  const DType dtype = l.dtype_of(in);
  const bool nearest = node.op.find("nearest") != std::string::npos;
  const Resample r = resample_args(args, in, is_float(dtype) ? compute_dtype(dtype) : DType::f64);
  if (!nearest && dtype == DType::u8 && r.scales.size() == 2) return lower_separably(l, node, r);
  if (!nearest && !is_float(dtype)) return l.unsupported_case("integer images");
  const Exprs shape = l.type(node.outs[0]).shape;
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(shape);
  std::vector<std::vector<Tap>> taps;
  for (std::size_t k = 0; k < r.scales.size(); ++k)
    taps.push_back(taps_of(node.op)(b, r, k, at[r.lead + k], shape[r.lead + k]));
  Exprs point = at;
  if (nearest)
    for (std::size_t k = 0; k < taps.size(); ++k) point[r.lead + k] = taps[k][0].index;
  b.store(out, at, nearest ? b.load(in, point) : weighted(b, r, taps, 0, point));
  b.finish();
  return Ok{};
}

Status lower_upsample_antialias(Lowering& l, const Node& node, const Args& args) {
  const bool vec = args.schema().arg_index("input") >= 0;
  const Access in = l.access(args.tensor(vec ? "input" : "self"));
  const DType dtype = l.dtype_of(in);
  const DType weights = is_float(dtype) ? compute_dtype(dtype) : DType::f64;
  return lower_separably(l, node, resample_args(args, in, weights));
}

namespace {

/// Adds value times the weights of the taps of dims k.. to the sums at `point`.
void spread(BodyBuilder& b, const Resample& r, const std::vector<std::vector<Tap>>& taps,
            std::size_t k, BufferId sums, Exprs& point, Val value) {
  if (k == taps.size()) return b.store_combining(StoreCombine::Sum, sums, point, value);
  for (const Tap& tap : taps[k]) {
    point[r.lead + k] = tap.index;
    const Val part = tap.weight.valid() ? b.mul(value, tap.weight) : value;
    spread(b, r, taps, k + 1, sums, point, part);
  }
}

}  // namespace

/// Each output element's gradient goes to the input elements that it was made of.
Status lower_upsample_backward(Lowering& l, const Node& node, const Args& args) {
  const Access gradient = l.access(args.tensor("grad_output"));
  const DType dtype = compute_dtype(l.dtype_of(gradient));
  Access in;
  in.extents = l.type(node.outs[0]).shape;
  const Resample r = resample_args(args, in, dtype);
  const BufferId sums = begin_sums(l, node.outs[0]);
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(gradient.extents);
  std::vector<std::vector<Tap>> taps;
  for (std::size_t k = 0; k < r.scales.size(); ++k)
    taps.push_back(taps_of(node.op)(b, r, k, at[r.lead + k], gradient.extents[r.lead + k]));
  Exprs point = at;
  spread(b, r, taps, 0, sums, point, b.cast(b.load(gradient, at), dtype));
  b.finish();
  finish_sums(l, node.outs[0], sums);
  return Ok{};
}

}  // namespace coil::lowering
