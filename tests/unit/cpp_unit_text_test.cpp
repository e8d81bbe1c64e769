// A translation unit holds what its kernels name of the prelude, and no file that they do without.

#include "target/cpp/unit_text.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "target/cpp/prelude_files.h"

namespace coil::cpp {
namespace {

TEST(UnitText, HoldsWhatKernelsName) {
  const std::regex definition(R"(\n(?:COIL_INLINE|COIL_COLD) [^(\n]*?(\w+)\([^\n]*)");
  int seen = 0;
  for (const PreludeFile& file : prelude_files()) {
    const std::string text(file.text);
    for (std::sregex_iterator at(text.begin(), text.end(), definition), end; at != end; ++at) {
      const std::string name = (*at)[1];
      const std::string unit = translation_unit({"void k0() { " + name + "(x); }"});
      EXPECT_NE(unit.find((*at)[0]), unit.npos) << name << " of " << file.name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 200);
}

TEST(UnitText, HoldsWhatMacrosDefine) {
  for (const auto& [name, file] :
       std::map<std::string, std::string>{{"floordiv", "int_floordiv(T a"},
                                          {"exp", "exp_f32(V x)"},
                                          {"acosh", "COIL_LIBM1(acosh)"},
                                          {"igamma", "COIL_BY_LANE2(igamma)"}}) {
    const std::string unit = translation_unit({"void k0() { " + name + "(x); }"});
    EXPECT_NE(unit.find(file), unit.npos) << name;
  }
}

TEST(UnitText, LeavesOutWhatNothingNames) {
  const std::string unit = translation_unit({"void k0() { add(x, y); }"});
  for (const char* name : {"gcd(T a", "philox(V", "exp_f32(V", "transpose16("})
    EXPECT_EQ(unit.find(name), unit.npos) << name;
  EXPECT_NE(unit.find("splat16("), unit.npos);
}

}  // namespace
}  // namespace coil::cpp
