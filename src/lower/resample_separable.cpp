// Resampling dim by dim, the last one first, with a table of weights for each: antialiased filters,
// and u8 images, which eager resamples in fixed point and rounds to u8 after each dim.

#include <cmath>

#include "base/check.h"
#include "lower/pool.h"
#include "lower/resample.h"
#include "lower/tree.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// For each output position along a dim the input positions that it is made of, and their weights:
/// two buffers [out, window]. A place of -1 says that there is no such tap; one whose weight is 0
/// still makes a NaN of an infinity.
struct Table {
  BufferId places, weights;
  Expr out, window;
};

Table new_table(Lowering& l, Expr out, Expr window, DType dtype) {
  return {l.temp("places", DType::i64, {out, window}), l.temp("weights", dtype, {out, window}), out,
          window};
}

/// Taps that fall on one place are one tap.
Table tap_table(Lowering& l, const Resample& r, std::size_t k, Expr out, MakeTaps make_taps) {
  BodyBuilder b(l, l.fresh_body_name(str("{}.taps", l.name())));
  const Expr at = b.dim(out);
  const std::vector<Tap> taps = make_taps(b, r, k, at, out);
  const Table table = new_table(l, out, l.syms.constant(static_cast<i64>(taps.size())), r.dtype);
  std::vector<Val> places;
  for (const Tap& tap : taps) places.push_back(b.value(tap.index));
  const Val zero = b.constant(r.dtype, 0);
  for (std::size_t j = 0; j < taps.size(); ++j) {
    Val weight = taps[j].weight;
    const auto same = [&](std::size_t i) { return b.op(ScalarOp::eq, {places[i], places[j]}); };
    for (std::size_t i = j + 1; i < taps.size(); ++i)
      weight = b.add(weight, b.where(same(i), taps[i].weight, zero));
    for (std::size_t i = 0; i < j; ++i) weight = b.where(same(i), zero, weight);
    const Exprs place = {at, l.syms.constant(static_cast<i64>(j))};
    b.store(table.places, place, places[j]);
    b.store(table.weights, place, weight);
  }
  b.finish();
  return table;
}

/// The filter's value at distance x: a triangle, or Keys' cubic.
Val filter_weight(BodyBuilder& b, Val distance, i64 taps) {
  const DType dtype = b.dtype(distance);
  const auto c = [&](double value) { return b.constant(dtype, value); };
  const Val x = b.op(ScalarOp::abs, {distance});
  const Val near = b.op(ScalarOp::lt, {x, c(1)});
  if (taps == 2) return b.where(near, b.sub(c(1), x), c(0));
  const Val far = b.where(b.op(ScalarOp::lt, {x, c(2)}), cubic_far(b, x, kCubicAntialias), c(0));
  return b.where(near, cubic_near(b, x, kCubicAntialias), far);
}

/// At most how many input elements one output element is made of.
Expr window_of(Lowering& l, const Resample& r, std::size_t k, Expr out, i64 taps) {
  sym::Arena& syms = l.syms;
  const Expr one = syms.constant(1), in = r.in.extents[r.lead + k];
  Expr step = syms.ceildiv(in, out);
  if (!r.align_corners && r.scales[k] && *r.scales[k] > 0)
    step = syms.constant(static_cast<i64>(std::ceil(std::min(1.0 / *r.scales[k], 1e9))));
  else if (r.align_corners)
    step = syms.ceildiv(in, syms.max(syms.sub(out, one), one));
  return syms.add(syms.mul(syms.constant(taps), syms.max(step, one)), syms.constant(2));
}

