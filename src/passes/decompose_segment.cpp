// Reductions of runs of rows: segment_reduce and embedding_bag. Each row is told its segment, and a
// scatter reduces; rows that belong to none go to one segment more, which is cut off.

#include <cmath>
#include <limits>

#include "passes/composite.h"

namespace coil {
namespace {

/// The segments of `data` along `axis`.
struct Segments {
  i64 axis = 0;
  sym::Expr count;
  ValueId lengths;  // [.., count]
  ValueId index;    // over data's shape: the segment of each element, `count` for none
};

/// `v`, [.., rows], with dims of 1 behind, as many as `like` has more.
ValueId with_inner_dims(Composite& c, ValueId v, ValueId like) {
  while (c.ndim(v) < c.ndim(like)) v = c.unsqueeze(v, -1);
  return v;
}

Segments segments_of(Composite& c, ValueId data) {
  Segments s;
  s.axis = c.dim("axis", data);
  s.lengths = c.tensor("lengths");
  ValueId offsets = c.tensor("offsets");
  if (s.lengths.valid()) {
    s.count = c.size(s.lengths, s.axis);
    Exprs first = c.shape(s.lengths);
    first.back() = c.n(1);
    const ValueId ends = c.to(c.call("cumsum", {s.lengths, c.n(s.axis)}), DType::i64);
    offsets = c.cat({c.filled(first, 0, DType::i64), ends}, s.axis);
  } else if (offsets.valid()) {
    s.count = c.syms.sub(c.size(offsets, s.axis), c.n(1));
    s.lengths = c.sub(c.slice(offsets, s.axis, c.n(1), c.size(offsets, s.axis)),
                      c.slice(offsets, s.axis, c.n(0), s.count));
  } else {
    c.fail("lengths or offsets must be given");
  }
  const ValueId begun = c.sub(starts_before(c, offsets, c.size(data, s.axis)), c.n(1));
  const ValueId none = c.call("lt.Scalar", {begun, c.n(0)});
  const ValueId segment = c.call("where.ScalarSelf", {none, s.count, begun});
  s.index = c.expand(with_inner_dims(c, segment, data), c.shape(data));
  return s;
}

/// What a segment without rows holds, and every reduction begins with.
double initial_value(Composite& c, const std::string& reduce) {
  if (c.has("initial")) return c.real("initial");
  if (reduce == "max") return -std::numeric_limits<double>::infinity();
  if (reduce == "min") return std::numeric_limits<double>::infinity();
  return reduce == "prod" ? 1 : 0;
}

/// `data` reduced into count + 1 segments that begin with `initial`.
ValueId reduce_into(Composite& c, const Segments& s, ValueId data, const std::string& reduce,
                    double initial) {
  Exprs shape = c.shape(data);
  shape[static_cast<std::size_t>(s.axis)] = c.syms.add(s.count, c.n(1));
  const ValueId begin = c.filled(shape, initial, c.dtype(data));
  return c.call("scatter_reduce.two", {begin, c.n(s.axis), s.index, data, reduce, true});
}

Values segment_reduce(Composite& c) {
  const ValueId data = c.self();
  if (c.has("indices")) c.fail("indices are not supported");
  const std::string reduce = c.word("reduce");
  const Segments s = segments_of(c, data);
  const bool is_mean = reduce == "mean";
  const std::string how = reduce == "max"   ? "amax"
                          : reduce == "min" ? "amin"
                          : is_mean         ? "sum"
                                            : reduce;
  ValueId out =
      c.slice(reduce_into(c, s, data, how, initial_value(c, reduce)), s.axis, c.n(0), s.count);
  if (is_mean) {
    const ValueId lengths = with_inner_dims(c, c.to(s.lengths, c.dtype(data)), data);
    const ValueId mean = c.div(out, lengths);  // NaN for no rows
    out = c.has("initial")
              ? c.call("where.self", {c.call("gt.Scalar", {lengths, c.n(0)}), mean, out})
              : mean;
  }
  return {c.call("clone", {out, MemoryFormat::Contiguous})};
}

/// For each element of data the value that its segment has in `v`, and `otherwise` for no segment.
ValueId of_segment(Composite& c, const Segments& s, ValueId v, double otherwise) {
  Exprs shape = c.shape(v);
  shape[static_cast<std::size_t>(s.axis)] = c.n(1);
  const ValueId padded = c.cat({v, c.filled(shape, otherwise, c.dtype(v))}, s.axis);
  return c.call("gather", {padded, c.n(s.axis), s.index});
}

/// How many elements of each one's segment are true.
ValueId count_in_segment(Composite& c, const Segments& s, ValueId is_counted) {
  const ValueId counts = reduce_into(c, s, c.to(is_counted, DType::i64), "sum", 0);
  return c.call("gather", {counts, c.n(s.axis), s.index});
}

ValueId is_nan_or(Composite& c, ValueId data, ValueId other) {
  return c.call("logical_or", {c.call("isnan", {data}), other});
}

/// The elements that are the extreme share the gradient.
ValueId extreme_backward(Composite& c, const Segments& s, ValueId grad, ValueId data) {
  const ValueId extreme = of_segment(c, s, c.tensor("output"), 0);
  const ValueId hit = is_nan_or(c, data, c.eq(data, extreme));
  const ValueId share = c.div(grad, c.to(count_in_segment(c, s, hit), c.dtype(grad)));
  return c.where(hit, share, 0);
}

/// The gradient times the product of all others: the segment's product over the element, but for
/// elements that are zero or NaN.
ValueId product_backward(Composite& c, const Segments& s, ValueId grad, ValueId data) {
  const ValueId zero = c.eq(data, 0.0), nan = c.call("isnan", {data});
  const ValueId special = c.call("logical_or", {zero, nan});
  const ValueId plain = c.call("masked_fill.Scalar", {data, special, 1.0});
  const ValueId products = reduce_into(c, s, plain, "prod", initial_value(c, "prod"));
  ValueId others = c.call("gather", {products, c.n(s.axis), s.index});
  const auto has_other = [&](ValueId kind) {
    const ValueId count = c.sub(count_in_segment(c, s, kind), c.to(kind, DType::i64));
    return c.call("gt.Scalar", {count, c.n(0)});
  };
  others = c.call("where.self", {has_other(zero), c.mul(others, 0.0), others});
  others = c.call("masked_fill.Scalar", {others, has_other(nan), std::nan("")});
  const ValueId product = of_segment(c, s, c.tensor("output"), 0);
  return c.call("where.self", {special, c.mul(grad, others), c.div(c.mul(grad, product), data)});
}

Values segment_reduce_backward(Composite& c) {
  const ValueId data = c.tensor("data");
  const std::string reduce = c.word("reduce");
  const Segments s = segments_of(c, data);
  const ValueId grad = of_segment(c, s, c.tensor("grad"), 0);
  if (reduce == "sum") return {grad};
  if (reduce == "max" || reduce == "min") return {extreme_backward(c, s, grad, data)};
  if (reduce == "prod") return {product_backward(c, s, grad, data)};
  const ValueId lengths = with_inner_dims(c, c.to(s.lengths, c.dtype(data)), data);
  const ValueId wide = c.expand(lengths, c.shape(c.tensor("grad")));
  return {c.div(grad, of_segment(c, s, wide, 1))};
}

constexpr DecompositionRow kRows[] = {
    {"segment_reduce", segment_reduce},
    {"_segment_reduce_backward", segment_reduce_backward},
};

}  // namespace

std::span<const DecompositionRow> segment_decompositions() { return kRows; }

}  // namespace coil
