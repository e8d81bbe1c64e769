#pragma once
// Combines: what a reduce or scan does to bring two partial results together.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/scalar.h"

namespace coil::ops {

/// A small SSA region. Operands index first the region's inputs (left values, then right values),
/// then earlier instructions in order.
struct RegionInst {
  ScalarOp op = ScalarOp::add;
  DType dtype = DType::f32;  // of the result
  std::vector<u32> operands;
  std::optional<Scalar> constant;  // set: a constant, `op` and operands are unused
  bool operator==(const RegionInst&) const = default;
};

/// Combines `values.size()` partial values from the left with as many from the right, associative
/// up to rounding.
struct Combine {
  std::string name;              // of a row of combine.def, or "" for a user's own region
  std::vector<DType> values;     // dtypes of the partial values
  std::vector<Scalar> identity;  // what no element gives, one for each value
  std::vector<RegionInst> insts;
  std::vector<u32> results;  // operand indices, one for each value
  bool operator==(const Combine&) const = default;
};

/// Builds a named combine for elements of `dtype`:
///   sum prod min max any all xor  1 value
///   [last_]argmin [last_]argmax   2 values: element, i64 position; NaN wins, then the first (last)
///   last_nan_argmax               the same: the last NaN, else the first of the largest
///   welford                       3 values: mean, sum of squared distances (m2), count
///   logaddexp                     2 values: largest, sum of exp(x - largest)
/// nothing for an unknown name or a dtype that it does not take.
std::optional<Combine> named_combine(std::string_view name, DType dtype);

/// How one element becomes the partial values of a named combine. `element` is the loaded value,
/// `position` its i64 place in the reduced row: the lifts are (x), (x, position), (x, 0, 1), (x,
/// 1). Instruction k gives value k: a constant, or a cast to its own dtype of operand 0, the
/// element, or operand 1, the position.
std::vector<RegionInst> lift(const Combine& combine);

/// One step on single values: left (+) right.
std::vector<Scalar> apply(const Combine& combine, std::span<const Scalar> left,
                          std::span<const Scalar> right);

/// In which order a reduction combines its elements; it decides the bits of a float result, and so
/// is fixed at lowering. Position r along the innermost reduced dim goes to slot r % (lanes*accs);
/// outer reduced dims are walked in order and carry the slots on. Each slot starts at the identity
/// and takes its elements in rising order. When all are taken (or each `block` inner positions, if
/// block > 0, with the results combined in order) the slots are folded: accumulators in order,
/// ((a0+a1)+a2)+a3 of each lane, then lanes by halves: lane l takes l + lanes/2, and so on.
///
/// Kernels that fold the results of blocks have 1x0: there are no slots, the elements are partial
/// values, and are combined in rising order, beginning with the first one.
struct Tree {
  u16 lanes = 1;
  u16 accs = 1;
  u32 block = 0;
  bool operator==(const Tree&) const = default;
};

}  // namespace coil::ops
