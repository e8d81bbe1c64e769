// Every fixture imports, and coil's types are those that the files state.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "import/pt2.h"

namespace coil {
namespace {

std::set<std::string> fixture_files() {
  std::set<std::string> files;
  const std::filesystem::path folder =
      std::filesystem::path(COIL_SOURCE_DIR) / "tests" / "fixtures";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".pt2") files.insert(entry.path().string());
  return files;
}

Pt2Program import_fixture(const std::string& name) {
  const std::string path = str("{}/tests/fixtures/{}.pt2", COIL_SOURCE_DIR, name);
  Result<Pt2Program> program = import_pt2(path, nullptr);
  EXPECT_TRUE(program.ok()) << program.error().message;
  return std::move(program.value());
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

TEST(ImportFixtures, AllFilesImportWithTheTypesTheyState) {
  const std::set<std::string> files = fixture_files();
  EXPECT_EQ(files.size(), 56u);
  for (const std::string& file : files) {
    const Result<Pt2Program> program = import_pt2(file, nullptr);
    ASSERT_TRUE(program.ok()) << program.error().message;
    for (const std::string& difference : program->type_differences)
      ADD_FAILURE() << file << ": " << difference;
    for (const std::string& warning : program->warnings) ADD_FAILURE() << file << ": " << warning;
    EXPECT_FALSE(program->graph.outputs.empty()) << file;
    EXPECT_GT(program->graph.nodes.size(), 0u) << file;
  }
}

TEST(ImportFixtures, CounterKeepsItsBuffersAsState) {
  const Pt2Program program = import_fixture("2.15.0/counter");
  const Graph& graph = program.graph;
  ASSERT_EQ(graph.state_updates.size(), 2u);
  std::set<std::string> states;
  for (const StateUpdate& update : graph.state_updates) {
    EXPECT_TRUE(graph.constants[update.constant].is_state);
    states.insert(graph.constants[update.constant].fqn);
    EXPECT_TRUE(graph.values[update.value].def.valid());
  }
  EXPECT_EQ(states, (std::set<std::string>{"cache", "calls"}));
  EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"add.Scalar", "index_copy", "sum.dim_IntList",
                                                     "mul.Tensor"}));
  // The sum reads the cache after the write.
  const Node& copy = graph.nodes[NodeId(1)];
  EXPECT_EQ(std::get<ValueId>(graph.nodes[NodeId(2)].args[0]), copy.outs[0]);
}

TEST(ImportFixtures, WeightsAreViewsOfTheFile) {
  const Pt2Program program = import_fixture("2.15.0/mlp");
  ASSERT_EQ(program.graph.constants.size(), 6u);
  for (const Constant& constant : program.graph.constants) {
    const Storage& storage = program.graph.storages[constant.storage];
    EXPECT_EQ(storage.source, StorageSource::File);
    EXPECT_NE(storage.data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data) % 64, 0u);
  }
  EXPECT_EQ(program.graph.constants[0].fqn, "up.weight");
  EXPECT_EQ(program.graph.inputs[0].name, "x");
}

TEST(ImportFixtures, DynamicSizesHaveTheirRangesAndGuards) {
  const Pt2Program mlp = import_fixture("2.15.0/mlp_dynamic");
  ASSERT_EQ(mlp.graph.sizes.size(), 1u);
  // A minimum of 2 is only what the exporter took for granted.
  EXPECT_EQ(mlp.graph.syms->var(mlp.graph.sizes[0].var).range, (sym::Range{0, 64}));
  EXPECT_EQ(mlp.graph.sizes[0].hint, 6);

  const Pt2Program views = import_fixture("2.15.0/views_dynamic");
  ASSERT_EQ(views.graph.sizes.size(), 2u);
  EXPECT_EQ(views.graph.syms->var(views.graph.sizes[0].var).range.lo, 3);
  ASSERT_EQ(views.graph.checks.size(), 2u);
  EXPECT_EQ(views.graph.checks[0].text, "((-2) + L['x'].size()[0]) != 1");
}

TEST(ImportFixtures, BranchHasBothSubgraphs) {
  const Pt2Program program = import_fixture("2.9.1/branch");
  ASSERT_EQ(program.graph.subgraphs.size(), 2u);
  EXPECT_EQ(ops_of(program.graph), (std::vector<std::string>{"sum", "gt.Scalar", "cond"}));
  EXPECT_EQ(ops_of(program.graph.subgraphs[0]), (std::vector<std::string>{"sin", "add.Scalar"}));
  EXPECT_EQ(ops_of(program.graph.subgraphs[1]), (std::vector<std::string>{"cos", "sub.Scalar"}));
}

TEST(ImportFixtures, CompositesThatMayAliasAreViewsWhereStridesAllow) {
  const Pt2Program program = import_fixture("2.15.0/causal_attention");
  for (const Node& node : program.graph.nodes) {
    EXPECT_NE(base_name(node.op), "reshape");
    EXPECT_NE(base_name(node.op), "chunk");
    EXPECT_NE(base_name(node.op), "transpose");
  }
  const Pt2Program half = import_fixture("2.15.0/half");
  for (const Node& node : half.graph.nodes) EXPECT_FALSE(node.op.starts_with("_assert"));
}

TEST(ImportFixtures, NodesKnowTheirPlace) {
  const Pt2Program program = import_fixture("2.15.0/branch");
  const Loc& loc = program.graph.locs[program.graph.nodes[NodeId(0)].loc];
  EXPECT_EQ(loc.frame, "make_fixtures.py:90");
}

}  // namespace
}  // namespace coil
