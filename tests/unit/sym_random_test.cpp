// Random expressions: what Arena builds against the plain evaluation of the text.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sym/code.h"
#include "sym/prover.h"
#include "sym/tree.h"

namespace coil::sym {
namespace {

/// i0 < s0, i1 < 6, i2 < s0*s1, 0 <= s0, 1 <= s1, v any.
class World {
 public:
  explicit World(u32 seed) : random_(seed) {
    const Expr s0 = add("s0", Role::Size, {0, kMaxInt});
    const Expr s1 = add("s1", Role::Size, {1, 9});
    add("i0", Role::Loop, {}, s0);
    add("i1", Role::Loop, {}, arena.constant(6));
    add("i2", Role::Reduce, {}, arena.mul(s0, s1));
    add("v", Role::Value, {});
  }

  i64 pick(i64 lo, i64 hi) { return std::uniform_int_distribution<i64>(lo, hi)(random_); }

  std::string number(int depth) {
    if (depth == 0 || pick(0, 9) == 0) {
      if (huge && pick(0, 3) == 0)
        return str("{}", pick(0, 1) ? kMaxInt - pick(0, 2) : kMinInt + pick(0, 2));
      if (pick(0, 2) == 0) return str("{}", pick(0, 3) == 0 ? pick(-5, -1) : pick(0, 12));
      return names_[static_cast<std::size_t>(pick(0, static_cast<i64>(names_.size()) - 1))];
    }
    const std::string a = number(depth - 1);
    const std::string b = number(depth - 1);
    const std::string c = str("{}", pick(1, 6));
    switch (pick(0, 11)) {
      case 0:
      case 1: return str("({} + {})", a, b);
      case 2: return str("({} - {})", a, b);
      case 3: return str("{}*({})", c, a);
      case 4: return str("({})*({})", a, b);
      case 5: return str("(({})*{} + ({}))//{}", a, c, b, c);
      case 6: return str("(({}) // {} % {})", a, c, pick(1, 5));
      case 7: return str("({}) % ({})", a, b);
      case 8: return str("({}) // ({})", a, pick(0, 1) ? b : c);
      case 9: return str("{}({}, {})", pick(0, 1) ? "min" : "max", a, b);
      case 10: return str("select({}, {}, {})", condition(depth - 1), a, b);
      default: return str("(({}) // {} * {} + ({}) % {})", a, c, c, a, c);
    }
  }

  std::string condition(int depth) {
    const int less = depth > 0 ? depth - 1 : 0;
    const char* const ops[] = {"<", "<=", "==", "!=", ">", ">="};
    if (depth > 0 && pick(0, 2) == 0)
      return str("({} {} {})", condition(less), pick(0, 1) ? "and" : "or", condition(less));
    if (pick(0, 5) == 0) return str("(not {})", condition(less));
    return str("({} {} {})", number(less), ops[pick(0, 5)], number(less));
  }

  /// New values that respect ranges and extents.
  void assign() {
    values_["s0"] = pick(1, 9);
    values_["s1"] = pick(1, 9);
    values_["i0"] = pick(0, values_["s0"] - 1);
    values_["i1"] = pick(0, 5);
    values_["i2"] = pick(0, values_["s0"] * values_["s1"] - 1);
    values_["v"] = pick(-20, 20);
  }

  std::optional<i64> value(const std::string& name) const { return values_.at(name); }
  std::optional<i64> value(Expr var) const { return values_.at(arena.var(var).name); }
  std::optional<i64> eval(Expr e) const {
    return arena.eval(e, [this](Expr var) { return value(var); });
  }

  Expr parse(const std::string& text) {
    TextReader in(text, "random");
    Result<Expr> e = arena.parse(in, [this](std::string_view name) -> std::optional<Expr> {
      auto it = vars.find(std::string(name));
      return it == vars.end() ? std::nullopt : std::optional<Expr>(it->second);
    });
    EXPECT_TRUE(e.ok()) << text << ": " << e.error().message;
    EXPECT_TRUE(in.at_end()) << text;
    return *e;
  }

  Arena arena;
  std::map<std::string, Expr> vars;
  bool huge = false;  // whether some constants are near the ends of i64

 private:
  Expr add(const char* name, Role role, Range range, Expr extent = {}) {
    names_.push_back(name);
    return vars[name] = arena.variable({name, role, range, extent});
  }

