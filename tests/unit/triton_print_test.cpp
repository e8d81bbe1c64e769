// How kernels are mapped to a GPU, and what the Triton printer refuses. What printed kernels give
// is tested in tests/python, where Triton runs.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "kernel/launches_gpu.h"
#include "kernel/mapping_gpu.h"
#include "kernel_texts.h"
#include "target/triton/prelude_files.h"
#include "target/triton/print.h"

namespace coil {
namespace {

using kernel_texts::without_comments;

namespace fs = std::filesystem;

Kernel parsed(const std::string& text) {
  Result<Kernel> k = parse_kernel(text, "t");
  EXPECT_TRUE(k.ok()) << k.error().message << "\n" << text;
  EXPECT_TRUE(verify(*k).ok()) << verify(*k).error().message;
  return std::move(*k);
}

Kernel mapped(const std::string& text) {
  Kernel k = parsed(text);
  const Status s = map_to_gpu(k);
  EXPECT_TRUE(s.ok()) << s.error().message;
  EXPECT_TRUE(verify(k).ok()) << verify(k).error().message << "\n" << to_text(k);
  return k;
}

/// One launch, as it is mapped.
Launches alone(const Kernel& k) { return {k, {}, {}, {k}, {0}}; }

std::string print_error(const Kernel& k) {
  const Launches launches = alone(k);
  const Result<std::string> text = triton::print_module({&launches, 1});
  return text.ok() ? "" : text.error().message;
}

std::string printed(const Launches& k) {
  const Result<std::string> text = triton::print_module({&k, 1});
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : "";
}
std::string printed(const Kernel& k) { return printed(alone(k)); }

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

constexpr const char* kSum = R"(kernel row_sum (
    %x: f32[s0, 100],
    %y: f32[s0] written) {
  size s0 in 0..
  grid i0 < s0
  stage over r0 < 100 {
    v0 = load f32 %x[i0, r0]
    a0 = accumulate.sum v0 tree 16x2
  }
  stage {
    v1 = finish a0
    store %y[i0], v1
  }
}
)";

constexpr const char* kCopy = R"(kernel copy (
    %x: f32[s0, 8],
    %y: f32[s0, 8] written) {
  size s0 in 0..1000
  grid i0 < s0, i1 < 8
  stage {
    v0 = load f32 %x[i0, i1]
    store %y[i0, i1], v0
  }
}
)";

TEST(TritonPrint, ARowIsOneTileOrGoesByChunks) {
  const Kernel row = mapped(kSum);
  ASSERT_EQ(row.mapping.tile.size(), 1u);
  EXPECT_EQ(row.mapping.tile[0].extent, 128);
  EXPECT_EQ(row.mapping.chunk, 0);
  const Kernel longer = mapped(with(kSum, "100", "20000"));
  EXPECT_EQ(longer.mapping.tile[0].extent, 2048);
  EXPECT_EQ(longer.mapping.chunk, 2048);
  const Kernel unbounded =
      mapped(with(with(kSum, "f32[s0, 100]", "f32[7, s0]"), "i0 < s0\n  stage over r0 < 100",
                  "i0 < 7\n  stage over r0 < s0"));
  EXPECT_EQ(unbounded.mapping.chunk, 2048);
}

TEST(TritonPrint, AxesOfAPointwiseGridAreOne) {
  const Kernel k = mapped(kCopy);
  ASSERT_EQ(k.grid.size(), 1u);
  EXPECT_EQ(k.mapping.tile[0].extent, 1024);
  EXPECT_EQ(k.syms->text(k.mapping.units), "-((-s0) // 128)");
  EXPECT_NE(printed(k).find("v0 = tl.load(buf0 + p0, mask=inside0, other=0)"), std::string::npos)
      << printed(k);
}

TEST(TritonPrint, LinesThatAreNotOneInMemoryKeepTheirAxis) {
  const std::string pad = with(kCopy, "%x: f32[s0, 8]", "%x: f32[s0, 9]");
  // Of a line of 8 a tile would leave most lanes idle.
  EXPECT_EQ(mapped(pad).mapping.tile.size(), 1u);
  const Kernel k = mapped(with(with(pad, "9]", "301]"), "8", "300"));
  ASSERT_EQ(k.mapping.tile.size(), 2u);
  EXPECT_EQ(k.mapping.tile[0].extent, 64);
  EXPECT_EQ(k.mapping.tile[1].extent, 16);
}

TEST(TritonPrint, IndicesHave32BitsWhereExtentsProveIt) {
  EXPECT_EQ(printed(mapped(kCopy)).find("tl.int64"), std::string::npos);
  EXPECT_EQ(printed(mapped(with(kCopy, "1000", "30000000"))).find("tl.int64"), std::string::npos);
  EXPECT_NE(printed(mapped(with(kCopy, "1000", "300000000"))).find("tl.int64"), std::string::npos);
  EXPECT_NE(printed(mapped(with(kCopy, "0..1000", "0.."))).find("tl.int64"), std::string::npos);
}

