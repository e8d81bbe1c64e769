// Every kernel of the exported fixtures is sound and reads back from its text.

#include <gtest/gtest.h>

#include <filesystem>

#include "driver/compile.h"
#include "driver/load.h"
#include "kernel_texts.h"

namespace coil {
namespace {

using kernel_texts::without_comments;

namespace fs = std::filesystem;

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