/// Weights of a filter that is as wide as the step where the image shrinks, their sum 1.
Table filter_table(Lowering& l, const Resample& r, std::size_t k, Expr out, i64 taps) {
  const Expr extent = r.in.extents[r.lead + k];
  const Table table = new_table(l, out, window_of(l, r, k, out, taps), r.dtype);
  const BufferId raw = l.temp("raw", r.dtype, {out, table.window});
  {
    BodyBuilder b(l, l.fresh_body_name(str("{}.filter", l.name())));
    const Expr at = b.dim(out), j = b.dim(table.window);
    const auto c = [&](double value) { return b.constant(r.dtype, value); };
    const Val step = step_of(b, r, k, out, r.dtype), one = c(1), half = c(0.5);
    const Val wide = b.max(step, one);
    const Val reach = b.mul(wide, c(static_cast<double>(taps) / 2));
    const Val centre = b.mul(step, b.add(b.value(at, r.dtype), half));
    const auto whole = [&](Val v) { return b.cast(b.add(v, half), DType::i64); };
    const Val first = b.max(whole(b.sub(centre, reach)), b.integer(DType::i64, 0));
    const Val end = b.min(whole(b.add(centre, reach)), b.value(extent));
    const Val place = b.add(first, b.value(j));
    const Val from_centre = b.add(b.sub(b.cast(place, r.dtype), centre), half);
    const Val weight = filter_weight(b, b.mul(from_centre, b.div(one, wide)), taps);
    const Val inside = b.op(ScalarOp::lt, {place, end});
    b.store(table.places, Exprs{at, j}, b.where(inside, place, b.integer(DType::i64, -1)));
    b.store(raw, Exprs{at, j}, b.where(inside, weight, c(0)));
    b.finish();
  }
  const BufferId total = l.temp("total", r.dtype, {out});
  {
    BodyBuilder b(l, l.fresh_body_name(str("{}.total", l.name())));
    const Expr at = b.dim(out), j = b.reduce_dim(table.window);
    const ops::Tree tree = choose_tree({r.dtype, l.syms.as_const(table.window), false});
    b.store(total, Exprs{at}, b.reduce("sum", b.load(raw, Exprs{at, j}), tree)[0]);
    b.finish();
  }
  BodyBuilder b(l, l.fresh_body_name(str("{}.weights", l.name())));
  const Expr at = b.dim(out), j = b.dim(table.window);
  b.store(table.weights, Exprs{at, j}, b.div(b.load(raw, Exprs{at, j}), b.load(total, Exprs{at})));
  b.finish();
  return table;
}

/// How many bits after the point keep every weight of the table within 16 bits, at most 22.
BufferId precision_of(Lowering& l, const Table& table, DType dtype) {
  const BufferId precision = l.temp("precision", DType::i64, {});
  BodyBuilder b(l, l.fresh_body_name(str("{}.precision", l.name())));
  const Expr i = b.reduce_dim(table.out), j = b.reduce_dim(table.window);
  const ops::Tree tree = choose_tree({dtype, l.syms.as_const(table.window), false});
  const Val largest = b.reduce("max", b.load(table.weights, Exprs{i, j}), tree)[0];
  Val bits = b.integer(DType::i64, 0);
  for (int bit = 1; bit <= 22; ++bit) {
    const Val scaled = b.mul(largest, b.constant(dtype, std::ldexp(1.0, bit)));
    const Val fits =
        b.op(ScalarOp::lt, {b.add(scaled, b.constant(dtype, 0.5)), b.constant(dtype, 32768)});
    bits = b.add(bits, b.cast(fits, DType::i64));
  }
  b.store(precision, {}, bits);
  b.finish();
  return precision;
}

/// One dim: `to` has its size of `table`, else that of `from`.
struct Pass {
  const Access& from;
  BufferId to;
  std::size_t dim;
  Table table;
};

void float_pass(Lowering& l, const Pass& pass, DType dtype) {
  BodyBuilder b(l, l.fresh_body_name(l.name()));
  const Exprs at = b.dims(l.program.buffers[pass.to].shape);
  const Exprs tap = {at[pass.dim], b.reduce_dim(pass.table.window)};
  const Val weight = b.load(pass.table.weights, tap), place = b.load(pass.table.places, tap);
  Exprs point = at;
  point[pass.dim] = b.index(place, pass.from.extents[pass.dim], IndexPolicy::Clamp);
  const Val term = b.mul(b.cast(b.load(pass.from, point), dtype), weight);
  const Val absent = b.op(ScalarOp::lt, {place, b.integer(DType::i64, 0)});
  const ops::Tree tree = choose_tree({dtype, l.syms.as_const(pass.table.window), false});
  b.store(pass.to, at, b.reduce("sum", b.where(absent, b.constant(dtype, 0), term), tree)[0]);
  b.finish();
}

/// The sum of weights of `precision` bits times elements, rounded half up to u8.
void fixed_pass(Lowering& l, const Pass& pass, DType dtype) {
  const BufferId precision = precision_of(l, pass.table, dtype);
  BodyBuilder b(l, l.fresh_body_name(l.name()));
  const auto integer = [&](i64 value) { return b.integer(DType::i64, value); };
  const Exprs at = b.dims(l.program.buffers[pass.to].shape);
  const Exprs tap = {at[pass.dim], b.reduce_dim(pass.table.window)};
  const Val weight = b.load(pass.table.weights, tap);
  const Val unit = b.op(ScalarOp::shl, {integer(1), b.load(precision, {})});
  const Val half = b.op(ScalarOp::copysign, {b.constant(dtype, 0.5), weight});
  const Val fixed = b.cast(b.add(b.mul(weight, b.cast(unit, dtype)), half), DType::i64);
  Exprs point = at;
  point[pass.dim] =
      b.index(b.load(pass.table.places, tap), pass.from.extents[pass.dim], IndexPolicy::Clamp);
  const Val term = b.mul(b.cast(b.load(pass.from, point), DType::i64), fixed);
  const ops::Tree tree = choose_tree({DType::i64, l.syms.as_const(pass.table.window), false});
  const Val sum = b.reduce("sum", term, tree)[0];
  const Val bits = b.load(precision, {});
  const Val half_unit = b.op(ScalarOp::shl, {integer(1), b.sub(bits, integer(1))});
  const Val rounded = b.op(ScalarOp::shr, {b.add(sum, half_unit), bits});
  b.store(pass.to, at, b.min(b.max(rounded, integer(0)), integer(255)));
  b.finish();
}

