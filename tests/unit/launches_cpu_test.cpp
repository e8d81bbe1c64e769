// Which launches a kernel is on a CPU, and that they give the bits of the whole kernel.

#include "kernel/launches_cpu.h"

#include <gtest/gtest.h>

#include <map>

#include "kernel_eval.h"
#include "ops/scalar.h"
#include "target/cpp/print.h"
#include "target/interp/index_code.h"

namespace coil {
namespace {

constexpr CpuTuning kEverywhere = {.few_units = sym::kMaxInt, .least_blocks = 1, .scan_block = 4};
constexpr CpuTuning kNowhere = {.few_units = -1, .least_blocks = 1, .scan_block = 4};

Kernel parsed(const std::string& text) {
  Result<Kernel> k = parse_kernel(text, "t");
  EXPECT_TRUE(k.ok()) << k.error().message << "\n" << text;
  EXPECT_TRUE(verify(*k).ok()) << verify(*k).error().message;
  return std::move(*k);
}

Launches on_cpu(const std::string& text, const CpuTuning& tuning = CpuTuning()) {
  Launches out = launches_on_cpu(parsed(text), Machine{}, tuning);
  for (const Kernel& launch : out.launches) {
    EXPECT_TRUE(verify(launch).ok()) << verify(launch).error().message << to_text(launch);
    const Result<Kernel> again = parse_kernel(to_text(launch), "launch");
    EXPECT_TRUE(again.ok()) << again.error().message << to_text(launch);
    EXPECT_NE(cpp::print_kernel(launch, "k"), "");
  }
  return out;
}

std::string units(const Kernel& k) { return k.syms->text(k.mapping.units); }

ops::Scalar element(DType dtype, std::mt19937_64& random) {
  const i64 n = static_cast<i64>(random() % 2001) - 1000;
  if (is_bool(dtype)) return ops::Scalar::of_bool(n > 0);
  if (is_float(dtype)) return ops::Scalar::of_float(dtype, static_cast<double>(n) / 7);
  return ops::Scalar::of_int(dtype, n);
}

/// What a run leaves in the buffers that are no input, by name. The symbol is `size`.
std::map<std::string, std::vector<std::byte>> results(const Launches& all, i64 size) {
  interp::Env env;
  env.syms = all.whole.syms.get();
  for (sym::Expr s : all.whole.symbols) env.values[s] = size;
  std::map<std::string, std::vector<std::byte>> memory;
  std::mt19937_64 random(3);
  const auto place = [&](const KernelBuffer& b) {
    i64 elements = 1;
    for (sym::Expr e : b.shape) elements *= env.at(e);
    std::vector<std::byte>& bytes = memory[b.name];
    bytes.assign(static_cast<std::size_t>(elements * size_of(b.dtype)),
                 std::byte{static_cast<u8>(is_bool(b.dtype) ? 1 : 0xff)});
    for (i64 i = 0; !b.written && i < elements; ++i)
      ops::write_element(b.dtype, bytes.data(), i, element(b.dtype, random));
  };
  for (const KernelBuffer& b : all.whole.buffers) place(b);
  for (const KernelBuffer& b : all.scratch) place(b);
  std::mt19937_64 order(5);
  for (const Kernel& k : all.launches) {
    kernel_eval::Launch launch;
    for (const KernelBuffer& b : k.buffers)
      if (!b.kept)
        launch.buffers.push_back({memory.at(b.name).data(),
                                  static_cast<i64>(memory.at(b.name).size()) / size_of(b.dtype)});
    for (sym::Expr s : k.symbols) launch.symbols.push_back(env.at(s));
    const Status ran = kernel_eval::run(k, launch, order);
    EXPECT_TRUE(ran.ok()) << ran.error().message << to_text(k);
  }
  std::map<std::string, std::vector<std::byte>> out;
  for (const KernelBuffer& b : all.whole.buffers)
    if (b.written && !b.kept) out[b.name] = memory.at(b.name);
  return out;
}

void expect_same_bits(const std::string& text, const std::vector<i64>& sizes = {0}) {
  const Launches whole = on_cpu(text, kNowhere), split = on_cpu(text, kEverywhere);
  EXPECT_LT(whole.launches.size(), split.launches.size()) << text;
  for (i64 size : sizes)
    EXPECT_EQ(results(whole, size), results(split, size)) << "size " << size << "\n" << text;
}

const std::vector<i64> kSizes = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};

std::string with(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

/// Sums of rows, whose number and length are to be put in.
const std::string kSum = R"(kernel sum (
    %x: f32[ROWS, LENGTH],
    %y: f32[ROWS] written) {
  grid i0 < ROWS
  stage over r0 < LENGTH {
    v0 = load f32 %x[i0, r0]
    a0 = accumulate.sum v0 tree 16x4 block 8192
  }
  stage {
    v1 = finish a0
    store %y[i0], v1
  }
}
)";

