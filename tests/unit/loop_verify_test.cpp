#include <gtest/gtest.h>

#include "loop/program.h"

namespace coil {
namespace {

/// The verifier's message for a program with these lines, or "" if it holds.
std::string problem(const std::string& lines) {
  const Result<LoopProgram> program = parse_program("program p {\n" + lines + "\n}", "t");
  EXPECT_TRUE(program.ok()) << program.error().message;
  if (!program.ok()) return "?";
  const Status status = verify(*program);
  return status.ok() ? "" : status.error().message;
}

const std::string kBuffers = R"(
  size s0 in 0..100
  buffer %x : f32[s0, 4] input
  buffer %h : f16[4] input
  buffer %y : f32[s0, 4]
  buffer %z : f32[s0]
)";

TEST(LoopVerify, AcceptsAPointwiseBody) {
  EXPECT_EQ(problem(kBuffers + "body b { dims i0 < s0, i1 < 4\n v0 = load f32 %x[i0, i1]\n"
                               "store %y[i0, i1], v0 }"),
            "");
}

struct Row {
  const char* body;
  const char* message;
};

TEST(LoopVerify, BodiesAreChecked) {
  const Row rows[] = {
      {"v0 = load f16 %x[i0, i1]", "body b: v0 = load %x: dtype f16 of a buffer of f32"},
      {"v0 = load f32 %x[i0]", "body b: v0 = load %x: 1 indices for 2 dims"},
      {"v0 = load f32 %y[i0, i1]", "body b: v0 = load %y: %y is read before it is defined"},
      {"v0 = load f32 %x[i0, i1]\n v1 = bits_and v0, v0",
       "body b: v1 = bits_and: bits_and does not take f32"},
      {"v0 = load f32 %x[i0, i1]\n v1 = add v0", "body b: v1 = add: add takes 2 operands, not 1"},
      {"v0 = load f16 %h[i1]\n v1 = add v0, v0", "body b: v1 = add: add does not take f16"},
      {"v0 = load f32 %x[i0, i1]\n v1 = const f64 1\n v2 = add v0, v1",
       "body b: v2 = add: operands of add are f32 and f64"},
      {"v0 = load f32 %x[i0, i1]\n v1 = where v0, v0, v0",
       "body b: v1 = where: the condition of where is f32"},
      {"v0 = const f32 1\n v1 = load f32 %x[i0, i1] if v0 else 0",
       "body b: v1 = load %x: the mask is f32"},
      {"v0 = const f64 1\n store %y[i0, i1], v0",
       "body b: store %y: stores f64 in a buffer of f32"},
      {"v0 = const f32 1\n store %z[i0], v0",
       "body b: store %z: every point along i1 stores the same element"},
      {"v0 = const f32 1\n store.sum %y[i0, i1], v0",
       "body b: store %y: combines with a buffer that starts as nothing"},
      {"v0 = const f32 1\n store %x[i0, i1], v0", "step 0 writes %x, which is no temporary"},
      {"v0 = const f64 1\n v1 = bitcast f32 v0", "body b: v1 = bitcast: bitcast of f64 to f32"},
      {"v0 = const f32 1\n n0 = index v0 in 0..3 wrap",
       "body b: index: an index is made from one i64"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(problem(kBuffers + "body b { dims i0 < s0, i1 < 4\n" + row.body + " }"), row.message)
        << row.body;
}

TEST(LoopVerify, ReductionsAreChecked) {
  const Row rows[] = {
      {"v0 = load f32 %x[i0, r0]", "body b: reduce dims, and nothing reduces"},
      {"v0 = load f32 %x[i0, r0]\n v1 = reduce.sum v0 over r0 tree 1x1\n store %z[i0], v0",
       "body b: store %z: uses v0 from before the reduction"},
      {"v0 = load f32 %x[i0, r0]\n v1 = reduce.sum v0 over r0 tree 1x1\n"
       "v2 = load f32 %x[i0, r0]",
       "body b: v2 = load %x: 'r0' uses r0, which has no value here"},
      {"v0 = load f32 %x[i0, r0]\n v1 = reduce.sum v0 over r0 tree 1x1\n v2 = neg v1\n"
       "v3 = reduce.sum v1 over r0 tree 1x1",
       "body b: v3 = reduce: reductions stand together"},
      {"v0 = load f32 %x[i0, r0]\n v1 = reduce.sum v0 over r0 tree 3x1",
       "body b: v1 = reduce: a tree of 3x1: lanes are a power of two"},
      {"v0 = load f32 %x[i0, r0]\n v1 = reduce v0 over r0 tree 1x1 from f64 0 {\n"
       "c0 = add a0, b0\n return c0 }",
       "body b: v1 = reduce: takes f32 as f64"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(problem(kBuffers + "body b { dims i0 < s0 | reduce r0 < 4\n" + row.body + " }"),
              row.message)
        << row.body;
}

TEST(LoopVerify, ProgramsAreChecked) {
  const std::string copy =
      "body b { dims i0 < s0, i1 < 4\n v0 = load f32 %x[i0, i1]\n"
      "store %y[i0, i1], v0 }\n";
  const std::string again =
      "body c { dims i0 < s0, i1 < 4\n v0 = load f32 %x[i0, i1]\n"
      "store %y[i0, i1], v0 }\n";
  EXPECT_EQ(problem(kBuffers + copy + again), "%y is written by two steps");
  EXPECT_EQ(problem(kBuffers + "output %y : f32[s0, 4]"),
            "output 0: %y is read before it is defined");
  EXPECT_EQ(problem(kBuffers + copy + "output %y : f16[s0, 4]"),
            "output 0: f16 of a buffer of f32");
  EXPECT_EQ(problem(kBuffers + copy + "output alias of output 3 %y : f32[s0, 4]"),
            "output 0: output 3 does not hold its memory");
  EXPECT_EQ(problem(kBuffers + "body b init { dims i0 < s0\n v0 = const f32 1\n"
                               "store %z[i0], v0 }"),
            "body b: 's0' uses s0, which has no value here");
  EXPECT_EQ(problem(kBuffers + "body b { dims i0 < s0 | reduce r0 < 4\n v0 = load f32 %x[i0, r0]\n"
                               "v1 = reduce.sum v0 over r0 tree 16x3 block 64\n"
                               "store %z[i0], v1 }"),
            "body b: v1 = reduce: a block of 64 is no whole number of rounds of 16x3");
  EXPECT_EQ(problem(kBuffers + "gemm g { in %x over m < s0, k < 4 at [m, k]\n"
                               "in %h over k < 4 at [k]\n"
                               "out %y over m < s0, n < 4 at [m, n] }"),
            "node g: b has 1 dims, expected 2");
  const std::string waves = "buffer %w : f32[s0, 4, 2]\nfft f r2c dim 1 forward {\n";
  EXPECT_EQ(problem(kBuffers + waves +
                    "in %x over i < s0, j < 4 at [i, j]\n"
                    "out %y over i < s0, j < 4 at [i, j] }"),
            "node f: y has 2 dims, expected 3");
  EXPECT_EQ(problem(kBuffers + waves +
                    "in %x over i < s0, j < 4 at [i, j]\n"
                    "out %w over i < s0, j < 4, p < 3 at [i, j, p] }"),
            "node f: the last dim of a complex side is not 2");
  EXPECT_EQ(problem(kBuffers + "buffer %w : f32[s0, 4, 2]\nfft f r2c dim 2 backward by_n {\n"
                               "in %x over i < s0, j < 4 at [i, j]\n"
                               "out %w over i < s0, j < 4, p < 2 at [i, j, p] }"),
            "node f: dim 2 of 2");
  EXPECT_EQ(problem(kBuffers + "buffer %q : f32[4] starts %h"),
            "buffer %q: it starts as %h, of another dtype or shape");
  EXPECT_EQ(problem(kBuffers + "buffer %q : f32[s0, 4] strides [1, s0] starts %y"),
            "buffer %q: it starts as %y, of another layout");
  EXPECT_EQ(problem(kBuffers + copy + "buffer %q : f32[s0, 4] starts %y"),
            "%q starts as %y and is never written: nothing gives it its content");
  EXPECT_EQ(problem(kBuffers + "buffer %q : f32[4] layout [d0 // 2: 2]"),
            "buffer %q: its layout leaves out dim 0");
  EXPECT_EQ(problem("size u0 in 0..64 from %count\nbuffer %count : i64[] input\n"
                    "buffer %q : f32[u0 * 2] input"),
            "buffer %q: 'u0*2' uses u0, which has no value here");
}

}  // namespace
}  // namespace coil
