// The text form of level 0: every feature goes there and back, and what is wrong is said with its
// line.

#include "graph/text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "graph/verify.h"

namespace coil {
namespace {

std::string data_file(const std::string& name) {
  std::ifstream file(std::string(COIL_SOURCE_DIR) + "/tests/unit/data/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string message_of(const Result<Graph>& graph) {
  return graph.ok() ? std::string("no error") : graph.error().message;
}

TEST(GraphText, EveryFeatureGoesThereAndBack) {
  const Result<Graph> graph = parse_graph(data_file("everything.graph"), "everything.graph");
  ASSERT_TRUE(graph.ok()) << message_of(graph);
  const Status valid = verify(*graph);
  EXPECT_TRUE(valid.ok()) << (valid.ok() ? "" : valid.error().message);
  const std::string text = to_text(*graph);
  const Result<Graph> again = parse_graph(text, "printed");
  ASSERT_TRUE(again.ok()) << message_of(again) << "\n" << text;
  EXPECT_EQ(to_text(*again), text);
  EXPECT_EQ(again->nodes.size(), graph->nodes.size());
  EXPECT_EQ(again->values.size(), graph->values.size());
  EXPECT_EQ(again->outputs.size(), graph->outputs.size());
}

TEST(GraphText, PrintsWhatWasWrittenInFull) {
  const std::string text = R"(graph g(%x: f32[s0, 4], %n "user.n": int s1) {
  size s0 in 1..4096 hint 128
  size s1 in 2..64
  const %w "layer.weight": f32[3, 2] strides [1, 3] = seed 8
  %add = add.Tensor(%x, %x, alpha=2) : f32[s0, 4] @ model.py:12 in encoder.layer.0
  %permute = permute(%add, [1, 0]) : f32[4, s0] strides [1, 4]
  mutates %x = %add
  return alias %permute of input %x, %w, 3, None
}
)";
  const Result<Graph> graph = parse_graph(text, "full.graph");
  ASSERT_TRUE(graph.ok()) << message_of(graph);
  EXPECT_EQ(to_text(*graph), text);
}

TEST(GraphText, OverloadsAndTypesMayBeLeftOut) {
  const Result<Graph> graph =
      parse_graph("graph g(%x: f32[2, 3]) {\n  %y = add(%x, 1)\n  return %y\n}\n", "short.graph");
  ASSERT_TRUE(graph.ok()) << message_of(graph);
  EXPECT_EQ(graph->nodes[NodeId{0}].op, "add.Scalar");
  EXPECT_EQ(text(*graph->syms, graph->type(graph->nodes[NodeId{0}].outs[0])), "f32[2, 3]");
}

TEST(GraphText, WhatIsWrongIsSaidWithItsLine) {
  const struct {
    const char* line;
    const char* says;
  } cases[] = {
      {"%y = frobnicate(%x)", "unknown op frobnicate"},
      {"%y = relu(%z)", "%z"},
      {"%y = relu(%x, %x)", "relu takes 1 arguments"},
      {"%y = relu()", "argument self is missing"},
      {"%y = add.Tensor(%x, %x, beta=1)", "add.Tensor has no argument beta"},
      {"%y = relu(%x) : f32[2, 4]", "but f32[2, 4] is written"},
      {"%y = relu(%x) : f32[2, 3] strides [1, 2]", "is written"},
      {"%y, %z = relu(%x)", "2 results are named, but there are 1"},
      {"%x = relu(%x)", "%x"},
      {"%y = view(%x, [4, 2])", "view"},
      {"size s0 in 9..2", "s0"},
      {"const %c: f32[2] = {1.0}", "the type needs 2 elements, not 1"},
  };
  for (const auto& c : cases) {
    const std::string text =
        std::string("graph g(%x: f32[2, 3]) {\n  ") + c.line + "\n  return %x\n}\n";
    const Result<Graph> graph = parse_graph(text, "wrong.graph");
    ASSERT_FALSE(graph.ok()) << c.line;
    EXPECT_NE(graph.error().message.find(c.says), std::string::npos)
        << c.line << ": " << graph.error().message;
    EXPECT_NE(graph.error().message.find("wrong.graph:2"), std::string::npos)
        << c.line << ": " << graph.error().message;
  }
}

}  // namespace
}  // namespace coil
