// Gradients of average pooling and of unfolding: each input element gathers from the windows that
// hold it, so that no two places add to one element.

#include "base/check.h"
#include "lower/pool.h"
#include "lower/tree.h"

namespace coil::lowering {
namespace {

/// The loops over the windows that hold an input element: input dims outside, windows reduced.
struct Holders {
  Exprs at;       // of the input
  Exprs window;   // the numbers of a window, spatial dims only; may be none that exists
  Exprs element;  // the reduce variables
  Expr exists;    // whether there is such a window, and it holds the element
};

Holders input_loops(BodyBuilder& b, const Exprs& shape) {
  Holders h;
  h.at = b.dims(shape);
  h.exists = b.syms().constant(1);
  return h;
}

/// Windows of a fixed kernel: the element is their r-th.
Holders fixed_holders(BodyBuilder& b, const Exprs& shape, std::span<const Expr> counts,
                      const PoolShape& p) {
  Lowering& l = b.lowering();
  sym::Arena& syms = l.syms;
  Holders h = input_loops(b, shape);
  const std::size_t n = p.kernel.size(), lead = shape.size() - n;
  for (std::size_t k = 0; k < n; ++k) {
    const Expr r = b.reduce_dim(syms.constant(p.kernel[k])), stride = syms.constant(p.stride[k]);
    const Expr start = syms.sub(syms.add(h.at[lead + k], syms.constant(p.padding[k])),
                                syms.mul(r, syms.constant(p.dilation[k])));
    const Expr window = syms.floordiv(start, stride);
    const Expr whole = syms.eq(syms.mod(start, stride), syms.constant(0));
    if (p.stride[k] != 1) h.exists = syms.logical_and(h.exists, whole);
    h.exists = syms.logical_and(h.exists, within(l, window, counts[k]));
    h.window.push_back(window);
    h.element.push_back(r);
  }
  return h;
}

/// Adaptive windows: those from floor(y*O/I) on that begin at y or before.
Holders adaptive_holders(BodyBuilder& b, const Exprs& shape, std::span<const Expr> counts) {
  sym::Arena& syms = b.syms();
  Holders h = input_loops(b, shape);
  const Expr one = syms.constant(1);
  const std::size_t lead = shape.size() - counts.size();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Expr size = shape[lead + k], y = h.at[lead + k];
    const Expr r = b.reduce_dim(syms.add(syms.ceildiv(counts[k], size), one));
    const Expr window = syms.add(syms.floordiv(syms.mul(y, counts[k]), size), r);
    const Expr end = syms.ceildiv(syms.mul(syms.add(y, one), counts[k]), size);
    h.exists = syms.logical_and(h.exists, syms.lt(window, end));
    h.window.push_back(window);
    h.element.push_back(r);
  }
  return h;
}

ops::Tree holders_tree(const Holders& h, sym::Arena& syms, DType dtype) {
  return choose_tree({dtype, syms.as_const(syms.var(h.element.back()).extent), false});
}

/// The gradient of the window at `point`, or 0 where there is none.
Val gathered(BodyBuilder& b, const Holders& h, const Access& gradient, const Exprs& point) {
  const DType dtype = b.lowering().dtype_of(gradient);
  const Val loaded = b.load_if(b.test(h.exists), ops::Scalar::of_int(dtype, 0), gradient, point);
  return b.cast(loaded, compute_dtype(dtype));
}

void store_sum(BodyBuilder& b, const Holders& h, Val element) {
  const DType dtype = b.dtype(element);
  const Val sum = b.reduce("sum", element, holders_tree(h, b.syms(), dtype))[0];
  b.store(b.lowering().result(), h.at, sum);
  b.finish();
}

Exprs window_point(const Holders& h) {
  Exprs point(h.at.begin(), h.at.end() - static_cast<std::ptrdiff_t>(h.window.size()));
  point.insert(point.end(), h.window.begin(), h.window.end());
  return point;
}

}  // namespace

Status lower_avg_pool_backward(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access gradient = l.access(args.tensor("grad_output"));
  const std::size_t n = spatial_dims(node.op);
  const PoolShape p = pool_shape(args, n);
  const Exprs shape = l.type(node.outs[0]).shape;
  BodyBuilder b(l, l.name());
  const Holders h = fixed_holders(b, shape, std::span(gradient.extents).last(n), p);
  Exprs begin;
  for (std::size_t k = 0; k < n; ++k)
    begin.push_back(
        syms.sub(syms.mul(h.window[k], syms.constant(p.stride[k])), syms.constant(p.padding[k])));
  const Expr size = args.has("divisor_override")
                        ? args.size("divisor_override")
                        : window_size(l, args, std::span(shape).last(n), begin, p);
  const Val g = gathered(b, h, gradient, window_point(h));
  // Where there is no window, its size may be 0.
  const Val divisor = b.max(b.value(size), b.integer(DType::i64, 1));
  const Val signed_divisor = args.has("divisor_override") ? b.value(size) : divisor;
  store_sum(b, h, quotient(b, g, b.cast(signed_divisor, b.dtype(g))));
  return Ok{};
}

Status lower_adaptive_avg_pool_backward(Lowering& l, const Node& node, const Args& args) {
  const Access gradient = l.access(args.tensor("grad_output"));
  const std::size_t n = spatial_dims(node.op);
  const Exprs shape = l.type(node.outs[0]).shape;
  const std::span<const Expr> counts = std::span(gradient.extents).last(n);
  BodyBuilder b(l, l.name());
  const Holders h = adaptive_holders(b, shape, counts);
  Val g = gathered(b, h, gradient, window_point(h));
  for (std::size_t k = 0; k < n; ++k) {
    const Expr size = shape[shape.size() - n + k];
    const Expr length = l.syms.sub(adaptive_end(l.syms, h.window[k], size, counts[k]),
                                   adaptive_begin(l.syms, h.window[k], size, counts[k]));
    g = b.div(g, b.value(length, b.dtype(g)));
  }
  store_sum(b, h, g);
  return Ok{};
}

/// The sum of the columns' elements that stand for one element of the image.
Status lower_col2im(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access columns = l.access(args.tensor("self"));
  const PoolShape p = pool_shape(args, 2);
  const Exprs shape = l.type(node.outs[0]).shape;
  const std::size_t lead = shape.size() - 2;
  Exprs counts;
  for (std::size_t k = 0; k < 2; ++k) {
    const i64 reach = p.dilation[k] * (p.kernel[k] - 1) + 1;
    const Expr room =
        syms.sub(syms.add(shape[lead + k], syms.constant(2 * p.padding[k])), syms.constant(reach));
    counts.push_back(syms.add(syms.floordiv(room, syms.constant(p.stride[k])), syms.constant(1)));
  }
  BodyBuilder b(l, l.name());
  const Holders h = fixed_holders(b, shape, counts, p);
  Exprs point(h.at.begin(), h.at.end() - 3);
  Expr row = h.at[lead - 1];
  for (std::size_t k = 0; k < 2; ++k)
    row = syms.add(syms.mul(row, syms.constant(p.kernel[k])), h.element[k]);
  point.push_back(row);
  point.push_back(syms.add(syms.mul(h.window[0], counts[1]), h.window[1]));
  store_sum(b, h, gathered(b, h, columns, point));
  return Ok{};
}

}  // namespace coil::lowering
