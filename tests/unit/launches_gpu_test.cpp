// Which launches a kernel is on a GPU, and why. What they give is tested in tests/python.

#include <gtest/gtest.h>

#include "kernel/launches_gpu.h"
#include "kernel/mapping_gpu.h"

namespace coil {
namespace {

Launches on_gpu(const std::string& text) {
  Result<Kernel> k = parse_kernel(text, "t");
  EXPECT_TRUE(k.ok()) << k.error().message << "\n" << text;
  EXPECT_TRUE(verify(*k).ok()) << verify(*k).error().message;
  Result<Launches> out = launches_on_gpu(*k);
  EXPECT_TRUE(out.ok()) << out.error().message;
  for (const Kernel& launch : out->launches)
    EXPECT_TRUE(verify(launch).ok()) << verify(launch).error().message << to_text(launch);
  return std::move(*out);
}

/// Sums of `rows` rows of `length`, which are symbols' names or numbers.
std::string row_sum(const std::string& sizes, const std::string& rows, const std::string& length) {
  return str(R"(kernel sum (
    %x: f32[{0}, {1}],
    %y: f32[{0}] written) {{
{2}  grid i0 < {0}
  stage over r0 < {1} {{
    v0 = load f32 %x[i0, r0]
    a0 = accumulate.sum v0 tree 16x2
  }}
  stage {{
    v1 = finish a0
    store %y[i0], v1
  }}
}}
)",
             rows, length, sizes);
}

std::vector<std::string> reasons_of(const Kernel& k) { return k.mapping.reasons; }
std::string units(const Kernel& k) { return k.syms->text(k.mapping.units); }

TEST(GpuLaunches, FewLongRowsArePartialsAndTheirFold) {
  const Launches k = on_gpu(row_sum("", "3", "1000000"));
  ASSERT_EQ(k.launches.size(), 2u);
  EXPECT_TRUE(k.sizes.empty());
  ASSERT_EQ(k.scratch.size(), 1u);
  EXPECT_EQ(units(k.launches[0]), "735");  // 3 rows of 245 pieces
  EXPECT_EQ(units(k.launches[1]), "3");
  EXPECT_EQ(k.launches[0].mapping.tile[0].extent, 4096);
  EXPECT_EQ(k.launches[1].mapping.tile[0].extent, 256);
  EXPECT_EQ(
      reasons_of(k.launches[0]).back(),
      "rows are split over programs, 4096 points at least each: fewer than 264 programs would "
      "leave the chip idle");
}

TEST(GpuLaunches, ManyRowsOrShortOnesAreOneLaunch) {
  const Launches many = on_gpu(row_sum("", "264", "1000000"));
  ASSERT_EQ(many.launches.size(), 1u);
  EXPECT_EQ(reasons_of(many.launches[0]).back(), "not split over programs: there are 264 at least");
  EXPECT_EQ(on_gpu(row_sum("", "263", "1000000")).launches.size(), 2u);
  EXPECT_EQ(on_gpu(row_sum("", "3", "16384")).launches.size(), 1u);
  EXPECT_EQ(on_gpu(row_sum("", "3", "16385")).launches.size(), 2u);
}

TEST(GpuLaunches, SizesOfTheLaunchDecideWhereTheyAreNotKnownBefore) {
  const Launches k = on_gpu(row_sum("  size s0 in 0..\n  size s1 in 0..\n", "s0", "s1"));
  ASSERT_EQ(k.launches.size(), 3u);
  ASSERT_EQ(k.sizes.size(), 2u);
  const auto programs = [&](const Kernel& launch, i64 s0, i64 s1) {
    std::vector<std::pair<sym::Expr, sym::Expr>> values;
    for (const Launches::Size& s : k.sizes) values.push_back({s.symbol, s.value});
    return launch.syms->eval(
        launch.syms->substitute(launch.mapping.units, values), [&](sym::Expr v) {
          return std::optional<i64>(launch.syms->var(v).name == "s0" ? s0 : s1);
        });
  };
  EXPECT_EQ(programs(k.launches[0], 3, 1000000), 735);
  EXPECT_EQ(programs(k.launches[1], 3, 1000000), 3);
  EXPECT_EQ(programs(k.launches[2], 3, 1000000), 0);
  // Pieces grow with the row, so that one tile folds them.
  EXPECT_EQ(programs(k.launches[0], 1, 100000000), 509);
  for (const auto& [s0, s1] : {std::pair<i64, i64>{1000, 1000000}, {3, 16384}, {0, 20000}}) {
    EXPECT_EQ(programs(k.launches[0], s0, s1), 0);
    EXPECT_EQ(programs(k.launches[2], s0, s1), s0);
  }
}

