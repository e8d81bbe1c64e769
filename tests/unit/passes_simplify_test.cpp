// What simplify and recognize_attention make of a graph, before and after.

#include <gtest/gtest.h>

#include "base/format.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "passes/passes.h"

namespace coil {
namespace {

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "test");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph.ok()) return {};
  graph->composites = &composite_rules();
  return std::move(*graph);
}

std::string simplified(std::string_view text) {
  Graph graph = parsed(text);
  simplify(graph);
  remove_dead_code(graph);
  const Status sound = verify(graph);
  EXPECT_TRUE(sound.ok()) << (sound.ok() ? "" : sound.error().message);
  return to_text(graph);
}

std::string printed(std::string_view text) { return to_text(parsed(text)); }

TEST(Simplify, ViewsAndCopiesWithTheirOperandsType) {
  EXPECT_EQ(simplified(R"(graph g(%x: f32[4, 8]) {
    %a = view(%x, [4, 8])
    %b = clone(%a)
    %c = expand(%b, [4, 8])
    %d = permute(%c, [0, 1])
    %e = slice.Tensor(%d, 1, 0, 8)
    %y = relu(%e)
    return %y
  })"),
            printed(R"(graph g(%x: f32[4, 8]) {
    %y = relu(%x)
    return %y
  })"));
}

TEST(Simplify, KeepsACopyIntoAnotherLayout) {
  const std::string text = R"(graph g(%x: f32[4, 8]) {
    %t = permute(%x, [1, 0])
    %c = clone(%t, contiguous_format)
    %y = view(%c, [32])
    %z = relu(%y)
    return %z
  })";
  EXPECT_EQ(simplified(text), printed(text));
}

TEST(Simplify, NumbersThatChangeNothing) {
  EXPECT_EQ(simplified(R"(graph g(%x: f32[4], %n: i64[4]) {
    %a = mul.Scalar(%x, 1)
    %b = div.Scalar(%a, 1.0)
    %c = sub.Scalar(%b, 0.0)
    %m = add.Scalar(%n, 0)
    %y = relu(%c)
    %z = neg(%m)
    return %y, %z
  })"),
            printed(R"(graph g(%x: f32[4], %n: i64[4]) {
    %y = relu(%x)
    %z = neg(%n)
    return %y, %z
  })"));
}

/// -0.0 + 0.0 is 0.0, i64 / 1 is a float, and 0.0 is not -0.0.
TEST(Simplify, KeepsNumbersThatChangeABit) {
  const std::string text = R"(graph g(%x: f32[4], %n: i64[4]) {
    %a = add.Scalar(%x, 0.0)
    %b = div.Scalar(%n, 1)
    %c = sub.Scalar(%x, -0.0)
    %y = neg(%a)
    %z = neg(%b)
    %u = neg(%c)
    return %y, %z, %u
  })";
  EXPECT_EQ(simplified(text), printed(text));
}

TEST(Simplify, CastsThereAndBack) {
  EXPECT_EQ(simplified(R"(graph g(%x: bf16[4], %n: i16[4], %p: bool[4]) {
    %a = _to_copy(%x, f32)
    %b = _to_copy(%a, bf16)
    %c = _to_copy(%n, f32)
    %d = _to_copy(%c, i16)
    %e = _to_copy(%p, u8)
    %f = _to_copy(%e, bool)
    %y = neg(%b)
    %z = neg(%d)
    %q = logical_not(%f)
    return %y, %z, %q
  })"),
            printed(R"(graph g(%x: bf16[4], %n: i16[4], %p: bool[4]) {
    %y = neg(%x)
    %z = neg(%n)
    %q = logical_not(%p)
    return %y, %z, %q
  })"));
}

