// What remove_dead_code keeps.

#include <gtest/gtest.h>

#include "graph/text.h"
#include "passes/passes.h"

namespace coil {
namespace {

std::string cleaned(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "test");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph.ok()) return "";
  remove_dead_code(*graph);
  return to_text(*graph);
}

std::string printed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "test");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? to_text(*graph) : "";
}

TEST(DeadCode, DropsNodesAndConstantsThatNothingReads) {
  EXPECT_EQ(cleaned(R"(graph g(%x: f32[3], %unused: f32[2]) {
    const %a: f32[3] = {1, 2, 3}
    const %b: f32[3] = {4, 5, 6}
    %dead = mul.Tensor(%x, %a)
    %dead2 = relu(%dead)
    %y = add.Tensor(%x, %b)
    return %y
  })"),
            printed(R"(graph g(%x: f32[3], %unused: f32[2]) {
    const %b: f32[3] = {4, 5, 6}
    %y = add.Tensor(%x, %b)
    return %y
  })"));
}

TEST(DeadCode, KeepsWhatStateNeeds) {
  EXPECT_EQ(cleaned(R"(graph g(%x: f32[3]) {
    const %a: f32[3] = {1, 2, 3}
    state %count: i64[] = {0}
    %next = add.Scalar(%count, 1)
    updates %count = %next
    return %x
  })"),
            printed(R"(graph g(%x: f32[3]) {
    state %count: i64[] = {0}
    %next = add.Scalar(%count, 1)
    updates %count = %next
    return %x
  })"));
}

TEST(DeadCode, KeepsAllResultsOfANodeOfWhichOneIsRead) {
  const std::string text = R"(graph g(%x: f32[3]) {
    %values, %order = sort(%x)
    return %order
  })";
  EXPECT_EQ(cleaned(text), printed(text));
}

/// The size of `view` is a number that `item` reads, though no operand says so.
TEST(DeadCode, KeepsTheNodeThatDefinesASize) {
  const std::string text = R"(graph g(%x: f32[8], %n: i64[]) {
    data u0 in 0..8
    %count = item(%n) : int u0
    %y = full([u0], 1.0) : f32[u0]
    return %y
  })";
  EXPECT_EQ(cleaned(text), printed(text));
}

TEST(DeadCode, DropsBranchesOfDeadNodes) {
  const std::string out = cleaned(R"(graph g(%x: f32[3], %p: bool[]) {
    graph a0(%t: f32[3]) { %u = sin(%t) return %u }
    graph b0(%t: f32[3]) { %u = cos(%t) return %u }
    graph a1(%t: f32[3]) { %u = exp(%t) %v = log(%t) return %u }
    graph b1(%t: f32[3]) { %u = relu(%t) return %u }
    %dead = cond[a0, b0](%p, [%x])
    %y = cond[a1, b1](%p, [%x])
    return %y
  })");
  EXPECT_EQ(out.find("sin("), out.npos) << out;
  EXPECT_EQ(out.find("log("), out.npos) << out;
  EXPECT_NE(out.find("%y = cond[a1, b1](%p, [%x])"), out.npos) << out;
}

}  // namespace
}  // namespace coil
