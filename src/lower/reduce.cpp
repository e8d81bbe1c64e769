// Reductions along dims, and running ones (cumsum, cumprod).

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/complex_math.h"
#include "lower/registry.h"
#include "ops/complex_combine.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// The reduced dims of the present node: all, where `dim` is None, absent or empty.
std::vector<bool> reduced_dims(const Args& args, std::size_t rank) {
  return dim_set(args.has("dim") ? args.integers("dim") : std::vector<i64>{}, rank);
}

/// The index of the result: kept dims, with zeros for the others if the result keeps their place.
Exprs result_point(sym::Arena& syms, const Rows& rows, const std::vector<bool>& reduced,
                   bool keepdim) {
  if (!keepdim) return rows.kept;
  Exprs point;
  std::size_t kept = 0;
  for (bool gone : reduced) point.push_back(gone ? syms.constant(0) : rows.kept[kept++]);
  return point;
}

/// A reduction of one body: its loops, its operand in the dtype that it accumulates in, and where
/// the results go.
struct Reduction {
  BodyBuilder b;
  Rows rows;
  Val element;
  bool keepdim;
  std::vector<bool> reduced;

  Reduction(Lowering& l, const Args& args, DType accumulate, RowOrder order = RowOrder::Memory)
      : b(l, l.name()), keepdim(args.flag("keepdim")) {
    const Access& in = l.access(args.tensor("self"));
    reduced = reduced_dims(args, in.extents.size());
    rows = make_rows(b, in, reduced, accumulate, order);
    element = b.cast(b.load(in, rows.at), accumulate);
  }
  Val reduce(std::string_view combine) { return b.reduce(combine, element, rows.tree)[0]; }
  Val count(DType dtype) { return b.value(rows.count, dtype); }

  void store(ValueId value, Val v) {
    b.store(b.lowering().result(value), result_point(b.syms(), rows, reduced, keepdim), v);
  }
  void finish() { b.finish(); }
};

DType result_compute(const Lowering& l, const Node& node) {
  return compute_dtype(l.type(node.outs[0]).dtype);
}

/// A reduction that is one combine of elements in the result's own dtype.
Status simple(Lowering& l, const Node& node, const Args& args, std::string_view combine,
              DType accumulate) {
  Reduction r(l, args, accumulate);
  r.store(node.outs[0], r.reduce(combine));
  r.finish();
  return Ok{};
}

/// argmax, max.dim and their mirror images.
Status arg_extreme(Lowering& l, const Node& node, const Args& args, std::string_view combine,
                   bool with_values) {
  const DType dtype = compute_dtype(l.type(args.tensor("self")).dtype);
  // The position counts in logical order.
  Reduction r(l, args, dtype, RowOrder::Logical);
  const std::vector<Val> best = r.b.reduce(combine, r.element, r.rows.tree);
  if (with_values) r.store(node.outs[0], best[0]);
  r.store(node.outs[with_values ? 1 : 0], best[1]);
  r.finish();
  return Ok{};
}

/// log(sum) + top of what `logaddexp` gives; an infinite top is in the logarithm already.
Val joined(BodyBuilder& b, const std::vector<Val>& parts) {
  const Val infinite = b.op(ScalarOp::isinf, {parts[0]});
  const Val finite_top = b.where(infinite, b.constant(b.dtype(parts[0]), 0), parts[0]);
  return b.add(b.op(ScalarOp::log, {parts[1]}), finite_top);
}

/// Running reductions along `dim`: a result for each partial value of the combine.
Status running(Lowering& l, const Node& node, const Args& args, std::string_view combine) {
  const Access& in = l.access(args.tensor("self"));
  const DType accumulate = result_compute(l, node);
  if (in.extents.empty()) {  // a single element: itself, at position 0
    l.copy(in, l.result(), l.name());
    if (node.outs.size() > 1) l.fill(l.result(node.outs[1]), 0, l.name_of(node.outs[1]));
    return Ok{};
  }
  const std::size_t d = args.dim("dim", in.extents.size());
  BodyBuilder b(l, l.name());
  Exprs at(in.extents.size());
  for (std::size_t k = 0; k < at.size(); ++k)
    if (k != d) at[k] = b.dim(in.extents[k]);
  at[d] = b.scan_dim(in.extents[d]);
  const Val element = b.cast(b.load(in, at), accumulate);
  const std::vector<Val> values = b.scan(combine, element);
  if (values.size() > node.outs.size())
    b.store(l.result(), at, joined(b, values));
  else
    for (std::size_t i = 0; i < node.outs.size(); ++i)
      b.store(l.result(node.outs[i]), at, values[i]);
  b.finish();
  return Ok{};
}