/// A narrower dtype between rounds: f16 has other exponents than bf16, f32 not all of i32.
TEST(Simplify, KeepsCastsThatRound) {
  const std::string text = R"(graph g(%x: f32[4], %n: i32[4], %h: bf16[4], %s: i8[4]) {
    %a = _to_copy(%x, bf16)
    %b = _to_copy(%a, f32)
    %c = _to_copy(%n, f32)
    %d = _to_copy(%c, i32)
    %e = _to_copy(%h, f16)
    %f = _to_copy(%e, bf16)
    %g = _to_copy(%s, u16)
    %i = _to_copy(%g, i8)
    %y = neg(%b)
    %z = neg(%d)
    %u = neg(%f)
    %v = neg(%i)
    return %y, %z, %u, %v
  })";
  EXPECT_EQ(simplified(text), printed(text));
}

TEST(Simplify, EqualNodesAndWeights) {
  EXPECT_EQ(simplified(R"(graph g(%x: f32[4], %i: i64[2]) {
    %a = sin(%x)
    %b = sin(%x)
    %v0, %i0 = sort(%a)
    %v1, %i1 = sort(%b)
    %y = add.Tensor(%v0, %v1)
    %z = index_select(%y, 0, %i)
    return %z
  })"),
            printed(R"(graph g(%x: f32[4], %i: i64[2]) {
    %a = sin(%x)
    %v0, %i0 = sort(%a)
    %y = add.Tensor(%v0, %v0)
    %z = index_select(%y, 0, %i)
    return %z
  })"));
}

/// Results of the program have memory of their own.
TEST(Simplify, KeepsResults) {
  const std::string text = R"(graph g(%x: f32[4]) {
    %a = sin(%x)
    %b = sin(%x)
    %c = clone(%x)
    return %a, %b, %c
  })";
  EXPECT_EQ(simplified(text), printed(text));
}

// ---- attention ----

std::string recognized(std::string_view text) {
  Graph graph = parsed(text);
  simplify(graph);
  recognize_attention(graph);
  remove_dead_code(graph);
  const Status sound = verify(graph);
  EXPECT_TRUE(sound.ok()) << (sound.ok() ? "" : sound.error().message);
  return to_text(graph);
}

bool has_attention(std::string_view text) {
  return recognized(text).find("softmax_attention") != std::string::npos;
}

TEST(Attention, FourDimsWithScaleAndMask) {
  EXPECT_EQ(recognized(R"(graph g(%q: f32[2, 3, 5, 8], %k: f32[2, 3, 7, 8], %v: f32[2, 3, 7, 4],
                              %mask: f32[2, 1, 1, 7]) {
    %kt = permute(%k, [0, 1, 3, 2])
    %q3 = view(%q, [6, 5, 8])
    %k3 = reshape(%kt, [6, 8, 7])
    %v3 = view(%v, [6, 7, 4])
    %s3 = bmm(%q3, %k3)
    %s = view(%s3, [2, 3, 5, 7])
    %scaled = div.Scalar(%s, 2.0)
    %masked = add.Tensor(%scaled, %mask)
    %p = _softmax(%masked, -1, false)
    %p3 = view(%p, [6, 5, 7])
    %o3 = bmm(%p3, %v3)
    %o = view(%o3, [2, 3, 5, 4])
    %y = relu(%o)
    return %y
  })"),
            printed(R"(graph g(%q: f32[2, 3, 5, 8], %k: f32[2, 3, 7, 8], %v: f32[2, 3, 7, 4],
                              %mask: f32[2, 1, 1, 7]) {
    %kt = permute(%k, [0, 1, 3, 2])
    %o3_attention = transpose.int(%kt, -2, -1)
    %o3_attention_1 = softmax_attention(%q, %o3_attention, %v, %mask, scale=0.5)
    %o3 = view(%o3_attention_1, [6, 5, 4])
    %o = view(%o3, [2, 3, 5, 4])
    %y = relu(%o)
    return %y
  })"));
}

