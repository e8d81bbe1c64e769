#include <algorithm>
#include <numeric>

#include "templates_common.h"

namespace coil::templates {
namespace {

/// a before b: ascending with NaN last, or the reverse of that.
bool before(double a, double b, bool descending) {
  if (descending) std::swap(a, b);
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}

Array sample(DType dtype, i64 count, u32 seed) {
  Array x(dtype, count);
  x.fill(seed);
  std::mt19937 random(seed);
  for (i64 i = 0; i < count; ++i) {
    const u32 r = random() % 16;
    if (r < 4) x.set(i, r % 2);  // many equal elements
    if (!is_float(dtype)) continue;
    if (r == 5) x.set(i, std::nan(""));
    if (r == 6) x.set(i, -std::nan(""));
    if (r == 7) x.set(i, -0.0);
    if (dtype == DType::f8e4m3fn) continue;
    if (r == 8) x.set(i, INFINITY);
    if (r == 9) x.set(i, -INFINITY);
  }
  return x;
}

struct Problem {
  i64 rows, n, k;
  Array in, values;
  std::vector<i64> indices;
  SortArgs args;

  Problem(DType dtype, i64 row_count, i64 length, i64 kept, bool descending, bool columns)
      : rows(row_count),
        n(length),
        k(kept),
        in(sample(dtype, row_count * length, 3)),
        values(dtype, row_count * kept),
        indices(static_cast<size_t>(row_count * kept), -1) {
    args.rows = rows;
    args.n = n;
    args.in = in.data();
    args.in_row_stride = columns ? 1 : n;
    args.in_stride = columns ? rows : 1;
    args.values_row_stride = args.indices_row_stride = columns ? 1 : k;
    args.values_stride = args.indices_stride = columns ? rows : 1;
    args.dtype = dtype;
    args.descending = descending;
  }
  void run(Isa isa, int threads) {
    runtime::ThreadPool pool(threads);
    const CpuTemplates& table = cpu_templates(isa);
    args.values = values.data();
    args.indices = indices.data();
    if (k == n) {
      Scratch scratch(table.sort_scratch_bytes(args, threads));
      table.sort(args, pool, scratch.data());
    } else {
      const TopkArgs top{args, k};
      Scratch scratch(table.topk_scratch_bytes(top, threads));
      table.topk(top, pool, scratch.data());
    }
  }
  void check() const {
    std::vector<i64> order(static_cast<size_t>(n));
    for (i64 row = 0; row < rows; ++row) {
      const auto element = [&](i64 i) {
        return in.get(row * args.in_row_stride + i * args.in_stride);
      };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) {
        return before(element(a), element(b), args.descending);
      });
      for (i64 i = 0; i < k; ++i) {
        const i64 at = row * args.values_row_stride + i * args.values_stride;
        ASSERT_EQ(indices[size_t(at)], order[size_t(i)]) << row << ", " << i;
        const double want = element(order[size_t(i)]), got = values.get(at);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                     : got == want && std::signbit(got) == std::signbit(want));
      }
    }
  }
};

void check_case(DType dtype, i64 rows, i64 n, i64 k, bool descending, bool columns) {
  for (Isa isa : runnable_isas()) {
    Problem p(dtype, rows, n, k, descending, columns);
    for (int threads : {1, 2, 7}) {
      p.run(isa, threads);
      p.check();
    }
  }
}

constexpr DType kTypes[] = {DType::u8,   DType::i8,  DType::i16, DType::i32,      DType::i64,
                            DType::u16,  DType::u32, DType::u64, DType::b8,       DType::f16,
                            DType::bf16, DType::f32, DType::f64, DType::f8e4m3fn, DType::f8e5m2};

TEST(TemplatesSort, EveryTypeBothWays) {
  for (DType d : kTypes) {
    ASSERT_TRUE(sort_supports(d));
    for (bool descending : {false, true}) {
      check_case(d, 3, 33, 33, descending, false);
      check_case(d, 2, 300, 300, descending, false);
    }
  }
  EXPECT_FALSE(sort_supports(DType::c64));
}

TEST(TemplatesSort, SizesAndStrides) {
  for (i64 n : {0, 1, 2, 15, 16, 17, 48, 49, 1000}) {
    for (bool columns : {false, true}) check_case(DType::f32, 5, n, n, false, columns);
  }
  check_case(DType::f32, 0, 5, 5, false, false);
}

TEST(TemplatesTopk, SmallAndLargeK) {
  for (DType d : {DType::f32, DType::i64, DType::bf16, DType::b8}) {
    for (i64 k : {0, 1, 5, 64, 65, 199}) {
      for (bool largest : {false, true}) check_case(d, 3, 200, k, largest, true);
    }
  }
}

}  // namespace
}  // namespace coil::templates
