#pragma once
// Expressions as written: a syntax tree before any rewriting, and its plain evaluation.
// Arena::parse and the rows of rules.def are read through it; tests take its value as the text's
// meaning.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/expr_code.h"
#include "sym/expr.h"

namespace coil::sym {

/// Nesting beyond this is an Error, so that recursion over a tree is safe.
inline constexpr int kMaxTreeDepth = 200;
/// So are more names, numbers and parentheses than this.
inline constexpr int kMaxTreeNodes = 10000;

/// Add, Mul, Min, Max, And, Or have two or more children, in the order written; a - b is a + -1*b.
struct Tree {
  Kind kind = Kind::Const;
  i64 value = 0;     // Const
  std::string name;  // Var
  std::vector<Tree> children;
  int depth = 1;
};

Result<Tree> parse_tree(TextReader& in);

/// One operation (not Const or Var) on the values of its operands, as runtime::evaluate has it.
using runtime::ExprValue;
ExprValue evaluate(Kind kind, std::span<const ExprValue> operands);

/// The value of a tree under an assignment.
std::optional<i64> eval_tree(const Tree& tree,
                             const std::function<std::optional<i64>(const std::string&)>& value);

}  // namespace coil::sym
