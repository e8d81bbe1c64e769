// Softmax and the normalisations: several bodies each, with temporaries in the computing dtype, and
// one rounding at the end.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

std::vector<bool> one_dim(std::size_t dim, std::size_t rank) {
  std::vector<bool> set(rank, false);
  if (rank > 0) set[dim] = true;
  return set;
}

Exprs without(const Exprs& all, const std::vector<bool>& gone) {
  Exprs kept;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (!gone[k]) kept.push_back(all[k]);
  return kept;
}

std::string part_name(const Lowering& l, std::string_view part) {
  return str("{}.{}", l.name(), part);
}

/// A body that reduces `in` over `reduced` into a temporary over the kept dims. `lift` makes the
/// element from the loaded one, given the kept index.
template <class Lift>
BufferId reduce_rows(Lowering& l, const Access& in, const std::vector<bool>& reduced, DType dtype,
                     std::string_view part, std::string_view combine, Lift lift) {
  const BufferId out = l.temp(part, dtype, without(in.extents, reduced));
  BodyBuilder b(l, part_name(l, part));
  const Rows rows = make_rows(b, in, reduced, dtype, RowOrder::Memory);
  const Val element = lift(b, b.cast(b.load(in, rows.at), dtype), rows.kept);
  b.store(out, rows.kept, b.reduce(combine, element, rows.tree)[0]);
  b.finish();
  return out;
}

struct SoftmaxRows {
  Access in;
  std::vector<bool> row;  // the softmax dim
  DType dtype;
  BufferId top;
};

SoftmaxRows softmax_rows(Lowering& l, const Args& args) {
  const Access in = l.access(args.tensor("self"));
  const std::size_t rank = in.extents.size();
  const std::vector<bool> row = one_dim(rank ? args.dim("dim", rank) : 0, rank);
  const DType dtype = compute_dtype(l.dtype_of(in));
  const auto plain = [](BodyBuilder&, Val x, const Exprs&) { return x; };
  return {in, row, dtype, reduce_rows(l, in, row, dtype, "max", "max", plain)};
}

/// mean, variance (with the divisor n) and 1 / sqrt(variance + eps) of each row.
struct Moments {
  BufferId mean, rstd;
  BufferId variance;  // valid for a batch
};
/// A batch keeps its variance; where that is 0 and eps as well, eager scales by 0 and not by 1 / 0.
/// Of infinite elements eager's mean is NaN, but a batch's is what their sum says.
enum class MomentsOf : u8 { Sample, Batch };

Moments moments(Lowering& l, const Access& in, const std::vector<bool>& reduced, DType dtype,
                double eps, MomentsOf of = MomentsOf::Sample) {
  const Exprs shape = without(in.extents, reduced);
  Moments out{l.temp("mean", dtype, shape), l.temp("rstd", dtype, shape), {}};
  if (of == MomentsOf::Batch) out.variance = l.temp("var", dtype, shape);
  BodyBuilder b(l, part_name(l, "stats"));
  const Rows rows = make_rows(b, in, reduced, dtype, RowOrder::Memory);
  const Val element = b.cast(b.load(in, rows.at), dtype);
  const std::vector<Val> stats = b.reduce("welford", element, rows.tree);
  const Val mean_of_infinite =
      of == MomentsOf::Batch ? b.reduce("sum", element, rows.tree)[0] : stats[1];
  const Val variance = b.div(stats[1], b.value(rows.count, dtype));
  const Val is_finite = b.op(ScalarOp::eq, {stats[1], stats[1]});
  b.store(out.mean, rows.kept, b.where(is_finite, stats[0], mean_of_infinite));
  if (out.variance.valid()) b.store(out.variance, rows.kept, variance);
  Val rstd = b.op(ScalarOp::rsqrt, {b.add(variance, b.constant(dtype, eps))});
  if (of == MomentsOf::Batch && eps == 0) {
    const Val zero = b.constant(dtype, 0);
    rstd = b.where(b.op(ScalarOp::eq, {variance, zero}), zero, rstd);
  }
  b.store(out.rstd, rows.kept, rstd);
  b.finish();
  return out;
}

/// Copies a temporary into a result of as many elements, if anything reads that.
void publish(Lowering& l, ValueId value, BufferId temp) {
  if (!l.used(value)) return;
  const Access from = reshape(l.syms, l.prover, l.whole(temp), l.type(value).shape);
  l.copy(from, l.result(value), l.name_of(value));
}

}  // namespace

