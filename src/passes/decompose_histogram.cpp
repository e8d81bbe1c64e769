// Counting elements by bins: a bin's number for each element, then sums at these numbers.

#include "passes/composite.h"

namespace coil {
namespace {

/// The edges of one dim's bins, and how many bins.
struct Bins {
  ValueId edges;  // count + 1 values
  sym::Expr count;
};

constexpr double kGap = 0.5, kGapOfHistc = 1;

/// The ends of the range that bins divide: as given, or those of the data. Equal ones are moved
/// apart by `gap` each.
struct Range {
  ValueId low, high;  // 0-d
};

Range data_range(Composite& c, ValueId values, double gap) {
  if (c.is(c.count(values), 0))
    return {c.filled({}, 0, c.dtype(values)), c.filled({}, 1, c.dtype(values))};
  const ValueId low = c.call("min", {values}), high = c.call("max", {values});
  const ValueId half = c.mul(c.to(c.eq(low, high), c.dtype(values)), gap);
  return {c.sub(low, half), c.add(high, half)};
}

Range fixed_range(Composite& c, double low, double high, DType dtype) {
  const double half = low == high ? kGap : 0;
  return {c.filled({}, low - half, dtype), c.filled({}, high + half, dtype)};
}

/// count + 1 equally spaced values, counted from the nearer end.
ValueId even_edges(Composite& c, const Range& range, sym::Expr count) {
  const DType dtype = c.dtype(range.low);
  const sym::Expr points = c.syms.add(count, c.n(1));
  const ValueId place = c.call("arange", {points});
  const ValueId step = c.div(c.sub(range.high, range.low), Arg(count));
  const ValueId from_low = c.add(range.low, c.mul(c.to(place, dtype), step));
  const ValueId back = c.to(c.call("rsub.Scalar", {place, count}), dtype);
  const ValueId from_high = c.sub(range.high, c.mul(back, step));
  const ValueId near_low = c.binary("lt", place, c.syms.floordiv(points, c.n(2)));
  return c.call("where.self", {near_low, from_low, from_high});
}

/// Sums of `amounts` (or counts in i64, where invalid) at the places, those without a bin left out.
ValueId sums_at(Composite& c, ValueId places, ValueId inside, ValueId amounts, sym::Expr count) {
  const ValueId others = c.call("full_like", {places, count});
  const ValueId at = c.call("where.self", {inside, places, others});
  if (!amounts.valid()) amounts = c.call("full_like", {places, c.n(1), DType::i64});
  const ValueId zeros = c.filled({c.syms.add(count, c.n(1))}, 0, c.dtype(amounts));
  return c.slice(c.call("scatter_add", {zeros, c.n(0), at, amounts}), 0, c.n(0), count);
}

ValueId both(Composite& c, ValueId a, ValueId b) { return c.call("logical_and", {a, b}); }

/// Places by the position within the range, without a look at the edges.
Values histc(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const ValueId flat = c.reshape(c.self(), {c.n(-1)});
  const ValueId values = c.to(flat, compute_dtype(dtype));
  const double low = c.real("min"), high = c.real("max");
  const sym::Expr count = c.integer("bins");
  const Range range =
      low == high ? data_range(c, values, kGapOfHistc) : fixed_range(c, low, high, c.dtype(values));
  const ValueId width = c.sub(range.high, range.low);
  const ValueId place = c.div(c.mul(c.sub(values, range.low), Arg(count)), width);
  const ValueId inside =
      both(c, c.binary("ge", values, range.low), c.binary("le", values, range.high));
  const ValueId last = c.call("clamp_max", {c.to(place, DType::i64), c.syms.sub(count, c.n(1))});
  return {c.to(sums_at(c, last, inside, ValueId(), count), dtype)};
}

/// The bin of each value: bins hold their left edge, the last one both.
struct Placed {
  ValueId place, inside;
};
Placed placed(Composite& c, ValueId values, const Bins& bins) {
  const ValueId above = c.call("bucketize.Tensor", {values, bins.edges, false, true});
  const ValueId place = c.call("clamp_max", {c.sub(above, c.n(1)), c.syms.sub(bins.count, c.n(1))});
  const ValueId first = c.select(bins.edges, 0, c.n(0));
  const ValueId last = c.select(bins.edges, 0, bins.count);
  return {place, both(c, c.binary("ge", values, first), c.binary("le", values, last))};
}

/// Columns of the data, one for each dim of the histogram.
Values columns_of(Composite& c, i64 dims) {
  const ValueId rows = c.reshape(c.self(), {c.n(-1), c.n(dims)});
  Values columns;
  for (i64 d = 0; d < dims; ++d) columns.push_back(c.select(rows, 1, c.n(d)));
  return columns;
}

/// The histogram over all dims, row-major; with `density` an integral of 1.
ValueId histogram_of(Composite& c, const Values& columns, const std::vector<Bins>& bins) {
  const DType dtype = c.dtype(c.self());
  ValueId place, inside;
  Exprs shape;
  sym::Expr count = c.n(1);
  for (std::size_t d = 0; d < bins.size(); ++d) {
    const Placed p = placed(c, columns[d], bins[d]);
    place = place.valid() ? c.add(c.mul(place, bins[d].count), p.place) : p.place;
    inside = inside.valid() ? both(c, inside, p.inside) : p.inside;
    shape.push_back(bins[d].count);
    count = c.syms.mul(count, bins[d].count);
  }
  ValueId amounts;
  if (c.has("weight")) amounts = c.reshape(c.tensor("weight"), {c.n(-1)});
  ValueId histogram = c.view(c.to(sums_at(c, place, inside, amounts, count), dtype), shape);
  if (!c.flag("density")) return histogram;
  histogram = c.div(histogram, c.sum(histogram));
  for (std::size_t d = 0; d < bins.size(); ++d) {
    Exprs along(bins.size(), c.n(1));
    along[d] = bins[d].count;
    const ValueId widths = c.call("diff", {bins[d].edges});
    histogram = c.div(histogram, c.view(widths, along));
  }
  return histogram;
}

/// Bins of `counts`, over the argument range or the data's.
std::vector<Bins> even_bins(Composite& c, const Values& columns, const Exprs& counts) {
  std::vector<double> ends;
  if (c.has("range")) ends = std::get<std::vector<double>>(c.arg("range"));
  std::vector<Bins> bins;
  for (std::size_t d = 0; d < columns.size(); ++d) {
    const Range range =
        ends.empty() ? data_range(c, columns[d], kGap)
                     : fixed_range(c, ends.at(2 * d), ends.at(2 * d + 1), c.dtype(columns[d]));
    bins.push_back({even_edges(c, range, counts[d]), counts[d]});
  }
  return bins;
}

std::vector<Bins> given_bins(Composite& c, const Values& edges) {
  std::vector<Bins> bins;
  for (ValueId e : edges) bins.push_back({e, c.syms.sub(c.count(e), c.n(1))});
  return bins;
}

Values histogram(Composite& c) {
  const Values columns = columns_of(c, 1);
  const std::vector<Bins> bins = c.op() == "histogram.bins_tensor"
                                     ? given_bins(c, {c.tensor("bins")})
                                     : even_bins(c, columns, {c.integer("bins")});
  const ValueId edges = c.call("clone", {bins[0].edges, MemoryFormat::Contiguous});
  return {histogram_of(c, columns, bins), edges};
}

Values histogramdd_bin_edges(Composite& c) {
  const Exprs counts = c.integers("bins");
  const Values columns = columns_of(c, static_cast<i64>(counts.size()));
  Values edges;
  for (const Bins& bins : even_bins(c, columns, counts)) edges.push_back(bins.edges);
  return edges;
}

Values histogramdd(Composite& c) {
  if (c.op() == "_histogramdd_from_bin_tensors") {
    const Values edges = c.tensors("bins");
    return {histogram_of(c, columns_of(c, static_cast<i64>(edges.size())), given_bins(c, edges))};
  }
  const Exprs counts = c.integers("bins");
  const Values columns = columns_of(c, static_cast<i64>(counts.size()));
  return {histogram_of(c, columns, even_bins(c, columns, counts))};
}

/// As many sums as the largest element asks for.
Values bincount(Composite& c) {
  const ValueId places = c.to(c.self(), DType::i64);
  const ValueId none = c.call("full", {Exprs{c.n(1)}, c.n(-1), DType::i64});
  const ValueId largest = c.call("max", {c.cat({places, none}, 0)});
  const sym::Expr needed = c.syms.add(c.type(c.call("item", {largest})).expr, c.n(1));
  const sym::Expr count = c.syms.max(needed, c.syms.max(c.integer("minlength"), c.n(0)));
  ValueId amounts;
  if (c.has("weights")) {
    amounts = c.tensor("weights");
    if (c.dtype(amounts) != DType::f32) amounts = c.to(amounts, DType::f64);
  } else {
    amounts = c.call("full_like", {places, c.n(1)});
  }
  const ValueId zeros = c.filled({count}, 0, c.dtype(amounts));
  return {c.call("scatter_add", {zeros, c.n(0), places, amounts})};
}

constexpr DecompositionRow kRows[] = {
    {"histc", histc},
    {"histogram.bin_ct", histogram},
    {"histogram.bins_tensor", histogram},
    {"_histogramdd_bin_edges", histogramdd_bin_edges},
    {"_histogramdd_from_bin_cts", histogramdd},
    {"_histogramdd_from_bin_tensors", histogramdd},
    {"bincount", bincount},
};

}  // namespace

std::span<const DecompositionRow> histogram_decompositions() { return kRows; }

}  // namespace coil
