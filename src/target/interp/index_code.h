#pragma once
// Index expressions over a chunk of points: linear ones as scaled columns, others as stack code.

#include <span>
#include <vector>

#include "target/interp/memory.h"

namespace coil::interp {

/// base + the sum of scale[c] * column[c].
struct Linear {
  i64 base = 0;
  std::vector<i64> scale;

  bool is_constant() const;
  void evaluate(i64 n, std::span<const i64* const> columns, i64* out) const;
};

/// Inclusive bounds of a column's values.
struct Bounds {
  i64 lo = 0;
  i64 hi = -1;
};

class IndexCode {
 public:
  /// `columns` are the variables that differ from point to point; all others have values in `env`.
  IndexCode(sym::Expr e, std::span<const sym::Expr> columns, const Env& env);

  /// The value at `n` points. Overflow wraps and a zero divisor gives 0, for points that a mask
  /// switches off; elsewhere the result fails the bounds check that follows.
  void evaluate(i64 n, std::span<const i64* const> columns, i64* out) const;
  const Linear* linear() const { return code_.size() == 1 ? &code_[0].leaf : nullptr; }
  /// Whether the value is provably in 0..extent-1 where columns are within bounds.
  bool is_within(i64 extent, std::span<const Bounds> bounds) const;

 private:
  struct Op {
    sym::Kind kind = sym::Kind::Const;  // Const: a linear leaf
    u32 arity = 0;
    Linear leaf;
  };
  void emit(sym::Expr e, std::span<const sym::Expr> columns, const Env& env);

  std::vector<Op> code_;  // postfix
};

}  // namespace coil::interp
