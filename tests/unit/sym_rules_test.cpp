// Each row of rules.def alone, by brute force, and that each row is reached.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sym/rules.h"

namespace coil::sym {
namespace {

Tree tree_of(const char* text) {
  TextReader in(text, "row");
  Result<Tree> tree = parse_tree(in);
  EXPECT_TRUE(tree.ok()) << text;
  EXPECT_TRUE(in.at_end()) << text;
  return *tree;
}

void names_of(const Tree& tree, std::set<std::string>& out) {
  if (tree.kind == Kind::Var) out.insert(tree.name);
  for (const Tree& c : tree.children) names_of(c, out);
}

/// Calls `visit` with each assignment of small values to `names`; booleans are 0 and 1.
void for_all(const std::vector<std::string>& names, std::map<std::string, i64>& values,
             const std::function<void()>& visit) {
  if (values.size() == names.size()) return visit();
  const std::string& name = names[values.size()];
  const bool boolean = name[0] == 'b';
  const i64 reach = names.size() > 4 ? 3 : names.size() == 4 ? 5 : 9;
  for (i64 v = boolean ? 0 : -reach; v <= (boolean ? 1 : reach); ++v) {
    values[name] = v;
    for_all(names, values, visit);
    values.erase(name);
  }
}

class Row : public testing::TestWithParam<RuleText> {};

TEST_P(Row, HoldsForAllSmallValues) {
  const RuleText row = GetParam();
  const Tree pattern = tree_of(row.pattern);
  const Tree replacement = tree_of(row.replacement);
  std::optional<Tree> condition;
  if (*row.condition != '\0') condition = tree_of(row.condition);
  std::set<std::string> found;
  names_of(pattern, found);
  const std::vector<std::string> names(found.begin(), found.end());
  std::map<std::string, i64> values;
  auto value = [&](const std::string& name) -> std::optional<i64> { return values.at(name); };
  int checked = 0;
  for_all(names, values, [&] {
    const std::optional<i64> left = eval_tree(pattern, value);
    if (!left || (condition && eval_tree(*condition, value) == 0)) return;
    ++checked;
    ASSERT_EQ(left, eval_tree(replacement, value))
        << row.name << " with "
        << join(values, ", ", [](const auto& v) { return str("{} = {}", v.first, v.second); });
  });
  EXPECT_GT(checked, 0) << "the condition never holds";
}

INSTANTIATE_TEST_SUITE_P(Sym, Row, testing::ValuesIn(rule_texts().begin(), rule_texts().end()),
                         [](const auto& info) { return std::string(info.param.name); });

/// What is built, per row that makes it so. i0 < s0, i1 < s1, j < 4, k < 8; n, x, y any.
struct Example {
  const char* row;
  const char* in;
  const char* out;
};
const Example kExamples[] = {
    {"floordiv_one", "x // 1", "x"},
    {"floordiv_zero", "0 // n", "0"},
    {"floordiv_self", "n // n", "1"},
    {"floordiv_negative", "x // (-4)", "(-x) // 4"},
    {"floordiv_small", "i1 // s1", "0"},
    {"floordiv_small", "(4*i0 + j) // (4*s0)", "0"},
    {"floordiv_small_negative", "(j - 4) // 8", "-1"},
    {"floordiv_multiple", "(8*x + k) // 8", "x"},
    {"floordiv_multiple", "(i0*s1 + i1) // s1", "i0"},
    {"floordiv_multiple", "(i0*(s1 + 1) + i1) // (s1 + 1)", "i0"},
    {"floordiv_multiple", "(x - 1) // 4", "(x + 3) // 4 - 1"},
    {"floordiv_nested", "x // 3 // 5", "x // 15"},
    {"floordiv_of_mod", "(x % 12) // 4", "(x // 4) % 3"},
    {"floordiv_common", "(4*x + j) // 12", "x // 3"},
    {"floordiv_common", "(s1*x + i1) // (8*s1)", "x // 8"},
    {"mod_one", "x % 1", "0"},
    {"mod_zero", "0 % n", "0"},
    {"mod_self", "n % n", "0"},
    {"mod_negative", "x % -4", "-((-x) % 4)"},
    {"mod_small", "i1 % s1", "i1"},
    {"mod_small_negative", "(j - 4) % 8", "j + 4"},
    {"mod_multiple", "(8*x + k) % 8", "k"},
    {"mod_multiple", "(i0*s1 + i1) % s1", "i1"},
    {"mod_nested", "x % 12 % 4", "x % 4"},
    {"mod_inner_same", "(x % n + 3) % n", "(x + 3) % n"},
    {"mod_inner_multiple", "(x % 12 + y) % 4", "(x + y) % 4"},
    {"mod_common", "(4*x + j) % 12", "j + (x % 3)*4"},
    {"sum_of_quotient_and_rest", "x // n * n + x % n", "x"},
    {"sum_of_quotient_and_rest", "3*y*(x % 5) + 15*y*(x // 5) + 7", "x*y*3 + 7"},
    {"sum_of_quotient_and_rest", "x // 20 * 20 + x // 5 % 4 * 5 + x % 5", "x"},
    {"sum_of_min_and_max", "min(x, y) + max(x, y)", "x + y"},
    {"min_ordered", "min(j, 9)", "j"},
    {"min_ordered", "min(i0, s0)", "i0"},
    {"min_of_max", "min(x, max(x, y))", "x"},
    {"max_ordered", "max(j, 9, x)", "max(x, 9)"},
    {"max_of_min", "max(x, min(x, y))", "x"},
    {"lt_true", "i0 < s0", "1"},
    {"lt_true", "i0*s1 + i1 < s0*s1", "1"},
    {"lt_false", "s0 < i0", "0"},
    {"lt_boolean", "(x < y) < 1", "y <= x"},
    {"le_true", "j <= 3", "1"},
    {"le_false", "4 <= j", "0"},
    {"le_boolean", "1 <= (x < y)", "x < y"},
    {"eq_less", "i0 == s0", "0"},
    {"eq_greater", "s0 == i0 - 1", "0"},
    {"eq_boolean_one", "(x < y) == 1", "x < y"},
    {"eq_boolean_zero", "(x < y) == 0", "y <= x"},
    {"ne_less", "i0 != s0", "1"},
    {"ne_greater", "j + 9 != j", "1"},
    {"ne_boolean_one", "(x < y) != 1", "y <= x"},
    {"ne_boolean_zero", "(x < y) != 0", "x < y"},
    {"and_one", "x < y and 1", "x < y"},
    {"and_zero", "x < y and 0", "0"},
    {"and_contradiction", "t and not t", "0"},
    {"or_zero", "x < y or 0", "x < y"},
    {"or_one", "x < y or 1", "1"},
    {"or_excluded_middle", "t or not t", "1"},
    {"not_not", "not (not t)", "t"},
    {"not_eq", "not (x == y)", "x != y"},
    {"not_ne", "not (x != y)", "x == y"},
    {"not_lt", "not (x < y)", "y <= x"},
    {"not_le", "not (x <= y)", "y < x"},
    {"select_same", "select(x < y, n, n)", "n"},
    {"select_boolean", "select(x < y, 1, 0)", "x < y"},
    {"select_not_boolean", "select(x < y, 0, 1)", "y <= x"},
    {"select_not", "select(not (x < y), n, 7)", "select(y <= x, n, 7)"},
    {"select_ne", "select(x != y, n, 7)", "select(x == y, 7, n)"},
    {"select_min_lt", "select(x < y, x, y)", "min(x, y)"},
    {"select_min_le", "select(x <= y, x, y)", "min(x, y)"},
    {"select_max_lt", "select(x < y, y, x)", "max(x, y)"},
    {"select_max_le", "select(x <= y, y, x)", "max(x, y)"},
    {"select_yes_nested", "select(x < y, select(x < y, 1, n), 9)", "select(x < y, 1, 9)"},
    {"select_no_nested", "select(x < y, 9, select(x < y, 1, n))", "select(x < y, 9, n)"},
};

TEST(SymRules, Examples) {
  for (const Example& example : kExamples) {
    Arena arena;
    std::map<std::string, Expr, std::less<>> vars;
    auto add = [&](const char* name, Role role, Range range, Expr extent = {}) {
      return vars[name] = arena.variable({name, role, range, extent});
    };
    const Expr s0 = add("s0", Role::Size, {0, kMaxInt});
    const Expr s1 = add("s1", Role::Size, {0, kMaxInt});
    add("i0", Role::Loop, {}, s0);
    add("i1", Role::Loop, {}, s1);
    add("j", Role::Loop, {}, arena.constant(4));
    add("k", Role::Loop, {}, arena.constant(8));
    add("t", Role::Value, {0, 1});
    for (const char* name : {"n", "x", "y"}) add(name, Role::Value, {});
    TextReader in(example.in, "in");
    Result<Expr> e = arena.parse(in, [&](std::string_view name) -> std::optional<Expr> {
      auto it = vars.find(name);
      return it == vars.end() ? std::nullopt : std::optional<Expr>(it->second);
    });
    ASSERT_TRUE(e.ok()) << example.in << ": " << e.error().message;
    EXPECT_EQ(arena.text(*e), example.out) << example.row << ": " << example.in;
  }
  std::set<std::string> shown;
  for (const Example& example : kExamples) shown.insert(example.row);
  for (const RuleText& row : rule_texts()) EXPECT_TRUE(shown.contains(row.name)) << row.name;
}

}  // namespace
}  // namespace coil::sym