Status lower_softmax(Lowering& l, const Node&, const Args& args) {
  const SoftmaxRows s = softmax_rows(l, args);
  const BufferId powers = l.temp("exp", s.dtype, s.in.extents);
  {
    BodyBuilder b(l, part_name(l, "exp"));
    const Exprs at = b.dims(s.in.extents);
    const Val x = b.cast(b.load(s.in, at), s.dtype);
    const Val top = b.load(s.top, without(at, s.row));
    b.store(powers, at, b.op(ScalarOp::exp, {b.sub(x, top)}));
    b.finish();
  }
  const auto plain = [](BodyBuilder&, Val x, const Exprs&) { return x; };
  const BufferId sum = reduce_rows(l, l.whole(powers), s.row, s.dtype, "sum", "sum", plain);
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(s.in.extents);
  const Val power = b.load(powers, at);
  b.store(out, at, b.div(power, b.load(sum, without(at, s.row))));
  b.finish();
  return Ok{};
}

Status lower_log_softmax(Lowering& l, const Node&, const Args& args) {
  const SoftmaxRows s = softmax_rows(l, args);
  const auto power = [&](BodyBuilder& b, Val x, const Exprs& kept) {
    return b.op(ScalarOp::exp, {b.sub(x, b.load(s.top, kept))});
  };
  const BufferId sum = reduce_rows(l, s.in, s.row, s.dtype, "sum", "sum", power);
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(s.in.extents);
  const Exprs kept = without(at, s.row);
  const Val x = b.cast(b.load(s.in, at), s.dtype);
  const Val shifted = b.sub(x, b.load(s.top, kept));
  b.store(out, at, b.sub(shifted, b.op(ScalarOp::log, {b.load(sum, kept)})));
  b.finish();
  return Ok{};
}

Status lower_layer_norm(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("input"));
  const std::size_t rank = in.extents.size();
  const std::size_t outer = rank - args.sizes("normalized_shape").size();
  const DType dtype = compute_dtype(l.dtype_of(in));
  std::vector<bool> row(rank, false);
  for (std::size_t k = outer; k < rank; ++k) row[k] = true;
  const Moments m = moments(l, in, row, dtype, args.number("eps"));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  const std::span<const Expr> kept = std::span(at).first(outer),
                              inner = std::span(at).subspan(outer);
  const Val x = b.cast(b.load(in, at), dtype);
  Val y = b.mul(b.sub(x, b.load(m.mean, kept)), b.load(m.rstd, kept));
  const auto loaded = [&](std::string_view name) {
    return b.cast(b.load(l.access(args.tensor(name)), inner), dtype);
  };
  if (args.has("weight") && args.has("bias"))
    y = b.op(ScalarOp::fma, {y, loaded("weight"), loaded("bias")});  // rounded once, as eager
  else if (args.has("weight"))
    y = b.mul(y, loaded("weight"));
  else if (args.has("bias"))
    y = b.add(y, loaded("bias"));
  b.store(out, at, y);
  b.finish();
  publish(l, node.outs[1], m.mean);
  publish(l, node.outs[2], m.rstd);
  return Ok{};
}

Status lower_group_norm(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("input"));
  const DType dtype = compute_dtype(l.dtype_of(in));
  const Expr groups = syms.constant(args.integer("group"));
  const Expr channels = syms.floordiv(in.extents.at(1), groups);
  // The same elements as [N, group, C / group, spatial...].
  Exprs split{in.extents[0], groups, channels};
  split.insert(split.end(), in.extents.begin() + 2, in.extents.end());
  std::vector<bool> row(split.size(), true);
  row[0] = row[1] = false;
  const Moments m = moments(l, reshape(syms, l.prover, in, split), row, dtype, args.number("eps"));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  const Exprs group{at[0], syms.floordiv(at[1], channels)}, channel{at[1]};
  // As eager: one scale and one shift a channel.
  Val scale = b.load(m.rstd, group);
  if (args.has("weight"))
    scale = b.mul(scale, b.cast(b.load(l.access(args.tensor("weight")), channel), dtype));
  Val shift = b.neg(b.mul(scale, b.load(m.mean, group)));
  if (args.has("bias"))
    shift = b.add(shift, b.cast(b.load(l.access(args.tensor("bias")), channel), dtype));
  const Val x = b.cast(b.load(in, at), dtype);
  b.store(out, at, b.add(b.mul(x, scale), shift));  // rounded twice: of equal numbers it is 0
  b.finish();
  publish(l, node.outs[1], m.mean);
  publish(l, node.outs[2], m.rstd);
  return Ok{};
}