// ---- complex numbers ----

/// prod and cumprod; logsumexp; logcumsumexp.
enum class PairFold : u8 { Prod, SumOfExp, LogAddExp };

ops::Combine combine_of(PairFold fold, DType part) {
  switch (fold) {
    case PairFold::Prod: return ops::complex_prod(part);
    case PairFold::SumOfExp: return ops::complex_sum_of_exp(part);
    case PairFold::LogAddExp: return ops::complex_log_add_exp(part);
  }
  COIL_UNREACHABLE();
}

/// The partial values of the element at `at`.
std::vector<Val> pair_elements(BodyBuilder& b, PairFold fold, ValueId v, const Exprs& at,
                               DType part) {
  Lowering& l = b.lowering();
  const Access in = l.access(v);
  const bool is_pair = is_complex(l.type(v).dtype);
  const auto load = [&](i64 which) {
    if (!is_pair) return which == 0 ? b.load(in, at) : b.constant(part, 0);
    return b.load(part_of(l.syms, in, which), at);
  };
  const Val re = b.cast(load(0), part), im = b.cast(load(1), part);
  if (fold != PairFold::SumOfExp) return {re, im};
  return {re, b.op(ScalarOp::cos, {im}), b.op(ScalarOp::sin, {im})};
}

/// What partial values stand for.
Parts pair_result(BodyBuilder& b, PairFold fold, const std::vector<Val>& values) {
  if (fold != PairFold::SumOfExp) return {values[0], values[1]};
  const DType part = b.dtype(values[0]);
  const Parts log = *ComplexMath(b, part).unary("log", {values[1], values[2]});
  const Val infinite = b.op(ScalarOp::isinf, {values[0]});
  return {b.add(log.re, b.where(infinite, b.constant(part, 0), values[0])), log.im};
}

void store_pair(BodyBuilder& b, ValueId out, Exprs at, Parts z) {
  const BufferId to = b.lowering().result(out);
  at.push_back(b.syms().constant(0));
  b.store(to, at, z.re);
  at.back() = b.syms().constant(1);
  b.store(to, at, z.im);
}

Access first_part(Lowering& l, ValueId v) {
  const Access in = l.access(v);
  return is_complex(l.type(v).dtype) ? part_of(l.syms, in, 0) : in;
}

Status reduce_pairs(Lowering& l, const Node& node, const Args& args, PairFold fold) {
  const ValueId self = args.tensor("self");
  const DType part = real_of(l.type(node.outs[0]).dtype);
  const Access in = first_part(l, self);
  const std::vector<bool> reduced = reduced_dims(args, in.extents.size());
  BodyBuilder b(l, l.name());
  const Rows rows = make_rows(b, in, reduced, part, RowOrder::Memory);
  const std::vector<Val> total =
      b.reduce(combine_of(fold, part), pair_elements(b, fold, self, rows.at, part), rows.tree);
  store_pair(b, node.outs[0], result_point(l.syms, rows, reduced, args.flag("keepdim")),
             pair_result(b, fold, total));
  b.finish();
  return Ok{};
}

