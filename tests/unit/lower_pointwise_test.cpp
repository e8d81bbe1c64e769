// The table of elementwise ops: every row parses, and names only what exists.

#include "lower/pointwise.h"

#include <gtest/gtest.h>

#include <set>

#include "lower/formula.h"
#include "lower/registry.h"
#include "ops/lowered.h"
#include "ops/schema.h"
#include "ops/series.h"

namespace coil::lowering {
namespace {

bool is_function(const Formula& f) {
  static const std::set<std::string> kOperators = {
      "?:", "|", "^", "&", "==", "!=",   "<=",   ">=",   "<",    ">",
      "+",  "-", "*", "/", "!",  "bool", "real", "imag", "conj", "complex"};
  if (f.name == "chebyshev")
    return f.operands.size() == 2 && !ops::find_series(f.operands[0].name).empty();
  if (f.name == "given" || f.name == "is_none" || f.name == "bound") return !f.operands.empty();
  if (kOperators.contains(f.name)) return true;
  const auto op = ops::scalar_from_name(f.name);
  return op && ops::info(*op).arity == static_cast<int>(f.operands.size());
}

void check_calls(const Formula& f, std::string_view op) {
  EXPECT_TRUE(f.kind != Formula::Kind::Call || is_function(f)) << op << ": " << f.name;
  for (const Formula& operand : f.operands) check_calls(operand, op);
}

TEST(LowerPointwise, EveryRowIsSound) {
  std::set<std::string_view> seen;
  for (std::string_view op : pointwise_ops()) {
    EXPECT_TRUE(seen.insert(op).second) << op << " has two rows";
    const auto schema = ops::find_schema(op);
    ASSERT_TRUE(schema.has_value()) << op;
    const auto formula = parse_formula(pointwise_formula(op));
    ASSERT_TRUE(formula.ok()) << op << ": " << formula.error().message;
    std::vector<std::string> names;
    formula_names(*formula, names);
    for (const std::string& name : names)
      EXPECT_TRUE(schema->arg_index(name) >= 0 || is_formula_word(name)) << op << ": " << name;
    check_calls(*formula, op);
  }
}

TEST(LowerPointwise, FormulasBindAsInC) {
  const auto text = [](const Formula& f, auto&& self) -> std::string {
    if (f.kind == Formula::Kind::Name) return f.name;
    if (f.kind == Formula::Kind::Number) return str("{}", f.number);
    return f.name + "(" + join(f.operands, ",", [&](const Formula& o) { return self(o, self); }) +
           ")";
  };
  const auto parsed = [&](std::string_view formula) {
    const auto f = parse_formula(formula);
    return f.ok() ? text(*f, text) : f.error().message;
  };
  EXPECT_EQ(parsed("a + b * -c"), "+(a,*(b,neg(c)))");
  EXPECT_EQ(parsed("a - b - c"), "-(-(a,b),c)");
  EXPECT_EQ(parsed("a <= b & !c ? d : e ? f : 1.5"), "?:(&(<=(a,b),!(c)),d,?:(e,f,1.5))");
  EXPECT_EQ(parsed("min(a, exp(b))"), "min(a,exp(b))");
  EXPECT_EQ(parsed("a + "), "formula 'a + ': unexpected '' at 4");
  EXPECT_EQ(parsed("(a"), "formula '(a': unexpected '' at 2");
  EXPECT_EQ(parsed("a b"), "formula 'a b': unexpected 'b' at 2");
}

TEST(LowerRegistry, EveryOpHasASchema) {
  for (std::string_view op : ops::lowered_ops()) {
    EXPECT_TRUE(ops::find_schema(op).has_value()) << op;
    EXPECT_NE(find_lowering(op), nullptr) << op;
  }
  EXPECT_EQ(find_lowering("no_such_op"), nullptr);
}

}  // namespace
}  // namespace coil::lowering
