// The evaluator against tests/unit/data/scalar_golden.txt, which scripts/make_scalar_golden.py made
// with torch.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/format.h"
#include "ops/scalar.h"

namespace coil::ops {
namespace {

/// Rows of one op and dtype: arrays of operands and of results, in memory form.
struct Block {
  ScalarOp op = ScalarOp::add;
  DType from = DType::f32;
  DType to = DType::f32;
  std::vector<std::vector<u64>> rows;  // bits of the operands, then of the result
};

std::vector<Block> read_golden() {
  std::ifstream file(COIL_SOURCE_DIR "/tests/unit/data/scalar_golden.txt");
  std::vector<Block> blocks;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string op, from, to;
    words >> op >> from >> to;
    const auto found_op = scalar_from_name(op);
    const auto found_from = dtype_from_name(from);
    const auto found_to = dtype_from_name(to);
    if (found_op && found_from && found_to) {
      blocks.push_back({*found_op, *found_from, *found_to, {}});
      continue;
    }
    std::vector<u64> row;
    std::istringstream numbers(line);
    for (std::string word; numbers >> word;) row.push_back(std::stoull(word, nullptr, 16));
    EXPECT_EQ(static_cast<int>(row.size()), info(blocks.at(blocks.size() - 1).op).arity + 1)
        << line;
    blocks.back().rows.push_back(std::move(row));
  }
  return blocks;
}

std::vector<std::byte> column(const Block& block, std::size_t at, DType dtype) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::vector<std::byte> bytes(block.rows.size() * size);
  for (std::size_t k = 0; k < block.rows.size(); ++k)
    std::memcpy(&bytes[k * size], &block.rows[k][at], size);
  return bytes;
}

/// How many values of the dtype lie between two numbers.
u64 ulps_apart(DType dtype, double a, double b) {
  const auto place = [&](double x) -> i64 {
    if (dtype == DType::f64) {
      const i64 bits = std::bit_cast<i64>(std::fabs(x));
      return std::signbit(x) ? -bits : bits;
    }
    const i64 bits = std::bit_cast<i32>(std::fabs(static_cast<float>(x)));
    return std::signbit(x) ? -bits : bits;
  };
  const i64 pa = place(a), pb = place(b);
  return pa > pb ? static_cast<u64>(pa) - static_cast<u64>(pb)
                 : static_cast<u64>(pb) - static_cast<u64>(pa);
}

bool agrees(const Block& block, const Scalar& found, const Scalar& expected) {
  if (found == expected) return true;
  if (!is_elementary(block.op) || !is_float(block.to)) return false;
  if (std::isnan(found.f) || std::isnan(expected.f)) return false;
  return ulps_apart(block.to, found.f, expected.f) <= (block.to == DType::f32 ? 1 : 2);
}

std::string describe(const Block& block, std::size_t row, const Scalar& found) {
  std::string text = str("{} {} {}:", info(block.op).name, name(block.from), name(block.to));
  for (u64 bits : block.rows[row]) text += str(" {:x}", bits);
  return text + str(", found {} {}", found.f, found.i);
}

TEST(OpsGolden, EvaluatorAgreesWithTorch) {
  const std::vector<Block> blocks = read_golden();
  std::size_t rows = 0;
  for (const Block& block : blocks) {
    std::vector<std::vector<std::byte>> columns;
    std::vector<const void*> operands;
    const int arity = info(block.op).arity;
    for (int k = 0; k < arity; ++k) columns.push_back(column(block, k, block.from));
    for (const auto& bytes : columns) operands.push_back(bytes.data());
    const auto expected = column(block, arity, block.to);
    std::vector<std::byte> found(expected.size());
    const auto n = static_cast<i64>(block.rows.size());
    evaluate(block.op, block.from, block.to, n, operands, found.data());
    for (i64 k = 0; k < n; ++k) {
      const Scalar f = read_element(block.to, found.data(), k);
      EXPECT_TRUE(agrees(block, f, read_element(block.to, expected.data(), k)))
          << describe(block, static_cast<std::size_t>(k), f);
    }
    rows += block.rows.size();
  }
  EXPECT_GT(rows, 15000u);
}

TEST(OpsGolden, SingleValuesAgreeWithArrays) {
  for (const Block& block : read_golden()) {
    const int arity = info(block.op).arity;
    for (std::size_t k = 0; k < block.rows.size(); k += 7) {
      std::vector<Scalar> operands;
      for (int o = 0; o < arity; ++o)
        operands.push_back(read_element(block.from, &block.rows[k][o], 0));
      const Scalar found = evaluate(block.op, block.to, operands);
      EXPECT_TRUE(agrees(block, found, read_element(block.to, &block.rows[k][arity], 0)))
          << describe(block, k, found);
    }
  }
}

/// No op is without rows, but for those that ops_scalar_test covers by hand.
TEST(OpsGolden, CoversTheTable) {
  std::set<ScalarOp> seen;
  for (const Block& block : read_golden()) seen.insert(block.op);
  for (int k = 0; k < kNumScalarOps; ++k) {
    const auto op = static_cast<ScalarOp>(k);
    const bool by_hand = op == ScalarOp::fma || op == ScalarOp::where || op == ScalarOp::bitcast ||
                         op == ScalarOp::philox;
    EXPECT_EQ(seen.contains(op), !by_hand) << info(op).name;
  }
}

}  // namespace
}  // namespace coil::ops
