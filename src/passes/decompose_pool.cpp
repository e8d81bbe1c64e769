// Pooling, padding by mode, and sampling on grids.

#include "graph/rule.h"
#include "passes/composite.h"

namespace coil {
namespace {

Values max_pool(Composite& c) {
  const std::string op = c.op() + "_with_indices";
  return {c.call_all(op, c.args()).at(0)};
}

/// `sizes` of one dim as those of a window of height 1; none stays none.
Exprs widened(Composite& c, std::string_view name, i64 height) {
  Exprs sizes = c.integers(name);
  if (!sizes.empty()) sizes.insert(sizes.begin(), c.n(height));
  return sizes;
}

Values max_pool1d_with_indices(Composite& c) {
  const ValueId image = c.unsqueeze(c.self(), -2);
  Values out =
      c.call_all("max_pool2d_with_indices",
                 {image, widened(c, "kernel_size", 1), widened(c, "stride", 1),
                  widened(c, "padding", 0), widened(c, "dilation", 1), c.flag("ceil_mode")});
  for (ValueId& v : out) v = c.squeeze(v, {c.ndim(v) - 2});
  return out;
}

Values max_pool1d(Composite& c) { return {c.contiguous(max_pool1d_with_indices(c).at(0))}; }

Values adaptive_avg_pool1d(Composite& c) {
  const ValueId image = c.unsqueeze(c.self(), -2);
  const ValueId out = c.call("adaptive_avg_pool2d", {image, widened(c, "output_size", 1)});
  return {c.squeeze(out, {c.ndim(out) - 2})};
}

/// One window over everything is a mean, of whatever other dims; it keeps a channels_last layout.
Values adaptive_avg_pool(Composite& c) {
  const Exprs sizes = c.integers("output_size");
  const i64 spatial = static_cast<i64>(sizes.size()), ndim = c.ndim(c.self());
  for (sym::Expr size : sizes)
    if (!c.is(size, 1)) return {c.call("_" + c.op(), {c.self(), sizes})};
  Dims dims;
  for (i64 d = ndim - spatial; d < ndim; ++d) dims.push_back(d);
  const ValueId out = c.mean(c.self(), dims, KeepDim::Yes);
  if (ndim != spatial + 2 || !c.is_channels_last(c.self())) return {out};
  const sym::Expr channels = c.size(out, 1);
  Exprs strides(static_cast<std::size_t>(ndim), channels);
  strides[1] = c.n(1);
  return {c.call("as_strided", {out, c.shape(out), strides})};
}

Values adaptive_max_pool1d(Composite& c) {
  const ValueId image = c.unsqueeze(c.self(), -2);
  Values out = c.call_all("adaptive_max_pool2d", {image, widened(c, "output_size", 1)});
  for (ValueId& v : out) v = c.squeeze(v, {c.ndim(v) - 2});
  return out;
}

/// Contiguous, whatever the layout of `v`. What negative amounts cut off is not there to go round.
ValueId circular(Composite& c, ValueId v, const Exprs& pad) {
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const i64 dim = c.ndim(v) - 1 - static_cast<i64>(i);
    const sym::Expr zero = c.n(0), before = c.syms.max(pad[2 * i], zero),
                    after = c.syms.max(pad[2 * i + 1], zero);
    const sym::Expr cut = c.syms.sub(before, pad[2 * i]),
                    cut_after = c.syms.sub(after, pad[2 * i + 1]);
    if (!c.is(cut, 0) || !c.is(cut_after, 0))
      v = c.slice(v, dim, cut, c.syms.sub(c.size(v, dim), cut_after));
    const sym::Expr size = c.size(v, dim);
    Values parts;
    if (!c.is(before, 0)) parts.push_back(c.slice(v, dim, c.syms.sub(size, before), size));
    parts.push_back(v);
    if (!c.is(after, 0)) parts.push_back(c.slice(v, dim, c.n(0), after));
    if (parts.size() > 1) v = c.cat(parts, dim);
  }
  return c.contiguous(v);
}

Values pad(Composite& c) {
  const Exprs amounts = c.integers("pad");
  const std::string& mode = c.word("mode");
  if (mode == "constant") {
    const double value = c.has("value") ? c.real("value") : 0;
    return {c.call("constant_pad_nd", {c.self(), amounts, c.scalar(value, c.dtype(c.self()))})};
  }
  if (c.has("value") && c.real("value") != 0) c.fail("mode {} takes no value", mode);
  if (mode == "circular") return {circular(c, c.self(), amounts)};
  const std::string kind = mode == "reflect"     ? "reflection"
                           : mode == "replicate" ? "replication"
                                                 : "";
  if (kind.empty() || amounts.size() % 2 != 0 || amounts.size() > 6)
    c.fail("mode '{}' with {} amounts is not supported", mode, amounts.size());
  return {c.call(str("{}_pad{}d", kind, amounts.size() / 2), {c.self(), amounts})};
}

Values grid_sampler(Composite& c) {
  return {c.call(c.ndim(c.self()) == 5 ? "grid_sampler_3d" : "grid_sampler_2d", c.args())};
}

/// -1 to 1 in `size` steps: of corners, or of centres.
ValueId axis_points(Composite& c, sym::Expr size, bool corners, DType dtype) {
  const std::optional<i64> fixed = c.syms.as_const(size);
  if (!fixed) c.fail("sizes must be fixed");
  if (*fixed <= 1) return c.filled({size}, 0, dtype);
  const ValueId points = c.call("linspace", {-1.0, 1.0, size, dtype});
  if (corners) return points;
  const double count = static_cast<double>(*fixed);
  return c.mul(points, (count - 1) / count);
}

Values affine_grid(Composite& c) {
  const ValueId theta = c.tensor("theta");
  const Exprs size = c.integers("size");
  const bool corners = c.flag("align_corners");
  if (size.size() != 4 && size.size() != 5)
    c.fail("size has {} numbers, but must have 4 or 5", size.size());
  const std::size_t spatial = size.size() - 2;
  Exprs shape(size.begin() + 2, size.end());
  shape.push_back(c.n(1));
  Values columns;
  for (std::size_t i = 0; i < spatial; ++i) {  // x first: the last dim
    Exprs own(spatial + 1, c.n(1));
    own[spatial - 1 - i] = size[size.size() - 1 - i];
    const ValueId points = axis_points(c, size[size.size() - 1 - i], corners, c.dtype(theta));
    columns.push_back(c.expand(c.view(points, own), shape));
  }
  columns.push_back(c.filled(shape, 1, c.dtype(theta)));
  const ValueId base = c.cat(columns, static_cast<i64>(spatial));
  const sym::Expr points = c.product(shape, 0, spatial);
  const Exprs rows = {size[0], points, c.n(static_cast<i64>(spatial) + 1)};
  const ValueId grid = c.expand(c.unsqueeze(c.view(base, {rows[1], rows[2]}), 0), rows);
  Exprs out = {size[0]};
  out.insert(out.end(), size.begin() + 2, size.end());
  out.push_back(c.n(static_cast<i64>(spatial)));
  return {c.view(c.call("bmm", {grid, c.transpose(theta, 1, 2)}), out)};
}

/// Columns of windows: a strided view of the padded image, copied.
Values im2col(Composite& c) {
  const Exprs kernel = c.integers("kernel_size"), dilation = c.integers("dilation");
  const Exprs padding = c.integers("padding"), stride = c.integers("stride");
  ValueId image = c.self();
  const bool has_batch = c.ndim(image) == 4;
  if (!has_batch) image = c.unsqueeze(image, 0);
  sym::Arena& s = c.syms;
  image = c.contiguous(
      c.call("constant_pad_nd", {image, Exprs{padding[1], padding[1], padding[0], padding[0]}}));
  const Exprs shape = c.shape(image), steps = c.type(image).strides;
  Exprs counts;
  for (std::size_t i = 0; i < 2; ++i) {
    const sym::Expr reach = s.add(s.mul(dilation[i], s.sub(kernel[i], c.n(1))), c.n(1));
    counts.push_back(s.add(s.floordiv(s.sub(shape[i + 2], reach), stride[i]), c.n(1)));
  }
  const Exprs window_shape = {shape[0], shape[1], kernel[0], kernel[1], counts[0], counts[1]};
  const Exprs window_strides = {steps[0],
                                steps[1],
                                s.mul(dilation[0], steps[2]),
                                s.mul(dilation[1], steps[3]),
                                s.mul(stride[0], steps[2]),
                                s.mul(stride[1], steps[3])};
  const ValueId windows = c.call("as_strided", {image, window_shape, window_strides});
  const ValueId out =
      c.reshape(c.call("clone", {windows, MemoryFormat::Contiguous}),
                {shape[0], c.product(window_shape, 1, 4), c.product(window_shape, 4, 6)});
  return {has_batch ? out : c.squeeze(out, {0})};
}

/// The first `dims` sizes of two tensors agree.
void sizes_agree(Composite& c, ValueId a, ValueId b, i64 dims) {
  if (c.ndim(a) != c.ndim(b)) c.fail("a tensor of {} dims beside one of {}", c.ndim(a), c.ndim(b));
  for (i64 d = 0; d < dims; ++d) {
    const Status same = require_equal(c.builder.graph(), c.size(a, d), c.size(b, d), "sizes");
    if (!same.ok()) c.fail("{}", same.error().message);
  }
}

/// Each window's gradient goes to the place of its largest element.
Values max_pool_backward(Composite& c) {
  const ValueId gradient = c.tensor("grad_output");
  const std::size_t spatial = c.base().find("3d") == std::string_view::npos ? 2 : 3;
  sizes_agree(c, gradient, c.tensor("indices"), c.ndim(gradient));
  sizes_agree(c, gradient, c.tensor("self"), c.ndim(gradient) - static_cast<i64>(spatial));
  const auto in_rows = [&](ValueId v) {
    Exprs shape = c.shape(v);
    if (shape.size() <= spatial) c.fail("the input must have more than {} dims", spatial);
    const std::size_t first = shape.size() - spatial;
    shape[first] = c.product(shape, first, shape.size());
    shape.resize(first + 1);
    return shape;
  };
  const auto flat = [&](ValueId v) { return c.reshape(v, in_rows(v)); };
  const ValueId zeros = c.filled(in_rows(c.tensor("self")), 0, c.dtype(gradient));
  const ValueId sums =
      c.call("scatter_add", {zeros, c.n(-1), flat(c.tensor("indices")), flat(gradient)});
  const ValueId out = c.view(sums, c.shape(c.tensor("self")));
  const bool is_plane = c.base() == "adaptive_max_pool2d_backward";
  if (!is_plane || !suggests_channels_last(c.builder.graph(), Type(c.type(c.tensor("self")))))
    return {out};
  return {c.call("clone", {out, MemoryFormat::ChannelsLast})};
}

/// Elements go to their places in the plane; all others are 0.
Values max_unpool(Composite& c) {
  const Exprs size = c.integers("output_size");
  const ValueId self = c.self();
  Exprs shape = c.shape(self), rows = shape;
  if (shape.size() <= size.size()) c.fail("the input must have more than {} dims", size.size());
  const std::size_t lead = shape.size() - size.size();
  std::copy(size.begin(), size.end(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
  rows.resize(lead);
  Exprs plane = rows;
  rows.push_back(c.product(c.shape(self), lead, shape.size()));
  plane.push_back(c.product(shape, lead, shape.size()));
  const ValueId zeros = c.filled(plane, 0, c.dtype(self));
  const ValueId places = c.reshape(c.tensor("indices"), rows);
  const ValueId out =
      c.view(c.call("scatter.src", {zeros, c.n(-1), places, c.reshape(self, rows)}), shape);
  const bool is_plane = size.size() == 2;
  if (!is_plane || !suggests_channels_last(c.builder.graph(), Type(c.type(self)))) return {out};
  return {c.call("clone", {out, MemoryFormat::ChannelsLast})};
}

constexpr DecompositionRow kRows[] = {
    {"adaptive_max_pool2d_backward", max_pool_backward},
    {"adaptive_max_pool3d_backward", max_pool_backward},
    {"fractional_max_pool2d_backward", max_pool_backward},
    {"fractional_max_pool3d_backward", max_pool_backward},
    {"max_unpool2d", max_unpool},
    {"max_unpool3d", max_unpool},
    {"max_pool2d_with_indices_backward", max_pool_backward},
    {"max_pool3d_with_indices_backward", max_pool_backward},
    {"max_pool1d", max_pool1d},
    {"max_pool1d_with_indices", max_pool1d_with_indices},
    {"max_pool2d", max_pool},
    {"max_pool3d", max_pool},
    {"adaptive_avg_pool1d", adaptive_avg_pool1d},
    {"adaptive_avg_pool2d", adaptive_avg_pool},
    {"adaptive_avg_pool3d", adaptive_avg_pool},
    {"adaptive_max_pool1d", adaptive_max_pool1d},
    {"pad", pad},
    {"grid_sampler", grid_sampler},
    {"affine_grid_generator", affine_grid},
    {"im2col", im2col},
};

}  // namespace

std::span<const DecompositionRow> pool_decompositions() { return kRows; }

}  // namespace coil
