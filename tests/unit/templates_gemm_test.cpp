#include "templates_common.h"

namespace coil::templates {
namespace {

struct Case {
  i64 m, n, k, batch = 1;
  DType in = DType::f32, out = DType::f32;
  bool a_transposed = false, b_transposed = false, c_transposed = false, b_shared = false;
};

struct Problem {
  Case c;
  Array a, b, result;
  GemmArgs args;

  explicit Problem(Case spec)
      : c(spec),
        a(c.in, c.batch * c.m * c.k),
        b(c.in, c.batch * c.k * c.n),
        result(c.out, c.batch * c.m * c.n) {
    a.fill(1);
    b.fill(2);
    args.m = c.m;
    args.n = c.n;
    args.k = c.k;
    args.batch = c.batch;
    args.in = c.in;
    args.out = c.out;
    args.a = {a.data(), c.a_transposed ? 1 : c.k, c.a_transposed ? c.m : 1, c.m * c.k};
    args.b = {b.data(), c.b_transposed ? 1 : c.n, c.b_transposed ? c.k : 1,
              c.b_shared ? 0 : c.k * c.n};
    args.c = {result.data(), c.c_transposed ? 1 : c.n, c.c_transposed ? c.m : 1, c.m * c.n};
  }
  i64 c_index(i64 batch, i64 i, i64 j) const {
    return batch * args.c.batch_stride + i * args.c.row_stride + j * args.c.col_stride;
  }
  double element(i64 batch, i64 i, i64 j, double* size) const {
    double sum = 0;
    *size = 0;
    for (i64 p = 0; p < c.k; ++p) {
      const double product =
          a.get(batch * args.a.batch_stride + i * args.a.row_stride + p * args.a.col_stride) *
          b.get(batch * args.b.batch_stride + p * args.b.row_stride + j * args.b.col_stride);
      sum += product;
      *size += std::fabs(product);
    }
    return sum;
  }
  void run(Isa isa, int threads) {
    runtime::ThreadPool pool(threads);
    const CpuTemplates& table = cpu_templates(isa);
    Scratch scratch(table.gemm_scratch_bytes(args, threads));
    result = Array(c.out, result.size());
    args.c.data = result.data();
    table.gemm(args, pool, scratch.data());
  }
  void check() const {
    for (i64 batch = 0; batch < c.batch; ++batch) {
      for (i64 i = 0; i < c.m; ++i) {
        for (i64 j = 0; j < c.n; ++j) {
          double size = 0;
          const double want = element(batch, i, j, &size);
          const double got = result.get(c_index(batch, i, j));
          if (is_int(c.out)) {
            Array wrapped(c.out, 1);
            wrapped.set(0, want);
            ASSERT_EQ(got, wrapped.get(0)) << i << ", " << j;
          } else {
            const double sums = rounding_of(compute_dtype(c.in)) * size;
            ASSERT_NEAR(got, want,
                        sums + rounding_of(c.out) * std::fabs(want) + 2e-3 * (size_of(c.out) == 1))
                << name(c.in) << " " << batch << ", " << i << ", " << j;
          }
        }
      }
    }
  }
};

/// What an epilogue sees on 2 threads is the result, also with no result stored.
void check_epilogue(Problem& p, Isa isa) {
  const Array stored = p.result;
  BlockSink sink(accumulator_of(p.c.in, p.c.out), p.c.out, p.c.batch, p.c.m, p.c.n);
  sink.attach(&p.args);
  p.run(isa, 2);
  p.args.epilogue = nullptr;
  sink.check_each_once();
  EXPECT_EQ(p.result.bytes(), stored.bytes());
  for (i64 batch = 0; batch < p.c.batch; ++batch) {
    for (i64 i = 0; i < p.c.m; ++i) {
      for (i64 j = 0; j < p.c.n; ++j) {
        ASSERT_EQ(sink.get(batch, i, j), stored.get(p.c_index(batch, i, j))) << i << ", " << j;
      }
    }
  }
}

/// Right on every instruction set, the same bits on 1, 2 and 7 threads and with B packed, and the
/// same numbers in an epilogue.
void check_case(Case spec) {
  for (Isa isa : runnable_isas()) {
    Problem p(spec);
    p.run(isa, 1);
    p.check();
    const std::vector<u8> bits = p.result.bytes();
    for (int threads : {2, 7}) {
      p.run(isa, threads);
      EXPECT_EQ(p.result.bytes(), bits) << name(isa) << " " << threads << " threads";
    }
    check_epilogue(p, isa);
    const CpuTemplates& table = cpu_templates(isa);
    Scratch packed(table.packed_b_bytes(p.args));
    table.pack_b(p.args, packed.data());
    p.args.packed_b = packed.data();
    p.args.b.data = nullptr;
    for (int threads : {1, 2}) {
      p.run(isa, threads);
      EXPECT_EQ(p.result.bytes(), bits) << name(isa) << " packed";
    }
    check_epilogue(p, isa);
  }
}

TEST(TemplatesGemm, SizesAroundTheTile) {
  for (i64 m : {1, 5, 6, 7, 33}) {
    for (i64 n : {1, 15, 16, 17, 33, 97}) {
      for (i64 k : {1, 17}) check_case({m, n, k});
    }
  }
}

TEST(TemplatesGemm, LongSumsAndManyBlocks) {
  check_case({9, 20, 256});
  check_case({9, 20, 257});
  check_case({7, 200, 700});
  check_case({410, 101, 30});
}

TEST(TemplatesGemm, FewRowsAndColumns) {
  for (i64 m : {1, 2, 7, 8, 9}) {
    for (i64 n : {1, 2, 97, 300}) {
      for (bool transposed : {false, true}) {
        check_case({.m = m, .n = n, .k = 261, .b_transposed = transposed});
        check_case(
            {.m = m, .n = n, .k = 19, .batch = 2, .in = DType::bf16, .b_transposed = transposed});
      }
    }
  }
  check_case({.m = 1, .n = 2500, .k = 300});
  check_case({.m = 1, .n = 2500, .k = 70, .b_transposed = true});
  check_case({.m = 500, .n = 1, .k = 300, .batch = 2, .c_transposed = true});
  check_case({.m = 6, .n = 200, .k = 300, .in = DType::f64, .out = DType::f64});
  check_case({.m = 3, .n = 200, .k = 30, .in = DType::i32, .out = DType::i32});
}

TEST(TemplatesGemm, BitsOfARowDoNotDependOnTheOthers) {
  constexpr i64 rows = 40, n = 130, k = 600;
  for (Isa isa : runnable_isas()) {
    for (bool transposed : {false, true}) {
      Problem all({.m = rows, .n = n, .k = k, .b_transposed = transposed});
      all.run(isa, 1);
      for (i64 m : {1, 3, 8}) {
        Problem some({.m = m, .n = n, .k = k, .b_transposed = transposed});
        const i64 first = 11;
        some.args.a.data = static_cast<const float*>(all.a.data()) + first * k;
        some.run(isa, 2);
        const auto from = all.result.bytes().begin() + first * n * 4;
        EXPECT_EQ(some.result.bytes(), std::vector<u8>(from, from + m * n * 4))
            << name(isa) << " " << m;
      }
    }
  }
}

TEST(TemplatesGemm, EveryCombinationOfTransposes) {
  for (int bits = 0; bits < 8; ++bits) {
    check_case({.m = 19,
                .n = 35,
                .k = 300,
                .batch = 2,
                .a_transposed = (bits & 1) != 0,
                .b_transposed = (bits & 2) != 0,
                .c_transposed = (bits & 4) != 0});
  }
}

TEST(TemplatesGemm, EveryElementType) {
  for (DType d :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::u8,
        DType::i8, DType::i16, DType::i32, DType::i64, DType::u16, DType::u32, DType::u64}) {
    ASSERT_TRUE(gemm_supports(d, d));
    check_case({.m = 13, .n = 21, .k = 300, .in = d, .out = d});
    check_case({.m = 13, .n = 21, .k = 40, .in = d, .out = d, .b_transposed = true});
  }
  check_case({.m = 8, .n = 21, .k = 40, .in = DType::i8, .out = DType::i32});
  check_case({.m = 8, .n = 21, .k = 40, .in = DType::i32, .out = DType::i64});
  check_case({.m = 8, .n = 21, .k = 40, .in = DType::bf16, .out = DType::f32});
  EXPECT_FALSE(gemm_supports(DType::f32, DType::i32));
  EXPECT_FALSE(gemm_supports(DType::b8, DType::b8));
}

TEST(TemplatesGemm, EmptyAndBroadcast) {
  check_case({0, 5, 5});
  check_case({5, 0, 5});
  check_case({5, 5, 5, 0});
  check_case({5, 7, 0});
  check_case({.m = 5, .n = 17, .k = 9, .batch = 3, .b_shared = true});
}

TEST(TemplatesGemm, EpilogueAloneTakesTheResult) {
  for (Isa isa : runnable_isas()) {
    for (i64 m : {1, 5, 50}) {
      Problem p({.m = m, .n = 210, .k = 20});
      p.run(isa, 1);
      BlockSink sink(DType::f32, DType::f32, 1, m, 210);
      GemmArgs args = p.args;
      args.c.data = nullptr;
      sink.attach(&args);
      runtime::ThreadPool pool(3);
      Scratch scratch(cpu_templates(isa).gemm_scratch_bytes(args, 3));
      cpu_templates(isa).gemm(args, pool, scratch.data());
      sink.check_each_once();
      for (i64 i = 0; i < m * 210; ++i) ASSERT_EQ(sink.get(0, 0, i), p.result.get(i));
    }
  }
}

TEST(TemplatesGemm, EpilogueChangesTheResult) {
  for (Isa isa : runnable_isas()) {
    Problem p({100, 130, 20});
    p.args.epilogue = [](void*, i64, i64 row0, i64 rows, i64 col0, i64 cols, void* block, i64 ld) {
      float* x = static_cast<float*>(block);
      for (i64 i = 0; i < rows; ++i) {
        for (i64 j = 0; j < cols; ++j) {
          x[i * ld + j] += float(1000 * (row0 + i) + 10 * (col0 + j));
        }
      }
    };
    p.run(isa, 2);
    for (i64 i = 0; i < 100; ++i) {
      for (i64 j = 0; j < 130; ++j) {
        double size = 0;
        const double want = p.element(0, i, j, &size) + double(1000 * i + 10 * j);
        ASSERT_NEAR(p.result.get(p.c_index(0, i, j)), want, 0.02);
      }
    }
  }
}

}  // namespace
}  // namespace coil::templates
