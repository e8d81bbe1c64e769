#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "loop/program.h"

namespace coil {
namespace {

std::string read_data(const std::string& name) {
  std::ifstream in(std::string(COIL_SOURCE_DIR) + "/tests/unit/data/" + name);
  EXPECT_TRUE(in.good()) << name;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Parses, prints and parses again; the prints must agree.
std::string round_trip(const std::string& text) {
  Result<LoopProgram> first = parse_program(text, "t.loops");
  EXPECT_TRUE(first.ok()) << first.error().message;
  if (!first.ok()) return "";
  const std::string once = to_text(*first);
  Result<LoopProgram> second = parse_program(once, "printed");
  EXPECT_TRUE(second.ok()) << second.error().message << "\n" << once;
  EXPECT_EQ(second.ok() ? to_text(*second) : "", once);
  return once;
}

TEST(LoopText, BlockPrintsAsItIsTyped) {
  const std::string text = read_data("block.loops");
  EXPECT_EQ(round_trip(text), text);
}

TEST(LoopText, EverythingRoundTripsAndVerifies) {
  const std::string text = read_data("everything.loops");
  round_trip(text);
  Result<LoopProgram> program = parse_program(text, "everything.loops");
  ASSERT_TRUE(program.ok()) << program.error().message;
  // %blocked is returned in a blocked layout, which no strided result can be.
  const Status status = verify(*program);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "output 14: the layout of %blocked must be strided and fixed");
  program->outputs.pop_back();
  EXPECT_TRUE(verify(*program).ok()) << verify(*program).error().message;
}

TEST(LoopText, ConstantsKeepTheirBits) {
  const std::string printed = round_trip(R"(program p {
    buffer %c : f32[5] const = {0.1, -0, inf, nan, 3.4028235e38}
    buffer %y : f32[5] output
    body b {
      dims i0 < 5
      v0 = const f16 0.1
      v1 = const u64 -1
      v2 = const f64 0.1
      v3 = load f32 %c[i0]
      store %y[i0], v3
    } })");
  EXPECT_NE(printed.find("{0.1, -0, inf, nan, 3.4028235e+38}"), std::string::npos) << printed;
  EXPECT_NE(printed.find("const u64 -1"), std::string::npos) << printed;
  EXPECT_NE(printed.find("const f64 0.1\n"), std::string::npos) << printed;
  Result<LoopProgram> program = parse_program(printed, "t");
  ASSERT_TRUE(program.ok());
  const float* data = reinterpret_cast<const float*>(program->storages[0].data);
  EXPECT_EQ(data[0], 0.1f);
  EXPECT_TRUE(std::signbit(data[1]));
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(LoopText, ErrorsNameTheLine) {
  const BadText rows[] = {
      {"program", "t:1: expected a word, found the end of the file"},
      {"program p {", "t:1: expected a declaration, a body or '}', found the end of the file"},
      {"program p { size s0 in 5..2 }", "t:1: the range of size s0 is empty"},
      {"program p {\n buffer %x : f31[2] }", "t:2: expected a dtype, found 'f31'"},
      {"program p { buffer %x : f32[k] }", "unknown size or index 'k'"},
      {"program p { buffer %x : f32[2]\n buffer %x : f32[2] }", "buffer %x is declared twice"},
      {"program p { body b {\n v0 = load f32 %x[] } }", "t:2: unknown buffer '%x'"},
      {"program p { body b {\n v0 = add v1, v2 } }", "t:2: unknown value 'v1'"},
      {"program p { body b {\n v0 = blub v1 } }", "t:2: expected an instruction, found 'blub'"},
      {"program p { buffer %x : f32[] const = {1, } }", "expected a number"},
      {"program p { body b { dims i0 < 2 | reduce r0 < 2\n v0 = const bool true\n"
       " v1 = reduce.sum v0 over r0 tree 1x1 } }",
       "t:3: no combine 'reduce.sum' for this dtype"},
      {"program p { buffer %i : f32[] input\n input \"a\" int 3 }", "has no input line"},
  };
  for (const BadText& row : rows) {
    const Result<LoopProgram> program = parse_program(row.text, "t");
    ASSERT_FALSE(program.ok()) << row.text;
    EXPECT_NE(program.error().message.find(row.message), std::string::npos)
        << row.text << "\n"
        << program.error().message;
  }
}

TEST(LoopText, EveryPrefixIsAnErrorOrAProgram) {
  const std::string text = read_data("everything.loops");
  for (std::size_t n = 0; n + 2 < text.size(); n += 7)
    EXPECT_FALSE(parse_program(text.substr(0, n), "t").ok()) << n;
}

TEST(LoopText, DeepNestingIsAnError) {
  std::string text = "program p { buffer %c : bool[] const = {true} ";
  for (int i = 0; i < 100; ++i) text += "if c on 1 < 2 { program p { ";
  const Result<LoopProgram> program = parse_program(text, "t");
  ASSERT_FALSE(program.ok());
  EXPECT_NE(program.error().message.find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace coil
