#include <cmath>
#include <cstring>
#include <numbers>

#include "templates_common.h"

namespace coil::templates {
namespace {

enum class Kind { C2c, R2c, C2r };

struct Number {
  long double re = 0, im = 0;
};

/// A transform of two batch dims around the one that is transformed: [3, n, columns] or, with the
/// dim last, [3, columns, n].
struct Problem {
  Kind kind;
  i64 n, half, x_extent, y_extent;
  i64 batch_shape[2];
  i64 x_batch[2], y_batch[2];
  Array x, y;
  FftArgs args;

  Problem(DType dtype, Kind k, i64 length, i64 columns, bool dim_last, bool onesided)
      : kind(k),
        n(length),
        half(length / 2 + 1),
        x_extent(k == Kind::C2r ? half : n),
        y_extent(k == Kind::R2c && onesided ? half : n),
        batch_shape{3, columns},
        x(dtype, 3 * columns * x_extent * 2),
        y(dtype, 3 * columns * y_extent * 2) {
    x.fill(static_cast<u32>(7 * n + columns));
    const i64 x_parts = k == Kind::R2c ? 1 : 2, y_parts = k == Kind::C2r ? 1 : 2;
    args.batch_rank = 2;
    args.batch_shape = batch_shape;
    args.n = n;
    args.count = y_extent;
    args.x_is_complex = x_parts == 2;
    args.y_is_complex = y_parts == 2;
    const auto place = [&](i64 extent, i64 parts, i64* batch, i64& stride) {
      batch[0] = columns * extent * parts;
      batch[1] = dim_last ? extent * parts : parts;
      stride = dim_last ? parts : columns * parts;
    };
    place(x_extent, x_parts, x_batch, args.x_stride);
    place(y_extent, y_parts, y_batch, args.y_stride);
    args.x_batch_strides = x_batch;
    args.y_batch_strides = y_batch;
    args.dtype = dtype;
  }
  void run(Isa isa, int threads) {
    runtime::ThreadPool pool(threads);
    const CpuTemplates& table = cpu_templates(isa);
    args.x = x.data();
    args.y = y.data();
    Scratch scratch(table.fft_scratch_bytes(args, threads));
    table.fft(args, pool, scratch.data());
  }
  Number signal(i64 a, i64 b, i64 j) const {
    const bool mirrored = kind == Kind::C2r && 2 * j > n;
    const i64 at = a * x_batch[0] + b * x_batch[1] + (mirrored ? n - j : j) * args.x_stride;
    if (kind == Kind::R2c) return {x.get(at), 0};
    const bool is_real = kind == Kind::C2r && (j == 0 || 2 * j == n);
    const double im = is_real ? 0 : x.get(at + 1);
    return {x.get(at), mirrored ? -im : im};
  }
  /// The largest error, as part of the largest number that a sum of this length could give.
  double error() const {
    std::vector<Number> roots;
    for (i64 k = 0; k < n; ++k) {
      const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                                static_cast<long double>(n);
      roots.push_back({std::cos(angle), args.forward ? -std::sin(angle) : std::sin(angle)});
    }
    long double worst = 0, size = 1e-30L;
    for (i64 a = 0; a < batch_shape[0]; ++a)
      for (i64 b = 0; b < batch_shape[1]; ++b)
        for (i64 k = 0; k < y_extent; ++k) {
          Number sum;
          for (i64 j = 0; j < n; ++j) {
            const Number& w = roots[static_cast<size_t>(j * k % n)];
            const Number v = signal(a, b, j);
            sum.re += v.re * w.re - v.im * w.im;
            sum.im += v.re * w.im + v.im * w.re;
          }
          const i64 at = a * y_batch[0] + b * y_batch[1] + k * args.y_stride;
          size = std::max({size, std::abs(sum.re * args.scale), std::abs(sum.im * args.scale)});
          worst = std::max<long double>(worst, std::abs(y.get(at) - sum.re * args.scale));
          if (kind != Kind::C2r)
            worst = std::max<long double>(worst, std::abs(y.get(at + 1) - sum.im * args.scale));
        }
    return static_cast<double>(worst / size);
  }
};

/// All lengths of a kind in one type: numbers, and the same bits for any number of threads.
void check(DType dtype, Kind kind, i64 n, bool dim_last, bool onesided) {
  for (Isa isa : runnable_isas())
    for (bool forward : {true, false}) {
      Problem p(dtype, kind, n, 7, dim_last, onesided);
      p.args.forward = forward;
      p.args.scale = forward ? 1 : 1.0 / static_cast<double>(n);
      p.run(isa, 1);
      ASSERT_LT(p.error(), dtype == DType::f32 ? 1e-6 : 2e-15)
          << name(isa) << " n " << n << " kind " << int(kind) << " forward " << forward;
      Problem many(dtype, kind, n, 7, dim_last, onesided);
      many.args.forward = forward;
      many.args.scale = p.args.scale;
      many.run(isa, 5);
      for (i64 i = 0; i < 3 * 7 * p.y_extent; ++i) ASSERT_EQ(p.y.get(i), many.y.get(i)) << i;
    }
}

TEST(TemplatesFft, EveryKindAndSmallLength) {
  for (DType dtype : {DType::f32, DType::f64})
    for (i64 n = 1; n <= 20; ++n) {
      check(dtype, Kind::C2c, n, n % 2 == 0, false);
      check(dtype, Kind::R2c, n, n % 2 == 1, true);
      check(dtype, Kind::R2c, n, n % 2 == 0, false);
      check(dtype, Kind::C2r, n, n % 2 == 1, false);
    }
}

TEST(TemplatesFft, ManyFactorsAndLargePrimes) {
  // Products of all radices, powers, primes without a stage, and twice and thrice such primes.
  for (i64 n : {60, 64, 100, 121, 125, 169, 256, 143, 17, 37, 97, 194, 291}) {
    check(DType::f32, Kind::C2c, n, true, false);
    check(DType::f64, Kind::C2c, n, false, false);
    check(DType::f64, Kind::R2c, n, true, true);
    check(DType::f32, Kind::C2r, n, true, false);
  }
}

/// One row each, so long that a task has few rows: against a transform whose result is known.
TEST(TemplatesFft, LongRows) {
  for (i64 n : {i64{1} << 15, i64{30030}, i64{20011}}) {
    for (Isa isa : runnable_isas()) {
      Problem p(DType::f64, Kind::C2c, n, 1, true, false);
      for (i64 i = 0; i < 3 * 2 * n; ++i) p.x.set(i, 0);
      for (i64 row = 0; row < 3; ++row) p.x.set(2 * (row * n + row + 1), 1);
      p.run(isa, 2);
      const double turn = 2 * std::numbers::pi / static_cast<double>(n);
      for (i64 row = 0; row < 3; ++row)
        for (i64 k = 0; k < n; ++k) {
          const double angle = turn * static_cast<double>(k * (row + 1) % n);
          ASSERT_NEAR(p.y.get(2 * (row * n + k)), std::cos(angle), 1e-11) << n << " " << k;
          ASSERT_NEAR(p.y.get(2 * (row * n + k) + 1), -std::sin(angle), 1e-11) << n << " " << k;
        }
    }
  }
}

TEST(TemplatesFft, NothingToDo) {
  check(DType::f32, Kind::C2c, 4, true, false);
  Problem p(DType::f32, Kind::C2c, 4, 0, true, false);
  p.run(Isa::Plain, 2);
  p.args.n = p.args.count = 0;
  p.run(Isa::Plain, 2);
  EXPECT_TRUE(fft_supports(DType::f64));
  EXPECT_FALSE(fft_supports(DType::f16));
}

}  // namespace
}  // namespace coil::templates
