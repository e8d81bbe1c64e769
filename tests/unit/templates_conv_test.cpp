#include <limits>

#include "templates_common.h"

namespace coil::templates {
namespace {

struct Case {
  i64 n = 1, groups = 1, ic = 1, oc = 1;
  std::vector<ConvDim> dims;
  bool transposed = false, bias = true, channels_last = false;
  DType dtype = DType::f32;
  i64 output_padding = 0;
};

struct Problem {
  Case c;
  ConvArgs args;
  std::vector<Array> arrays;  // x, w, bias, y

  /// Strides of a tensor with these sizes; channels_last moves dim 1 inside.
  static i64 strides(const std::vector<i64>& sizes, bool channels_last, i64* out) {
    i64 step = 1;
    const int n = static_cast<int>(sizes.size());
    if (channels_last) {
      out[1] = 1;
      step = sizes[1];
    }
    for (int i = n - 1; i >= 0; --i) {
      if (channels_last && i == 1) continue;
      out[i] = step;
      step *= sizes[static_cast<size_t>(i)];
    }
    return step;
  }

  explicit Problem(const Case& spec) : c(spec) {
    std::vector<i64> x = {c.n, c.ic}, y = {c.n, c.oc};
    std::vector<i64> w = {c.transposed ? c.ic : c.oc, (c.transposed ? c.oc : c.ic) / c.groups};
    args.rank = static_cast<int>(c.dims.size());
    for (int i = 0; i < args.rank; ++i) {
      ConvDim d = c.dims[static_cast<size_t>(i)];
      const i64 reach = d.dilation * (d.kernel - 1);
      d.output = c.transposed ? (d.input - 1) * d.stride - 2 * d.pad + reach + 1 + c.output_padding
                              : (d.input + 2 * d.pad - reach - 1) / d.stride + 1;
      args.dims[i] = d;
      x.push_back(d.input);
      y.push_back(d.output);
      w.push_back(d.kernel);
    }
    args.n = c.n;
    args.groups = c.groups;
    args.ic = c.ic;
    args.oc = c.oc;
    args.transposed = c.transposed;
    args.in = args.out = c.dtype;
    arrays.emplace_back(c.dtype, strides(x, c.channels_last, args.x_strides));
    arrays.emplace_back(c.dtype, strides(w, c.channels_last, args.w_strides));
    arrays.emplace_back(c.dtype, c.oc);
    arrays.emplace_back(c.dtype, strides(y, c.channels_last, args.y_strides));
    for (u32 i = 0; i < 3; ++i) arrays[i].fill(i + 1);
    args.x = arrays[0].data();
    args.w = arrays[1].data();
    args.bias = c.bias ? arrays[2].data() : nullptr;
    args.y = arrays[3].data();
  }

  void run(Isa isa, int threads) {
    runtime::ThreadPool pool(threads);
    const CpuTemplates& table = cpu_templates(isa);
    Scratch scratch(table.conv_scratch_bytes(args, threads));
    arrays[3] = Array(c.dtype, arrays[3].size());
    args.y = arrays[3].data();
    table.conv(args, pool, scratch.data());
  }

  /// The result by scattering each product x * w where it goes, in double.
  void reference(std::vector<double>* sums, std::vector<double>* sizes) const {
    const i64 icg = c.ic / c.groups, ocg = c.oc / c.groups;
    ConvDim d[3];
    i64 xs[3] = {}, ws[3] = {}, ys[3] = {};
    for (int i = 0; i < args.rank; ++i) {
      const int to = 3 - args.rank + i;
      d[to] = args.dims[i];
      xs[to] = args.x_strides[2 + i];
      ws[to] = args.w_strides[2 + i];
      ys[to] = args.y_strides[2 + i];
    }
    const auto each = [&](i64 n, i64 ch, i64 oc, const i64* in, const i64* tap) {
      i64 xi = n * args.x_strides[0] + ch * args.x_strides[1];
      i64 yi = n * args.y_strides[0] + oc * args.y_strides[1];
      i64 wi = c.transposed ? ch * args.w_strides[0] + oc % ocg * args.w_strides[1]
                            : oc * args.w_strides[0] + ch % icg * args.w_strides[1];
      for (int a = 0; a < 3; ++a) {
        i64 out = 0;
        if (c.transposed) {
          out = in[a] * d[a].stride - d[a].pad + tap[a] * d[a].dilation;
        } else {
          const i64 scaled = in[a] + d[a].pad - tap[a] * d[a].dilation;
          if (scaled < 0 || scaled % d[a].stride) return;
          out = scaled / d[a].stride;
        }
        if (out < 0 || out >= d[a].output) return;
        xi += in[a] * xs[a];
        wi += tap[a] * ws[a];
        yi += out * ys[a];
      }
      const double product = arrays[0].get(xi) * arrays[1].get(wi);
      (*sums)[size_t(yi)] += product;
      (*sizes)[size_t(yi)] += std::fabs(product);
    };
    i64 in[3], tap[3];
    for (i64 n = 0; n < c.n; ++n)
      for (i64 ch = 0; ch < c.ic; ++ch)
        for (i64 o = 0; o < ocg; ++o)
          for (in[0] = 0; in[0] < d[0].input; ++in[0])
            for (in[1] = 0; in[1] < d[1].input; ++in[1])
              for (in[2] = 0; in[2] < d[2].input; ++in[2])
                for (tap[0] = 0; tap[0] < d[0].kernel; ++tap[0])
                  for (tap[1] = 0; tap[1] < d[1].kernel; ++tap[1])
                    for (tap[2] = 0; tap[2] < d[2].kernel; ++tap[2])
                      each(n, ch, ch / icg * ocg + o, in, tap);
  }

