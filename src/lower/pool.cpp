// Pooling: a reduction over the window of each result element.

#include <limits>

#include "base/check.h"
#include "lower/pool.h"
#include "lower/tree.h"

namespace coil::lowering {

using ops::ScalarOp;

namespace {

std::vector<i64> window_arg(const Args& args, std::string_view name, std::size_t n,
                            const std::vector<i64>& fallback) {
  std::vector<i64> v = args.has(name) ? args.integers(name) : fallback;
  if (v.empty()) v = fallback;
  if (v.size() == 1) v.assign(n, v[0]);
  return v;
}

/// The loops of a pooling body over the last dims: result dims outside, window dims reduced.
struct Windows {
  Exprs at;       // of the result
  Exprs in;       // of the operand, at the window's element; may lie outside of it
  Exprs begin;    // first input position of each window, spatial dims only
  Exprs element;  // the reduce variables
  Expr inside;    // whether `in` is a real element of the window
};

}  // namespace

PoolShape pool_shape(const Args& args, std::size_t n) {
  PoolShape p;
  p.kernel = window_arg(args, "kernel_size", n, {});
  p.stride = window_arg(args, "stride", n, p.kernel);
  p.padding = window_arg(args, "padding", n, std::vector<i64>(n, 0));
  p.dilation = window_arg(args, "dilation", n, std::vector<i64>(n, 1));
  return p;
}

Expr within(Lowering& l, Expr position, Expr extent) {
  sym::Arena& syms = l.syms;
  Expr inside = syms.constant(1);
  const Expr low = syms.le(syms.constant(0), position), high = syms.lt(position, extent);
  if (!l.prover.is_true(low)) inside = syms.logical_and(inside, low);
  if (!l.prover.is_true(high)) inside = syms.logical_and(inside, high);
  return inside;
}

Expr adaptive_begin(sym::Arena& syms, Expr o, Expr size, Expr outputs) {
  return syms.floordiv(syms.mul(o, size), outputs);
}

Expr adaptive_end(sym::Arena& syms, Expr o, Expr size, Expr outputs) {
  return syms.ceildiv(syms.mul(syms.add(o, syms.constant(1)), size), outputs);
}

std::vector<Val> window_digits(BodyBuilder& b, Val position, std::span<const Expr> element) {
  std::vector<Val> digits(element.size());
  for (std::size_t k = element.size(); k-- > 0;) {
    const Val extent = b.value(b.syms().var(element[k]).extent);
    digits[k] = k ? b.op(ScalarOp::remainder, {position, extent}) : position;
    position = b.op(ScalarOp::floordiv, {position, extent});
  }
  return digits;
}

std::size_t spatial_dims(std::string_view op) {
  const std::size_t digit = op.find_first_of("123");
  COIL_CHECK(digit != std::string_view::npos, "{} has no number of dims in its name", op);
  return static_cast<std::size_t>(op[digit] - '0');
}

BufferId begin_sums(Lowering& l, ValueId out) {
  const Type& type = l.type(out);
  const BufferId start = l.temp("start", compute_dtype(type.dtype), type.shape);
  l.fill(start, 0, str("{}.start", l.name()));
  if (!is_narrow_float(type.dtype)) return l.result_from(out, start);
  const BufferId sums = l.temp("sums", compute_dtype(type.dtype), type.shape);
  l.program.buffers[sums].starts = start;
  return sums;
}

void finish_sums(Lowering& l, ValueId out, BufferId sums) {
  if (is_narrow_float(l.type(out).dtype))
    l.copy(l.whole(sums), l.result(out), str("{}.rounded", l.name()));
}

namespace {

Windows fixed_windows(BodyBuilder& b, const Access& in, const Exprs& out_shape,
                      const PoolShape& p) {
  Lowering& l = b.lowering();
  sym::Arena& syms = l.syms;
  Windows w;
  w.at = b.dims(out_shape);
  w.in = w.at;
  w.inside = syms.constant(1);
  const std::size_t n = p.kernel.size(), lead = out_shape.size() - n;
  for (std::size_t k = 0; k < n; ++k) {
    const Expr r = b.reduce_dim(syms.constant(p.kernel[k]));
    const Expr begin =
        syms.sub(syms.mul(w.at[lead + k], syms.constant(p.stride[k])), syms.constant(p.padding[k]));
    const Expr position = syms.add(begin, syms.mul(r, syms.constant(p.dilation[k])));
    w.begin.push_back(begin);
    w.element.push_back(r);
    w.in[lead + k] = position;
    w.inside = syms.logical_and(w.inside, within(l, position, in.extents[lead + k]));
  }
  return w;
}

/// Window o of an adaptive pool covers floor(o*I/O) .. ceil((o+1)*I/O).
Windows adaptive_windows(BodyBuilder& b, const Access& in, const Exprs& out_shape, std::size_t n,
                         Exprs& lengths) {
  Lowering& l = b.lowering();
  sym::Arena& syms = l.syms;
  const Expr one = syms.constant(1);
  Windows w;
  w.at = b.dims(out_shape);
  w.in = w.at;
  w.inside = one;
  const std::size_t lead = out_shape.size() - n;
  for (std::size_t k = 0; k < n; ++k) {
    const Expr size = in.extents[lead + k], outputs = out_shape[lead + k], o = w.at[lead + k];
    const bool even = l.prover.divides(outputs, size) == sym::Answer::Yes;
    const Expr each = syms.floordiv(size, outputs);
    const Expr begin = even ? syms.mul(o, each) : adaptive_begin(syms, o, size, outputs);
    const Expr end = even ? syms.add(begin, each) : adaptive_end(syms, o, size, outputs);
    // An uneven window may begin and end one element further out.
    const Expr most = even ? each : syms.add(syms.ceildiv(size, outputs), one);
    const Expr r = b.reduce_dim(most);
    const Expr position = syms.add(begin, r);
    w.begin.push_back(begin);
    w.element.push_back(r);
    w.in[lead + k] = position;
    if (!even) w.inside = syms.logical_and(w.inside, syms.lt(position, end));
    lengths.push_back(even ? each : syms.sub(end, begin));
  }
  return w;
}

ops::Tree window_tree(const Windows& w, sym::Arena& syms, DType dtype) {
  // A window is short and its rows are apart, whatever the layout.
  return choose_tree({dtype, syms.as_const(syms.var(w.element.back()).extent), false});
}

ops::Scalar smallest_of(DType dtype) {
  if (is_float(dtype))
    return ops::Scalar::of_float(dtype, -std::numeric_limits<double>::infinity());
  return ops::named_combine("max", dtype)->identity[0];
}

/// Stores the largest element of each window and, if it is used, its position in the plane.
void max_of_windows(Lowering& l, const Node& node, BodyBuilder& b, const Access& in,
                    const Windows& w, const std::vector<i64>& dilation) {
  sym::Arena& syms = l.syms;
  const DType dtype = l.dtype_of(in), compute = compute_dtype(dtype);
  const Val loaded = b.load_if(b.test(w.inside), smallest_of(dtype), in, w.in);
  const Val element = b.cast(loaded, compute);
  const ops::Tree tree = window_tree(w, syms, compute);
  const bool positions = l.used(node.outs[1]);
  if (!positions) {
    b.store(l.result(node.outs[0]), w.at, b.reduce("max", element, tree)[0]);
    b.finish();
    return;
  }
  const std::vector<Val> best = b.reduce("last_nan_argmax", element, tree);
  b.store(l.result(node.outs[0]), w.at, best[0]);
  // The place in the window, then the place in the plane. A window of nothing but the smallest
  // value has its place at its first real element.
  const std::size_t n = w.element.size(), lead = w.at.size() - n;
  const std::vector<Val> digits = window_digits(b, best[1], w.element);
  Val flat = b.integer(DType::i64, 0);
  for (std::size_t k = 0; k < n; ++k) {
    const Val step = b.mul(digits[k], b.integer(DType::i64, dilation[k]));
    const Val position = b.max(b.add(b.value(w.begin[k]), step), b.integer(DType::i64, 0));
    flat = b.add(b.mul(flat, b.value(in.extents[lead + k])), position);
  }
  b.store(l.result(node.outs[1]), w.at, flat);
  b.finish();
}

}  // namespace

Status lower_max_pool(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  const PoolShape p = pool_shape(args, spatial_dims(node.op));
  BodyBuilder b(l, l.name());
  const Windows w = fixed_windows(b, in, l.type(node.outs[0]).shape, p);
  max_of_windows(l, node, b, in, w, p.dilation);
  return Ok{};
}

Status lower_adaptive_max_pool(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  BodyBuilder b(l, l.name());
  Exprs lengths;
  const std::size_t n = spatial_dims(node.op);
  const Windows w = adaptive_windows(b, in, l.type(node.outs[0]).shape, n, lengths);
  max_of_windows(l, node, b, in, w, std::vector<i64>(n, 1));
  return Ok{};
}

Expr window_size(Lowering& l, const Args& args, std::span<const Expr> extents,
                 std::span<const Expr> begin, const PoolShape& p) {
  sym::Arena& syms = l.syms;
  const bool with_padding = args.flag("count_include_pad");
  Expr size = syms.constant(1);
  for (std::size_t k = 0; k < p.kernel.size(); ++k) {
    const Expr extent = extents[k];
    const Expr kernel = syms.constant(p.kernel[k]), padding = syms.constant(p.padding[k]);
    const bool whole = !args.flag("ceil_mode") && (with_padding || p.padding[k] == 0);
    if (whole) {
      size = syms.mul(size, kernel);
      continue;
    }
    const Expr padded_end = syms.min(syms.add(begin[k], kernel), syms.add(extent, padding));
    const Expr length =
        with_padding ? syms.sub(padded_end, begin[k])
                     : syms.sub(syms.min(padded_end, extent), syms.max(begin[k], syms.constant(0)));
    size = syms.mul(size, length);
  }
  return size;
}

Val quotient(BodyBuilder& b, Val sum, Val divisor) {
  return is_float(b.dtype(sum)) ? b.div(sum, divisor) : b.op(ScalarOp::truncdiv, {sum, divisor});
}

Status lower_avg_pool(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  const std::size_t n = spatial_dims(node.op);
  const PoolShape p = pool_shape(args, n);
  const DType dtype = l.dtype_of(in), compute = compute_dtype(dtype);
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Windows w = fixed_windows(b, in, l.type(node.outs[0]).shape, p);
  const Val loaded = b.load_if(b.test(w.inside), ops::Scalar::of_int(dtype, 0), in, w.in);
  const Val sum = b.reduce("sum", b.cast(loaded, compute), window_tree(w, l.syms, compute))[0];
  const std::span<const Expr> extents = std::span(in.extents).last(n);
  const Expr size = args.has("divisor_override") ? args.size("divisor_override")
                                                 : window_size(l, args, extents, w.begin, p);
  const Val divisor = b.value(size, compute);
  b.store(out, w.at, quotient(b, sum, divisor));
  b.finish();
  return Ok{};
}

Status lower_adaptive_avg_pool(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  const std::size_t n = spatial_dims(node.op);
  const DType dtype = l.dtype_of(in), compute = compute_dtype(dtype);
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  Exprs lengths;
  const Windows w = adaptive_windows(b, in, l.type(node.outs[0]).shape, n, lengths);
  const Val loaded = b.load_if(b.test(w.inside), ops::Scalar::of_int(dtype, 0), in, w.in);
  Val mean = b.reduce("sum", b.cast(loaded, compute), window_tree(w, l.syms, compute))[0];
  for (Expr length : lengths) mean = b.div(mean, b.value(length, compute));
  b.store(out, w.at, mean);
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
