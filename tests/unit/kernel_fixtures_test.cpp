// Every kernel of the exported fixtures is sound and reads back from its text.

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "driver/compile.h"
#include "driver/load.h"

namespace coil {
namespace {

namespace fs = std::filesystem;

std::string without_comments(const std::string& text) {
  std::stringstream in(text);
  std::string out, line;
  while (std::getline(in, line))
    if (const std::size_t at = line.find_first_not_of(' '); at == line.npos || line[at] != '#')
      out += line + "\n";
  return out;
}

void check_kernels(const fs::path& path, const char* fuse) {
  Result<LoadedModel> model = load_model(path.string());
  ASSERT_TRUE(model.ok()) << model.error().message;
  Options options;
  ASSERT_TRUE(options.set("stop_after", "plan").ok());
  ASSERT_TRUE(options.set("fuse", fuse).ok());
  const auto compiled = compile(std::get<Graph>(model->program), options, Environment{});
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (const Kernel& kernel : (*compiled)->kernels) {
    const std::string text = to_text(kernel);
    const Status sound = verify(kernel);
    EXPECT_TRUE(sound.ok()) << sound.error().message << "\n" << text;
    const Result<Kernel> back = parse_kernel(text, "kernel");
    ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
    EXPECT_EQ(to_text(*back), without_comments(text));
    EXPECT_TRUE(verify(*back).ok()) << verify(*back).error().message << "\n" << text;
  }
}

TEST(KernelFixtures, AllReadBack) {
  int count = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(COIL_SOURCE_DIR) / "tests/fixtures/2.15.0")) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename().string());
    for (const char* fuse : {"on", "off"}) check_kernels(entry.path(), fuse);
    ++count;
  }
  EXPECT_EQ(count, 14);
}

}  // namespace
}  // namespace coil
