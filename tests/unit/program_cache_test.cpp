// The program cache: what hits and what misses, that a hit computes the same bits, and that damaged
// entries are misses.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/file.h"
#include "driver/program_cache.h"
#include "driver/runner.h"
#include "graph/canonical.h"
#include "graph/text.h"
#include "passes/passes.h"
#include "runtime/plan_format.h"

namespace coil {
namespace {

namespace fs = std::filesystem;

/// A graph with a gather of weights, a product, a loop and two sizes. `weights` are the four
/// elements of %w, the other parts are what a program key leaves out.
struct Text {
  std::string weights = "1, 2, 3, 4";
  std::string x = "x", frame = "model.py:12", rows = "s0", other = "s1";

  std::string operator()() const {
    return str(
        "graph main(%{0}: f32[{3}, 4], %k \"index\": i64[{4}]) {{\n"
        "  size {3} in 1..64\n"
        "  size {4} in 1..64\n"
        "  const %unused: f32[2] = {{7, 8}}\n"
        "  const %w \"layer.weight\": f32[4] = {{{1}}}\n"
        "  const %m: f32[4, 4] = seed 3\n"
        "  %{0}_row = index_select(%{0}, 0, %k) @ {2}\n"
        "  %{0}_mul = mul.Tensor(%{0}_row, %w)\n"
        "  %{0}_mm = mm(%{0}_mul, %m)\n"
        "  %{0}_soft = softmax.int(%{0}_mm, -1)\n"
        "  return %{0}_soft\n"
        "}}\n",
        x, weights, frame, rows, other);
  }
};

Graph parsed(const std::string& text) {
  Result<Graph> graph = parse_graph(text, "test", {.composites = &composite_rules()});
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return std::move(*graph);
}

class ProgramCache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(::testing::TempDir() + "program_cache_test-");
  }
  void TearDown() override { remove_folder(folder_); }

  std::shared_ptr<Compilation> compiled(const std::string& text, const Options& options = {}) {
    const char* path = std::getenv("PATH");
    Result<std::shared_ptr<Compilation>> made =
        compile(parsed(text), options, {path != nullptr ? path : "/usr/bin", folder_});
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? *made : nullptr;
  }
  std::shared_ptr<Compilation> compiled(const std::string& text, const char* key,
                                        const char* value) {
    Options options;
    EXPECT_TRUE(options.set(key, value).ok());
    return compiled(text, options);
  }

  /// The elements of the one output for rows of x and indices, or the message of the Error.
  static std::string called(const std::shared_ptr<Compilation>& c, std::vector<i64> indices) {
    runtime::Tensor x = *runtime::Tensor::allocate(DType::f32, {3, 4});
    for (int i = 0; i < 12; ++i) reinterpret_cast<float*>(x.data)[i] = 0.25f * float(i) - 1;
    runtime::Tensor k = *runtime::Tensor::allocate(DType::i64, {static_cast<i64>(indices.size())});
    std::memcpy(k.data, indices.data(), indices.size() * sizeof(i64));
    const runtime::Value values[] = {x, k};
    const std::unique_ptr<Runner> runner = std::move(*make_runner(c));
    const Result<std::vector<runtime::Value>> out = runner->call(values);
    if (!out.ok()) return out.error().message;
    const runtime::Tensor y = *std::get<runtime::Tensor>((*out)[0]).contiguous();
    return {reinterpret_cast<const char*>(y.data), static_cast<std::size_t>(y.bytes())};
  }

  std::vector<std::string> files(const char* kind) const {
    std::vector<std::string> out;
    std::error_code problem;
    for (const auto& e : fs::directory_iterator(folder_ + "/" + kind, problem))
      out.push_back(e.path().string());
    return out;
  }

  std::string folder_;
};