/// Windows of an image: a bias for all of them, and a mask that differs from window to window.
TEST(Attention, MasksOfSeveralShapes) {
  const std::string out = recognized(
      R"(graph g(%q: f32[24, 5, 8], %k: f32[24, 8, 5], %v: f32[24, 5, 8], %bias: f32[1, 3, 5, 5],
                %mask: f32[4, 5, 5]) {
    %s3 = bmm(%q, %k)
    %s = view(%s3, [8, 3, 5, 5])
    %biased = add.Tensor(%s, %bias)
    %windows = view(%biased, [2, 4, 3, 5, 5])
    %m = view(%mask, [1, 4, 1, 5, 5])
    %masked = add.Tensor(%windows, %m)
    %back = view(%masked, [8, 3, 5, 5])
    %p = _softmax(%back, 3, false)
    %p3 = view(%p, [24, 5, 5])
    %y = bmm(%p3, %v)
    return %y
  })");
  EXPECT_NE(out.find("softmax_attention"), std::string::npos) << out;
  EXPECT_EQ(out.find("bmm"), std::string::npos) << out;
}

constexpr std::string_view kPlain = R"(graph g(%q: DT[2, 5, 8], %k: DT[2, 8, 7], %v: DT[2, 7, 4]) {
    %s = bmm(%q, %k)
    %t = mul.Scalar(%s, 0.5)
    %p = _softmax(%t, DIM, false)
    %y = bmm(%p, %v)
    return RESULT
  })";

std::string plain(std::string_view dtype, std::string_view dim, std::string_view result) {
  std::string text(kPlain);
  const auto put = [&](std::string_view what, std::string_view with) {
    for (std::size_t at; (at = text.find(what)) != std::string::npos;)
      text.replace(at, what.size(), with);
  };
  put("DT", dtype);
  put("DIM", dim);
  put("RESULT", result);
  return text;
}

TEST(Attention, OnlyWhereNothingIsLost) {
  EXPECT_TRUE(has_attention(plain("f32", "2", "%y")));
  EXPECT_TRUE(has_attention(plain("f64", "-1", "%y")));
  EXPECT_FALSE(has_attention(plain("bf16", "2", "%y")));     // eager rounds the scores
  EXPECT_FALSE(has_attention(plain("f32", "1", "%y")));      // along the queries
  EXPECT_FALSE(has_attention(plain("f32", "2", "%y, %p")));  // the weights are a result
}

TEST(Attention, ScoresThatAreLeftOut) {
  const auto filled = [](std::string_view node) {
    return str(R"(graph g(%q: f32[2, 5, 8], %k: f32[2, 8, 7], %v: f32[2, 7, 4], %c: bool[5, 7]) {{
    %s = bmm(%q, %k)
    %least = full([], -inf, f32)
    %t = {}
    %p = _softmax(%t, 2, false)
    %y = bmm(%p, %v)
    return %y
  }})",
               node);
  };
  for (std::string_view node : {"masked_fill.Scalar(%s, %c, -inf)", "where.self(%c, %least, %s)",
                                "where.self(%c, %s, %least)", "where.ScalarOther(%c, %s, -inf)"})
    EXPECT_TRUE(has_attention(filled(node))) << node;
  // With a number, a row of which nothing is kept has equal weights.
  EXPECT_FALSE(has_attention(filled("masked_fill.Scalar(%s, %c, -1e9)")));
}

/// scale * (scores + mask) is no form that the op has.
TEST(Attention, NotWithAScaledMask) {
  EXPECT_FALSE(has_attention(R"(graph g(%q: f32[2, 5, 8], %k: f32[2, 8, 7], %v: f32[2, 7, 4],
                                        %m: f32[5, 7]) {
    %s = bmm(%q, %k)
    %t = add.Tensor(%s, %m)
    %u = mul.Scalar(%t, 0.5)
    %p = _softmax(%u, 2, false)
    %y = bmm(%p, %v)
    return %y
  })"));
}

}  // namespace
}  // namespace coil