TEST(GpuLaunches, ColumnsAreTilesOfRows) {
  const Launches k = on_gpu(R"(kernel sum (
    %x: f32[8192, 1024],
    %y: f32[1024] written) {
  grid i0 < 1024
  stage over r0 < 8192 {
    v0 = load f32 %x[r0, i0]
    a0 = accumulate.sum v0 tree 1x1
  }
  stage {
    v1 = finish a0
    store %y[i0], v1
  }
}
)");
  ASSERT_EQ(k.launches.size(), 2u);
  for (const Kernel& launch : k.launches) {
    EXPECT_EQ(tile_kind(launch), TileKind::Columns);
    EXPECT_EQ(launch.mapping.tile[0].extent, 64);
    EXPECT_EQ(launch.mapping.tile[1].extent, 64);
  }
  EXPECT_EQ(units(k.launches[0]), "1024");  // 16 tiles of columns, 64 pieces of 128 rows
  EXPECT_EQ(units(k.launches[1]), "16");
}

TEST(GpuLaunches, WhatIsNotSplitHasAReason) {
  const char* gather = R"(kernel gather (
    %i: i64[3, 100000],
    %t: f32[10],
    %y: f32[3] written) {
  grid i0 < 3
  stage over r0 < 100000 {
    v0 = load i64 %i[i0, r0]
    n0 = index v0 in 0..9 assert
    v1 = load f32 %t[n0]
    a0 = accumulate.sum v1 tree 16x2
  }
  stage {
    v2 = finish a0
    store %y[i0], v2
  }
}
)";
  const Launches k = on_gpu(gather);
  ASSERT_EQ(k.launches.size(), 1u);
  EXPECT_EQ(reasons_of(k.launches[0]).back(),
            "not split over programs: an index is checked, and reports its place in the row");
}

TEST(GpuLaunches, ABufferMayBeWrittenAndReadAgainInLoopsOnly) {
  const std::string text = R"(kernel again (
    %y: f32[3, 100000] written,
    %s: f32[3] written,
    %z: f32[3, 100000] written) {
  grid i0 < 3
  stage over r0 < 100000 {
    v0 = load f32 %y[i0, r0]
    a0 = accumulate.sum v0 tree 16x2
    store %y[i0, r0], v0
  }
  stage {
    v1 = finish a0
    store %s[i0], v1
  }
  stage over r0 < 100000 {
    v2 = load f32 LOADED
    store %z[i0, r0], v2
  }
}
)";
  const auto loading = [&](const std::string& what) {
    std::string out = text;
    return on_gpu(out.replace(out.find("LOADED"), 6, what));
  };
  EXPECT_EQ(loading("%y[i0, r0]").launches.size(), 2u);
  const Launches whole = loading("%s[i0]");
  ASSERT_EQ(whole.launches.size(), 1u);
  EXPECT_EQ(reasons_of(whole.launches[0]).back(),
            "not split over programs: a buffer is read and written outside of the loops");
}

TEST(GpuLaunches, ClosingStagesAreALaunchAfterTheOthers) {
  const Launches k = on_gpu(R"(kernel total (
    %x: f32[1000],
    %y: f32[1000] written,
    %z: f32[1] written) {
  grid i0 < 1000
  stage {
    v0 = load f32 %x[i0]
    store %y[i0], v0
  }
  closing stage over r0 < 1000 {
    v1 = load f32 %y[r0]
    a0 = accumulate.sum v1 tree 16x1
  }
  closing stage {
    v2 = finish a0
    store %z[0], v2
  }
}
)");
  ASSERT_EQ(k.launches.size(), 2u);
  EXPECT_EQ(tile_kind(k.launches[0]), TileKind::Grid);
  EXPECT_EQ(tile_kind(k.launches[1]), TileKind::Rows);
  EXPECT_EQ(units(k.launches[1]), "1");
}

}  // namespace
}  // namespace coil
