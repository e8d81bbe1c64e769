// Decompositions have the result types that torch gives the ops: each line of decompose_facts.txt.

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "graph/text.h"
#include "graph/verify.h"
#include "passes/composite.h"
#include "passes/passes.h"

namespace coil {
namespace {

struct Fact {
  std::string graph;
  std::string types;  // joined with "; "
};

std::vector<Fact> read_facts() {
  std::ifstream in(std::string(COIL_SOURCE_DIR) + "/tests/unit/data/decompose_facts.txt");
  std::vector<Fact> facts;
  for (std::string line; std::getline(in, line);) {
    const std::size_t arrow = line.rfind(" -> ");
    if (arrow == line.npos) continue;
    facts.push_back({line.substr(0, arrow), line.substr(arrow + 4)});
  }
  return facts;
}

/// Strides where they matter: dims of size 1 may have any.
std::string comparable(const Graph& graph, Type type) {
  sym::Arena& syms = *graph.syms;
  if (!type.is_tensor()) return text(syms, type);
  const std::vector<sym::Expr> dense = contiguous_strides(syms, type.shape);
  bool is_contiguous = true;
  for (std::size_t d = 0; d < type.ndim(); ++d)
    is_contiguous &= syms.is_const(type.shape[d], 1) || type.strides[d] == dense[d];
  if (is_contiguous) type.strides = dense;
  return text(syms, type);
}

std::string result_types(const Graph& graph) {
  return join(graph.outputs, "; ",
              [&](const Output& out) { return comparable(graph, graph.type(out.value)); });
}

class Decompositions : public testing::Test {
 protected:
  static Result<Graph> parse(const Fact& fact) {
    GraphTextOptions options;
    options.composites = &composite_rules();
    return parse_graph(fact.graph, "facts", options);
  }
};

TEST_F(Decompositions, HaveTheTypesOfTorch) {
  const std::vector<Fact> facts = read_facts();
  ASSERT_GT(facts.size(), 250u);
  for (const Fact& fact : facts) {
    SCOPED_TRACE(fact.graph);
    const Result<Graph> graph = parse(fact);
    if (!graph.ok()) {
      ADD_FAILURE() << graph.error().message;
      continue;
    }
    EXPECT_EQ(result_types(*graph), fact.types) << "by the shape rule";
    const Result<Graph> out = decompose(*graph);
    if (!out.ok()) {
      ADD_FAILURE() << out.error().message;
      continue;
    }
    EXPECT_EQ(result_types(*out), fact.types) << to_text(*out);
    for (const Node& node : out->nodes) EXPECT_TRUE(is_core_op(node.op)) << node.op;
    const Status verified = verify(*out);
    EXPECT_TRUE(verified.ok()) << (verified.ok() ? "" : verified.error().message) << to_text(*out);
  }
}

/// What a row needs that no fixed graph can state: data-dependent sizes and training. And an op
/// that the torch of the facts no longer has.
TEST_F(Decompositions, CoverEveryRow) {
  const std::set<std::string, std::less<>> without_facts = {
      "masked_select",      "nonzero_numpy", "where",
      "argwhere",           "index.Tensor",  "_conj_physical",
      "_fused_rms_norm",    "data",          "_unique",
      "_unique2",           "unique_dim",    "unique_dim_consecutive",
      "unique_consecutive", "bincount",      "cholesky"};
  std::string all;
  for (const Fact& fact : read_facts()) all += fact.graph + "\n";
  std::string missing;
  for (std::string_view op : decomposed_ops())
    if (!without_facts.contains(op) && all.find(str("= {}(", op)) == all.npos)
      missing += str(" {}", op);
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace coil