  std::mt19937 random_;
  std::vector<std::string> names_;
  std::map<std::string, i64> values_;
};

class SymRandom : public testing::TestWithParam<u32> {};

TEST_P(SymRandom, ValueRangeTextAndCode) {
  World world(GetParam());
  for (int n = 0; n < 150; ++n) {
    const int depth = static_cast<int>(world.pick(1, 4));
    const std::string text = n % 4 == 0 ? world.condition(3) : world.number(depth);
    TextReader in(text, "random");
    const Result<Tree> tree = parse_tree(in);
    ASSERT_TRUE(tree.ok()) << text << ": " << tree.error().message;
    const Expr e = world.parse(text);
    const std::string canonical = world.arena.text(e);
    const Expr again = world.parse(canonical);
    EXPECT_EQ(again, e) << text << "\n" << canonical << "\n" << world.arena.text(again);
    const Range range = world.arena.range(e);
    std::vector<Expr> vars;
    world.arena.variables(e, vars);
    const Result<runtime::ExprCode> code =
        compile(world.arena, e, [&](Expr var) -> std::optional<u32> {
          return static_cast<u32>(std::ranges::find(vars, var) - vars.begin());
        });
    ASSERT_TRUE(code.ok()) << code.error().message;
    ASSERT_TRUE(runtime::valid(*code, static_cast<u32>(vars.size())));
    for (int k = 0; k < 25; ++k) {
      world.assign();
      const std::optional<i64> built = world.eval(e);
      std::vector<i64> slots;
      for (Expr var : vars) slots.push_back(*world.value(var));
      ASSERT_EQ(runtime::run(*code, slots), built) << canonical;
      const std::optional<i64> expected =
          eval_tree(*tree, [&](const std::string& name) { return world.value(name); });
      if (!expected) continue;
      ASSERT_EQ(built, expected) << text << "\n" << canonical;
      ASSERT_TRUE(range.lo <= *built && *built <= range.hi) << canonical << " = " << *built;
    }
  }
}

TEST_P(SymRandom, HugeConstants) {
  World world(GetParam());
  world.huge = true;
  int checked = 0;
  for (int n = 0; n < 200; ++n) {
    const std::string text = n % 3 == 0 ? world.condition(2) : world.number(2);
    TextReader in(text, "random");
    const Result<Tree> tree = parse_tree(in);
    ASSERT_TRUE(tree.ok()) << text << ": " << tree.error().message;
    const Expr e = world.parse(text);
    const Range range = world.arena.range(e);
    for (int k = 0; k < 10; ++k) {
      world.assign();
      const std::optional<i64> expected =
          eval_tree(*tree, [&](const std::string& name) { return world.value(name); });
      if (!expected) continue;
      const std::optional<i64> built = world.eval(e);
      if (!built) continue;  // terms were moved across a comparison, where their sum overflows
      ++checked;
      ASSERT_EQ(built, expected) << text << "\n" << world.arena.text(e);
      ASSERT_TRUE(range.lo <= *expected && *expected <= range.hi) << text << " = " << *expected;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST_P(SymRandom, StrideIsTheDifference) {
  World world(GetParam());
  for (int n = 0; n < 100; ++n) {
    const Expr e = world.parse(world.number(3));
    const Expr i2 = world.vars["i2"];
    const std::optional<Expr> stride = world.arena.stride(e, i2);
    if (!stride) continue;
    EXPECT_FALSE(world.arena.uses(*stride, i2));
    const Expr one_more = world.arena.add(i2, world.arena.constant(1));
    const Expr next = world.arena.substitute(e, {{i2, one_more}});
    for (int k = 0; k < 25; ++k) {
      world.assign();
      const std::optional<i64> a = world.eval(e);
      const std::optional<i64> b = world.eval(next);
      const std::optional<i64> d = world.eval(*stride);
      if (!a || !b || !d) continue;
      ASSERT_EQ(*b - *a, *d) << world.arena.text(e);
    }
  }
}

TEST_P(SymRandom, ProofsHold) {
  World world(GetParam());
  int decided = 0;
  for (int n = 0; n < 80; ++n) {
    Facts facts;
    const Expr fact = world.parse(world.condition(1));
    facts.add(fact);
    const Prover prover(world.arena, facts);
    // A goal near the fact, so that it is of use at times.
    const Expr a = world.parse(world.number(2));
    const Expr b = world.parse(world.number(2));
    const Expr goals[] = {world.parse(world.condition(2)), world.arena.logical_not(fact),
                          world.arena.le(a, b), world.arena.eq(a, b)};
    for (Expr goal : goals) {
      const Answer answer = prover.holds(goal);
      if (answer == Answer::Unknown) continue;
      ++decided;
      for (int k = 0; k < 40; ++k) {
        world.assign();
        if (world.eval(fact).value_or(0) == 0) continue;
        const std::optional<i64> value = world.eval(goal);
        if (!value) continue;
        ASSERT_EQ(*value != 0, answer == Answer::Yes)
            << world.arena.text(goal) << " given " << world.arena.text(fact);
      }
    }
    const Answer divides = prover.divides(b, a);
    for (int k = 0; k < 25 && divides != Answer::Unknown; ++k) {
      world.assign();
      const std::optional<i64> x = world.eval(a);
      const std::optional<i64> y = world.eval(b);
      if (world.eval(fact).value_or(0) == 0 || !x || !y || *y == 0) continue;
      ASSERT_EQ(*x % *y == 0, divides == Answer::Yes) << *x << " by " << *y;
    }
  }
  EXPECT_GT(decided, 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SymRandom, testing::Range(1u, 13u));

}  // namespace
}  // namespace coil::sym
