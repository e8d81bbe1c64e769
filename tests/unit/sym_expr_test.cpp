// Arena: canonical forms, ranges, strides, text, limits.

#include "sym/expr.h"

#include <gtest/gtest.h>

#include <map>

#include "sym/code.h"

namespace coil::sym {
namespace {

class SymExpr : public testing::Test {
 protected:
  Expr var(const char* name, Role role, Range range = {}, Expr extent = {}) {
    return vars_[name] = arena.variable({name, role, range, extent});
  }
  Result<Expr> try_parse(const std::string& text) {
    TextReader in(text, "test");
    return arena.parse(in, [this](std::string_view name) -> std::optional<Expr> {
      auto it = vars_.find(std::string(name));
      return it == vars_.end() ? std::nullopt : std::optional<Expr>(it->second);
    });
  }
  Expr parse(const std::string& text) {
    Result<Expr> e = try_parse(text);
    EXPECT_TRUE(e.ok()) << text << ": " << e.error().message;
    return *e;
  }
  std::string canonical(const std::string& text) { return arena.text(parse(text)); }
  std::string stride(const std::string& text, Expr of) {
    const std::optional<Expr> e = arena.stride(parse(text), of);
    return e ? arena.text(*e) : "none";
  }

  Arena arena;
  std::map<std::string, Expr> vars_;
  Expr s0 = var("s0", Role::Size, {0, kMaxInt});
  Expr s1 = var("s1", Role::Size, {0, kMaxInt});
  Expr i0 = var("i0", Role::Loop, {}, s0);
  Expr i1 = var("i1", Role::Loop, {}, arena.constant(64));
  Expr v = var("v", Role::Value);
  Expr w = var("w", Role::Value);
};

TEST_F(SymExpr, SumsAndProductsAreOnePolynomial) {
  EXPECT_EQ(parse("(v + w)*s0"), parse("w*s0 + s0*v"));
  EXPECT_EQ(parse("(v + w)*(v - w)"), parse("v*v - w*w"));
  EXPECT_EQ(parse("v + v + 1 - 3*v + v"), parse("1"));
  EXPECT_EQ(canonical("i1 + i0*64"), "i0*64 + i1");
  EXPECT_EQ(canonical("1 - i0"), "1 - i0");
  EXPECT_EQ(canonical("-3 - 2*i0"), "-i0*2 - 3");
  EXPECT_EQ(arena.product({}), arena.constant(1));
  EXPECT_EQ(arena.sum({}), arena.constant(0));
}

TEST_F(SymExpr, ComparisonsHaveOneForm) {
  EXPECT_EQ(parse("v <= w"), parse("v < w + 1"));
  EXPECT_EQ(parse("v - w < 0"), parse("w > v"));
  EXPECT_EQ(parse("4*v <= 4*w + 3"), parse("v <= w"));
  EXPECT_EQ(parse("v == w"), parse("w - v == 0"));
  EXPECT_EQ(parse("2*v == 2*w + 1"), parse("0"));
  EXPECT_EQ(canonical("i0 < s1"), "i0 < s1");
  EXPECT_EQ(canonical("s1 >= 2"), "2 <= s1");
  EXPECT_EQ(canonical("i1 <= 4"), "i1 < 5");
  EXPECT_EQ(canonical("not (v < w and w < 3)"), "w <= v or 3 <= w");
}

TEST_F(SymExpr, Precedence) {
  EXPECT_EQ(canonical("-v // 2"), "(-v) // 2");
  EXPECT_EQ(canonical("-(v // 2)"), "-(v // 2)");
  EXPECT_EQ(canonical("v %4 + 1"), "v % 4 + 1");
  EXPECT_EQ(canonical("v // 2 * w // 3"), "(w*(v // 2)) // 3");
  EXPECT_EQ(canonical("(v < w or w < 3) and v == 5"), "v == 5 and (v < w or w < 3)");
}

TEST_F(SymExpr, Ranges) {
  EXPECT_EQ(arena.range(parse("i0")), (Range{0, kMaxInt}));
  EXPECT_EQ(arena.range(parse("i1*2 - 5")), (Range{-5, 121}));
  EXPECT_EQ(arena.range(parse("(i1 - 32) // 5")), (Range{-7, 6}));
  EXPECT_EQ(arena.range(parse("v % 7")), (Range{0, 6}));
  EXPECT_EQ(arena.range(parse("v % -7")), (Range{-6, 0}));
  EXPECT_EQ(arena.range(parse("min(v, i1)")), (Range{kMinInt, 63}));
  EXPECT_EQ(arena.range(parse("v*v")).lo, 0);
  arena.set_range(s0, {1, 10});
  EXPECT_EQ(arena.range(parse("i0")), (Range{0, 9}));
  EXPECT_EQ(arena.range(parse("i0*s0 + 1")), (Range{1, 91}));
  EXPECT_EQ(canonical("i0 // 10"), "0");
}

TEST_F(SymExpr, Strides) {
  EXPECT_EQ(stride("i0*s1*4 + i1", i0), "s1*4");
  EXPECT_EQ(stride("i0*s1*4 + i1", i1), "1");
  EXPECT_EQ(stride("v*w + 3", i0), "0");
  EXPECT_EQ(stride("(i0*8 + i1) // 8", i0), "1");
  EXPECT_EQ(stride("(i0*8 + i1 % 8) % 8 + i0", i0), "1");
  EXPECT_EQ(stride("i1 // 8 * 3 + i0*(v % 5)", i0), "v % 5");
  EXPECT_EQ(stride("i0 // 2", i0), "none");
  EXPECT_EQ(stride("i0*i0", i0), "none");
  EXPECT_EQ(stride("min(i0, 3)", i0), "none");
}

TEST_F(SymExpr, SubstituteRebuilds) {
  const Expr e = parse("(i0*64 + v) // 64 + min(i0, v)");
  EXPECT_EQ(arena.substitute(e, {{v, i1}}), parse("i0 + min(i0, i1)"));
  EXPECT_EQ(arena.substitute(e, {{i0, v}, {v, i0}}), parse("(v*64 + i0) // 64 + min(i0, v)"));
  EXPECT_EQ(arena.substitute(e, {}), e);
}

TEST_F(SymExpr, OverflowStaysUnfolded) {
  const Expr most = arena.constant(kMaxInt);
  const Expr sum = arena.add(most, arena.constant(1));
  EXPECT_EQ(arena.kind(sum), Kind::Add);
  auto none = [](Expr) -> std::optional<i64> { return std::nullopt; };
  EXPECT_EQ(arena.eval(sum, none), std::nullopt);
  EXPECT_EQ(arena.eval(arena.mul(most, most), none), std::nullopt);
  auto minus_one = [](Expr) -> std::optional<i64> { return -1; };
  EXPECT_EQ(arena.eval(arena.add(arena.add(v, most), arena.constant(1)), minus_one), kMaxInt);
  EXPECT_EQ(arena.eval(arena.mul(arena.mul(v, most), most), minus_one), std::nullopt);
  const Expr least = arena.constant(kMinInt);
  EXPECT_EQ(parse(arena.text(least)), least);
  EXPECT_EQ(arena.eval(arena.neg(least), none), std::nullopt);
  EXPECT_EQ(arena.eval(arena.floordiv(least, arena.constant(-1)), none), std::nullopt);
  EXPECT_EQ(arena.eval(arena.mod(least, arena.constant(-1)), none), 0);
  for (const char* op : {"<", "<=", "==", "!=", "//", "%"}) {
    parse(str("v {} {}", op, kMinInt));
    parse(str("{}*v - w {} {}", kMaxInt, op, kMinInt));
  }
}

TEST_F(SymExpr, ZeroDivisorHasNoValue) {
  auto zero = [](Expr) -> std::optional<i64> { return 0; };
  EXPECT_EQ(arena.eval(parse("v // w"), zero), std::nullopt);
  EXPECT_EQ(arena.eval(parse("v % (s0 - s0)"), zero), std::nullopt);
  EXPECT_EQ(arena.eval(parse("select(w == 0, 5, v // w)"), zero), 5);
  EXPECT_EQ(arena.eval(parse("w != 0 and v // w == 3"), zero), 0);
}

TEST_F(SymExpr, BadTextIsAnError) {
  for (const char* text :
       {"", "v +", "(v", "q9", "min(v)", "select(v, w)", "v < ", "99999999999999999999"})
    EXPECT_FALSE(try_parse(text).ok()) << text;
  EXPECT_EQ(try_parse("v + q9").error().message,
            "test:1: unknown size or index 'q9' in an expression");
}

TEST_F(SymExpr, HostileTextEndsSoon) {
  auto repeat = [](const std::string& part, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += part;
    return out;
  };
  for (const char* part : {"(", "-", "not ", "min(v, ", "(v // 3 + 1) % (", "- -"})
    EXPECT_FALSE(try_parse(repeat(part, 100000) + "v").ok()) << part;
  for (const char* part : {" // w", " % w", " + w", " * w"})
    EXPECT_FALSE(try_parse("v" + repeat(part, 100000)).ok()) << part;
  EXPECT_TRUE(try_parse("v" + repeat(" + w*v", 3000)).ok());
  EXPECT_TRUE(try_parse(repeat("(", 60) + "v" + repeat(" // 3 * w + v % 5)", 60)).ok());
  EXPECT_TRUE(try_parse(repeat("(", 60) + "v" + repeat(" % w * 2 + v)", 60)).ok());
  EXPECT_TRUE(try_parse("v" + repeat("*(v + w)", 100)).ok());
}

TEST_F(SymExpr, DeepExpressionsAreWalkedWithoutRecursion) {
  Expr e = v;
  for (int i = 0; i < 20000; ++i)
    e = arena.logical_not(arena.eq(arena.mod(e, w), arena.constant(7)));
  EXPECT_TRUE(arena.uses(e, v));
  EXPECT_TRUE(arena.eval(e, [](Expr) -> std::optional<i64> { return 3; }).has_value());
  EXPECT_FALSE(compile(arena, e, [](Expr) -> std::optional<u32> { return 0; }).ok());
  arena.set_range(v, {0, 5});
  EXPECT_EQ(arena.range(e), (Range{0, 1}));
  arena.substitute(e, {{v, w}});
}

TEST_F(SymExpr, OpsMeanWhatPythonMeans) {
  struct Case {
    i64 a, b, quotient, rest;
  };
  for (const Case& c : {Case{7, 3, 2, 1},
                        {-7, 3, -3, 2},
                        {7, -3, -3, -2},
                        {-7, -3, 2, -1},
                        {6, 3, 2, 0},
                        {-6, 3, -2, 0},
                        {0, -3, 0, 0}}) {
    auto value = [&](Expr var) -> std::optional<i64> { return var == v ? c.a : c.b; };
    EXPECT_EQ(arena.eval(parse("v // w"), value), c.quotient) << c.a << " " << c.b;
    EXPECT_EQ(arena.eval(parse("v % w"), value), c.rest) << c.a << " " << c.b;
    EXPECT_EQ(arena.eval(parse("min(v, w)"), value), std::min(c.a, c.b));
    EXPECT_EQ(arena.eval(parse("max(v, w)"), value), std::max(c.a, c.b));
    EXPECT_EQ(arena.eval(parse("v < w"), value), c.a < c.b);
    EXPECT_EQ(arena.eval(parse("v <= w"), value), c.a <= c.b);
    EXPECT_EQ(arena.eval(parse("v == w or v == 6"), value), c.a == 6);
    EXPECT_EQ(arena.eval(parse("select(v < w, 5, v)"), value), c.a < c.b ? 5 : c.a);
    EXPECT_EQ(arena.eval(parse("not v == 6"), value), c.a != 6);
  }
}

TEST_F(SymExpr, CodeIsVerified) {
  using runtime::ExprOp;
  auto op = [](ExprOp o) { return static_cast<i64>(o); };
  const i64 push = op(ExprOp::Push);
  const i64 load = op(ExprOp::Load);
  EXPECT_TRUE(runtime::valid({push, 3, load, 1, op(ExprOp::Add)}, 2));
  EXPECT_FALSE(runtime::valid({}, 2));
  EXPECT_FALSE(runtime::valid({push}, 2));
  EXPECT_FALSE(runtime::valid({load, 2}, 2));
  EXPECT_FALSE(runtime::valid({load, -1}, 2));
  EXPECT_FALSE(runtime::valid({push, 3, push, 4}, 2));
  EXPECT_FALSE(runtime::valid({push, 3, op(ExprOp::Add)}, 2));
  EXPECT_FALSE(runtime::valid({runtime::kExprOps}, 2));
  runtime::ExprCode deep;
  for (int i = 0; i < 300; ++i) deep.insert(deep.end(), {push, 1});
  deep.insert(deep.end(), 299, op(ExprOp::Add));
  EXPECT_FALSE(runtime::valid(deep, 2));
  EXPECT_FALSE(compile(arena, v, [](Expr) { return std::optional<u32>(); }).ok());
}

}  // namespace
}  // namespace coil::sym
