// Result, COIL_TRY and COIL_CHECK.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace coil {
namespace {

Result<int> half(int n) {
  if (n % 2) return error("{} is odd", n);
  return n / 2;
}

Result<int> quarter(int n) {
  const int h = COIL_TRY(half(n));
  return COIL_TRY(half(h));
}

Result<std::unique_ptr<int>> boxed(int n) {
  auto box = COIL_TRY(Result<std::unique_ptr<int>>(std::make_unique<int>(n)));
  return box;
}

TEST(Result, TryLeavesWithTheError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(7).error().message, "7 is odd");
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
}

TEST(Result, HoldsWhatOnlyMoves) { EXPECT_EQ(**boxed(5), 5); }

TEST(Result, ValueOfAnErrorIsADefectThatTellsIt) {
  Result<int> r = half(1);
  try {
    r.value();
    FAIL() << "value() of an error returned";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("1 is odd"), std::string::npos) << e.what();
  }
}

TEST(Result, ContextComesFirst) {
  EXPECT_EQ(in_context("node relu_3", half(1).error()).message, "node relu_3: 1 is odd");
}

TEST(Check, NamesConditionAndPlace) {
  try {
    COIL_CHECK(1 > 2, "while counting {}", "sheep");
    FAIL() << "COIL_CHECK let a false condition pass";
  } catch (const InternalError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("1 > 2"), what.npos) << what;
    EXPECT_NE(what.find("while counting sheep"), what.npos) << what;
    EXPECT_NE(what.find("base_result_test.cpp"), what.npos) << what;
  }
  EXPECT_NO_THROW(COIL_CHECK(2 > 1));
}

TEST(Format, BracesInArgumentsAreText) { EXPECT_EQ(str("{}", "{x}"), "{x}"); }

TEST(Format, JoinPutsSeparatorsBetween) {
  const int numbers[] = {1, 2, 3};
  EXPECT_EQ(join(numbers, ", ", [](int n) { return str("#{}", n); }), "#1, #2, #3");
  EXPECT_EQ(join(std::string(), "-", [](char c) { return std::string(1, c); }), "");
}

}  // namespace
}  // namespace coil