TEST_F(ProgramCache, AHitRunsNoPassAndGivesTheSameBits) {
  const auto cold = compiled(Text()());
  EXPECT_FALSE(cold->from_cache);
  const auto hit = compiled(Text()());
  ASSERT_TRUE(hit->from_cache);
  const std::string stages =
      join(hit->times, " ", [](const StageTime& t) { return std::string(t.name); });
  EXPECT_EQ(stages, "program_cache init");
  EXPECT_EQ(hit->units_compiled, 0);
  EXPECT_EQ(called(hit, {2, 0, 1, 2}), called(cold, {2, 0, 1, 2}));
  EXPECT_EQ(hit->program.inputs[1].name, "index");
  EXPECT_EQ(hit->program.constants.size(), 2u);  // nothing reads the third
  EXPECT_EQ(hit->program.outputs.size(), 1u);
}

TEST_F(ProgramCache, WeightsAreThoseOfThePresentGraph) {
  Text other;
  other.weights = "4, 3, 2, 1";
  const std::string first = called(compiled(Text()()), {0, 1});
  const auto hit = compiled(other());
  ASSERT_TRUE(hit->from_cache);
  const std::string found = called(hit, {0, 1});
  EXPECT_NE(found, first);
  EXPECT_EQ(found, called(compiled(other(), "cache", "off"), {0, 1}));
}

TEST_F(ProgramCache, NamesAndPlacesDoNotMatterAndMessagesHaveThePresentOnes) {
  Text other;
  other.x = "tokens";
  other.frame = "other.py:7";
  other.rows = "s10";
  other.other = "s77";
  compiled(Text()());
  const auto hit = compiled(other());
  ASSERT_TRUE(hit->from_cache);
  const auto whole = compiled(other(), "cache", "off");
  EXPECT_EQ(called(hit, {1, 2}), called(whole, {1, 2}));
  const std::string message = called(hit, {1, 9});
  EXPECT_EQ(message, called(whole, {1, 9}));
  EXPECT_NE(message.find("tokens_row"), std::string::npos) << message;
  EXPECT_NE(message.find("other.py:7"), std::string::npos) << message;
  EXPECT_EQ(called(hit, std::vector<i64>(65)), called(whole, std::vector<i64>(65)));
}

TEST_F(ProgramCache, WhatChangesTheCodeMisses) {
  compiled(Text()());
  EXPECT_FALSE(compiled(Text()(), "fuse", "off")->from_cache);
  if (Machine::host().isa != Isa::Plain) {
    EXPECT_FALSE(compiled(Text()(), "isa", "plain")->from_cache);
  }
  EXPECT_FALSE(compiled(Text()(), "cxx", "g++")->from_cache);
  EXPECT_FALSE(compiled(Text()(), "disable", "dead_code")->from_cache);
  EXPECT_TRUE(compiled(Text()(), "threads", "3")->from_cache);
  EXPECT_FALSE(compiled(Text()(), "cache", "off")->from_cache);
  EXPECT_FALSE(compiled(Text()(), "verify", "on")->from_cache);
  EXPECT_FALSE(compiled(Text()(), "disable", "program_cache")->from_cache);
}

