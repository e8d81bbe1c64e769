// tests/golden/kernels: programs of level 1 and the kernels that they become. BLESS=1 rewrites
// those.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernel/launches_cpu.h"
#include "kernel_texts.h"

namespace coil {
namespace {

using kernel_texts::without_comments;

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Kernel> kernels_of(const LoopProgram& program) {
  const Options options;
  const Schedule plan = schedule(program, options);
  std::vector<Kernel> out;
  for (const ScheduleStep& step : plan.order)
    if (const auto* group = std::get_if<GroupId>(&step)) {
      const BuiltKernel built = build_kernel(program, plan, *group);
      for (const Kernel& launch : launches_on_cpu(built.kernel, Machine{}).launches)
        out.push_back(launch);
    }
  return out;
}

class KernelGolden : public testing::TestWithParam<std::string> {};

TEST_P(KernelGolden, Matches) {
  const fs::path path = fs::path(COIL_SOURCE_DIR) / "tests/golden/kernels" / GetParam();
  const Result<LoopProgram> program = parse_program(read(path), path.filename().string());
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_TRUE(verify(*program).ok()) << verify(*program).error().message;
  std::string text;
  for (const Kernel& kernel : kernels_of(*program)) {
    const Status sound = verify(kernel);
    EXPECT_TRUE(sound.ok()) << sound.error().message << "\n" << to_text(kernel);
    text += to_text(kernel);
  }
  fs::path golden = path;
  golden.replace_extension(".kernels");
  if (std::getenv("BLESS")) std::ofstream(golden) << text;
  EXPECT_EQ(text, read(golden));
}

TEST_P(KernelGolden, ParsesBack) {
  const fs::path path = fs::path(COIL_SOURCE_DIR) / "tests/golden/kernels" / GetParam();
  const Result<LoopProgram> program = parse_program(read(path), path.filename().string());
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (const Kernel& kernel : kernels_of(*program)) {
    const std::string text = to_text(kernel);
    const Result<Kernel> back = parse_kernel(text, "kernel");
    ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
    EXPECT_EQ(to_text(*back), without_comments(text));
    const Status sound = verify(*back);
    EXPECT_TRUE(sound.ok()) << sound.error().message;
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> out;
  for (const auto& entry :
       fs::directory_iterator(fs::path(COIL_SOURCE_DIR) / "tests/golden/kernels"))
    if (entry.path().extension() == ".loops") out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  return fs::path(info.param).stem().string();
}

INSTANTIATE_TEST_SUITE_P(Programs, KernelGolden, testing::ValuesIn(programs()), test_name);

}  // namespace
}  // namespace coil
