#pragma once
// Symbolic integers: interned expressions over i64 that are canonical when built.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/text.h"

namespace coil::sym {

struct ExprTag;
using Expr = Id<ExprTag>;

/// Comparisons and boolean kinds have the values 0 and 1. FloorDiv and Mod round towards minus
/// infinity (Mod has the sign of its divisor), as in Python; a zero divisor has no value.
/// Add, Mul, Min, Max, And and Or have two or more operands; a constant operand of Add, Mul, Min or
/// Max is the last one.
enum class Kind : u8 {
  Const,
  Var,
  Add,
  Mul,
  FloorDiv,
  Mod,
  Min,
  Max,
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,
  Select
};

/// Loop and Reduce: dims of a body or axes of a kernel. Size: a dynamic size, known at entry.
/// Value: known only during a run (item(), a data-dependent size, an index loaded from memory).
/// Step: the step of a recurrence.
enum class Role : u8 { Loop, Reduce, Size, Value, Step };

inline constexpr i64 kMinInt = INT64_MIN;  // as a bound: none
inline constexpr i64 kMaxInt = INT64_MAX;  // as a bound: none

/// Inclusive bounds.
struct Range {
  i64 lo = kMinInt;
  i64 hi = kMaxInt;
  bool operator==(const Range&) const = default;
};

struct Variable {
  std::string name;  // for print; two variables of one arena may share it (i0 of two bodies)
  Role role = Role::Size;
  Range range;
  Expr extent;  // Loop, Reduce, Step: 0 <= variable < extent, which may be symbolic; else invalid
};

/// Owns every expression and variable of one compilation. Equal expressions have equal ids: sums
/// are flattened with like terms collected and constants folded, products flattened and sorted,
/// rewrite rows of rules.def applied, all when the expression is built. Operands are ordered by
/// structure (kind, role, name, creation order), never by address. Folding that would overflow i64
/// is left unfolded; evaluating it gives nothing. Wherever an expression as it was asked for has a
/// value, what was built has the same value, or none if moving terms made one overflow (only near
/// the ends of i64). Where it had no value (a zero divisor, an overflow), the result may have one.
///
/// Sums and products are polynomials, multiplied out: (a + b)*c is a*c + b*c (a product of two sums
/// of more than 64 terms in all stays a product). `a < b` and `a <= b` are brought to one form.
class Arena {
 public:
  Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  Expr constant(i64 value);
  /// A new variable, different from all others.
  Expr variable(Variable v);
  Expr add(Expr a, Expr b);
  Expr sub(Expr a, Expr b);
  Expr neg(Expr a);
  Expr mul(Expr a, Expr b);
  Expr floordiv(Expr a, Expr b);
  Expr ceildiv(Expr a, Expr b);
  Expr mod(Expr a, Expr b);
  Expr min(Expr a, Expr b);
  Expr max(Expr a, Expr b);
  Expr eq(Expr a, Expr b);
  Expr ne(Expr a, Expr b);
  Expr lt(Expr a, Expr b);
  Expr le(Expr a, Expr b);
  Expr logical_and(Expr a, Expr b);
  Expr logical_or(Expr a, Expr b);
  Expr logical_not(Expr a);
  Expr select(Expr condition, Expr yes, Expr no);
  Expr product(std::span<const Expr> factors);  // 1 for none
  Expr sum(std::span<const Expr> terms);        // 0 for none

  Kind kind(Expr e) const;
  std::span<const Expr> operands(Expr e) const;
  /// The value of a Const; nothing for other kinds.
  std::optional<i64> as_const(Expr e) const;
  bool is_const(Expr e, i64 value) const;
  /// Of a Var.
  const Variable& var(Expr e) const;
  /// Narrows what is known of a Var (a fact given later); bounds already cached are kept valid.
  void set_range(Expr var, Range range);
  /// Bounds that follow from the variables' ranges and constant extents.
  Range range(Expr e) const;

  bool uses(Expr e, Expr var) const;
  /// Appends each Var of `e` that is not yet in `out`, in structural order.
  void variables(Expr e, std::vector<Expr>& out) const;
  /// Replaces variables; the result is rebuilt and so canonical.
  Expr substitute(Expr e, const std::vector<std::pair<Expr, Expr>>& from_to);
  /// d with e(var + 1) - e(var) == d for all values, and d free of `var`; nothing if e is not
  /// provably linear in `var`.
  std::optional<Expr> stride(Expr e, Expr var);

  /// The value under an assignment of its variables; nothing on overflow, a zero divisor or a
  /// variable without a value.
  std::optional<i64> eval(Expr e, const std::function<std::optional<i64>(Expr)>& value) const;

  /// `s0*64 + i1`, `(i0 + 2) // 3`, `i0 % 4`, `min(a, b)`, `a <= b`, `a and b`, `select(c, a, b)`;
  /// parse takes it back. Negative terms print as subtraction.
  std::string text(Expr e) const;
  /// Parses an expression; `lookup` gives the variable of a name, or nothing.
  Result<Expr> parse(TextReader& in,
                     const std::function<std::optional<Expr>(std::string_view)>& lookup);

  std::size_t size() const;
  /// How many names, numbers and operations `e` has when written out. Equal parts are shared, so
  /// that it can be far more than size(): who builds on expressions of a hostile file must set a
  /// limit.
  std::size_t terms(Expr e) const;

  struct Impl;  // in arena.h, for this folder

 private:
  friend class Prover;
  Impl* impl_;
};

}  // namespace coil::sym

template <>
struct std::hash<coil::sym::Expr> {
  std::size_t operator()(coil::sym::Expr e) const { return e.index; }
};
