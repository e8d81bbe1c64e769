// The text writer, its tokens, and the reader that takes them back.
#include "base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace coil {
namespace {

TEST(TextWriter, IndentsByDepthAndLeavesEmptyLinesEmpty) {
  TextWriter w;
  w.line("graph {} {{", "g");
  w.indent();
  w.line("%{} = relu", "a");
  w.raw_line("");
  w.dedent();
  w.raw_line("}");
  EXPECT_EQ(w.text(), "graph g {\n  %a = relu\n\n}\n");
}

TEST(Text, QuotedStringsReadBack) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  const std::string cases[] = {"",
                               "plain",
                               "a\"b\\c\nd\te",
                               "x\\x41",
                               "\x01"
                               "2",
                               every};
  for (const std::string& text : cases) {
    const std::string written = coil::quoted(text);
    TextReader reader(written, "f");
    Result<std::string> back = reader.string();
    ASSERT_TRUE(back.ok()) << written;
    EXPECT_EQ(*back, text);
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(Text, FloatsReadBackWithTheSameBits) {
  const double cases[] = {
      0.0,       -0.0,     1.0,    0.1,          1e-5,          1e22,
      -3.25,     1e300,    5e-324, 1.0 / 3,      123456.,       HUGE_VAL,
      -HUGE_VAL, 2.5e-310, 1e16,   std::nan(""), -std::nan(""), std::numeric_limits<double>::max()};
  for (const double value : cases) {
    const std::string written = float_text(value);
    EXPECT_NE(written.find_first_of(".einf"), written.npos) << written;
    TextReader reader(written, "f");
    Result<double> back = reader.number();
    ASSERT_TRUE(back.ok()) << written;
    EXPECT_EQ(std::bit_cast<u64>(*back), std::bit_cast<u64>(value)) << written;
    EXPECT_TRUE(reader.at_end()) << written;
  }
  EXPECT_EQ(float_text(0.1), "0.1");
  EXPECT_EQ(float_text(1e-5), "1e-05");
  EXPECT_EQ(float_text(2), "2.0");
}

TEST(TextReader, SplitsTokens) {
  TextReader r("%x_1 = add.Tensor(%y.2, -3, 2.5e1) # tail\n: f32", "f");
  EXPECT_EQ(*r.name(), "x_1");
  EXPECT_TRUE(r.accept("="));
  EXPECT_EQ(*r.word(), "add.Tensor");
  EXPECT_TRUE(r.accept("("));
  EXPECT_EQ(*r.name(), "y.2");
  EXPECT_TRUE(r.accept(","));
  EXPECT_EQ(*r.integer(), -3);
  EXPECT_TRUE(r.accept(","));
  EXPECT_EQ(*r.number(), 25.0);
  EXPECT_TRUE(r.accept(")"));
  EXPECT_EQ(r.line(), 2);
  EXPECT_TRUE(r.accept(":"));
  EXPECT_EQ(*r.word(), "f32");
  EXPECT_TRUE(r.at_end());
}

TEST(TextReader, RangesOfIntegersAreNotFloats) {
  TextReader r("0..s0", "f");
  EXPECT_EQ(*r.integer(), 0);
  EXPECT_TRUE(r.accept("."));
  EXPECT_TRUE(r.accept("."));
  EXPECT_EQ(*r.word(), "s0");
}

TEST(TextReader, IntegersCoverExactly64Bits) {
  TextReader r("9223372036854775807 -9223372036854775808 9223372036854775808", "f");
  EXPECT_EQ(*r.integer(), std::numeric_limits<i64>::max());
  EXPECT_EQ(*r.integer(), std::numeric_limits<i64>::min());
  EXPECT_EQ(r.integer().error().message,
            "f:1: the integer 9223372036854775808 does not fit 64 bits");
}

TEST(TextReader, NumbersOutOfRangeAreErrors) {
  EXPECT_EQ(TextReader("1e999", "f").number().error().message,
            "f:1: the number 1e999 does not fit a double");
}

TEST(TextReader, MessagesNameFileLineAndToken) {
  EXPECT_EQ(TextReader("\n\n7", "a.graph").expect("{").error().message,
            "a.graph:3: expected '{', found '7'");
  EXPECT_EQ(TextReader("%q", "a").word().error().message, "a:1: expected a word, found '%q'");
  EXPECT_EQ(TextReader("q", "a").name().error().message, "a:1: expected a %name, found 'q'");
  EXPECT_EQ(TextReader("", "a").integer().error().message,
            "a:1: expected an integer, found the end of the file");
  EXPECT_EQ(TextReader("- x", "a").number().error().message, "a:1: expected a number, found '-'");
  EXPECT_EQ(TextReader("\"open", "a").string().error().message,
            "a:1: expected a \"string\", found '\"'");
}

TEST(TextReader, AFailedTakeLeavesTheToken) {
  TextReader r("- x", "f");
  EXPECT_FALSE(r.integer().ok());
  EXPECT_FALSE(r.number().ok());
  EXPECT_TRUE(r.accept("-"));
  EXPECT_EQ(*r.word(), "x");
}

TEST(TextReader, NameTextIsNotPunctuation) {
  TextReader r("%x \"x\"", "f");
  EXPECT_FALSE(r.at("x"));
  EXPECT_EQ(r.peek(1).kind, TokenKind::String);
  EXPECT_EQ(r.peek(9).kind, TokenKind::End);
}

}  // namespace
}  // namespace coil
