// embedding_bag and its gradients: rows of a table, reduced by bags of indices. Positions that do
// not count (the padding index) go to one bag more, which is cut off.

#include "graph/rules.h"
#include "passes/composite.h"

namespace coil {
namespace {

constexpr i64 kSum = 0, kMean = 1, kMax = 2;

/// f32 for f16 and bf16: sums are rounded once.
DType sum_dtype(DType dtype) { return is_narrow_float(dtype) ? DType::f32 : dtype; }

/// The bag of each position.
ValueId bag_of_position(Composite& c, ValueId indices, ValueId offsets) {
  return c.sub(starts_before(c, offsets, c.size(indices, 0)), c.n(1));
}

bool has_padding(Composite& c) { return c.fixed("padding_idx") >= 0; }

/// `place`, or `nowhere` for the positions of the padding index.
ValueId without_padding(Composite& c, ValueId place, sym::Expr nowhere) {
  if (!has_padding(c)) return place;
  const ValueId padded = c.eq(c.tensor("indices"), c.integer("padding_idx"));
  return c.call("where.ScalarSelf", {padded, nowhere, place});
}

ValueId zeros_of(Composite& c, sym::Expr rows, ValueId like, DType dtype) {
  Exprs shape = c.shape(like);
  shape[0] = rows;
  return c.filled(shape, 0, dtype);
}

/// `rows` added up by `place`, which is 0..count.
ValueId summed(Composite& c, ValueId rows, ValueId place, sym::Expr count) {
  const ValueId zeros = zeros_of(c, c.syms.add(count, c.n(1)), rows, c.dtype(rows));
  return c.slice(c.call("index_add", {zeros, c.n(0), place, rows}), 0, c.n(0), count);
}

ValueId times_rows(Composite& c, ValueId rows, ValueId factors) {
  return c.mul(rows, c.unsqueeze(c.to(factors, c.dtype(rows)), 1));
}

ValueId over_rows(Composite& c, ValueId rows, ValueId divisors) {
  return c.div(rows, c.unsqueeze(c.to(divisors, c.dtype(rows)), 1));
}

/// The largest of each bag's rows, 0 for none, and which row of the table it comes from.
struct Largest {
  ValueId values, from;
};

Largest largest(Composite& c, ValueId rows, ValueId place, sym::Expr bags) {
  const sym::Expr more = c.syms.add(bags, c.n(1));
  const ValueId zeros = zeros_of(c, more, rows, c.dtype(rows));
  const ValueId found =
      c.call("index_reduce", {zeros, c.n(0), place, rows, std::string("amax"), false});
  // The first position of the bag that holds its largest value.
  const ValueId indices = c.to(c.tensor("indices"), DType::i64);
  const sym::Expr count = c.size(indices, 0);
  const ValueId best = c.call("index_select", {found, c.n(0), place});
  const ValueId hit = c.call("logical_or", {c.eq(rows, best), c.call("isnan", {rows})});
  const ValueId line = c.call("arange.start_step", {c.n(0), count, c.n(1), DType::i64});
  const ValueId position = c.call("where.ScalarOther", {hit, c.unsqueeze(line, 1), count});
  Exprs shape = c.shape(zeros);
  const ValueId behind = c.call("full", {shape, count, DType::i64});
  const ValueId first =
      c.call("index_reduce", {behind, c.n(0), place, position, std::string("amin"), true});
  const ValueId padded = c.cat({indices, c.filled({c.n(1)}, 0, DType::i64)}, 0);
  const ValueId from = c.call("index.Tensor", {padded, Values{c.slice(first, 0, c.n(0), bags)}});
  return {c.slice(found, 0, c.n(0), bags), from};
}

/// Whether eager takes the path that leaves the bags of positions out of its results.
bool leaves_out_positions(Composite& c, ValueId weight) {
  const auto is_dense = [&](ValueId v) {
    return c.syms.is_const(c.type(v).strides.back(), 1) || c.is(c.shape(v).back(), 1);
  };
  const ValueId factors = c.tensor("per_sample_weights");
  const DType dtype = c.dtype(weight);
  return c.fixed("mode") == kSum && !has_padding(c) && is_dense(weight) &&
         (dtype == DType::f32 || dtype == DType::f16) && (!factors.valid() || is_dense(factors));
}

ValueId copied(Composite& c, ValueId v) { return c.call("clone", {v, MemoryFormat::Contiguous}); }

/// Output, bag of each position, size of each bag (a sum needs none: 0), and for max the rows of
/// the table, else the sizes again.
Values embedding_bag(Composite& c) {
  const ValueId weight = c.tensor("weight"), indices = c.tensor("indices");
  const ValueId offsets = c.tensor("offsets");
  if (c.ndim(weight) != 2 || c.ndim(indices) != 1 || c.ndim(offsets) != 1)
    c.fail("takes a table and a line of indices and offsets");
  const bool has_end = c.flag("include_last_offset");
  const sym::Expr bags = c.syms.sub(c.size(offsets, 0), c.n(has_end ? 1 : 0));
  const i64 mode = c.fixed("mode");
  const DType dtype = c.dtype(weight), whole = c.dtype(offsets);
  const ValueId bag = bag_of_position(c, indices, offsets);
  const ValueId place = without_padding(c, bag, bags);
  ValueId rows = c.call("index_select", {weight, c.n(0), indices});
  const ValueId sizes = summed(c, c.filled(c.shape(bag), 1, DType::i64), place, bags);
  ValueId out, from;
  if (mode == kMax) {
    const Largest best = largest(c, rows, place, bags);
    out = copied(c, best.values);
    from = c.to(best.from, whole);
  } else {
    rows = c.to(rows, sum_dtype(dtype));
    if (c.has("per_sample_weights")) rows = times_rows(c, rows, c.tensor("per_sample_weights"));
    out = summed(c, rows, place, bags);
    if (mode == kMean) out = over_rows(c, out, c.call("clamp_min", {sizes, c.n(1)}));
    out = mode == kMean || dtype != c.dtype(out) ? c.to(out, dtype) : copied(c, out);
  }
  ValueId counts = mode == kSum ? c.filled({bags}, 0, whole) : c.to(sizes, whole);
  if (mode != kMax) from = copied(c, counts);
  if (c.op() == "_embedding_bag_forward_only" && has_end)
    counts = c.cat({counts, c.filled({c.n(1)}, 0, whole)}, 0);
  const ValueId positions =
      leaves_out_positions(c, weight) ? c.filled({c.n(0)}, 0, whole) : c.to(bag, whole);
  return {out, copied(c, positions), copied(c, counts), from};
}

/// Gradient of the table where each bag's largest elements come from `maximum_indices`.
ValueId largest_backward(Composite& c, sym::Expr rows) {
  const ValueId grad = c.tensor("grad");
  const ValueId filled = c.call("gt.Scalar", {c.unsqueeze(c.tensor("bag_size"), 1), c.n(0)});
  const ValueId counted = c.where(filled, grad, 0);
  const ValueId zeros = zeros_of(c, rows, grad, c.dtype(grad));
  const ValueId from = c.to(c.tensor("maximum_indices"), DType::i64);
  return c.call("scatter_add", {zeros, c.n(0), from, counted});
}

Values embedding_bag_dense_backward(Composite& c) {
  const sym::Expr count = c.integer("num_weights");
  const i64 mode = c.fixed("mode");
  const ValueId grad = c.tensor("grad");
  if (c.ndim(grad) != 2) c.fail("the gradient is {}, no matrix", text(c.syms, c.type(grad)));
  if (mode == kMax && c.is(c.size(grad, 1), 0)) return {zeros_of(c, count, grad, c.dtype(grad))};
  if (mode == kMax) return {largest_backward(c, count)};
  const ValueId indices = c.tensor("indices"), bag = c.tensor("offset2bag");
  const DType dtype = c.dtype(c.tensor("grad"));
  ValueId rows = c.call("index_select", {c.tensor("grad"), c.n(0), bag});
  rows = c.to(rows, sum_dtype(dtype));
  const auto of_bag = [&](ValueId v) { return c.call("index_select", {v, c.n(0), bag}); };
  if (mode == kMean)
    rows = over_rows(c, rows, of_bag(c.call("clamp_min", {c.tensor("bag_size"), c.n(1)})));
  if (c.has("per_sample_weights")) rows = times_rows(c, rows, c.tensor("per_sample_weights"));
  if (c.flag("scale_grad_by_freq")) {
    const ValueId used = summed(c, c.filled(c.shape(indices), 1, DType::i64), indices, count);
    rows = over_rows(c, rows, c.call("index_select", {used, c.n(0), indices}));
  }
  const ValueId place = without_padding(c, c.to(indices, DType::i64), count);
  const ValueId out = summed(c, rows, place, count);
  return {dtype == c.dtype(out) ? copied(c, out) : c.to(out, dtype)};
}

/// The bags of positions may have been left out.
Values embedding_bag_backward(Composite& c) {
  if (c.flag("sparse")) c.fail("sparse gradients are not supported");
  ValueId bag = c.tensor("offset2bag");
  if (c.is(c.count(bag), 0)) bag = bag_of_position(c, c.tensor("indices"), c.tensor("offsets"));
  return {
      c.call("_embedding_bag_dense_backward",
             {c.tensor("grad"), c.tensor("indices"), bag, c.tensor("bag_size"),
              c.tensor("maximum_indices"), c.integer("num_weights"), c.flag("scale_grad_by_freq"),
              c.arg("mode"), c.arg("per_sample_weights"), c.arg("padding_idx")})};
}

/// The product of each position's row and its bag's gradient.
Values per_sample_weights_backward(Composite& c) {
  const ValueId indices = c.tensor("indices"), grad = c.tensor("grad");
  const ValueId bag = bag_of_position(c, indices, c.tensor("offsets"));
  const DType dtype = c.dtype(grad), wide = sum_dtype(dtype);
  const ValueId rows = c.to(c.call("index_select", {c.tensor("weight"), c.n(0), indices}), wide);
  const ValueId grads = c.to(c.call("index_select", {grad, c.n(0), bag}), wide);
  ValueId out = c.to(c.sum(c.mul(rows, grads), {1}, KeepDim::No), dtype);
  if (has_padding(c)) out = c.where(c.ne(indices, c.integer("padding_idx")), out, 0);
  return {out};
}

constexpr DecompositionRow kRows[] = {
    {"_embedding_bag", embedding_bag},
    {"_embedding_bag_forward_only", embedding_bag},
    {"_embedding_bag_backward", embedding_bag_backward},
    {"_embedding_bag_dense_backward", embedding_bag_dense_backward},
    {"_embedding_bag_per_sample_weights_backward", per_sample_weights_backward},
};

}  // namespace

std::span<const DecompositionRow> embedding_bag_decompositions() { return kRows; }

}  // namespace coil