TEST(TritonPrint, RefusesWhatIsNotMappedToAGpu) {
  EXPECT_EQ(print_error(parsed(kSum)), "kernel row_sum for triton: the kernel is not mapped");
  for (const char* text : {kSum, kCopy}) {
    Kernel k = parsed(text);
    map_to_cpu(k, Machine{});
    EXPECT_NE(print_error(k), "") << to_text(k);
  }
  Kernel small = mapped(kSum);
  small.mapping.tile[0].extent = 64;
  EXPECT_EQ(print_error(small), "kernel row_sum for triton: a tile of 64 does not hold the row");
  small.mapping.tile[0].extent = 120;
  EXPECT_EQ(print_error(small), "kernel row_sum for triton: a tile of 120 is no power of two");
}

TEST(TritonPrint, RefusesWhatHasNoSpelling) {
  EXPECT_EQ(
      print_error(mapped(with(kCopy, "f32", "f8e5m2"))),
      "kernel copy for triton: stage 0: instruction 0: buffer %x: f8e5m2 has no type in Triton");
  const std::string to_f8 =
      with(with(kCopy, "store %y[i0, i1], v0", "v1 = cast f8e5m2 v0\n    store %y[i0, i1], v1"),
           "%y: f32", "%y: f8e5m2");
  EXPECT_EQ(print_error(mapped(to_f8)),
            "kernel copy for triton: stage 0: instruction 1: the triton target has no cast of f32 "
            "to f8e5m2");
  EXPECT_EQ(
      print_error(mapped(with(kCopy, "store %y[i0, i1]", "store %y[0, 0]"))),
      "kernel copy for triton: stage 0: instruction 1: all of a tile stores to one element of %y");
}

TEST(TritonPrint, LoopsOverDifferentRowsHaveTilesOfTheirOwn) {
  const Kernel k = mapped(with(kSum, "    store %y[i0], v1\n  }\n", R"(  }
  stage over r1 < 50 {
    v2 = load f32 %x[i0, r1]
    a1 = accumulate.sum v2 tree 16x2
  }
  stage {
    v3 = finish a1
    store %y[i0], v3
  }
)"));
  ASSERT_EQ(k.mapping.tile.size(), 2u);
  EXPECT_EQ(k.mapping.tile[0].extent, 128);
  EXPECT_EQ(k.mapping.tile[1].extent, 64);
  EXPECT_EQ(tile_kind(k), TileKind::Rows);
}

TEST(TritonPrint, StoresThatMeetAreSerialUnlessAtomic) {
  const Result<std::string> text = read_file(COIL_SOURCE_DIR "/tests/kernels/gather.kernels");
  ASSERT_TRUE(text.ok());
  Result<std::vector<Kernel>> kernels = parse_kernels(*text, "gather");
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  for (Kernel& k : *kernels) {
    ASSERT_TRUE(map_to_gpu(k).ok());
    EXPECT_EQ(k.mapping.serial, k.name == "scatter") << k.name;
    const std::string code = printed(k);
    EXPECT_EQ(code.find("tl.atomic_add") != code.npos, k.name == "histogram") << code;
  }
}

TEST(TritonPrint, EveryTextMapsAndPrints) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(COIL_SOURCE_DIR) / "tests/kernels")) {
    const Result<std::string> text = read_file(entry.path().string());
    ASSERT_TRUE(text.ok());
    Result<std::vector<Kernel>> kernels = parse_kernels(*text, entry.path().filename().string());
    ASSERT_TRUE(kernels.ok()) << kernels.error().message;
    std::vector<Launches> all;
    for (const Kernel& k : *kernels) {
      EXPECT_TRUE(verify(k).ok()) << verify(k).error().message;
      Result<Launches> on_gpu = launches_on_gpu(k);
      ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().message;
      for (const Kernel& launch : on_gpu->launches) {
        EXPECT_FALSE(launch.mapping.reasons.empty());
        EXPECT_TRUE(verify(launch).ok()) << verify(launch).error().message << "\n"
                                         << to_text(launch);
        // The mapping and the joined axes are part of the text.
        const Result<Kernel> back = parse_kernel(to_text(launch), "back");
        ASSERT_TRUE(back.ok()) << back.error().message << "\n" << to_text(launch);
        EXPECT_EQ(to_text(*back), without_comments(to_text(launch)));
      }
      all.push_back(std::move(*on_gpu));
    }
    EXPECT_TRUE(triton::print_module(all).ok());
    ++count;
  }
  EXPECT_EQ(count, 11);
}

TEST(TritonPrint, ErrorsOfAFileOfKernelsNameTheLine) {
  const Result<std::vector<Kernel>> kernels =
      parse_kernels(std::string(kCopy) + "\n" + with(kSum, "finish", "finnish"), "two");
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().message.substr(0, 7), "two:22:") << kernels.error().message;
  EXPECT_EQ(parse_kernels("# nothing\n", "none").error().message, "none has no kernel");
}

TEST(TritonPrint, ThePreludeGivesWhatIsCalledAndNoMore) {
  EXPECT_EQ(triton::prelude_for("v1 = tl.tanh(v0)\n"), "");
  const std::string text = triton::prelude_for("v1 = int_floordiv(v0, v2)\n");
  EXPECT_NE(text.find("def int_floordiv("), text.npos);
  EXPECT_NE(text.find("def int_truncdiv("), text.npos);
  EXPECT_EQ(text.find("def int_fmod("), text.npos);
}

}  // namespace
}  // namespace coil
