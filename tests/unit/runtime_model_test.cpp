// Compiled programs called from several threads at once, and with pools of several sizes.

#include "runtime/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "driver/compile.h"
#include "loop/program.h"

namespace coil {
namespace {

// A reduction of rows, one of columns, one of everything, and a matrix product.
constexpr const char* kStateless = R"(program stateless {
  size s0 in 1..4096 hint 128
  buffer %x : f32[s0, 96] input
  buffer %w : f32[24, 96] const = seed 9
  buffer %rows : f32[s0]
  buffer %scaled : f32[s0, 96]
  buffer %columns : f32[96] output
  buffer %all : f32[] output
  buffer %linear : f32[s0, 24] output
  body sum_rows {
    dims i0 < s0 | reduce r0 < 96
    v0 = load f32 %x[i0, r0]
    v1 = exp v0
    v2 = reduce.sum v1 over r0 tree 16x4
    store %rows[i0], v2
  }
  body scale {
    dims i0 < s0, i1 < 96
    v0 = load f32 %x[i0, i1]
    v1 = exp v0
    v2 = load f32 %rows[i0]
    v3 = div v1, v2
    store %scaled[i0, i1], v3
  }
  body sum_columns {
    dims i0 < 96 | reduce r0 < s0
    v0 = load f32 %scaled[r0, i0]
    v1 = reduce.sum v0 over r0 tree 1x1
    store %columns[i0], v1
  }
  body sum_all {
    dims | reduce r0 < s0, r1 < 96
    v0 = load f32 %x[r0, r1]
    v1 = reduce.sum v0 over r0, r1 tree 16x4
    store %all[], v1
  }
  gemm mm {
    in %scaled over m < s0, k < 96 at [m, k]
    in %w over k < 96, n < 24 at [n, k]
    out %linear over m < s0, n < 24 at [m, n]
  }
})";

constexpr const char* kStateful = R"(program stateful {
  buffer %x : f32[64] input
  buffer %total : f32[64] state "total" = seed 0 at 0
  buffer %next : f32[64] output
  body accumulate {
    dims i0 < 64
    v0 = load f32 %total[i0]
    v1 = load f32 %x[i0]
    v2 = add v0, v1
    store %next[i0], v2
  }
  commit %total = %next
})";

using Bits = std::vector<std::vector<u32>>;  // of each output

std::shared_ptr<Compilation> compiled(const char* text, const char* threads) {
  Result<LoopProgram> program = parse_program(text, "model_test");
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  if (!program.ok()) return nullptr;
  Options options;
  EXPECT_TRUE(options.set("threads", threads).ok());
  Environment environment;
  const char* path = std::getenv("PATH");
  environment.search_path = path != nullptr ? path : "/usr/bin";
  environment.cache_dir = testing::TempDir() + "/coil_model_test_cache";
  Result<std::shared_ptr<Compilation>> made = compile(std::move(*program), options, environment);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? *made : nullptr;
}

runtime::Tensor rows(i64 count, u32 seed) {
  runtime::Tensor t = *runtime::Tensor::allocate(DType::f32, {count, 96});
  auto* data = reinterpret_cast<float*>(t.data);
  u32 state = seed * 2654435761u + 1;
  for (i64 i = 0; i < t.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = static_cast<float>(static_cast<i32>(state >> 8)) * 0x1p-23f - 1.0f;
  }
  return t;
}

Bits call(runtime::Instance& instance, const runtime::Tensor& input) {
  const runtime::Value values[] = {input};
  const Result<std::vector<runtime::Value>> results = instance.call(values);
  Bits bits;
  if (!results.ok()) return bits;
  for (const runtime::Value& value : *results) {
    const runtime::Tensor t = *std::get<runtime::Tensor>(value).contiguous();
    bits.emplace_back(static_cast<std::size_t>(t.numel()));
    std::memcpy(bits.back().data(), t.data, bits.back().size() * sizeof(u32));
  }
  return bits;
}

std::unique_ptr<runtime::Instance> opened(const Compilation& compilation) {
  Result<std::unique_ptr<runtime::Instance>> instance = runtime::Instance::open(compilation.model);
  EXPECT_TRUE(instance.ok()) << (instance.ok() ? "" : instance.error().message);
  return instance.ok() ? std::move(*instance) : nullptr;
}

TEST(RuntimeModel, ConcurrentCallsOfOneInstanceAndOneModelGiveTheBitsOfSingleOnes) {
  const auto compilation = compiled(kStateless, "2");
  ASSERT_NE(compilation, nullptr);
  const auto shared = opened(*compilation);
  ASSERT_NE(shared, nullptr);
  const i64 counts[] = {1, 7, 64, 301};  // each call in flight has an arena of its own size
  std::vector<runtime::Tensor> inputs;
  std::vector<Bits> expected;
  for (u32 i = 0; i < 4; ++i) {
    inputs.push_back(rows(counts[i], i));
    expected.push_back(call(*shared, inputs.back()));
    ASSERT_EQ(expected.back().size(), 3u);
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      auto opened = runtime::Instance::open(compilation->model);
      const auto own = std::move(*opened);
      for (std::size_t i = 0; i < 40; ++i) {
        const std::size_t at = (c + i) % 4;
        wrong[c] += call(i % 2 ? *own : *shared, inputs[at]) != expected[at];
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(RuntimeModel, CallsOfAStatefulInstanceTakeTurns) {
  const auto compilation = compiled(kStateful, "2");
  ASSERT_NE(compilation, nullptr);
  const auto shared = opened(*compilation);
  ASSERT_NE(shared, nullptr);
  runtime::Tensor zero = *runtime::Tensor::allocate(DType::f32, {64});
  std::fill_n(reinterpret_cast<float*>(zero.data), 64, 0.0f);
  runtime::Tensor step = *runtime::Tensor::allocate(DType::f32, {64});
  std::fill_n(reinterpret_cast<float*>(step.data), 64, 4.0f);  // exact beside a start below 4
  const Bits start = call(*shared, zero);
  ASSERT_EQ(start.size(), 1u);
  std::vector<std::vector<Bits>> seen(4);
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < 25; ++i) seen[c].push_back(call(*shared, step));
    });
  }
  for (std::thread& t : callers) t.join();

  // One after the other in a fresh instance: the same 100 states, each seen by exactly one call.
  const auto alone = opened(*compilation);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(call(*alone, zero), start);
  std::vector<Bits> all, expected;
  for (auto& of : seen) all.insert(all.end(), of.begin(), of.end());
  for (int i = 0; i < 100; ++i) expected.push_back(call(*alone, step));
  std::sort(all.begin(), all.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(all, expected);
}

TEST(RuntimeModel, EveryNumberOfThreadsGivesTheSameBits) {
  const runtime::Tensor input = rows(3001, 5);
  Bits first;
  for (const char* threads : {"1", "2", "7"}) {
    const auto compilation = compiled(kStateless, threads);
    ASSERT_NE(compilation, nullptr);
    const auto instance = opened(*compilation);
    ASSERT_NE(instance, nullptr);
    const Bits bits = call(*instance, input);
    ASSERT_EQ(bits.size(), 3u);
    if (first.empty()) first = bits;
    EXPECT_EQ(bits, first) << threads << " threads";
  }
}

}  // namespace
}  // namespace coil
