// Graphs before and after decompose.

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.h"
#include "graph/verify.h"
#include "passes/composite.h"
#include "passes/passes.h"

namespace coil {
namespace {

Result<Graph> parse(std::string_view text) {
  GraphTextOptions options;
  options.composites = &composite_rules();
  return parse_graph(text, "test", options);
}

/// The decomposed graph as text, or the error.
std::string decomposed(std::string_view text) {
  const Result<Graph> graph = parse(text);
  if (!graph.ok()) return "parse: " + graph.error().message;
  const Result<Graph> out = decompose(*graph);
  if (!out.ok()) return "error: " + out.error().message;
  const Status verified = verify(*out);
  return verified.ok() ? to_text(*out) : "verify: " + verified.error().message;
}

std::string printed(std::string_view text) {
  const Result<Graph> graph = parse(text);
  return graph.ok() ? to_text(*graph) : "parse: " + graph.error().message;
}

void expect_decomposed(std::string_view from, std::string_view to) {
  EXPECT_EQ(decomposed(from), printed(to));
}

TEST(Decompose, LinearIsAddmmOverRows) {
  expect_decomposed(R"(graph g(%x: f32[s0, 3, 4], %w: f32[5, 4], %b: f32[5]) {
    %y = linear(%x, %w, %b) @ model.py:7 in up
    return %y
  })",
                    R"(graph g(%x: f32[s0, 3, 4], %w: f32[5, 4], %b: f32[5]) {
    %y_permute = permute(%w, [1, 0]) @ model.py:7 in up
    %y_view = view(%x, [3*s0, 4]) @ model.py:7 in up
    %y_addmm = addmm(%b, %y_view, %y_permute) @ model.py:7 in up
    %y = view(%y_addmm, [s0, 3, 5]) @ model.py:7 in up
    return %y
  })");
}

TEST(Decompose, KeepsCoreOpsAndChecks) {
  const std::string text = R"(graph g(%x: f32[s0, 4]) {
    size s0 in 2..64 hint 8
    fact s0 <= 64
    check s0 % 2 == 0 "rows come in pairs"
    %y = relu(%x)
    %z = add.Tensor(%y, %x, alpha=2)
    return %z
  })";
  expect_decomposed(text, text);
}

TEST(Decompose, DropsWhatDoesNothing) {
  expect_decomposed(R"(graph g(%x: f32[2, 4]) {
    %a = detach(%x)
    %b = dropout(%a, 0.5, false)
    %c = contiguous(%b)
    %d = to.dtype(%c, f32)
    %y = relu(%d)
    return %y
  })",
                    R"(graph g(%x: f32[2, 4]) {
    %y = relu(%x)
    return %y
  })");
}

TEST(Decompose, RowsUseRows) {
  const std::string out = decomposed(R"(graph g(%x: f32[2, 3, 4, 5], %w: f32[3]) {
    %y = instance_norm(%x, %w, None, None, None, true, 0.1, 1e-05, true)
    return %y
  })");
  EXPECT_NE(out.find("_native_batch_norm_legit_functional("), out.npos) << out;
  EXPECT_EQ(out.find(" batch_norm("), out.npos) << out;
}

TEST(Decompose, AMaskIsThePositionsOfItsTrueElements) {
  expect_decomposed(R"(graph g(%x: f32[4, 3], %m: bool[4]) {
    data u0 in 0..4
    %y = index.Tensor(%x, [%m]) : f32[u0, 3]
    return %y
  })",
                    R"(graph g(%x: f32[4, 3], %m: bool[4]) {
    data u0 in 0..4
    %y_nonzero = nonzero(%m) : i64[u0, 1] strides [1, u0]
    %y_select = select.int(%y_nonzero, 1, 0)
    %y = index.Tensor(%x, [%y_select])
    return %y
  })");
}

TEST(Decompose, AScatterIntoAViewIsAnUpdate) {
  expect_decomposed(R"(graph g(%x: f32[5, 3], %v: f32[2, 3]) {
    %y = slice_scatter(%x, %v, 0, 1, 3)
    return %y
  })",
                    R"(graph g(%x: f32[5, 3], %v: f32[2, 3]) {
    %y = update(%x, %v) at slice.Tensor(0, 1, 3)
    return %y
  })");
}

TEST(Decompose, ReachesBranches) {
  const std::string out = decomposed(R"(graph g(%x: f32[2, 4], %w: f32[4, 4], %p: bool[]) {
    graph yes(%a: f32[2, 4], %v: f32[4, 4]) { %r = linear(%a, %v) return %r }
    graph no(%a: f32[2, 4], %v: f32[4, 4]) { %r = absolute(%a) return %r }
    %y = cond[yes, no](%p, [%x, %w])
    return %y
  })");
  EXPECT_NE(out.find("%r = mm(%a, %r_permute)"), out.npos) << out;
  EXPECT_NE(out.find("%r = abs(%a)"), out.npos) << out;
}

TEST(Decompose, ListsAllUnsupportedOps) {
  EXPECT_EQ(decomposed(R"(graph g(%x: f32[4, 4]) {
    %a = mm.dtype(%x, %x, f32) @ model.py:3
    %b = mm.dtype(%a, %a, f32) @ model.py:4
    %c = addmm.dtype(%b, %a, %b, f32) @ model.py:5
    return %c
  })"),
            "error: 2 ops are not supported: aten.addmm.dtype (1x, first at model.py:5), "
            "aten.mm.dtype (2x, first at model.py:3)");
}

TEST(Decompose, RandomOpsAreFormulasOverDraws) {
  const std::string out = decomposed(R"(graph g(%x: f32[4], %k: i64[2]) {
    %y = dropout(%x, 0.5, true, random_key=%k, random_op=3)
    return %y
  })");
  EXPECT_NE(out.find("random_bits(%k, 12, [4], [1])"), out.npos) << out;
  EXPECT_NE(out.find("lt.Scalar"), out.npos) << out;
}

TEST(Decompose, RandomOpsNeedAKey) {
  const std::string out = decomposed(R"(graph g(%x: f32[4]) {
    %y = dropout(%x, 0.5, true) : f32[4] @ model.py:3
    return %y
  })");
  EXPECT_NE(out.find("dropout draws random numbers, but has no random_key"), out.npos) << out;
}

TEST(Decompose, CoreOpsAreThoseThatNoRowRewrites) {
  for (std::string_view op : {"add.Tensor", "mm", "index_put", "update", "cond"})
    EXPECT_TRUE(is_core_op(op)) << op;
  for (std::string_view op : {"reshape", "linear", "arange", "mm.dtype"})
    EXPECT_FALSE(is_core_op(op)) << op;
}

}  // namespace
}  // namespace coil