/// How wide a filter is, in elements of an image that keeps its size.
i64 filter_width(const Node& node) { return node.op.find("cubic") != std::string::npos ? 4 : 2; }

/// Adds each element of `from` to those along the dim that it was made of, times their weights.
void spread_pass(Lowering& l, const Pass& pass, DType dtype) {
  BodyBuilder b(l, l.fresh_body_name(l.name()));
  const Exprs at = b.dims(pass.from.extents);
  const Exprs tap = {at[pass.dim], b.dim(pass.table.window)};
  const Val weight = b.load(pass.table.weights, tap), place = b.load(pass.table.places, tap);
  const Val term = b.mul(b.cast(b.load(pass.from, at), dtype), weight);
  Exprs point = at;
  point[pass.dim] = b.index(place, l.program.buffers[pass.to].shape[pass.dim], IndexPolicy::Clamp);
  const Val absent = b.op(ScalarOp::lt, {place, b.integer(DType::i64, 0)});
  b.store_combining(StoreCombine::Sum, pass.to, point, b.where(absent, b.constant(dtype, 0), term));
  b.finish();
}

/// A temporary that sums begin in.
BufferId zeros(Lowering& l, DType dtype, const Exprs& shape) {
  const BufferId start = l.temp("start", dtype, shape), sums = l.temp("sums", dtype, shape);
  l.fill(start, 0, l.fresh_body_name(str("{}.start", l.name())));
  l.program.buffers[sums].starts = start;
  return sums;
}

}  // namespace

/// The passes of the op itself, each transposed, in the other order.
Status lower_upsample_antialias_backward(Lowering& l, const Node& node, const Args& args) {
  Access from = l.access(args.tensor("grad_output"));
  const DType dtype = compute_dtype(l.dtype_of(from));
  if (!is_float(dtype)) return l.unsupported_case("integer images");
  Access in;
  in.extents = l.type(node.outs[0]).shape;
  const Resample r = resample_args(args, in, dtype);
  std::vector<std::size_t> dims;  // those that change, the first first
  for (std::size_t k = 0; k < r.scales.size(); ++k)
    if (!l.prover.is_equal(in.extents[r.lead + k], from.extents[r.lead + k])) dims.push_back(k);
  if (dims.empty()) {
    l.copy(from, l.result(), l.name());
    return Ok{};
  }
  for (std::size_t k : dims) {
    const std::size_t dim = r.lead + k;
    const Table table = filter_table(l, r, k, from.extents[dim], filter_width(node));
    Exprs shape = from.extents;
    shape[dim] = in.extents[dim];
    const bool is_last = k == dims.back();
    const BufferId to = is_last ? begin_sums(l, node.outs[0]) : zeros(l, dtype, shape);
    spread_pass(l, {from, to, dim, table}, dtype);
    if (is_last) finish_sums(l, node.outs[0], to);
    from = l.whole(to);
  }
  return Ok{};
}

Status lower_separably(Lowering& l, const Node& node, const Resample& r) {
  const bool antialias = node.op.find("_aa") != std::string::npos;
  const i64 taps = filter_width(node);
  const Exprs shape = l.type(node.outs[0]).shape;
  const DType dtype = l.dtype_of(r.in);
  std::vector<std::size_t> dims;  // those that change, the last first
  for (std::size_t k = r.scales.size(); k-- > 0;)
    if (!l.prover.is_equal(r.in.extents[r.lead + k], shape[r.lead + k])) dims.push_back(k);
  const BufferId out = l.result();
  if (dims.empty()) {
    l.copy(r.in, out, l.name());
    return Ok{};
  }
  if (!is_float(dtype) && dtype != DType::u8) return l.unsupported_case("integer images");
  Access from = r.in;
  for (std::size_t k : dims) {
    const Expr size = shape[r.lead + k];
    const Table table =
        antialias ? filter_table(l, r, k, size, taps) : tap_table(l, r, k, size, taps_of(node.op));
    Exprs passed = from.extents;
    passed[r.lead + k] = size;
    const BufferId to = k == dims.back() ? out : l.temp("pass", dtype, passed);
    const Pass pass{from, to, r.lead + k, table};
    if (dtype == DType::u8)
      fixed_pass(l, pass, r.dtype);
    else
      float_pass(l, pass, r.dtype);
    from = l.whole(to);
  }
  return Ok{};
}

}  // namespace coil::lowering
