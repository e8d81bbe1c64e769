// The options table: defaults, checks, messages, cache key.
#include "base/options.h"

#include <gtest/gtest.h>

namespace coil {
namespace {

TEST(Options, HoldDefaultsUntilSet) {
  Options o;
  EXPECT_EQ(o.text("target"), "cpp");
  EXPECT_EQ(o.integer("threads"), 0);
  EXPECT_TRUE(o.flag("fuse"));
  ASSERT_TRUE(o.set("fuse", "off").ok());
  ASSERT_TRUE(o.set("threads", "12").ok());
  ASSERT_TRUE(o.set("interp.widen", "f64").ok());
  EXPECT_FALSE(o.flag("fuse"));
  EXPECT_EQ(o.integer("threads"), 12);
  EXPECT_EQ(o.text("interp.widen"), "f64");
}

TEST(Options, UnknownKeyNamesTheNearest) {
  Options o;
  EXPECT_EQ(o.set("tarjet", "cpp").error().message,
            "unknown option 'tarjet'; did you mean 'target'?");
  EXPECT_EQ(o.set("qqqqqqqqqqqqq", "1").error().message, "unknown option 'qqqqqqqqqqqqq'");
}

TEST(Options, ValuesAreChecked) {
  Options o;
  EXPECT_EQ(o.set("target", "gpu").error().message,
            "option target cannot be 'gpu'; it is one of: cpp interp");
  EXPECT_EQ(o.set("fuse", "yes").error().message, "option fuse cannot be 'yes'; it is on or off");
  for (const char* bad : {"-1", "two", "", "3x", "99999999999999999999"})
    EXPECT_EQ(o.set("threads", bad).error().message,
              str("option threads cannot be '{}'; it is a whole number, 0 or more", bad));
  EXPECT_EQ(o.text("target"), "cpp");
  EXPECT_EQ(o.integer("threads"), 0);
}

TEST(Options, AnAllowedWordIsTakenWhole) {
  Options o;
  EXPECT_FALSE(o.set("target", "cpp interp").ok());
  EXPECT_FALSE(o.set("target", "").ok());
}

TEST(Options, CodeKeyChangesOnlyWithWhatChangesCode) {
  Options a;
  Options b;
  ASSERT_TRUE(b.set("threads", "3").ok());
  ASSERT_TRUE(b.set("cache_dir", "/tmp/x").ok());
  EXPECT_EQ(a.code_key(), b.code_key());
  ASSERT_TRUE(b.set("isa", "plain").ok());
  EXPECT_NE(a.code_key(), b.code_key());
}

TEST(Options, AskingForAnUnknownKeyIsADefect) {
  EXPECT_THROW(Options().text("nothing"), InternalError);
}

TEST(Options, HelpNamesEveryRow) {
  const std::string help = Options::help();
#define O(key, type, fallback, affects_code, allowed, text) \
  EXPECT_NE(help.find(#key), help.npos);                    \
  EXPECT_NE(help.find(text), help.npos);
#include "base/options.def"
#undef O
}

TEST(Nearest, PrefersTheSmallestDistance) {
  EXPECT_EQ(nearest("relu", {"gelu", "relu6", "relu_"}), "gelu");
  EXPECT_EQ(nearest("abc", {"wxyzw"}), "");
  EXPECT_EQ(nearest("abc", {}), "");
}

}  // namespace
}  // namespace coil
