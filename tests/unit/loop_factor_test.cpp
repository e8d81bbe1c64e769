// The node Factor at level 1: its text, what the verifier says of it, and the interpreter.

#include <gtest/gtest.h>

#include "interp_support.h"

namespace coil {
namespace {

const std::string kSolve = R"(
  buffer %a : f32[1, 2, 2] input
  buffer %b : f32[1, 2, 1] input
  buffer %x : f32[1, 2, 1] output
  factor x triangular upper unit {
    in %a over i < 1, j < 2, k < 2 at [i, j, k]
    in %b over i < 1, j < 2, k < 1 at [i, j, k]
    out %x over i < 1, j < 2, k < 1 at [i, j, k]
  })";

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string problem(const std::string& lines) {
  const Result<LoopProgram> program = parse_program("program p {\n" + lines + "\n}", "t");
  if (!program.ok()) return program.error().message;
  const Status status = verify(*program);
  return status.ok() ? "" : status.error().message;
}

TEST(LoopFactor, PrintsWhatItWasParsedFrom) {
  const std::string text = to_text(interp_test::parse(kSolve));
  EXPECT_NE(text.find("factor x triangular upper unit {"), std::string::npos) << text;
  const Result<LoopProgram> again = parse_program(text, "printed");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_text(*again), text);
  EXPECT_EQ(problem(kSolve), "");
}

TEST(LoopFactor, IsVerifiedByItsSignature) {
  EXPECT_NE(problem(with(kSolve, "triangular", "hexagonal"))
                .find("there is no factorisation 'hexagonal'"),
            std::string::npos);
  EXPECT_EQ(problem(with(kSolve, "triangular upper unit", "cholesky")),
            "node x: 2 operands and 1 results of cholesky");
  EXPECT_EQ(problem(with(kSolve, "triangular upper unit", "triangular hermitian")),
            "node x: triangular has no such flag");
  EXPECT_EQ(problem(with(kSolve, "%b : f32", "%b : f64")),
            "node x: operand 1 is f64, expected f32");
  EXPECT_EQ(problem(with(kSolve, "j < 2, k < 1 at [i, j, k]", "j < 2 at [i, j, 0]")),
            "node x: operand 1 has 2 dims, expected 3");
}

TEST(LoopFactor, RunsInTheInterpreter) {
  const auto x = interp_test::run(kSolve, {interp_test::floats({1, 2, 2}, {7, 3, 9, 7}),
                                           interp_test::floats({1, 2, 1}, {10, 2})});
  EXPECT_EQ(interp_test::elements<float>(x[0]), (std::vector<float>{4, 2}));
}

TEST(LoopFactor, SizesThatDoNotFitAreAnError) {
  const std::string lines = with(with(kSolve, "%b : f32[1, 2, 1]", "%b : f32[1, 3, 1]"),
                                 "%b over i < 1, j < 2", "%b over i < 1, j < 3");
  EXPECT_EQ(interp_test::run_error(lines, {interp_test::floats({1, 2, 2}, {1, 0, 0, 1}),
                                           interp_test::floats({1, 3, 1}, {1, 2, 3})}),
            "node x: operand 1 of triangular: dim 1 has size 3, expected 2");
}

}  // namespace
}  // namespace coil