namespace {

/// y = x * scale + shift by channel, rounded once, as eager: scale = rstd * weight, shift = bias -
/// mean * scale. Scale and shift have a body of their own: it depends on constants only where the
/// moments do.
template <class MeanRstd>
void apply_channels(Lowering& l, const Args& args, const Access& in, DType dtype,
                    MeanRstd mean_rstd) {
  const Exprs channels{in.extents.at(1)};
  const BufferId scales = l.temp("scale", dtype, channels),
                 shifts = l.temp("shift", dtype, channels);
  {
    BodyBuilder b(l, part_name(l, "channels"));
    const Exprs c = b.dims(channels);
    const auto [mean, rstd] = mean_rstd(b, c);
    const auto parameter = [&](std::string_view name) {  // of any shape
      const Access given = l.access(args.tensor(name));
      return b.cast(b.load(reshape(l.syms, l.prover, given, channels), c), dtype);
    };
    Val scale = rstd;
    if (args.has("weight")) scale = b.mul(scale, parameter("weight"));
    const Val moved = b.mul(mean, scale);
    Val shift = b.neg(moved);
    if (args.has("bias")) shift = b.sub(parameter("bias"), moved);
    b.store(scales, c, scale);
    b.store(shifts, c, shift);
    b.finish();
  }
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  const Exprs c{at[1]};
  const Val x = b.cast(b.load(in, at), dtype);
  b.store(out, at, b.op(ScalarOp::fma, {x, b.load(scales, c), b.load(shifts, c)}));
  b.finish();
}

}  // namespace

Status lower_batch_norm_inference(Lowering& l, const Node& node, const Args& args) {
  const Access in = l.access(args.tensor("input"));
  const DType dtype = compute_dtype(l.dtype_of(in));
  const Access mean = l.access(args.tensor("running_mean"));
  const Access variance = l.access(args.tensor("running_var"));
  const double eps = args.number("eps");
  apply_channels(l, args, in, dtype, [&](BodyBuilder& b, const Exprs& c) {
    const Val v = b.cast(b.load(variance, c), dtype);
    const Val rstd = b.op(ScalarOp::rsqrt, {b.add(v, b.constant(dtype, eps))});
    return std::pair(b.cast(b.load(mean, c), dtype), rstd);
  });
  // The saved statistics are empty in inference.
  for (std::size_t k = 1; k < 3; ++k)
    if (l.used(node.outs[k])) l.fill(l.result(node.outs[k]), 0, l.name_of(node.outs[k]));
  if (node.outs.size() > 3) {
    l.set(node.outs[3], mean);
    l.set(node.outs[4], variance);
  }
  return Ok{};
}

Status lower_batch_norm_training(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  if (!args.flag("training")) return lower_batch_norm_inference(l, node, args);
  const Access in = l.access(args.tensor("input"));
  const DType dtype = compute_dtype(l.dtype_of(in));
  std::vector<bool> row(in.extents.size(), true);
  row.at(1) = false;
  const Moments m = moments(l, in, row, dtype, args.number("eps"), MomentsOf::Batch);
  apply_channels(l, args, in, dtype, [&](BodyBuilder& b, const Exprs& c) {
    const Val mean = b.load(m.mean, c);
    return std::pair(mean, b.load(m.rstd, c));
  });
  publish(l, node.outs[1], m.mean);
  publish(l, node.outs[2], m.rstd);
  // running = momentum * batch + (1 - momentum) * running; the variance with the divisor n - 1.
  Expr count = syms.constant(1);
  for (std::size_t k = 0; k < in.extents.size(); ++k)
    if (k != 1) count = syms.mul(count, in.extents[k]);
  const double momentum = args.number("momentum");
  BodyBuilder b(l, part_name(l, "running"));
  const Exprs c = b.dims(Exprs{in.extents[1]});
  const auto blend = [&](ValueId out, std::string_view old, Val batch) {
    const Val kept = b.mul(b.constant(dtype, 1 - momentum),
                           b.cast(b.load(l.access(args.tensor(old)), c), dtype));
    b.store(l.result(out), c, b.add(b.mul(b.constant(dtype, momentum), batch), kept));
  };
  const Val n = b.value(count, dtype);
  const Val unbiased = b.div(n, b.sub(n, b.constant(dtype, 1)));
  blend(node.outs[3], "running_mean", b.load(m.mean, c));
  blend(node.outs[4], "running_var", b.mul(b.load(m.variance, c), unbiased));
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
