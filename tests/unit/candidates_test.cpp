// Who is chosen for a structured node, and what is said of the others.

#include "candidates/candidate.h"

#include <gtest/gtest.h>

namespace coil {
namespace {

LoopProgram product() {
  return *parse_program(R"(program product {
  buffer %a : f32[4, 5] input
  buffer %b : f32[5, 6] input
  buffer %c : f32[4, 6] output
  gemm mm {
    in %a over m < 4, k < 5 at [m, k]
    in %b over k < 5, n < 6 at [k, n]
    out %c over m < 4, n < 6 at [m, n]
  }
})",
                        "candidates_test");
}

Offer takes(const std::string& name) {
  return [name](const LoopProgram&, const Structured&) -> Result<Implementation> {
    Implementation out;
    out.name = name;
    return out;
  };
}

Offer refuses(const std::string& reason) {
  return [reason](const LoopProgram&, const Structured&) -> Result<Implementation> {
    return Error{reason};
  };
}

class CandidatesTest : public ::testing::Test {
 protected:
  Result<Choice> choose(const std::string& prefer, Offer own, Offer blas) {
    Candidates candidates = *Candidates::create(prefer);
    candidates.add("template", std::move(own));
    candidates.add("openblas", std::move(blas));
    return candidates.choose(program_, program_.structured[*program_.structured.ids().begin()]);
  }
  const LoopProgram program_ = product();
};

TEST_F(CandidatesTest, FirstOfTheOrderThatTakesTheNode) {
  const Result<Choice> choice = choose("", takes("own"), takes("blas"));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->node, "mm");
  EXPECT_EQ(choice->candidate, "template");
  EXPECT_EQ(choice->implementation.name, "own");
  EXPECT_NE(choice->reason, "");
  EXPECT_TRUE(choice->refused.empty());
}

TEST_F(CandidatesTest, KeepsTheReasonsOfThoseBefore) {
  const Result<Choice> choice = choose("", refuses("too wide"), takes("blas"));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->candidate, "openblas");
  ASSERT_EQ(choice->refused.size(), 1u);
  EXPECT_EQ(choice->refused[0].candidate, "template");
  EXPECT_EQ(choice->refused[0].reason, "too wide");
}

TEST_F(CandidatesTest, PreferredOnesAreAskedFirst) {
  const Result<Choice> choice = choose("onednn,openblas", takes("own"), takes("blas"));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->candidate, "openblas");
  EXPECT_EQ(choice->reason, "option prefer");
  ASSERT_EQ(choice->refused.size(), 1u);
  EXPECT_EQ(choice->refused[0].reason, "it is not part of this build");
}

TEST_F(CandidatesTest, AnErrorNamesAllReasons) {
  const Result<Choice> choice = choose("", refuses("too wide"), refuses("too old"));
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().message,
            "mm: nobody computes this matrix product on the cpp target (template: too wide; "
            "openblas: too "
            "old; onednn: it is not part of this build); --target interp does");
}

TEST_F(CandidatesTest, UnknownNamesAreAnError) {
  const Result<Candidates> made = Candidates::create("template,mkl");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "option prefer: there is no candidate 'mkl'; there are: template, openblas, onednn");
}

}  // namespace
}  // namespace coil