Status run_pairs(Lowering& l, const Node& node, const Args& args, PairFold fold) {
  const ValueId self = args.tensor("self");
  const DType part = real_of(l.type(node.outs[0]).dtype);
  const Access in = first_part(l, self);
  BodyBuilder b(l, l.name());
  Exprs at(in.extents.size());
  const std::size_t d = at.empty() ? 0 : args.dim("dim", at.size());
  for (std::size_t k = 0; k < at.size(); ++k)
    if (k != d) at[k] = b.dim(in.extents[k]);
  if (at.empty())
    b.scan_dim(l.syms.constant(1));
  else
    at[d] = b.scan_dim(in.extents[d]);
  const std::vector<Val> values =
      b.scan(combine_of(fold, part), pair_elements(b, fold, self, at, part));
  store_pair(b, node.outs[0], at, pair_result(b, fold, values));
  b.finish();
  return Ok{};
}

/// m2 / (count - correction), as eager: NaN or infinite where the divisor would not be positive.
Val unbiased(Reduction& r, const Args& args, Val m2, DType dtype) {
  BodyBuilder& b = r.b;
  const double correction = args.has("correction") ? args.number("correction") : 1;
  const Val divisor = b.sub(r.count(dtype), b.constant(dtype, correction));
  return b.div(m2, b.max(divisor, b.constant(dtype, 0)));
}

}  // namespace

Status lower_sum(Lowering& l, const Node& node, const Args& args) {
  const DType dtype = result_compute(l, node);
  return simple(l, node, args, is_bool(dtype) ? "any" : "sum", dtype);
}

Status lower_prod(Lowering& l, const Node& node, const Args& args) {
  if (is_complex(l.type(node.outs[0]).dtype)) return reduce_pairs(l, node, args, PairFold::Prod);
  return simple(l, node, args, "prod", result_compute(l, node));
}

Status lower_amax(Lowering& l, const Node& node, const Args& args) {
  return simple(l, node, args, "max", result_compute(l, node));
}

Status lower_amin(Lowering& l, const Node& node, const Args& args) {
  return simple(l, node, args, "min", result_compute(l, node));
}

namespace {

/// any and all: unlike others they reduce nothing where `dim` is an empty list.
Status truth(Lowering& l, const Node& node, const Args& args, std::string_view combine) {
  if (!args.has("dim") || !args.integers("dim").empty())
    return simple(l, node, args, combine, DType::b8);
  const Access& in = l.access(args.tensor("self"));
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  b.store(l.result(), at, b.cast(b.load(in, at), DType::b8));
  b.finish();
  return Ok{};
}

}  // namespace

Status lower_any(Lowering& l, const Node& node, const Args& args) {
  return truth(l, node, args, "any");
}

Status lower_all(Lowering& l, const Node& node, const Args& args) {
  return truth(l, node, args, "all");
}

Status lower_mean(Lowering& l, const Node& node, const Args& args) {
  const DType dtype = result_compute(l, node);
  Reduction r(l, args, dtype);
  const Val sum = r.reduce("sum");
  r.store(node.outs[0], r.b.div(sum, r.count(dtype)));
  r.finish();
  return Ok{};
}

Status lower_argmax(Lowering& l, const Node& node, const Args& args) {
  return arg_extreme(l, node, args, "argmax", false);
}

Status lower_argmin(Lowering& l, const Node& node, const Args& args) {
  return arg_extreme(l, node, args, "argmin", false);
}

Status lower_max_dim(Lowering& l, const Node& node, const Args& args) {
  return arg_extreme(l, node, args, "argmax", true);
}

Status lower_min_dim(Lowering& l, const Node& node, const Args& args) {
  return arg_extreme(l, node, args, "argmin", true);
}

Status lower_variance(Lowering& l, const Node& node, const Args& args) {
  // In double, as eager on a CPU: squares of huge and tiny values stay finite and are no zeros.
  const DType dtype = DType::f64;
  Reduction r(l, args, dtype);
  BodyBuilder& b = r.b;
  const std::vector<Val> stats = b.reduce("welford", r.element, r.rows.tree);
  const DType result = result_compute(l, node);
  Val spread = unbiased(r, args, stats[1], dtype);
  if (node.op.starts_with("std")) spread = b.op(ScalarOp::sqrt, {spread});
  r.store(node.outs[0], b.cast(spread, result));
  if (node.outs.size() > 1) {
    const Val none = b.op(ScalarOp::eq, {r.count(dtype), b.constant(dtype, 0)});
    const Val nan = b.constant(dtype, std::numeric_limits<double>::quiet_NaN());
    r.store(node.outs[1], b.cast(b.where(none, nan, stats[0]), result));
  }
  r.finish();
  return Ok{};
}