TEST_F(ProgramCache, DamagedAndForeignEntriesAreMisses) {
  const std::string expected = called(compiled(Text()()), {2});
  const std::string path = files("programs").at(0), bytes = *read_file(path);
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    std::string damaged = bytes;
    if (round % 4 == 0)
      damaged.resize(random() % bytes.size());
    else
      damaged[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    ASSERT_TRUE(write_file(path, damaged).ok());
    const auto found = compiled(Text()());
    ASSERT_FALSE(found->from_cache) << round;
    EXPECT_EQ(called(found, {2}), expected);
    EXPECT_EQ(*read_file(path), bytes);  // written again, and the same
  }
  // A sound entry under another's name.
  const std::string other = "graph g(%x: f32[3]) {\n  %y = neg(%x)\n  return %y\n}\n";
  compiled(other);
  for (const std::string& file : files("programs")) {
    if (file != path) fs::copy_file(path, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(compiled(other)->from_cache);
}

TEST_F(ProgramCache, AnEntryWhoseObjectsAreGoneIsAMiss) {
  compiled(Text()());
  for (const std::string& file : files("objects")) fs::remove(file);
  EXPECT_FALSE(compiled(Text()())->from_cache);
  EXPECT_TRUE(compiled(Text()())->from_cache);
}

TEST(CanonicalBytes, TellApartWhatACompilationDoes) {
  const std::string base =
      "graph g(%x: f32[s0, 4]) {\n  size s0 in 1..9 hint 5\n"
      "  %y = clamp(%x, 0.0, 1.0)\n  return %y\n}\n";
  const std::string expected = canonical_bytes(parsed(base));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = base;
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
    EXPECT_NE(text, base);
    return canonical_bytes(parsed(text));
  };
  EXPECT_EQ(with("%y", "%result"), expected);
  EXPECT_EQ(with("s0", "rows"), expected);
  EXPECT_EQ(with("graph g", "graph other"), expected);
  EXPECT_EQ(with("1.0)", "1.0) @ model.py:3 in layer"), expected);
  EXPECT_NE(with("1.0)", "1.5)"), expected);
  EXPECT_NE(with("0.0", "-0.0"), expected);
  EXPECT_NE(with("0.0", "None"), expected);
  EXPECT_NE(with("1..9", "1..8"), expected);
  EXPECT_NE(with("hint 5", "hint 6"), expected);
  EXPECT_NE(with("f32", "f16"), expected);
  EXPECT_NE(with("4]", "4] strides [1, s0]"), expected);
  EXPECT_NE(with("return %y", "return %x"), expected);
  Graph fixed = parsed(base);
  fixed.inputs[0].fixed = 2.0;
  EXPECT_NE(canonical_bytes(fixed), expected);
}

/// The plan of each fixture, with its Model.
std::vector<std::shared_ptr<Compilation>> fixture_plans() {
  std::vector<std::shared_ptr<Compilation>> out;
  for (const char* folder : {"/tests/fixtures/2.15.0", "/tests/run"})
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(COIL_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".pt2") continue;
      const Result<LoadedModel> model = load_model(entry.path().string());
      Options options;
      EXPECT_TRUE(options.set("stop_after", "plan").ok());
      Result<std::shared_ptr<Compilation>> made = compile(*model, options, {});
      EXPECT_TRUE(made.ok()) << entry.path();
      if (made.ok()) out.push_back(*made);
    }
  EXPECT_GT(out.size(), 100u);
  return out;
}

Status bind_nothing(runtime::Call&) { return Ok{}; }

TEST(PlanFormat, ReadsBackWhatItWroteAndTheNamesFit) {
  for (const auto& c : fixture_plans()) {
    const runtime::Plan& plan = c->model->plan;
    const std::string bytes = runtime::pack(plan);
    Result<runtime::Plan> read =
        runtime::unpack(bytes, {c->kernels.size(), c->program.constants.size(), bind_nothing});
    ASSERT_TRUE(read.ok()) << runtime::to_text(plan);
    EXPECT_EQ(runtime::pack(*read), bytes);
    EXPECT_EQ(runtime::with_names(runtime::to_text(*read), runtime::names_of(plan)),
              runtime::to_text(plan));
  }
}

TEST(PlanFormat, DamagedBytesGiveAnErrorOrASoundPlan) {
  std::mt19937 random(7);
  int errors = 0, sound = 0;
  for (const auto& c : fixture_plans()) {
    const std::string bytes = runtime::pack(c->model->plan);
    for (int round = 0; round < 60; ++round) {
      std::string damaged = bytes;
      if (round % 3 == 0) damaged.resize(random() % bytes.size());
      for (std::size_t k = random() % 3 + (round % 3 != 0); k > 0 && !damaged.empty(); --k)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      const Result<runtime::Plan> read =
          runtime::unpack(damaged, {c->kernels.size(), c->program.constants.size(), bind_nothing});
      ++(read.ok() ? sound : errors);
      if (!read.ok()) continue;
      EXPECT_FALSE(runtime::to_text(*read).empty());  // follows every reference
    }
  }
  EXPECT_GT(errors, 3000);
  EXPECT_GT(sound, 100);
}

}  // namespace
}  // namespace coil
