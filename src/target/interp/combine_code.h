#pragma once
// Combines over arrays of partial values, and reductions in the order that their tree states.

#include <span>
#include <vector>

#include "ops/combine.h"
#include "target/interp/memory.h"

namespace coil::interp {

using Bytes = std::vector<std::byte>;

/// The dtype in which a widened program holds `dtype`.
DType held_dtype(DType dtype, bool widen);

/// An op on `n` elements of the operands' and the result's own dtypes, which a widened program
/// holds as f64 where they are floats.
struct OpCall {
  ops::ScalarOp op;
  std::span<const DType> operands;
  DType result;
  bool widen;
};
void evaluate_op(const OpCall& call, i64 n, std::span<const std::byte* const> operands,
                 std::byte* result);
/// `n` copies of a constant.
void fill(const ops::Scalar& value, bool widen, i64 n, std::byte* out);

class CombineCode {
 public:
  CombineCode(const ops::Combine& combine, bool widen) : combine_(combine), widen_(widen) {}

  std::size_t count() const { return combine_.values.size(); }
  i64 element_size(std::size_t value) const {
    return size_of(held_dtype(combine_.values[value], widen_));
  }
  void fill_identity(std::size_t value, i64 n, std::byte* out) const {
    fill(combine_.identity[value], widen_, n, out);
  }
  /// left[i] = left[i] (+) right[i].
  void apply(i64 n, std::span<std::byte* const> left, std::span<const std::byte* const> right);
  /// The partial values of `n` elements as loaded; `operands` are the instruction's.
  std::vector<const std::byte*> lift(i64 n, std::span<const std::byte* const> operands,
                                     const i64* positions);

 private:
  const ops::Combine& combine_;
  bool widen_;
  std::vector<Bytes> temporaries_;
  std::vector<Bytes> lifted_;
};

/// One Reduce over rows of `extent` innermost positions, for `points` parallel points side by side.
/// Slot s holds lane s % lanes of accumulator s / lanes. With blocks, each row of the innermost dim
/// is cut into blocks of its own, and their results are combined in order.
class Reduction {
 public:
  Reduction(CombineCode& combine, const ops::Tree& tree, i64 points, i64 extent);
  /// Elements at row-major positions first .. first + n - 1, each `points` wide.
  void accumulate(i64 first, i64 n, std::span<const std::byte* const> lifted);
  /// The results, `points` elements each.
  void finish(std::span<Bytes> results);

 private:
  void reset();
  void fold();
  std::byte* slot(std::size_t value, i64 s) {
    return slots_[value].data() + s * points_ * combine_.element_size(value);
  }

  CombineCode& combine_;
  ops::Tree tree_;
  i64 points_;
  i64 extent_;
  std::vector<Bytes> slots_;
  std::vector<Bytes> total_;  // of the blocks folded so far
  bool has_total_ = false;
};

}  // namespace coil::interp
