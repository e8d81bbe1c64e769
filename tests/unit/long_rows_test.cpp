// Few long rows, and many columns, through compiled kernels: any number of threads, fused or not,
// gives the same bits.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "base/file.h"
#include "driver/runner.h"
#include "graph/text.h"
#include "ops/scalar.h"
#include "passes/passes.h"

namespace coil {
namespace {

using Bytes = std::vector<std::byte>;

/// Sums, products, extremes, statistics, rows of several stages, columns and strided rows. None but
/// softmax and logsumexp has elementary functions, in which the oracle may differ by an ulp.
const char* const kReductions = R"(
  %sum = sum(%x)
  %wide = sum.dim_IntList(%x, [1])
  %prod = prod.dim_int(%x, 1)
  %low = amin(%x, [1])
  %at = argmax(%x, 1)
  %top, %where = max.dim(%x, 1)
  %columns = sum.dim_IntList(%t, [0])
  %best = argmin(%t, 0)
  %odd = slice.Tensor(%t, 1, 1, 2)
  %strided = sum(%odd)
  return %sum, %wide, %prod, %low, %at, %top, %where, %columns, %best, %strided
)";

const char* const kStatistics = R"(
  %var = var.correction(%x, [1], correction=1)
  %half = mul.Scalar(%x, 0.5)
  %mean = mean.dim(%half, [1], true)
  %centred = sub.Tensor(%half, %mean)
  %square = mul.Tensor(%centred, %centred)
  %energy = sum.dim_IntList(%square, [1], true)
  %scaled = div.Tensor(%centred, %energy)
  %largest = amax(%scaled, [0, 1])
  return %var, %mean, %scaled, %largest
)";

const char* const kElementary = R"(
  %soft = softmax.int(%x, 1, None)
  %log = logsumexp(%x, [1])
  %norm, %m, %r = native_layer_norm(%x, [s0], None, None, 1e-5)
  %gelu = gelu(%norm)
  return %soft, %log, %gelu, %m, %r
)";

/// Down the columns: one or several accumulators, values that are kept, and running sums.
const char* const kColumns = R"(
  %sum = sum.dim_IntList(%x, [0])
  %square = mul.Tensor(%x, %x)
  %energy = sum.dim_IntList(%square, [0])
  %top, %where = max.dim(%x, 0)
  %whole = cumsum(%x, 0)
  %scaled = div.Tensor(%x, %sum)
  %low = amin(%scaled, [0])
  return %sum, %energy, %top, %where, %whole, %scaled, %low
)";

const char* const kIntegerColumns = R"(
  %sum = sum.dim_IntList(%x, [0])
  %top, %where = max.dim(%x, 0)
  %whole = cumsum(%x, 0)
  return %sum, %top, %where, %whole
)";

