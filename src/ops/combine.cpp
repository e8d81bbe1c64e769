#include "ops/combine.h"

#include <limits>

#include "base/check.h"
#include "ops/combine_builder.h"

namespace coil::ops {
namespace {

Scalar number(DType dtype, i64 value) { return Scalar::of_int(dtype, value); }

/// The smallest value of a dtype (-inf of a float), or the largest.
Scalar smallest(DType dtype) {
  if (is_float(dtype)) return Scalar::of_float(dtype, -std::numeric_limits<double>::infinity());
  if (is_bool(dtype) || is_unsigned(dtype)) return number(dtype, 0);
  return number(dtype, static_cast<i64>(~u64{0} << (8 * size_of(dtype) - 1)));
}
Scalar largest(DType dtype) {
  if (is_float(dtype)) return Scalar::of_float(dtype, std::numeric_limits<double>::infinity());
  if (is_bool(dtype)) return Scalar::of_bool(true);
  if (is_unsigned(dtype)) return number(dtype, -1);
  return number(dtype, ~smallest(dtype).i);
}

/// A combine that is one scalar op.
Combine single(std::string_view name, ScalarOp op, const Scalar& identity) {
  const DType dtype = identity.dtype;
  CombineBuilder b(name, {dtype});
  const u32 result = b.add(op, dtype, {b.left(), b.right()});
  return b.finish({identity}, {result});
}

enum class Tie : u8 { First, Last, FirstOrLastNan };

/// The right element is taken if it is better, or equal and at an earlier position (or a later
/// one; of NaNs alone a later one). NaN is better than every number and equal to NaN. The
/// identity's position is the last one (or one before the first), so that it loses even to an
/// element of the same value.
Combine arg_extreme(std::string_view name, ScalarOp better_op, const Scalar& worst,
                    Tie tie = Tie::First) {
  using enum ScalarOp;
  const DType dtype = worst.dtype;
  const bool first = tie != Tie::Last;
  CombineBuilder b(name, {dtype, DType::i64});
  u32 better = b.test(better_op, {b.right(0), b.left(0)});
  u32 equal = b.test(eq, {b.left(0), b.right(0)});
  if (is_float(dtype)) {
    const u32 left_nan = b.test(isnan, {b.left(0)});
    const u32 right_nan = b.test(isnan, {b.right(0)});
    const u32 first_nan = b.test(gt, {right_nan, left_nan});
    const u32 both_nan = b.test(bits_and, {left_nan, right_nan});
    better = b.test(bits_or, {better, first_nan});
    if (tie == Tie::FirstOrLastNan) {
      const u32 later = b.test(gt, {b.right(1), b.left(1)});
      better = b.test(bits_or, {better, b.test(bits_and, {both_nan, later})});
    } else {
      equal = b.test(bits_or, {equal, both_nan});
    }
  }
  const u32 nearer = b.test(first ? lt : gt, {b.right(1), b.left(1)});
  const u32 wins_tie = b.test(bits_and, {equal, nearer});
  const u32 take_right = b.test(bits_or, {better, wins_tie});
  const u32 element = b.add(where, dtype, {take_right, b.right(0), b.left(0)});
  const u32 position = b.add(where, DType::i64, {take_right, b.right(1), b.left(1)});
  const Scalar nowhere = first ? largest(DType::i64) : smallest(DType::i64);
  return b.finish({worst, nowhere}, {element, position});
}

/// Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
/// variances" (1979): with d = mean_b - mean_a and w = n_b / (n_a + n_b),
///   mean = mean_a + d*w,   m2 = m2_a + m2_b + d * (d * (n_a*w)).
/// The divisor is at least 1, so an empty part has weight 0, and d*d is never formed alone: it may
/// overflow where the product with a zero weight must vanish. An empty part b moves nothing, not
/// even an infinite mean.
Combine welford(DType dtype) {
  using enum ScalarOp;
  CombineBuilder b("welford", {dtype, dtype, dtype});
  const u32 count = b.add(add, dtype, {b.left(2), b.right(2)});
  const u32 one = b.constant(number(dtype, 1));
  const u32 divisor = b.add(max, dtype, {count, one});
  const u32 weight = b.add(div, dtype, {b.right(2), divisor});
  const u32 delta = b.add(sub, dtype, {b.right(0), b.left(0)});
  const u32 none = b.constant(number(dtype, 0));
  const u32 is_empty = b.test(eq, {b.right(2), none});
  const u32 shift = b.add(where, dtype, {is_empty, none, b.add(mul, dtype, {delta, weight})});
  const u32 mean = b.add(add, dtype, {b.left(0), shift});
  const u32 both_weights = b.add(mul, dtype, {b.left(2), weight});
  const u32 weighted = b.add(mul, dtype, {delta, both_weights});
  const u32 between = b.add(mul, dtype, {delta, weighted});
  const u32 within = b.add(add, dtype, {b.left(1), b.right(1)});
  const u32 m2 = b.add(add, dtype, {within, between});
  const Scalar zero = number(dtype, 0);
  return b.finish({zero, zero, zero}, {mean, m2, count});
}

/// Sums of exp(x - m) about the common largest value m; about 0 where m is infinite, since
/// inf - inf would be NaN. So log(sum) + m is the logarithm of the sum of exp(x) in every case.
Combine log_add_exp(DType dtype) {
  using enum ScalarOp;
  CombineBuilder b("logaddexp", {dtype, dtype});
  const u32 top = b.add(max, dtype, {b.left(0), b.right(0)});
  const u32 infinite = b.test(isinf, {top});
  const u32 zero = b.constant(number(dtype, 0));
  const u32 origin = b.add(where, dtype, {infinite, zero, top});
  const auto rescaled = [&](u32 part_top, u32 part_sum) {
    const u32 distance = b.add(sub, dtype, {part_top, origin});
    const u32 factor = b.add(exp, dtype, {distance});
    return b.add(mul, dtype, {part_sum, factor});
  };
  const u32 left = rescaled(b.left(0), b.left(1));
  const u32 right = rescaled(b.right(0), b.right(1));
  const u32 sum = b.add(add, dtype, {left, right});
  return b.finish({smallest(dtype), number(dtype, 0)}, {top, sum});
}

}  // namespace

std::optional<Combine> named_combine(std::string_view name, DType dtype) {
  if (is_complex(dtype) || is_narrow_float(dtype)) return std::nullopt;
  const bool numeric = !is_bool(dtype);
  if (name == "sum" && numeric) return single(name, ScalarOp::add, number(dtype, 0));
  if (name == "prod" && numeric) return single(name, ScalarOp::mul, number(dtype, 1));
  if (name == "min") return single(name, ScalarOp::min, largest(dtype));
  if (name == "max") return single(name, ScalarOp::max, smallest(dtype));
  if (name == "any" && !numeric) return single(name, ScalarOp::bits_or, Scalar::of_bool(false));
  if (name == "all" && !numeric) return single(name, ScalarOp::bits_and, Scalar::of_bool(true));
  if (name == "xor" && !is_float(dtype)) return single(name, ScalarOp::bits_xor, number(dtype, 0));
  if (name == "argmin") return arg_extreme(name, ScalarOp::lt, largest(dtype));
  if (name == "argmax") return arg_extreme(name, ScalarOp::gt, smallest(dtype));
  if (name == "last_argmin") return arg_extreme(name, ScalarOp::lt, largest(dtype), Tie::Last);
  if (name == "last_argmax") return arg_extreme(name, ScalarOp::gt, smallest(dtype), Tie::Last);
  if (name == "last_nan_argmax")
    return arg_extreme(name, ScalarOp::gt, smallest(dtype), Tie::FirstOrLastNan);
  if (name == "welford" && is_float(dtype)) return welford(dtype);
  if (name == "logaddexp" && is_float(dtype)) return log_add_exp(dtype);
  return std::nullopt;
}

std::vector<RegionInst> lift(const Combine& combine) {
  const auto copy = [&](std::size_t value, u32 operand) {
    return RegionInst{ScalarOp::cast, combine.values[value], {operand}, std::nullopt};
  };
  const auto constant = [&](std::size_t value, i64 content) {
    const DType dtype = combine.values[value];
    return RegionInst{ScalarOp::add, dtype, {}, number(dtype, content)};
  };
  constexpr u32 kElement = 0, kPosition = 1;
  if (combine.name.ends_with("argmin") || combine.name.ends_with("argmax"))
    return {copy(0, kElement), copy(1, kPosition)};
  if (combine.name == "welford") return {copy(0, kElement), constant(1, 0), constant(2, 1)};
  if (combine.name == "logaddexp") return {copy(0, kElement), constant(1, 1)};
  COIL_CHECK(combine.values.size() == 1, "combine '{}' has no lift of its own", combine.name);
  return {copy(0, kElement)};
}

std::vector<Scalar> apply(const Combine& combine, std::span<const Scalar> left,
                          std::span<const Scalar> right) {
  const std::size_t count = combine.values.size();
  COIL_CHECK(left.size() == count && right.size() == count, "combine '{}' takes {} values a side",
             combine.name, count);
  std::vector<Scalar> values(left.begin(), left.end());
  values.insert(values.end(), right.begin(), right.end());
  std::vector<Scalar> operands;
  for (const RegionInst& inst : combine.insts) {
    if (inst.constant) {
      values.push_back(*inst.constant);
      continue;
    }
    operands.clear();
    for (u32 operand : inst.operands) operands.push_back(values.at(operand));
    values.push_back(evaluate(inst.op, inst.dtype, operands));
  }
  std::vector<Scalar> results;
  for (u32 result : combine.results) results.push_back(values.at(result));
  return results;
}

}  // namespace coil::ops