  void check() const {
    const size_t count = static_cast<size_t>(arrays[3].size());
    std::vector<double> sums(count), sizes(count);
    reference(&sums, &sizes);
    for (size_t i = 0; i < count; ++i) {
      const i64 channel = i64(i) / args.y_strides[1] % c.oc;
      const double want = sums[i] + (c.bias ? arrays[2].get(channel) : 0);
      const double got = arrays[3].get(i64(i));
      if (is_int(c.dtype)) {
        Array wrapped(c.dtype, 1);
        wrapped.set(0, want);
        ASSERT_EQ(got, wrapped.get(0)) << i;
      } else {
        ASSERT_NEAR(got, want,
                    rounding_of(compute_dtype(c.dtype)) * (sizes[i] + 1) +
                        rounding_of(c.dtype) * std::fabs(want) + 2e-3 * (size_of(c.dtype) == 1))
            << i;
      }
    }
  }
};

/// What an epilogue sees on 3 threads, with no result stored, is the result.
void check_epilogue(const Problem& p, Isa isa) {
  const ConvArgs& stored = p.args;
  i64 positions = 1;
  for (int i = 0; i < stored.rank; ++i) positions *= stored.dims[i].output;
  BlockSink sink(accumulator_of(stored.in, stored.out), stored.out, stored.n, stored.oc, positions);
  ConvArgs args = stored;
  args.y = nullptr;
  sink.attach(&args);
  runtime::ThreadPool pool(3);
  Scratch scratch(cpu_templates(isa).conv_scratch_bytes(args, 3));
  cpu_templates(isa).conv(args, pool, scratch.data());
  sink.check_each_once();
  for (i64 n = 0; n < stored.n; ++n) {
    for (i64 o = 0; o < stored.oc; ++o) {
      for (i64 at = 0; at < positions; ++at) {
        i64 offset = n * stored.y_strides[0] + o * stored.y_strides[1], rest = at;
        for (int i = stored.rank - 1; i >= 0; --i) {
          offset += rest % stored.dims[i].output * stored.y_strides[2 + i];
          rest /= stored.dims[i].output;
        }
        ASSERT_EQ(sink.get(n, o, at), p.arrays[3].get(offset)) << n << ", " << o << ", " << at;
      }
    }
  }
}

/// Right on every instruction set, the same bits on 1, 2 and 7 threads and with packed weights, and
/// the same numbers in an epilogue.
void check_case(const Case& spec) {
  for (Isa isa : runnable_isas()) {
    Problem p(spec);
    p.run(isa, 1);
    p.check();
    const std::vector<u8> bits = p.arrays[3].bytes();
    for (int threads : {2, 7}) {
      p.run(isa, threads);
      EXPECT_EQ(p.arrays[3].bytes(), bits) << name(isa) << " " << threads << " threads";
    }
    check_epilogue(p, isa);
    Scratch packed(cpu_templates(isa).packed_w_bytes(p.args));
    cpu_templates(isa).pack_w(p.args, packed.data());
    p.args.packed_w = packed.data();
    p.args.w = nullptr;
    p.run(isa, 2);
    EXPECT_EQ(p.arrays[3].bytes(), bits) << name(isa) << " packed";
    check_epilogue(p, isa);
  }
}

ConvDim dim(i64 input, i64 kernel, i64 stride = 1, i64 pad = 0, i64 dilation = 1) {
  return {input, kernel, stride, pad, dilation, 0};
}

TEST(TemplatesConv, StridesPadsAndDilations) {
  for (i64 stride : {1, 2, 3}) {
    for (i64 pad : {0, 1, 2}) {
      for (i64 dilation : {1, 2}) {
        for (bool transposed : {false, true}) {
          check_case({.n = 2,
                      .ic = 3,
                      .oc = 5,
                      .dims = {dim(9, 3, stride, pad, dilation), dim(18, 3, stride, pad, dilation)},
                      .transposed = transposed});
        }
      }
    }
  }
}

TEST(TemplatesConv, OneAndThreeDims) {
  for (bool transposed : {false, true}) {
    check_case({.n = 2, .ic = 4, .oc = 3, .dims = {dim(35, 5, 2, 2)}, .transposed = transposed});
    check_case({.n = 1,
                .ic = 2,
                .oc = 7,
                .dims = {dim(4, 2), dim(5, 3, 1, 1), dim(17, 2, 2)},
                .transposed = transposed});
  }
}

TEST(TemplatesConv, GroupsAndDepthwise) {
  for (bool transposed : {false, true}) {
    for (bool last : {false, true}) {
      check_case({.groups = 2,
                  .ic = 4,
                  .oc = 6,
                  .dims = {dim(7, 3, 1, 1), dim(7, 3, 1, 1)},
                  .transposed = transposed,
                  .channels_last = last});
      check_case({.groups = 8,
                  .ic = 8,
                  .oc = 8,
                  .dims = {dim(9, 3, 2, 1), dim(33, 3, 2, 1)},
                  .transposed = transposed,
                  .channels_last = last});
      check_case({.groups = 3,
                  .ic = 3,
                  .oc = 6,
                  .dims = {dim(6, 3, 1, 1), dim(20, 3, 1, 1)},
                  .transposed = transposed,
                  .channels_last = last});
    }
  }
}

TEST(TemplatesConv, ManyChannelsAndPositions) {
  check_case({.n = 1, .ic = 40, .oc = 30, .dims = {dim(9, 3, 1, 1), dim(14, 3, 1, 1)}});
  check_case({.n = 2, .ic = 300, .oc = 20, .dims = {dim(5, 1), dim(23, 1)}, .bias = false});
  check_case({.n = 1, .ic = 3, .oc = 400, .dims = {dim(8, 4, 4), dim(16, 4, 4)}});
}

TEST(TemplatesConv, PointKernelsInEveryForm) {
  for (bool last : {false, true}) {
    for (i64 stride : {1, 2}) {
      check_case({.n = 3,
                  .ic = 7,
                  .oc = 13,
                  .dims = {dim(7, 1, stride), dim(7, 1, stride)},
                  .channels_last = last});
      check_case({.n = 1,
                  .groups = 2,
                  .ic = 8,
                  .oc = 20,
                  .dims = {dim(5, 1, stride, 1), dim(40, 1, stride, 1)},
                  .channels_last = last});
      check_case({.n = 1,
                  .ic = 5,
                  .oc = 6,
                  .dims = {dim(3, 1), dim(4, 1, stride), dim(6, 1)},
                  .channels_last = last});
      check_case({.n = 2,
                  .groups = 6,
                  .ic = 6,
                  .oc = 6,
                  .dims = {dim(9, 1, stride), dim(11, 1)},
                  .channels_last = last});
    }
  }
  check_case({.n = 2, .ic = 300, .oc = 20, .dims = {dim(1, 1), dim(1, 1)}});
  check_case({.n = 1, .ic = 20, .oc = 9, .dims = {dim(33, 1), dim(1, 1)}});
}

TEST(TemplatesConv, TheFewLastColumnsOfAPanel) {
  for (i64 columns : {1, 2, 3, 4, 5}) {
    const i64 width = 48 + columns;
    for (DType d : {DType::f32, DType::f64, DType::i32})
      check_case(
          {.n = 1, .ic = 100, .oc = 70, .dims = {dim(1, 1), dim(width, 3, 1, 1)}, .dtype = d});
  }
  check_case({.n = 2, .groups = 2, .ic = 30, .oc = 66, .dims = {dim(7, 3, 1, 1), dim(7, 3, 1, 1)}});
}

TEST(TemplatesConv, WidthsAroundTheTile) {
  for (i64 width : {1, 7, 8, 9, 15, 16, 17, 33, 49}) {
    check_case({.n = 1, .ic = 3, .oc = 7, .dims = {dim(6, 3, 1, 1), dim(width, 3, 1, 1)}});
    check_case(
        {.n = 2, .groups = 3, .ic = 3, .oc = 3, .dims = {dim(11, 3, 1, 1), dim(width, 3, 1, 1)}});
    check_case({.n = 1,
                .groups = 2,
                .ic = 2,
                .oc = 2,
                .dims = {dim(12, 5, 2, 2), dim(width, 5, 2, 2)},
                .dtype = DType::f64});
  }
  check_case({.n = 1, .ic = 4, .oc = 110, .dims = {dim(20, 3), dim(20, 3)}});
  check_case(
      {.n = 1, .groups = 2, .ic = 2, .oc = 4, .dims = {dim(40, 7, 3, 3, 2), dim(40, 7, 3, 3, 2)}});
  check_case({.n = 5, .groups = 4, .ic = 4, .oc = 4, .dims = {dim(70, 3, 1, 1), dim(30, 3, 1, 1)}});
  check_case({.n = 1, .ic = 1, .oc = 6, .dims = {dim(9, 17, 1, 8), dim(20, 17, 1, 8)}});
  check_case({.n = 1, .groups = 2, .ic = 2, .oc = 2, .dims = {dim(50, 5, 1, 2)}});
  check_case({.n = 1,
              .groups = 2,
              .ic = 2,
              .oc = 2,
              .dims = {dim(5, 3, 1, 1), dim(6, 3, 1, 1), dim(7, 3, 2, 1)}});
  check_case({.n = 1, .ic = 6, .oc = 8, .dims = {dim(30, 5, 2, 2), dim(1, 1)}});
}

/// A weight that is infinite shows where it meets an input, as NaN or infinity, and not where it
/// meets padding alone.
TEST(TemplatesConv, PaddingTakesNoPart) {
  for (Isa isa : runnable_isas()) {
    for (bool transposed : {false, true}) {
      for (i64 groups : {1, 6}) {
        for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
          Problem p({.n = 1,
                     .groups = groups,
                     .ic = 6,
                     .oc = 6,
                     .dims = {dim(8, 3, 1, 1), dim(20, 3, 1, 1)},
                     .transposed = transposed});
          p.run(isa, 1);
          const Array good = p.arrays[3];
          // The first kernel row reads padding for the first output row, the last if transposed.
          const i64 edge = transposed ? 7 : 0;
          for (i64 i = 0; i < 3; ++i) p.arrays[1].set(i, bad);
          p.run(isa, 1);
          const Array& y = p.arrays[3];
          for (i64 row = 0; row < 8; ++row) {
            for (i64 col = 0; col < 20; ++col) {
              const double got = y.get(row * 20 + col);
              if (row == edge) {
                EXPECT_EQ(got, good.get(row * 20 + col)) << name(isa) << col;
              } else {
                EXPECT_FALSE(std::isfinite(got)) << name(isa) << row << " " << col;
              }
            }
          }
        }
      }
    }
  }
}

TEST(TemplatesConv, EveryElementType) {
  for (DType d : {DType::f64, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::u8,
                  DType::i8, DType::i16, DType::i32, DType::i64}) {
    for (bool transposed : {false, true}) {
      check_case({.n = 1,
                  .ic = 3,
                  .oc = 4,
                  .dims = {dim(6, 3, 1, 1), dim(19, 3, 1, 1)},
                  .transposed = transposed,
                  .dtype = d});
    }
    check_case({.n = 1, .ic = 20, .oc = 9, .dims = {dim(5, 1), dim(7, 1)}, .dtype = d});
    check_case({.n = 1,
                .groups = 3,
                .ic = 3,
                .oc = 3,
                .dims = {dim(9, 3, 2, 1), dim(19, 3, 2, 1)},
                .dtype = d});
  }
}

TEST(TemplatesConv, OutputPaddingAndEmptiness) {
  check_case({.n = 1,
              .ic = 2,
              .oc = 3,
              .dims = {dim(5, 3, 2, 1), dim(6, 3, 2, 1)},
              .transposed = true,
              .output_padding = 1});
  check_case({.n = 0, .ic = 2, .oc = 3, .dims = {dim(5, 3), dim(6, 3)}});
  check_case({.n = 1, .ic = 0, .oc = 3, .dims = {dim(5, 3), dim(6, 3)}});
  check_case({.n = 1, .ic = 2, .oc = 0, .dims = {dim(5, 3, 1, 1), dim(6, 3)}});
  check_case({.n = 1, .ic = 0, .oc = 3, .dims = {dim(5, 3, 1, 1), dim(6, 3)}, .transposed = true});
}

}  // namespace
}  // namespace coil::templates