class LongRows : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new std::string(*make_temporary_folder(::testing::TempDir() + "long_rows_test-"));
  }
  static void TearDownTestSuite() {
    remove_folder(*folder_);
    delete folder_;
  }

  struct Way {
    const char* target = "cpp";
    const char* threads = "1";
    const char* fuse = "on";
  };

  static std::unique_ptr<Runner> made(const std::string& text, const Way& way) {
    Result<Graph> graph = parse_graph(text, "test", {.composites = &composite_rules()});
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message) << text;
    Options options;
    EXPECT_TRUE(options.set("target", way.target).ok());
    EXPECT_TRUE(options.set("threads", way.threads).ok());
    EXPECT_TRUE(options.set("fuse", way.fuse).ok());
    const char* path = std::getenv("PATH");
    const auto c = compile(std::move(*graph), options, {path ? path : "/usr/bin", *folder_});
    EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().message);
    return std::move(*make_runner(*c));
  }

  static std::string graph_of(const char* dtype, const char* body, const std::string& length) {
    const std::string size = length == "s0" ? "  size s0 in 0..1000000\n" : "";
    std::string text =
        str("graph g(%x: {0}[2, {1}], %t: {0}[{1}, 3]) {{\n{2}{3}}}\n", dtype, length, size, body);
    for (std::size_t at; length != "s0" && (at = text.find("[s0]")) != text.npos;)
      text.replace(at, 4, "[" + length + "]");
    return text;
  }

  using Shapes = std::vector<std::vector<i64>>;
  static Shapes two_rows(i64 length) { return {{2, length}, {length, 3}}; }

  static std::vector<runtime::Value> inputs(DType dtype, const Shapes& shapes) {
    std::mt19937_64 random(static_cast<u64>(shapes[0][0] + shapes[0][1]));
    std::vector<runtime::Value> out;
    for (const std::vector<i64>& shape : shapes) {
      runtime::Tensor t = *runtime::Tensor::allocate(dtype, shape);
      for (i64 i = 0; i < shape[0] * shape[1]; ++i) {
        const i64 n = static_cast<i64>(random() % 4001) - 2000;
        ops::write_element(dtype, t.data, i,
                           is_float(dtype)
                               ? ops::Scalar::of_float(dtype, static_cast<double>(n) / 1003)
                               : ops::Scalar::of_int(dtype, n));
      }
      out.push_back(std::move(t));
    }
    return out;
  }

  static std::vector<Bytes> called(Runner& runner, const std::vector<runtime::Value>& inputs) {
    const Result<std::vector<runtime::Value>> out = runner.call(inputs);
    EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
    std::vector<Bytes> bytes;
    for (const runtime::Value& v : out.ok() ? *out : std::vector<runtime::Value>()) {
      const runtime::Tensor t = *std::get<runtime::Tensor>(v).contiguous();
      bytes.emplace_back(t.data, t.data + t.bytes());
    }
    return bytes;
  }

  /// All ways give the bits of the first one.
  static void check(const char* dtype, const std::string& text, const std::vector<i64>& sizes,
                    const std::vector<Way>& ways,
                    const std::function<Shapes(i64)>& shapes = two_rows) {
    std::vector<std::unique_ptr<Runner>> runners;
    for (const Way& way : ways) runners.push_back(made(text, way));
    for (i64 size : sizes) {
      const std::vector<runtime::Value> given = inputs(*dtype_from_name(dtype), shapes(size));
      const std::vector<Bytes> want = called(*runners[0], given);
      for (std::size_t w = 1; w < ways.size(); ++w) {
        const std::vector<Bytes> got = called(*runners[w], given);
        ASSERT_EQ(want.size(), got.size());
        for (std::size_t o = 0; o < want.size(); ++o)
          EXPECT_EQ(want[o], got[o])
              << dtype << " size " << size << ", output " << o << ", " << ways[w].target
              << " threads " << ways[w].threads << " fuse " << ways[w].fuse;
      }
    }
  }

  static const std::string* folder_;
};

const std::string* LongRows::folder_ = nullptr;

// Around the borders of blocks: 512 of a column, 8192 of a row.
const std::vector<i64> kSizes = {1, 513, 2049, 8191, 8192, 8193, 16385, 24577, 40001};

TEST_F(LongRows, ReductionsHaveTheBitsOfTheOracle) {
  const std::vector<Way> ways = {{"interp", "1", "on"},
                                 {"cpp", "1", "on"},
                                 {"cpp", "2", "on"},
                                 {"cpp", "7", "on"},
                                 {"cpp", "7", "off"}};
  for (const char* dtype : {"f32", "f64", "bf16", "i64"})
    check(dtype, graph_of(dtype, kReductions, "s0"), kSizes, ways);
  for (const char* dtype : {"f32", "bf16"})
    check(dtype, graph_of(dtype, kStatistics, "s0"), kSizes, ways);
}

TEST_F(LongRows, ElementaryFunctionsHaveTheSameBitsOnAnyNumberOfThreads) {
  const std::vector<Way> ways = {
      {"cpp", "1", "on"}, {"cpp", "2", "on"}, {"cpp", "7", "on"}, {"cpp", "7", "off"}};
  for (const char* dtype : {"f32", "bf16"})
    check(dtype, graph_of(dtype, kElementary, "s0"), {0, 1, 8193, 24577, 40001}, ways);
}

TEST_F(LongRows, RowsOfConstantLength) {
  const std::vector<Way> ways = {{"interp", "1", "on"}, {"cpp", "1", "on"}, {"cpp", "7", "on"}};
  for (i64 length : {32768, 40001}) {
    check("f32", graph_of("f32", kReductions, str("{}", length)), {length}, ways);
    check("f32", graph_of("f32", kStatistics, str("{}", length)), {length}, ways);
  }
}

// Tiles abreast: four of these for one accumulator, two for two, and what is left of 1100 columns.
TEST_F(LongRows, ManyColumnsHaveTheBitsOfTheOracle) {
  const std::vector<Way> ways = {
      {"interp", "1", "on"}, {"cpp", "1", "on"}, {"cpp", "7", "on"}, {"cpp", "1", "off"}};
  for (const char* dtype : {"f32", "f64", "bf16", "i64"})
    for (i64 width : {512, 1100}) {
      const std::string text =
          str("graph g(%x: {}[s0, {}]) {{\n  size s0 in 0..1000000\n{}}}\n", dtype, width,
              is_float(*dtype_from_name(dtype)) ? kColumns : kIntegerColumns);
      check(dtype, text, {1, 3, 40, 255, 256, 257, 515}, ways, [&](i64 rows) {
        return Shapes{{rows, width}};
      });
    }
}

}  // namespace
}  // namespace coil
