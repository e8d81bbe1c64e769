// Max pooling over windows whose places come from random samples, which are an argument.
// (Graham, "Fractional max-pooling", 2014.)

#include "base/check.h"
#include "lower/pool.h"
#include "lower/tree.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// Where window `at` along a dim begins: trunc((at + u) a) - trunc(u a), a = (size - kernel) /
/// (outputs - 1), and the last one at the end.
Val window_begin(BodyBuilder& b, Val sample, Expr at, Expr room, Expr outputs) {
  sym::Arena& syms = b.syms();
  const DType dtype = b.dtype(sample);
  const Expr last = syms.sub(outputs, syms.constant(1));
  const Val gaps = b.value(syms.max(last, syms.constant(1)), dtype);
  const Val step = b.div(b.value(room, dtype), gaps);
  const auto whole = [&](Val v) { return b.cast(v, DType::i64); };
  const Val from = whole(b.mul(b.add(b.value(at, dtype), sample), step));
  const Val begin = b.sub(from, whole(b.mul(sample, step)));
  return b.where(b.test(syms.eq(at, last)), b.value(room), begin);
}

struct Fractional {
  Access in, samples;
  std::size_t n, lead;
  std::vector<i64> kernel;
  Exprs shape;
};

/// Where the window `at` begins in spatial dim k.
Val begin_of(BodyBuilder& b, const Fractional& f, const Exprs& at, std::size_t k) {
  sym::Arena& syms = b.syms();
  const Expr image = f.lead == 2 ? at[0] : syms.constant(0);
  // The samples of a plane are for its last dim first, those of a volume for its first.
  const std::size_t number = f.n == 2 ? 1 - k : k;
  const Exprs which = {image, at[f.lead - 1], syms.constant(static_cast<i64>(number))};
  const DType dtype = compute_dtype(b.lowering().dtype_of(f.samples));
  const Val sample = b.cast(b.load(f.samples, which), dtype);
  const Expr room = syms.sub(f.in.extents[f.lead + k], syms.constant(f.kernel.at(k)));
  return window_begin(b, sample, at[f.lead + k], room, f.shape[f.lead + k]);
}

}  // namespace

Status lower_fractional_max_pool(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  Fractional f;
  f.in = l.access(args.tensor("self"));
  f.samples = l.access(args.tensor("random_samples"));
  f.n = spatial_dims(node.op);
  f.lead = f.in.extents.size() - f.n;
  f.kernel = args.integers("kernel_size");
  f.shape = l.type(node.outs[0]).shape;
  const DType compute = compute_dtype(l.dtype_of(f.in));
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(f.shape);
  Exprs element, point = at;
  for (i64 k : f.kernel) element.push_back(b.reduce_dim(syms.constant(k)));
  for (std::size_t k = 0; k < f.n; ++k) {
    const Val position = b.add(begin_of(b, f, at, k), b.value(element[k]));
    point[f.lead + k] = b.index(position, f.in.extents[f.lead + k], IndexPolicy::Clamp);
  }
  const ops::Tree tree = choose_tree({compute, f.kernel.back(), false});
  const std::vector<Val> best =
      b.reduce("last_nan_argmax", b.cast(b.load(f.in, point), compute), tree);
  const std::vector<Val> digits = window_digits(b, best[1], element);
  Val flat = b.integer(DType::i64, 0);
  for (std::size_t k = 0; k < f.n; ++k) {
    const Val position = b.add(begin_of(b, f, at, k), digits[k]);
    flat = b.add(b.mul(flat, b.value(f.in.extents[f.lead + k])), position);
  }
  b.store(l.result(node.outs[0]), at, best[0]);
  b.store(l.result(node.outs[1]), at, flat);
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
