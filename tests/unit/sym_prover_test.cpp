// Prover on the questions that the compiler asks.

#include "sym/prover.h"

#include <gtest/gtest.h>

#include <map>

namespace coil::sym {
namespace {

struct Question {
  const char* facts;  // "" for none
  const char* goal;
  Answer answer;
};

/// i0 < s0, i1 < s1, i2 < s2, j < 64, p < (s0 - 1)//2 + 1, r < 3; sizes >= 0; u any.
const Question kQuestions[] = {
    {"", "i0*64 + j < s0*64", Answer::Yes},
    {"", "i0*65 + j < s0*64", Answer::Unknown},
    {"", "(i0*s1 + i1)*s2 + i2 < s0*s1*s2", Answer::Yes},
    {"", "(i0*s1 + i1)*s2 + i2 < s0*s1", Answer::Unknown},
    {"", "s0*s1 <= i0*s1 + i1", Answer::No},
    {"", "s0 - 1 - i0 >= 0", Answer::Yes},
    {"", "2*p + r < s0 + 2", Answer::Yes},
    {"", "2*p + r < s0 + 1", Answer::Unknown},
    {"", "2*p + r - 1 >= -1", Answer::Yes},
    {"", "(u // 8)*8 <= u", Answer::Yes},
    {"", "u - 7 <= (u // 8)*8", Answer::Yes},
    {"", "u - 6 <= (u // 8)*8", Answer::Unknown},
    {"", "min(u, i0) < s0", Answer::Yes},
    {"", "min(u, s0) <= max(u, s0)", Answer::Yes},
    {"", "max(i0, 0) < s0", Answer::Yes},
    {"", "select(u < 3, i0, i1) < s0 + s1", Answer::Yes},
    {"", "u % s0 < s0", Answer::Yes},
    {"", "i0 % 4 <= i0", Answer::Yes},
    {"", "u - u // 4 * 4 == u % 4", Answer::Yes},
    {"", "u == u + 1", Answer::No},
    {"", "s0 == s1", Answer::Unknown},
    {"s0 == s1", "i0 < s1", Answer::Yes},
    {"s0 == s1", "s0 == s1", Answer::Yes},
    {"s0 == s1", "s0*s2 == s2*s1", Answer::Yes},
    {"s0 == s1", "(s0 + 3) // 4 == (s1 + 3) // 4", Answer::Yes},
    {"s0 == s1", "s0 < s1", Answer::No},
    {"s0 == s1 and s1 == s2", "s0 == s2", Answer::Yes},
    {"s0 == s1 and s2 == s1 and u == s2*2", "u*s0 == 2*s1*s2", Answer::Yes},
    {"s0 <= s1 and s1 <= 4*s2", "i0 < 4*s2", Answer::Yes},
    {"s0 <= s1", "i0 < s1 + 5", Answer::Yes},
    {"s0 <= s1", "i1 < s0", Answer::Unknown},
    {"s0 % 4 == 0", "s0 // 4 * 4 == s0", Answer::Yes},
    {"s0 == 4*u", "s0 % 4 == 0", Answer::Yes},
    {"u < 3", "5 <= u", Answer::No},
    {"u < 3 or 7 < u", "u < 3 or 7 < u", Answer::Yes},
    {"u != 3", "u == 3", Answer::No},
    {"u != 3", "u == 4", Answer::Unknown},
    {"u < 3", "not (u < 4)", Answer::No},
    {"", "0 <= s0 and 0 <= s1", Answer::Yes},
    {"", "s0 < 0 or u < 3", Answer::Unknown},
};

class SymProver : public testing::Test {
 protected:
  SymProver() {
    for (const char* name : {"s0", "s1", "s2"}) add(name, Role::Size, {0, kMaxInt});
    add("u", Role::Value);
    for (const char* i : {"0", "1", "2"})
      add(std::string("i") + i, Role::Loop, {}, vars_[std::string("s") + i]);
    add("j", Role::Loop, {}, arena.constant(64));
    add("p", Role::Loop, {}, parse("(s0 - 1)//2 + 1"));
    add("r", Role::Reduce, {}, arena.constant(3));
  }
  void add(const std::string& name, Role role, Range range = {}, Expr extent = {}) {
    vars_[name] = arena.variable({name, role, range, extent});
  }
  Expr parse(const char* text) {
    TextReader in(text, "question");
    Result<Expr> e = arena.parse(in, [this](std::string_view name) -> std::optional<Expr> {
      auto it = vars_.find(std::string(name));
      return it == vars_.end() ? std::nullopt : std::optional<Expr>(it->second);
    });
    EXPECT_TRUE(e.ok()) << text << ": " << e.error().message;
    return *e;
  }

  Arena arena;
  std::map<std::string, Expr> vars_;
};

TEST_F(SymProver, Questions) {
  for (const Question& q : kQuestions) {
    Facts facts;
    if (*q.facts != '\0') facts.add(parse(q.facts));
    EXPECT_EQ(Prover(arena, facts).holds(parse(q.goal)), q.answer)
        << q.goal << " given " << q.facts;
  }
}

TEST_F(SymProver, Divides) {
  Facts facts;
  facts.add(parse("s0 % 8 == 0"));
  const Prover prover(arena, facts);
  EXPECT_EQ(prover.divides(parse("8"), parse("16*u + 8")), Answer::Yes);
  EXPECT_EQ(prover.divides(parse("8"), parse("16*u + 4")), Answer::No);
  EXPECT_EQ(prover.divides(parse("8"), parse("u")), Answer::Unknown);
  EXPECT_EQ(prover.divides(parse("8"), parse("s0")), Answer::Yes);
  EXPECT_EQ(prover.divides(parse("4"), parse("s0")), Answer::Yes);
  EXPECT_EQ(prover.divides(parse("8"), parse("s0*s1 + 8*u")), Answer::Yes);
  EXPECT_EQ(prover.divides(parse("s1"), parse("s0*s1*u")), Answer::Yes);
  EXPECT_EQ(prover.divides(parse("0"), parse("s0")), Answer::Unknown);
}

TEST_F(SymProver, HintsGuess) {
  Hints hints;
  hints.set(vars_["s0"], 10);
  EXPECT_EQ(hints.guess(arena, parse("s0*2 + s1"), 7), 27);
  EXPECT_EQ(hints.guess(arena, parse("s0 // (s1 - 7)"), 7), 7);
}

TEST_F(SymProver, FactsAndGuardsKeepTheirOrder) {
  Guards guards;
  guards.add(parse("s0 < 9"), "broadcast");
  guards.add(parse("s1 < 9"), "view");
  ASSERT_EQ(guards.all().size(), 2u);
  EXPECT_EQ(guards.all()[1].reason, "view");
}

}  // namespace
}  // namespace coil::sym
