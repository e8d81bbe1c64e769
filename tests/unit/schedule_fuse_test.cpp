// Which bodies share a kernel, and the reasons why not.

#include <gtest/gtest.h>

#include "schedule/fuse.h"
#include "schedule/schedule.h"

namespace coil {
namespace {

LoopProgram parse(const std::string& lines) {
  Result<LoopProgram> program = parse_program("program p {\n" + lines + "\n}", "t");
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program.ok() ? std::move(*program) : LoopProgram{};
}

std::string chain(const std::string& second) {
  return R"(
  buffer %x: f32[4, 8] input
  buffer %h: f32[4, 8]
  body first {
    dims i0 < 4, i1 < 8
    v0 = load f32 %x[i0, i1]
    v1 = neg v0
    store %h[i0, i1], v1
  }
)" + second;
}

/// The last decision, with "yes: " or "no: ".
std::string decision(const LoopProgram& program) {
  const Schedule s = schedule(program, Options{});
  if (s.decisions.empty()) return "";
  return (s.decisions.back().yes ? "yes: " : "no: ") + s.decisions.back().reason;
}

std::size_t groups(const LoopProgram& program) {
  return schedule(program, Options{}).groups.size();
}

Place place(const LoopProgram& program, std::string_view buffer) {
  const Schedule s = schedule(program, Options{});
  for (BufferId b : program.buffers.ids())
    if (program.buffers[b].name == buffer) return s.buffers.get(b).place;
  return Place::External;
}

TEST(Fuse, ReadOnce) {
  const LoopProgram p = parse(chain(R"(
  buffer %y: f32[4, 8] output
  body second {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[3 - j0, j1]
    v1 = abs v0
    store %y[j0, j1], v1
  })"));
  EXPECT_EQ(decision(p), "yes: %h is read once");
  EXPECT_EQ(groups(p), 1u);
  Options unfused;
  ASSERT_TRUE(unfused.set("fuse", "off").ok());
  EXPECT_EQ(schedule(p, unfused).groups.size(), 2u);
}

/// A body that is worth its place: three elementary functions, read twice.
std::string dear_chain(const std::string& rest) {
  return R"(
  buffer %x: f32[4, 8] input
  buffer %h: f32[4, 8]
  body first {
    dims i0 < 4, i1 < 8
    v0 = load f32 %x[i0, i1]
    v1 = exp v0
    v2 = erf v1
    v3 = tanh v2
    store %h[i0, i1], v3
  }
  buffer %t: f32[4, 8] output
  body transposed {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[j0, j1]
    store %t[j0, j1], v0
  }
)" + rest;
}

TEST(Fuse, SameElement) {
  EXPECT_EQ(decision(parse(dear_chain(R"(
  buffer %y: f32[4, 8] output
  body second {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[j0, j1]
    store %y[j0, j1], v0
  })"))),
            "yes: same element; saves a read of %h");
}

TEST(Fuse, OtherPlace) {
  EXPECT_EQ(decision(parse(dear_chain(R"(
  buffer %y: f32[4, 8] output
  body second {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[3 - j0, j1]
    store %y[j0, j1], v0
  })"))),
            "no: dim j0 of second has no counterpart in first");
}

TEST(Fuse, ViewOfOtherRank) {
  const LoopProgram p = parse(dear_chain(R"(
  buffer %y: f32[2, 2, 8] output
  body second {
    dims j0 < 2, j1 < 2, j2 < 8
    v0 = load f32 %h[j0*2 + j1, j2]
    store %y[j0, j1, j2], v0
  })"));
  EXPECT_EQ(decision(p), "yes: same element; saves a read of %h");
  const LoopProgram q = parse(dear_chain(R"(
  buffer %y: f32[32] output
  body second {
    dims j0 < 32
    v0 = load f32 %h[j0 // 8, j0 % 8]
    store %y[j0], v0
  })"));
  EXPECT_EQ(decision(q), "yes: same element; saves a read of %h");
}

constexpr const char* kSoftmax = R"(
  buffer %x: f32[64, 100] input
  buffer %max: f32[64]
  buffer %e: f32[64, 100]
  buffer %sum: f32[64]
  buffer %y: f32[64, 100] output
  body max {
    dims i0 < 64 | reduce r0 < 100
    v0 = load f32 %x[i0, r0]
    v1 = reduce.max v0 over r0 tree 16x4
    store %max[i0], v1
  }
  body e {
    dims i0 < 64, i1 < 100
    v0 = load f32 %x[i0, i1]
    v1 = load f32 %max[i0]
    v2 = sub v0, v1
    v3 = exp v2
    store %e[i0, i1], v3
  }
  body sum {
    dims i0 < 64 | reduce r0 < 100
    v0 = load f32 %e[i0, r0]
    v1 = reduce.sum v0 over r0 tree 16x4
    store %sum[i0], v1
  }
  body y {
    dims i0 < 64, i1 < 100
    v0 = load f32 %e[i0, i1]
    v1 = load f32 %sum[i0]
    v2 = div v0, v1
    store %y[i0, i1], v2
  })";

TEST(Fuse, SoftmaxIsOneKernel) {
  const LoopProgram p = parse(kSoftmax);
  const Schedule s = schedule(p, Options{});
  ASSERT_EQ(s.groups.size(), 1u);
  const std::vector<Instance>& holds = s.groups[GroupId(0)].instances;
  ASSERT_EQ(holds.size(), 4u);
  EXPECT_EQ(holds[0].stage, 1u);
  EXPECT_EQ(holds[1].stage, 3u);
  EXPECT_EQ(holds[2].stage, 3u);
  EXPECT_EQ(holds[3].stage, 5u);
  EXPECT_EQ(place(p, "max"), Place::Gone);
  EXPECT_EQ(place(p, "e"), Place::Kept);
}

TEST(Fuse, ReductionsOverOtherRows) {
  EXPECT_EQ(decision(parse(R"(
  buffer %x: f32[8, 8] input
  buffer %a, %b: f32[8] output
  body rows {
    dims i0 < 8 | reduce r0 < 8
    v0 = load f32 %x[i0, r0]
    v1 = reduce.sum v0 over r0 tree 1x1
    store %a[i0], v1
  }
  body columns {
    dims i0 < 8 | reduce r0 < 8
    v0 = load f32 %x[r0, i0]
    v1 = reduce.sum v0 over r0 tree 1x1
    store %b[i0], v1
  })")),
            "no: columns reduces over another row than rows");
}

/// Two bodies over the rows of %x.
std::string two_over_rows(const std::string& first, const std::string& second) {
  return decision(
      parse("buffer %x: f32[8, 20] input\n buffer %a, %b: f32[8] output\n buffer %c: f32[8, 20] "
            "output\n" +
            first + second));
}
std::string sum_of_rows(const std::string& name, const std::string& to, const std::string& tree) {
  return "body " + name +
         " {\n dims i0 < 8 | reduce r0 < 20\n v0 = load f32 %x[i0, r0]\n v1 = reduce.sum v0 over "
         "r0 tree " +
         tree + "\n store %" + to + "[i0], v1\n }\n";
}

TEST(Fuse, TreesOfOneKernel) {
  EXPECT_EQ(two_over_rows(sum_of_rows("p", "a", "1x4"), sum_of_rows("q", "b", "1x2")),
            "yes: both read %x");
  EXPECT_EQ(two_over_rows(sum_of_rows("p", "a", "1x4"), sum_of_rows("q", "b", "16x4")),
            "no: their reductions have trees 1x4 block 0 and 16x4 block 0");
  EXPECT_EQ(two_over_rows(sum_of_rows("p", "a", "1x3"), sum_of_rows("q", "b", "1x4")),
            "no: their reductions go in rounds of 3 and 4");
}

TEST(Fuse, ScanBesideLanes) {
  const std::string scan =
      "body s {\n dims i0 < 8 | scan t < 20\n v0 = load f32 %x[i0, t]\n v1 = scan.sum v0 over t\n "
      "store %c[i0, t], v1\n }\n";
  const std::string no = "no: lanes run along the row, and a scan goes in order";
  EXPECT_EQ(two_over_rows(sum_of_rows("p", "a", "16x2"), scan), no);
  EXPECT_EQ(two_over_rows(scan, sum_of_rows("p", "a", "16x2")), no);
  EXPECT_EQ(two_over_rows(scan, sum_of_rows("p", "a", "1x2")), "yes: both read %x");
}

TEST(Fuse, AroundAnotherStep) {
  // `second` reads %h and what a matrix product makes of %h: it cannot run before the product.
  const LoopProgram p = parse(R"(
  buffer %x: f32[8, 8] input
  buffer %h, %g: f32[8, 8]
  buffer %y: f32[8, 8] output
  body first {
    dims i0 < 8, i1 < 8
    v0 = load f32 %x[i0, i1]
    v1 = exp v0
    store %h[i0, i1], v1
  }
  gemm product {
    in %h over m < 8, k < 8 at [m, k]
    in %h over k < 8, n < 8 at [k, n]
    out %g over m < 8, n < 8 at [m, n]
  }
  body second {
    dims i0 < 8, i1 < 8
    v0 = load f32 %h[i0, i1]
    v1 = load f32 %g[i0, i1]
    v2 = add v0, v1
    store %y[i0, i1], v2
  })");
  EXPECT_EQ(groups(p), 2u);
}

TEST(Fuse, FewLongRows) {
  // x - max(x): a row of three blocks leaves threads without work, one of four is shared.
  const auto decided = [](const char* length, const char* tree) {
    std::string text = R"(
  buffer %x: f32[2, LENGTH] input
  buffer %h: f32[2]
  buffer %y: f32[2, LENGTH] output
  body top {
    dims i0 < 2 | reduce r0 < LENGTH
    v0 = load f32 %x[i0, r0]
    v1 = reduce.max v0 over r0 tree TREE
    store %h[i0], v1
  }
  body rest {
    dims j0 < 2, j1 < LENGTH
    v0 = load f32 %x[j0, j1]
    v1 = load f32 %h[j0]
    v2 = sub v0, v1
    store %y[j0, j1], v2
  })";
    for (std::size_t at; (at = text.find("LENGTH")) != text.npos;) text.replace(at, 6, length);
    text.replace(text.find("TREE"), 4, tree);
    return decision(parse(text));
  };
  const std::string apart = "no: 2 rows are too few to share among threads";
  EXPECT_EQ(decided("24576", "16x4 block 8192"), apart);
  EXPECT_EQ(decided("100000", "16x4"), apart);
  EXPECT_EQ(decided("24577", "16x4 block 8192"), "yes: same row; saves a read of %h");
}

}  // namespace
}  // namespace coil
