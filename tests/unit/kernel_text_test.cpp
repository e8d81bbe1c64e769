// The parser and the verifier of level 3 on text by hand.

#include <gtest/gtest.h>

#include "kernel/kernel.h"
#include "target/cpp/print.h"

namespace coil {
namespace {

std::string parse_error(const std::string& text) {
  const Result<Kernel> k = parse_kernel(text, "t");
  return k.ok() ? "" : k.error().message;
}

std::string verify_error(const std::string& text) {
  const Result<Kernel> k = parse_kernel(text, "t");
  if (!k.ok()) return "does not parse: " + k.error().message;
  const Status s = verify(*k);
  return s.ok() ? "" : s.error().message;
}

constexpr const char* kSum = R"(kernel row_sum (
    %x: f32[s0, 100],
    %y: f32[s0] written) {
  size s0 in 1..
  grid i0 < s0
  stage over r0 < 100 {
    v0 = load f32 %x[i0, r0]
    a0 = accumulate.sum v0 tree 16x2
  }
  stage {
    v1 = finish a0
    store %y[i0], v1
  }
  mapping tile r0 x 16 units s0 grain 163
}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(KernelText, PrintsTheSame) {
  const Result<Kernel> k = parse_kernel(kSum, "t");
  ASSERT_TRUE(k.ok()) << k.error().message;
  EXPECT_EQ(to_text(*k), kSum);
  EXPECT_EQ(verify_error(kSum), "");
}

/// Stages that name one axis have one row, and the lanes run along it in both.
TEST(KernelText, StagesOfOneRow) {
  const std::string text = with(kSum, "    store %y[i0], v1\n  }\n", R"(  }
  stage over r0 < 100 {
    v2 = load f32 %x[i0, r0]
    v3 = div v2, v1
    a1 = accumulate.sum v3 tree 16x2
  }
  stage {
    v4 = finish a1
    store %y[i0], v4
  }
)");
  const Result<Kernel> k = parse_kernel(text, "t");
  ASSERT_TRUE(k.ok()) << k.error().message;
  EXPECT_EQ(to_text(*k), text);
  ASSERT_EQ(k->stages.size(), 4u);
  EXPECT_EQ(k->stages[0].loop[0].var, k->lane_axis());
  EXPECT_EQ(k->stages[2].loop[0].var, k->lane_axis());
}

/// A round of blocks ends where the slots of all trees begin anew: after 12 for trees of 3 and 4.
TEST(KernelText, RoundsOfThreeAndFourArePrinted) {
  std::string text =
      with(kSum, "tile r0 x 16 units s0", "tile i0 x 16 chunk 16 units (s0 + 15) // 16");
  text = with(text, "tree 16x2\n", "tree 1x3\n    a1 = accumulate.sum v0 tree 1x4\n");
  text = with(text, "    store", "    v2 = finish a1\n    v3 = add v1, v2\n    store");
  const Result<Kernel> k = parse_kernel(with(text, "%y[i0], v1", "%y[i0], v3"), "t");
  ASSERT_TRUE(k.ok()) << k.error().message;
  EXPECT_NE(cpp::print_kernel(*k, "f").find("r0 + 12 <= "), std::string::npos)
      << cpp::print_kernel(*k, "f");
}

TEST(KernelText, LayoutsWithFactors) {
  const std::string text = R"(kernel packed (
    %x: f32[64] layout [d0 // 16: 32, d0: 1] offset 4 written) {
  grid i0 < 64
  stage {
    v0 = scalar f64 3
    v1 = cast f32 v0
    store %x[i0], v1
  }
}
)";
  const Result<Kernel> k = parse_kernel(text, "t");
  ASSERT_TRUE(k.ok()) << k.error().message;
  EXPECT_EQ(to_text(*k), text);
  EXPECT_EQ(k->scalars, std::vector<u32>{3});
  EXPECT_EQ(verify_error(text), "");
}

TEST(KernelText, ParseErrorsNameTheLine) {
  EXPECT_EQ(parse_error(with(kSum, "size s0 in 1..", "")),
            "t:5: s0 is used by a buffer and not declared");
  EXPECT_EQ(parse_error(with(kSum, "finish a0", "finish a7")), "t:11: unknown accumulator 'a7'");
  EXPECT_EQ(parse_error(with(kSum, "accumulate.sum", "accumulate.most")),
            "t:8: no combine 'accumulate.most' for this dtype");
  EXPECT_NE(parse_error(with(kSum, "tree 16x2", "tree 16y2")), "");
  EXPECT_NE(parse_error(std::string(kSum) + "more"), "");
}

TEST(KernelVerify, NamesStageAndInstruction) {
  EXPECT_EQ(verify_error(with(kSum, "store %y[i0]", "store %y[i0, i0]")),
            "stage 1, instruction 1 (store %y): 2 indices for 1 dims");
  EXPECT_EQ(verify_error(with(kSum, "v1 = finish a0", "v1 = finish a0\n v2 = add v0, v1")),
            "stage 1, instruction 1 (v2 = add): uses v0, which lives in an earlier loop only");
  EXPECT_EQ(verify_error(with(kSum, "v0 = load f32", "v0 = load f64")),
            "stage 0, instruction 0 (v0 = load %x): dtype f64 of a buffer of f32");
  EXPECT_EQ(verify_error(with(kSum, "] written", "]")),
            "stage 1, instruction 1 (store %y): the buffer is not marked as written");
  EXPECT_EQ(verify_error(with(kSum, "100],", "100] written,")),
            "buffer %x is marked as written, and nothing stores to it");
}

TEST(KernelVerify, Accumulators) {
  EXPECT_EQ(verify_error(with(kSum, "v1 = finish a0", "v1 = finish a0\n v2 = finish a0")),
            "stage 1, instruction 1 (v2 = finish a0): a0 is finished twice");
  Kernel k = *parse_kernel(kSum, "t");
  std::swap(k.stages[0].insts, k.stages[1].insts);
  EXPECT_FALSE(verify(k).ok());
  k = *parse_kernel(kSum, "t");
  k.stages[1].insts.clear();
  EXPECT_FALSE(verify(k).ok());
}

TEST(KernelVerify, Scope) {
  Kernel k = *parse_kernel(kSum, "t");
  k.stages[1].insts[1].inst.index[0] = k.stages[0].loop[0].var;
  EXPECT_EQ(verify(k).error().message,
            "stage 1, instruction 1 (store %y): r0 uses r0, which is not in scope");
  k = *parse_kernel(kSum, "t");
  k.symbols.clear();
  EXPECT_EQ(verify(k).error().message, "buffer %x: s0 uses s0, which is not in scope");
  k = *parse_kernel(kSum, "t");
  k.mapping.tile.push_back(k.mapping.tile[0]);
  EXPECT_EQ(verify(k).error().message, "mapping: axis r0 is tiled twice");
  k.mapping.tile = {{k.symbols[0], 16}};
  EXPECT_EQ(verify(k).error().message, "mapping: a tile dim is no axis of the kernel");
  k = *parse_kernel(kSum, "t");
  k.mapping.abreast = 2;
  EXPECT_EQ(verify(k).error().message,
            "mapping: tiles abreast need lanes along one axis, of the grid");
  k.mapping.tile = {{k.grid[0].var, 16}};
  k.mapping.chunk = 16;
  EXPECT_EQ(verify(k).error().message, "mapping: 2 tiles abreast in a chunk of 16");
  k.mapping.chunk = 32;
  EXPECT_TRUE(verify(k).ok()) << verify(k).error().message;
}

}  // namespace
}  // namespace coil