TEST(CpuLaunches, FewLongRowsAreBlocksAndTheirFold) {
  const Launches k = on_cpu(with(with(kSum, "ROWS", "3"), "LENGTH", "100000"));
  ASSERT_EQ(k.launches.size(), 2u);
  ASSERT_EQ(k.scratch.size(), 1u);
  EXPECT_EQ(units(k.launches[0]), "39");  // 3 rows of 13 blocks
  EXPECT_EQ(k.launches[0].mapping.grain, 2);
  EXPECT_EQ(k.launches[0].mapping.reasons.back(),
            "threads share blocks of 8192 points of a row: at most 15 units of work would leave "
            "some idle");
}

TEST(CpuLaunches, ManyRowsOrShortOnesAreOneLaunch) {
  const auto launches = [](const char* rows, const char* length) {
    return on_cpu(with(with(kSum, "ROWS", rows), "LENGTH", length)).launches.size();
  };
  EXPECT_EQ(launches("15", "100000"), 2u);
  EXPECT_EQ(launches("16", "100000"), 1u);
  EXPECT_EQ(launches("3", "24577"), 2u);  // four blocks
  EXPECT_EQ(launches("3", "24576"), 1u);
}

TEST(CpuLaunches, SumsProductsAndExtremes) {
  for (const char* combine :
       {"sum", "prod", "min", "max", "argmin", "argmax", "welford", "logaddexp"})
    for (const char* dtype : {"f32", "f64", "i64"}) {
      const std::string name = combine;
      if (*dtype == 'i' && (name == "welford" || name == "logaddexp")) continue;
      const bool two = name.starts_with("arg") || name == "logaddexp", three = name == "welford";
      const std::string results = three ? "v1, v2, v3" : two ? "v1, v2" : "v1";
      const std::string second = two && name.starts_with("arg") ? "i64" : dtype;
      std::string text = R"(kernel rows (
    %x: DTYPE[2, s0],
    %y: DTYPE[2] written,
    %z: SECOND[2] written) {
  size s0 in 0..
  grid i0 < 2
  stage over r0 < s0 {
    v0 = load DTYPE %x[i0, r0]
    a0 = accumulate.COMBINE v0 tree 16x2 block 64
  }
  stage {
    RESULTS = finish a0
    store %y[i0], v1
    store %z[i0], LAST
  }
}
)";
      text = with(with(text, "DTYPE", dtype), "SECOND", two ? second : dtype);
      text = with(with(text, "COMBINE", name), "RESULTS", results);
      expect_same_bits(with(text, "LAST", three || two ? "v2" : "v1"), kSizes);
    }
}

/// Softmax of rows; what is between the loops, and how it is handed on.
const std::string kSoftmax = R"(kernel softmax (
    %x: f32[2, 200],
    %row: f32[200] written kept,
    %y: f32[2, 200] written,
    %top: i64[2] written) {
  grid i0 < 2
  stage {
    v0 = const f32 2
    v1 = value i0*3
  }
  stage over r0 < 200 {
    v2 = load f32 %x[i0, r0]
    v3 = mul v2, v0
    a0 = accumulate.max v3 tree 16x4 block 64
  }
  stage {
    v4 = finish a0
    store %top[i0], v1
  }
  stage over r0 < 200 {
    v5 = load f32 %x[i0, r0]
    v6 = mul v5, v0
    v7 = sub v6, v4
    v8 = exp v7
    store %row[r0], v8
    a1 = accumulate.sum v8 tree 16x4 block 64
  }
  stage {
    v9 = finish a1
  }
  stage over r0 < 200 {
    v10 = load f32 %row[r0]
    v11 = div v10, v9
    store %y[i0, r0], v11
  }
}
)";

TEST(CpuLaunches, LaterStagesGetWhatStraightCodeLeft) {
  expect_same_bits(kSoftmax);
  const Launches k = on_cpu(kSoftmax, kEverywhere);
  ASSERT_EQ(k.launches.size(), 5u);
  EXPECT_EQ(k.launches[4].grid.size(), 2u);  // points of a grid: nothing is reduced
  EXPECT_TRUE(k.launches[4].stages.back().loop.empty());
  for (const Kernel& launch : k.launches)
    for (const KernelBuffer& b : launch.buffers) EXPECT_FALSE(b.kept);
}

