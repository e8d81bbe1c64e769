// The shape, stride and dtype rules against torch: data/rules.graph holds one-op programs with the
// types that torch 2.15 records for their results.

#include "graph/rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "graph/text.h"

namespace coil {
namespace {

struct RuleCases {
  std::string head;  // "graph rules(...) {": the inputs that all lines share
  std::vector<std::string> lines;
};

RuleCases rule_cases() {
  std::ifstream file(std::string(COIL_SOURCE_DIR) + "/tests/unit/data/rules.graph");
  RuleCases cases;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("graph ")) cases.head = line;
    if (line.find(" = ") != std::string::npos) cases.lines.push_back(line);
  }
  return cases;
}

TEST(GraphRules, TypesAreThoseThatTorchRecords) {
  const RuleCases cases = rule_cases();
  ASSERT_GT(cases.lines.size(), 1000u);
  std::set<std::string> ops;
  for (const std::string& line : cases.lines) {
    ASSERT_NE(line.find(") : "), std::string::npos) << "no type is recorded: " << line;
    const Result<Graph> graph =
        parse_graph(cases.head + "\n" + line + "\nreturn\n}", "rules.graph");
    EXPECT_TRUE(graph.ok()) << line << "\n" << graph.error().message;
    if (graph.ok()) ops.insert(graph->nodes[NodeId{0}].op);
  }
  EXPECT_GT(ops.size(), 180u);
}

TEST(GraphRules, ATypeThatTorchDoesNotRecordIsRefused) {
  const RuleCases cases = rule_cases();
  for (const char* line : {"%r = add.Tensor(%p, %p) : f32[4, 5, 6]",  // keeps its strides
                           "%r = add.Tensor(%c, %i) : i64[4, 5, 6]",  // promotes to f32
                           "%r = eq.Tensor(%c, %c) : f32[4, 5, 6]",   // is bool
                           "%r = sum(%i) : i32[]",                    // sums in i64
                           "%r = mm(%A, %B) : f32[4, 5]"}) {
    const Result<Graph> graph =
        parse_graph(cases.head + "\n" + line + "\nreturn\n}", "rules.graph");
    ASSERT_FALSE(graph.ok()) << line;
    EXPECT_NE(graph.error().message.find("is written"), std::string::npos) << graph.error().message;
  }
}

TEST(GraphRules, ParametersOfAnotherShapeAreRefused) {
  const RuleCases cases = rule_cases();
  for (const char* line :
       {"%r, %s, %t = native_layer_norm(%img, [8], %b8, %ln, 1e-05)",
        "%r, %s, %t = native_layer_norm(%img, [8], %y, None, 1e-05)",
        "%r, %s, %t = native_group_norm(%img, %b8, %rm, 2, 6, 72, 2, 1e-05)",
        "%r, %s, %t = native_group_norm(%img, %W1, None, 2, 6, 72, 2, 1e-05)",
        "%r, %s, %t = native_group_norm(%img, None, None, 2, 6, 72, 4, 1e-05)",
        "%r, %s, %t = native_group_norm(%img, None, None, 1, 12, 72, 2, 1e-05)",
        "%r, %s, %t = native_group_norm(%img, None, None, 2, 6, -1, 2, 1e-05)"}) {
    const Result<Graph> graph =
        parse_graph(cases.head + "\n" + line + "\nreturn\n}", "rules.graph");
    EXPECT_FALSE(graph.ok()) << line;
  }
}

TEST(GraphRules, OutputPaddingIsSmallerThanTheStrideOrTheDilation) {
  const RuleCases cases = rule_cases();
  const auto parses = [&](const char* stride, const char* dilation, const char* padding) {
    const std::string line = std::string("%r = convolution(%img, %WT, None, ") + stride +
                             ", [1, 1], " + dilation + ", true, " + padding + ", 1)";
    return parse_graph(cases.head + "\n" + line + "\nreturn\n}", "rules.graph").ok();
  };
  EXPECT_TRUE(parses("[2, 1]", "[1, 1]", "[1, 0]"));
  EXPECT_TRUE(parses("[2, 1]", "[1, 2]", "[1, 1]"));
  EXPECT_FALSE(parses("[1]", "[1]", "[1]"));
  EXPECT_FALSE(parses("[2, 1]", "[1, 1]", "[0, 1]"));
  EXPECT_FALSE(parses("[2, 1]", "[1, 2]", "[2, 1]"));
}

}  // namespace
}  // namespace coil
