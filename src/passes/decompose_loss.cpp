// Loss functions and similarities.

#include <cmath>

#include "passes/composite.h"

namespace coil {
namespace {

constexpr i64 kNone = 0, kMean = 1, kSum = 2;

Values mse_loss(Composite& c) {
  const ValueId difference = c.sub(c.self(), c.tensor("target"));
  return {reduced(c, c.mul(difference, difference), c.fixed("reduction"))};
}

Values l1_loss(Composite& c) {
  const ValueId distance = c.call("abs", {c.sub(c.self(), c.tensor("target"))});
  return {reduced(c, distance, c.fixed("reduction"))};
}

/// Squares below a distance of `bound`, straight lines above.
Values smooth_l1_loss(Composite& c) {
  const double beta = c.real("beta");
  if (beta < 0) c.fail("beta must not be negative");
  const ValueId distance = c.call("abs", {c.sub(c.self(), c.tensor("target"))});
  if (beta == 0) return {reduced(c, distance, c.fixed("reduction"))};
  const ValueId square = c.div(c.mul(c.mul(distance, 0.5), distance), beta);
  const ValueId loss =
      c.call("where.self", {c.binary("lt", distance, beta), square, c.sub(distance, 0.5 * beta)});
  return {reduced(c, loss, c.fixed("reduction"))};
}

/// The dtype of a loss that is the input's own, whatever the target's.
DType dtype_of_input(Composite& c) {
  const DType dtype = c.dtype(c.self());
  if (!is_float(dtype) && !is_complex(dtype) && is_float(c.dtype(c.tensor("target"))))
    c.fail("the loss of an input of {} would be rounded to that", name(dtype));
  return dtype;
}

/// Rounded once, when the loss of an element is complete.
Values huber_loss(Composite& c) {
  const double delta = c.real("delta");
  const DType dtype = c.common_dtype({c.self(), c.tensor("target")});
  const auto wide = [&](ValueId v) { return c.to(v, compute_dtype(dtype)); };
  const ValueId distance = c.call("abs", {c.sub(wide(c.self()), wide(c.tensor("target")))});
  const ValueId square = c.mul(c.mul(distance, 0.5), distance);
  const ValueId line = c.mul(c.sub(distance, 0.5 * delta), delta);
  const ValueId loss = c.call("where.self", {c.binary("le", distance, delta), square, line});
  return {reduced(c, c.to(loss, dtype_of_input(c)), c.fixed("reduction"))};
}

Values kl_div(Composite& c) {
  const ValueId input = c.self(), target = c.tensor("target");
  ValueId loss;
  if (c.flag("log_target"))
    loss = c.mul(c.call("exp", {target}), c.sub(target, input));
  else
    loss = c.sub(c.call("xlogy.Tensor", {target, target}), c.mul(target, input));
  return {reduced(c, loss, c.fixed("reduction"))};
}

/// -(y log x + (1 - y) log(1 - x)), logarithms not below -100.
Values binary_cross_entropy(Composite& c) {
  const ValueId input = c.self(), target = c.tensor("target");
  const ValueId log = c.call("clamp_min", {c.call("log", {input}), -100.0});
  const ValueId log_rest = c.call("clamp_min", {c.call("log1p", {c.call("neg", {input})}), -100.0});
  ValueId loss = c.sub(c.mul(c.sub(target, 1.0), log_rest), c.mul(target, log));
  if (c.has("weight")) loss = c.mul(loss, c.tensor("weight"));
  return {reduced(c, loss, c.fixed("reduction"))};
}

/// Each step is rounded to the target's dtype, in which eager keeps the loss.
Values binary_cross_entropy_with_logits(Composite& c) {
  const ValueId input = c.self(), target = c.tensor("target");
  const DType dtype = c.dtype(target);
  if (!is_float(dtype) && !is_complex(dtype))
    c.fail("the target is {}, which does not hold the loss", name(dtype));
  const ValueId log_sigmoid = c.call("log_sigmoid", {input});
  const ValueId rest = c.to(c.mul(c.call("rsub.Scalar", {target, 1.0}), input), dtype);
  ValueId loss;
  if (c.has("pos_weight")) {
    const ValueId weight = c.add(c.mul(c.sub(c.tensor("pos_weight"), 1.0), target), 1.0);
    loss = c.sub(rest, c.to(c.mul(weight, log_sigmoid), c.dtype(weight)));
  } else {
    loss = c.sub(rest, log_sigmoid);
  }
  loss = c.to(loss, dtype);
  if (c.has("weight")) loss = c.to(c.mul(loss, c.tensor("weight")), dtype);
  return {reduced(c, loss, c.fixed("reduction"))};
}

struct Likelihood {
  ValueId loss, total_weight;
};

/// The program fails where a row counts, as there are no classes.
void require_none(Composite& c, ValueId counts) {
  const sym::Expr any = c.type(c.call("item", {c.call("any", {counts})})).expr;
  c.builder.graph().checks.push_back({c.syms.eq(any, c.n(0)), "a target names one of no classes"});
}

/// Minus the log-probability of the target classes, rows of `ignore_index` left out.
Likelihood negative_likelihood(Composite& c, ValueId log_probabilities, i64 reduction) {
  ValueId target = c.to(c.tensor("target"), DType::i64);  // it may be u8
  // The target of one row may be a list of one.
  const bool is_row = c.ndim(log_probabilities) == 1;
  if (is_row && c.ndim(target) == 1) target = c.squeeze(target, {0});
  const i64 class_dim = c.ndim(log_probabilities) == 1 ? 0 : 1;
  const DType dtype = c.dtype(log_probabilities);
  const ValueId counts = c.call("ne.Scalar", {target, c.integer("ignore_index")});
  const ValueId classes = c.where(counts, target, 0);
  const bool has_classes = !c.is(c.size(log_probabilities, class_dim), 0);
  ValueId loss, weights;
  if (has_classes) {
    const ValueId place = c.unsqueeze(classes, class_dim);
    const ValueId picked = c.call("gather", {log_probabilities, c.n(class_dim), place});
    loss = c.call("neg", {c.squeeze(picked, {class_dim})});
  } else {
    require_none(c, counts);
    loss = c.filled(c.shape(target), 0, dtype);
  }
  if (c.has("weight")) {
    weights = has_classes ? c.call("index.Tensor", {c.tensor("weight"), Values{classes}}) : loss;
    loss = c.mul(loss, weights);
    weights = c.where(counts, weights, 0);
  }
  loss = c.where(counts, loss, 0);
  const ValueId total = weights.valid() ? c.sum(weights) : c.to(c.sum(counts), dtype);
  switch (reduction) {
    case kMean: return {c.div(c.sum(loss), total), total};
    case kSum: return {c.sum(loss), total};
    default: return {loss, is_row ? total : c.filled({}, 0, dtype)};
  }
}

Values nll_loss(Composite& c) {
  return {negative_likelihood(c, c.self(), c.fixed("reduction")).loss};
}
Values nll_loss_forward(Composite& c) {
  const Likelihood out = negative_likelihood(c, c.self(), c.fixed("reduction"));
  return {out.loss, out.total_weight};
}

/// `weight` along the class dim of a tensor of `ndim` dims.
ValueId weight_along(Composite& c, i64 class_dim, i64 ndim) {
  Exprs shape(static_cast<std::size_t>(ndim), c.n(1));
  shape[static_cast<std::size_t>(class_dim)] = c.n(-1);
  return c.reshape(c.tensor("weight"), shape);
}

/// Targets that are probabilities of the classes.
ValueId cross_entropy_of_probabilities(Composite& c, ValueId logs, i64 class_dim) {
  ValueId target = c.tensor("target");
  const double smoothing = c.real("label_smoothing");
  const std::optional<i64> classes = c.syms.as_const(c.size(logs, class_dim));
  if (!classes) c.fail("the number of classes must be fixed");
  if (smoothing > 0)
    target = c.add(c.mul(target, 1 - smoothing), smoothing / static_cast<double>(*classes));
  ValueId product = c.mul(logs, target);
  if (c.has("weight")) product = c.mul(product, weight_along(c, class_dim, c.ndim(logs)));
  const i64 reduction = c.fixed("reduction");
  if (reduction == kNone) return c.call("neg", {c.sum(product, {class_dim}, KeepDim::No)});
  const ValueId total = c.call("neg", {c.sum(product)});
  if (reduction == kSum) return total;
  const sym::Expr rows = *classes == 0 ? c.n(0) : c.syms.floordiv(c.count(logs), c.n(*classes));
  return c.call("div.Scalar", {total, rows});
}

/// What label smoothing adds: the mean over classes, weighted as the loss itself is.
ValueId smoothing_loss(Composite& c, ValueId logs, i64 class_dim) {
  const ValueId target = c.tensor("target");
  ValueId weighted = logs;
  if (c.has("weight")) weighted = c.mul(logs, weight_along(c, class_dim, c.ndim(logs)));
  const ValueId counts = c.call("ne.Scalar", {target, c.integer("ignore_index")});
  const ValueId rows = c.call("neg", {c.sum(weighted, {class_dim}, KeepDim::No)});
  const ValueId loss = c.where(counts, rows, 0);
  const i64 reduction = c.fixed("reduction");
  if (reduction == kNone) return loss;
  if (reduction == kSum) return c.sum(loss);
  if (!c.has("weight")) return c.div(c.sum(loss), c.to(c.sum(counts), c.dtype(loss)));
  const ValueId weights =
      c.call("index.Tensor", {c.tensor("weight"), Values{c.where(counts, target, 0)}});
  return c.div(c.sum(loss), c.sum(c.where(counts, weights, 0)));
}

Values cross_entropy(Composite& c) {
  const ValueId target = c.tensor("target");
  const i64 class_dim = c.ndim(c.self()) == 1 ? 0 : 1;
  const ValueId logs = softmax(c, "_log_softmax", c.self(), class_dim, c.dtype(c.self()));
  if (is_float(c.dtype(target))) return {cross_entropy_of_probabilities(c, logs, class_dim)};
  const ValueId loss = negative_likelihood(c, logs, c.fixed("reduction")).loss;
  const double smoothing = c.real("label_smoothing");
  if (smoothing <= 0) return {loss};
  const std::optional<i64> classes = c.syms.as_const(c.size(logs, class_dim));
  if (!classes) c.fail("the number of classes must be fixed");
  const ValueId extra =
      c.mul(smoothing_loss(c, logs, class_dim), smoothing / static_cast<double>(*classes));
  return {c.add(c.mul(loss, 1 - smoothing), extra)};
}

ValueId vector_norm(Composite& c, ValueId v, const Arg& order, i64 dim, bool keeps) {
  return c.call("linalg_vector_norm", {v, order, Exprs{c.n(dim)}, keeps});
}

/// Each vector is brought to length 1 before they are multiplied, in its own dtype unless that is
/// an integer's; lengths are at least eps.
Values cosine_similarity(Composite& c) {
  const DType dtype = c.common_dtype({c.tensor("x1"), c.tensor("x2")});
  const auto real = [&](ValueId v) { return is_float(c.dtype(v)) ? v : c.to(v, dtype); };
  const Values both = c.broadcast_all({real(c.tensor("x1")), real(c.tensor("x2"))});
  const i64 dim = c.dim("dim", both[0]);
  Values units;
  for (ValueId v : both) {
    const ValueId length =
        c.call("clamp_min", {vector_norm(c, v, c.n(2), dim, true), c.real("eps")});
    units.push_back(c.div(v, length));
  }
  return {c.sum(c.mul(units[0], units[1]), {dim}, KeepDim::No)};
}

ValueId distance(Composite& c, ValueId a, ValueId b, bool keeps) {
  const ValueId difference = c.add(c.sub(a, b), c.real("eps"));
  return vector_norm(c, difference, c.real("p"), c.ndim(difference) - 1, keeps);
}

Values pairwise_distance(Composite& c) {
  return {distance(c, c.tensor("x1"), c.tensor("x2"), c.flag("keepdim"))};
}

Values triplet_margin_loss(Composite& c) {
  const ValueId anchor = c.tensor("anchor"), positive = c.tensor("positive");
  const ValueId negative = c.tensor("negative");
  const ValueId near = distance(c, anchor, positive, false);
  ValueId far = distance(c, anchor, negative, false);
  if (c.flag("swap")) far = c.call("minimum", {far, distance(c, positive, negative, false)});
  const ValueId loss = c.call("clamp_min", {c.sub(c.add(near, c.real("margin")), far), 0.0});
  return {reduced(c, loss, c.fixed("reduction"))};
}

Values margin_ranking_loss(Composite& c) {
  const ValueId difference = c.sub(c.tensor("input1"), c.tensor("input2"));
  const ValueId product = c.mul(c.call("neg", {c.tensor("target")}), difference);
  const ValueId loss = c.call("clamp_min", {c.add(product, c.real("margin")), 0.0});
  return {reduced(c, loss, c.fixed("reduction"))};
}

Values hinge_embedding_loss(Composite& c) {
  const ValueId self = c.self(), target = c.tensor("target");
  const ValueId margin =
      c.call("clamp_min", {c.call("rsub.Scalar", {self, c.real("margin")}), 0.0});
  const ValueId apart = c.where(c.ne(target, c.n(1)), margin, 0);
  const ValueId alike = c.where(c.ne(target, c.n(-1)), self, 0);
  return {reduced(c, c.add(apart, alike), c.fixed("reduction"))};
}

Values soft_margin_loss(Composite& c) {
  const ValueId product = c.mul(c.call("neg", {c.self()}), c.tensor("target"));
  const ValueId loss = c.call("log1p", {c.call("exp", {c.to(product, dtype_of_input(c))})});
  return {reduced(c, loss, c.fixed("reduction"))};
}

/// The cosine of each pair; squared lengths are kept off 0 by a tiny number.
Values cosine_embedding_loss(Composite& c) {
  constexpr double kTiny = 1e-12;
  const ValueId a = c.tensor("input1"), b = c.tensor("input2"), target = c.tensor("target");
  const i64 dim = c.ndim(target) == 1 ? 1 : 0;
  const auto dot = [&](ValueId x, ValueId y) { return c.sum(c.mul(x, y), {dim}, KeepDim::No); };
  const ValueId lengths = c.mul(c.add(dot(a, a), kTiny), c.add(dot(b, b), kTiny));
  const ValueId cosine = c.div(dot(a, b), c.call("sqrt", {lengths}));
  const ValueId alike = c.call("rsub.Scalar", {cosine, 1.0});
  const ValueId apart = c.call("clamp_min", {c.sub(cosine, c.real("margin")), 0.0});
  const ValueId one = c.where(c.eq(target, c.n(1)), alike, 0);
  const ValueId other = c.where(c.eq(target, c.n(-1)), apart, 0);
  return {reduced(c, c.add(one, other), c.fixed("reduction"))};
}

Values poisson_nll_loss(Composite& c) {
  const ValueId input = c.tensor("input"), target = c.tensor("target");
  ValueId loss;
  if (c.flag("log_input"))
    loss = c.sub(c.call("exp", {input}), c.mul(target, input));
  else
    loss = c.sub(input, c.mul(target, c.call("log", {c.add(input, c.real("eps"))})));
  if (c.flag("full")) {
    const ValueId line = c.sub(c.mul(target, c.call("log", {target})), target);
    const ValueId root = c.mul(c.call("log", {c.mul(target, 2 * M_PI)}), 0.5);
    const ValueId large = c.binary("gt", target, 1.0);
    loss = c.add(loss, c.where(large, c.add(line, root), 0));
  }
  return {reduced(c, loss, c.fixed("reduction"))};
}

constexpr DecompositionRow kRows[] = {
    {"mse_loss", mse_loss},
    {"l1_loss", l1_loss},
    {"smooth_l1_loss", smooth_l1_loss},
    {"huber_loss", huber_loss},
    {"kl_div", kl_div},
    {"binary_cross_entropy", binary_cross_entropy},
    {"binary_cross_entropy_with_logits", binary_cross_entropy_with_logits},
    {"nll_loss", nll_loss},
    {"nll_loss_nd", nll_loss},
    {"nll_loss2d", nll_loss},
    {"nll_loss_forward", nll_loss_forward},
    {"nll_loss2d_forward", nll_loss_forward},
    {"cross_entropy_loss", cross_entropy},
    {"cosine_similarity", cosine_similarity},
    {"pairwise_distance", pairwise_distance},
    {"triplet_margin_loss", triplet_margin_loss},
    {"margin_ranking_loss", margin_ranking_loss},
    {"hinge_embedding_loss", hinge_embedding_loss},
    {"soft_margin_loss", soft_margin_loss},
    {"cosine_embedding_loss", cosine_embedding_loss},
    {"poisson_nll_loss", poisson_nll_loss},
};

}  // namespace

ValueId reduced(Composite& c, ValueId loss, i64 reduction) {
  switch (reduction) {
    case kNone: return loss;
    case kMean: return c.call("mean", {loss});
    case kSum: return c.sum(loss);
    default: c.fail("reduction {} is not one of 0, 1, 2", reduction);
  }
}

std::span<const DecompositionRow> loss_decompositions() { return kRows; }

}  // namespace coil