TEST(CpuLaunches, ColumnsAndOuterAxes) {
  expect_same_bits(R"(kernel columns (
    %x: f32[s0, 3],
    %y: f32[3] written,
    %at: i64[3] written) {
  size s0 in 0..
  grid i0 < 3
  stage over r0 < s0 {
    v0 = load f32 %x[r0, i0]
    a0 = accumulate.sum v0 tree 1x4 block 16
    a1 = accumulate.argmax v0 tree 1x2 block 16
  }
  stage {
    v1 = finish a0
    v2, v3 = finish a1
    store %y[i0], v1
    store %at[i0], v3
  }
}
)",
                   kSizes);
  for (const char* tree : {"16x2 block 32", "1x4 block 20"})
    expect_same_bits(with(R"(kernel channels (
    %x: f32[4, 3, s0],
    %y: f32[3] written,
    %at: i64[3] written) {
  size s0 in 0..
  grid i0 < 3
  stage over r0 < 4, r1 < s0 {
    v0 = load f32 %x[r0, i0, r1]
    a0 = accumulate.welford v0 tree TREE
    a1 = accumulate.argmin v0 tree TREE
  }
  stage {
    v1, v2, v3 = finish a0
    v4, v5 = finish a1
    store %y[i0], v2
    store %at[i0], v5
  }
}
)",
                          "TREE", tree),
                     kSizes);
}

TEST(CpuLaunches, ARowAloneWithoutLanes) {
  const std::string text = R"(kernel strided (
    %x: f32[s0, 2],
    %y: f32[] written) {
  size s0 in 0..
  stage over r0 < s0 {
    v0 = load f32 %x[r0, 1]
    a0 = accumulate.sum v0 tree 1x4 block 16
  }
  stage {
    v1 = finish a0
    store %y[], v1
  }
}
)";
  expect_same_bits(text, kSizes);
  // Blocks differ in length, so that lanes cannot run through them side by side.
  const Launches k = on_cpu(text, kEverywhere);
  EXPECT_TRUE(k.launches[0].mapping.tile.empty());
  EXPECT_EQ(units(k.launches[0]), "-((-s0) // 16)");
}

TEST(CpuLaunches, ScansOfIntegersGoBlockByBlock) {
  for (const char* at : {"i0, i1", "i1, i0"}) {
    std::string text = R"(kernel running (
    %x: i32[SHAPE],
    %y: i32[SHAPE] written,
    %z: i32[SHAPE] written) {
  size s0 in 0..
  grid i0 < 2
  stage along i1 < s0 {
    v0 = load i32 %x[AT]
    v1 = scan.sum v0
    store %y[AT], v1
    v2 = mul v0, v0
    v3 = scan.max v2
    v4 = sub v3, v1
    store %z[AT], v4
  }
}
)";
    text = with(with(text, "AT", at), "SHAPE", *(at + 1) == '0' ? "2, s0" : "s0, 2");
    expect_same_bits(text, kSizes);
    EXPECT_EQ(on_cpu(text, kEverywhere).launches.size(), 3u);
  }
}

TEST(CpuLaunches, ARegionOfItsOwnBeginsWithTheFirstBlock) {
  // left (+) right = left * 0.5 + right: its identity is none where a value was there before.
  expect_same_bits(R"(kernel custom (
    %x: f32[2, s0],
    %y: f32[2] written) {
  size s0 in 1..
  grid i0 < 2
  stage over r0 < s0 {
    v0 = load f32 %x[i0, r0]
    a0 = accumulate v0 tree 16x1 block 32 from f32 1 {
      c0 = const f32 0.5
      c1 = mul a0, c0
      c2 = add c1, b0
      return c2
    }
  }
  stage {
    v1 = finish a0
    store %y[i0], v1
  }
}
)",
                   {1, 31, 32, 33, 64, 65, 200});
}

TEST(CpuLaunches, StraightCodeMayCheckAnIndex) {
  const std::string text = R"(kernel loss (
    %x: f32[2, s0],
    %i: i64[2],
    %y: f32[2] written) {
  size s0 in 2000..
  grid i0 < 2
  stage over r0 < s0 {
    v0 = load f32 %x[i0, r0]
    a0 = accumulate.sum v0 tree 16x4 block 512
  }
  stage {
    v1 = finish a0
    v2 = load i64 %i[i0]
    v3 = const i64 1000
    v4 = add v2, v3
    n0 = index v4 in 0..s0 - 1 wrap
    v5 = load f32 %x[i0, n0]
    v6 = div v5, v1
    store %y[i0], v6
  }
}
)";
  expect_same_bits(text, {2001, 3000});
  const Launches k = on_cpu(text, kEverywhere);
  EXPECT_EQ(k.sites_before, (std::vector<u32>{0, 0}));
}

