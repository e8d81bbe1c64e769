#pragma once
// The expression language of ops/pointwise.def.
//
//   names        arguments of the op's schema; pi, e, inf, nan; highest, lowest: the finite limits
//   of
//                the result's dtype; integral, logical: whether the op computes in integers (or
//                bools), in bools
//   operators    c ? a : b    |  ^  &  (bits, or logic on bools)    == != < <= > >=    + -    * /
//                - ~ (and ! on bools)
//                is_complex: whether an operand or the result is complex
//   functions    the scalar ops of ops/scalar.def, and
//                bool(x)      x != 0
//                real(x), imag(x), conj(x), complex(re, im)
//                given(a, b)  a, or b if the argument a was left out
//                is_none(a)   whether the argument was left out
//                bound(a)     a, as if left out where the result is of integers that end before it
//                chebyshev(s, t)   the sum of c[k] T_k(t), c the series s of ops/series.def
//   other words  text, to compare a string argument with: rounding_mode == floor
//
// An operation on numbers that are known while lowering is done then, and a condition on them
// chooses which of its branches exists. An argument that was left out drops out of min and max.
// Where operands are complex, so are the operators and the functions that complex numbers have
// (lower/complex_math.h); an op whose formula needs another one takes no complex operands.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coil::lowering {

struct Formula {
  enum class Kind { Number, Name, Call };
  Kind kind = Kind::Number;
  std::string name;  // of a name, an operator ("+", "neg", "?:") or a function
  double number = 0;
  bool is_integer = false;  // Number: was written without a point
  std::vector<Formula> operands;
};

/// An Error says what is wrong at which place of the text.
Result<Formula> parse_formula(std::string_view text);
/// Every name in it that is not called, and no series.
void formula_names(const Formula& formula, std::vector<std::string>& out);

}  // namespace coil::lowering
