#pragma once
// Numbers that a program computes from sizes before it runs: exact fractions of integer
// expressions. Python's int and float arithmetic on sizes maps to them where the result is exact.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sym/prover.h"

namespace coil {

/// num / den with den > 0. A bool is an integer of 0 or 1.
struct HostNumber {
  sym::Expr num;
  sym::Expr den;
  bool is_float = false;  // of Python's type float
};

/// Arithmetic as Python has it. Functions give nothing where the result is no exact fraction.
class HostMath {
 public:
  explicit HostMath(sym::Arena& syms) : syms_(syms) {}

  HostNumber integer(sym::Expr value) const { return {value, syms_.constant(1), false}; }
  HostNumber integer(i64 value) const { return integer(syms_.constant(value)); }
  /// Nothing for values that are not a short binary fraction, such as 0.1.
  std::optional<HostNumber> real(double value) const;
  /// The expression of an integer; nothing for a fraction.
  std::optional<sym::Expr> as_integer(const HostNumber& a) const;
  /// The value of a number that depends on no size.
  std::optional<double> as_constant(const HostNumber& a) const;

  std::optional<HostNumber> add(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> mul(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> truediv(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> floordiv(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> mod(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> pow(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> min(const HostNumber& a, const HostNumber& b) const;
  std::optional<HostNumber> max(const HostNumber& a, const HostNumber& b) const;
  HostNumber neg(const HostNumber& a) const;
  /// To an integer: towards zero, downwards, upwards.
  HostNumber trunc(const HostNumber& a) const;
  HostNumber floor(const HostNumber& a) const;
  HostNumber ceil(const HostNumber& a) const;
  HostNumber to_float(HostNumber a) const;
  /// `op` is ==, !=, <, <=, > or >=.
  HostNumber compare(std::string_view op, const HostNumber& a, const HostNumber& b) const;

  /// Whether it has few enough terms when written out; what is longer, no program means. Nodes
  /// share their operands, so that some dozens of them can make an expression that no memory holds.
  bool is_short(const HostNumber& a) const;

  sym::Arena& syms() const { return syms_; }

 private:
  std::size_t summands(sym::Expr e) const;

  sym::Arena& syms_;
};

}  // namespace coil