TEST(CpuLaunches, ClosingStagesAreALaunchOfTheirOwn) {
  const std::string text = R"(kernel total (
    %x: f32[s0],
    %i: i64[s0],
    %t: f32[2001],
    %y: f32[s0] written,
    %z: f32[] written,
    %columns: f32[] written) {
  size s0 in 0..
  grid i0 < s0
  stage {
    v0 = load f32 %x[i0]
    v1 = load i64 %i[i0]
    v2 = const i64 1000
    v3 = add v1, v2
    n0 = index v3 in 0..2000 assert
    v4 = load f32 %t[n0]
    v5 = add v4, v0
    store %y[i0], v5
  }
  closing stage over c0 < s0 {
    v6 = load f32 %y[c0]
    a0 = accumulate.sum v6 tree 16x1 block 64
  }
  closing stage {
    v7 = finish a0
    store %z[], v7
  }
  closing stage over c1 < s0 {
    v8 = load f32 %y[c1]
    a1 = accumulate.max v8 tree 16x4 block 64
  }
  closing stage over c2 < s0 {
    v9 = load f32 %y[c2]
    a2 = accumulate.max v9 tree 1x4 block 64
  }
  closing stage {
    v10 = finish a1
    v11 = finish a2
    v12 = sub v10, v11
    store %columns[], v12
  }
}
)";
  const Launches k = on_cpu(text, kNowhere);
  ASSERT_EQ(k.launches.size(), 2u);
  EXPECT_EQ(units(k.launches[1]), "1");
  EXPECT_EQ(k.launches[1].mapping.tile.size(), 2u);  // lanes go along c0 and c1
  EXPECT_EQ(k.sites_before, (std::vector<u32>{0, 1}));
  expect_same_bits(text, kSizes);
}

TEST(CpuLaunches, WhatIsNotSplitHasAReason) {
  const auto reason = [](const std::string& text) {
    const Launches k = on_cpu(text);
    EXPECT_EQ(k.launches.size(), 1u);
    return k.launches[0].mapping.reasons.back();
  };
  const std::string rows = with(with(kSum, "ROWS", "3"), "LENGTH", "100000");
  const std::string gather =
      with(with(rows, "    v0 = load f32 %x[i0, r0]\n",
                "    v0 = load i64 %i[r0]\n    n0 = index v0 in 0..99999 assert\n    v1 = load f32 "
                "%x[i0, n0]\n"),
           "%y: f32[3] written", "%i: i64[100000],\n    %y: f32[3] written");
  EXPECT_EQ(reason(with(with(with(gather, "sum v0", "sum v1"), "v1 = finish", "v2 = finish"),
                        "%y[i0], v1", "%y[i0], v2")),
            "not split over threads: an index is checked, and reports its place in the row");
  EXPECT_EQ(reason(R"(kernel running (
    %x: f32[100000],
    %y: f32[100000] written) {
  stage along i0 < 100000 {
    v0 = load f32 %x[i0]
    v1 = scan.sum v0
    store %y[i0], v1
  }
}
)"),
            "not split over threads: a scan of floats goes in order, element after element");
}

TEST(CpuLaunches, LanesAlongTheGridHaveAKeptRowEach) {
  const std::string text = R"(kernel rows_of_lanes (
    %x: f32[30, s0],
    %row: f32[30] written kept,
    %y: f32[30, s0] written) {
  size s0 in 0..
  grid i0 < s0
  stage over r0 < 30 {
    v0 = load f32 %x[r0, i0]
    v1 = abs v0
    store %row[r0], v0
    a0 = accumulate.sum v1 tree 1x1
  }
  stage {
    v2 = finish a0
  }
  stage over r0 < 30 {
    v3 = load f32 %row[r0]
    v4 = div v3, v2
    store %y[r0, i0], v4
  }
}
)";
  const Launches k = on_cpu(text);
  const std::string code = cpp::print_kernel(k.launches[0], "k");
  EXPECT_NE(code.find("f32 buf1[480];"), code.npos) << code;
  EXPECT_NE(code.find("store(buf1 + r0 * 16, v0);"), code.npos) << code;
  // The same with memory in place of the kept row.
  const std::string memory =
      with(with(with(text, " kept", ""), "%row: f32[30]", "%row: f32[s0, 30]"), "%row[r0]",
           "%row[i0, r0]");
  EXPECT_EQ(results(k, 37).at("y"), results(on_cpu(memory), 37).at("y"));
  // Where the rows of 16 lanes would not fit on the stack the code is scalar.
  EXPECT_TRUE(on_cpu(with(text, "30", "5000")).launches[0].mapping.tile.empty());
}

}  // namespace
}  // namespace coil