Status lower_logsumexp(Lowering& l, const Node& node, const Args& args) {
  if (is_complex(l.type(node.outs[0]).dtype))
    return reduce_pairs(l, node, args, PairFold::SumOfExp);
  const DType dtype = result_compute(l, node);
  Reduction r(l, args, dtype);
  const std::vector<Val> parts = r.b.reduce("logaddexp", r.element, r.rows.tree);
  r.store(node.outs[0], joined(r.b, parts));
  r.finish();
  return Ok{};
}

Status lower_vector_norm(Lowering& l, const Node& node, const Args& args) {
  const DType dtype = result_compute(l, node);
  const double ord = args.number("ord");
  Reduction r(l, args, dtype);
  BodyBuilder& b = r.b;
  const auto reduce = [&](std::string_view combine, Val v) {
    return b.reduce(combine, v, r.rows.tree)[0];
  };
  Val norm;
  if (ord != 0 && l.syms.is_const(r.rows.count, 1)) {  // of one element, that is neither too large
    norm = reduce("sum", b.op(ScalarOp::abs, {r.element}));  // nor too small for its power
  } else if (ord == 2) {
    norm = b.op(ScalarOp::sqrt, {reduce("sum", b.mul(r.element, r.element))});
  } else if (ord == 0) {
    const Val filled = b.op(ScalarOp::ne, {r.element, b.constant(dtype, 0)});
    norm = reduce("sum", b.cast(filled, dtype));
  } else {
    const Val magnitude = b.op(ScalarOp::abs, {r.element});
    if (ord == std::numeric_limits<double>::infinity())
      norm = reduce("max", magnitude);
    else if (ord == -std::numeric_limits<double>::infinity())
      norm = reduce("min", magnitude);
    else if (ord == 1)
      norm = reduce("sum", magnitude);
    else {
      const Val powers = b.op(ScalarOp::pow, {magnitude, b.constant(dtype, ord)});
      norm = b.op(ScalarOp::pow, {reduce("sum", powers), b.constant(dtype, 1 / ord)});
    }
  }
  r.store(node.outs[0], norm);
  r.finish();
  return Ok{};
}

Status lower_cumsum(Lowering& l, const Node& node, const Args& args) {
  return running(l, node, args, "sum");
}

Status lower_cumprod(Lowering& l, const Node& node, const Args& args) {
  if (is_complex(l.type(node.outs[0]).dtype)) return run_pairs(l, node, args, PairFold::Prod);
  return running(l, node, args, "prod");
}

Status lower_logcumsumexp(Lowering& l, const Node& node, const Args& args) {
  if (is_complex(l.type(node.outs[0]).dtype)) return run_pairs(l, node, args, PairFold::LogAddExp);
  const DType dtype = l.type(node.outs[0]).dtype;
  if (!is_float(dtype)) return l.unsupported_case(str("numbers of {}", name(dtype)));
  return running(l, node, args, "logaddexp");
}

Status lower_cummax(Lowering& l, const Node& node, const Args& args) {
  return running(l, node, args, "last_argmax");
}

Status lower_cummin(Lowering& l, const Node& node, const Args& args) {
  return running(l, node, args, "last_argmin");
}

/// The exclusive or of the elements' 64 bits: floats as f64, integers and bools as values.
Status lower_hash_tensor(Lowering& l, const Node& node, const Args& args) {
  if (args.integer("mode") != 0) return l.unsupported_case("a mode other than 0");
  const DType self = l.type(args.tensor("self")).dtype;
  if (is_complex(self)) return l.unsupported_case("a complex tensor");
  const bool floats = is_float(self);
  Reduction r(l, args, floats ? DType::f64 : DType::u64);
  if (floats) r.element = r.b.bitcast(r.element, DType::u64);
  r.store(node.outs[0], r.reduce("xor"));
  r.finish();
  return Ok{};
}

}  // namespace coil::lowering
