#include <cmath>

#include "interp_support.h"

namespace coil {
namespace {

using namespace interp_test;
using runtime::Value;
constexpr float kNan = __builtin_nanf("");

TEST(InterpProgram, GemmOfEveryClass) {
  const auto text = [](const std::string& dtype) {
    return "buffer %a : " + dtype + "[2, 3] input\n buffer %b : " + dtype +
           "[2, 3] input\n buffer %c : " + dtype +
           "[2, 2] output\n gemm mm {\n"
           "in %a over m < 2, k < 3 at [m, k]\n in %b over k < 3, n < 2 at [n, k]\n"
           "out %c over m < 2, n < 2 at [m, n] }";
  };
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, -1, 3, 1};
  EXPECT_EQ(elements<float>(run(text("f32"), {floats({2, 3}, a), floats({2, 3}, b)})[0]),
            (std::vector<float>{7, 8, 16, 17}));
  const auto i8s = [](std::vector<i8> x) { return Value(tensor(DType::i8, {2, 3}, x)); };
  EXPECT_EQ(elements<i8>(run(text("i8"), {i8s({100, 2, 3, 4, 5, 6}), i8s({2, 0, 2, -1, 3, 1})})[0]),
            (std::vector<i8>{static_cast<i8>(206), -91, 20, 17}));
  const auto bf16s = [](const std::vector<float>& x) {
    std::vector<u16> bits;
    for (float v : x) bits.push_back(f32_to_bf16(v));
    return Value(tensor(DType::bf16, {2, 3}, bits));
  };
  // 256 + 1 + 1 is exact in f32 and rounds once, to 258; summed in bf16 it would stay 256.
  const auto c = run(text("bf16"), {bf16s({256, 1, 1, 0, 0, 0}), bf16s({1, 1, 1, 0, 0, 0})});
  EXPECT_EQ(bf16_to_f32(elements<u16>(c[0])[0]), 258.0f);
}

TEST(InterpProgram, GemmWiderThanABlock) {
  const i64 m = 5, n = 37, k = 19;
  std::vector<double> a(2 * m * k), b(2 * k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<double>(i));
  const auto c = run(R"(
    buffer %a : f64[2, 5, 19] input
    buffer %b : f64[2, 19, 37] input
    buffer %c : f64[2, 5, 37] output
    gemm mm {
      in %a over b < 2, m < 5, k < 19 at [b, m, k]
      in %b over b < 2, k < 19, n < 37 at [b, k, n]
      out %c over b < 2, m < 5, n < 37 at [b, m, n]
    })",
                     {tensor(DType::f64, {2, m, k}, a), tensor(DType::f64, {2, k, n}, b)});
  const auto data = elements<double>(c[0]);
  for (i64 g = 0; g < 2; ++g)
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) {
        double sum = 0;
        for (i64 p = 0; p < k; ++p) sum += a[(g * m + i) * k + p] * b[(g * k + p) * n + j];
        ASSERT_EQ(data[(g * m + i) * n + j], sum);
      }
}

TEST(InterpProgram, Convolutions) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto y = run(R"(
    buffer %x : f32[1, 1, 3, 3] input
    buffer %w : f32[2, 1, 2, 2] input
    buffer %b : f32[2] input
    buffer %y : f32[1, 2, 2, 2] output
    conv c stride [2, 2] padding [1, 1] dilation [1, 1] {
      in %x over n < 1, c < 1, h < 3, w < 3 at [n, c, h, w]
      in %w over o < 2, c < 1, h < 2, w < 2 at [o, c, h, w]
      in %b over o < 2 at [o]
      out %y over n < 1, o < 2, h < 2, w < 2 at [n, o, h, w]
    })",
                     {floats({1, 1, 3, 3}, x), floats({2, 1, 2, 2}, {1, 1, 1, 1, 0, 0, 0, 1}),
                      floats({2}, {100, 0})});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{101, 105, 111, 128, 1, 3, 7, 9}));
  const auto t = run(R"(
    buffer %x : f32[1, 2, 2] input
    buffer %w : f32[2, 1, 3] input
    buffer %y : f32[1, 2, 6] output
    conv c stride [2] padding [0] dilation [1] transposed output_padding [1] groups 2 {
      in %x over n < 1, c < 2, h < 2 at [n, c, h]
      in %w over c < 2, o < 1, h < 3 at [c, o, h]
      out %y over n < 1, o < 2, h < 6 at [n, o, h]
    })",
                     {floats({1, 2, 2}, {1, 2, 3, 4}), floats({2, 1, 3}, {1, 10, 100, 1, 1, 1})});
  EXPECT_EQ(elements<float>(t[0]), (std::vector<float>{1, 10, 102, 20, 200, 0, 3, 3, 7, 4, 4, 0}));
}

TEST(InterpProgram, AttentionWithMaskAndGroupedHeads) {
  const auto y = run(R"(
    buffer %q : f32[1, 2, 2, 1] input
    buffer %k, %v : f32[1, 1, 2, 1] input
    buffer %mask : bool[2, 2] input
    buffer %y : f32[1, 2, 2, 1] output
    attention a scale 1.0 mask {
      in %q over b < 1, h < 2, m < 2, d < 1 at [b, h, m, d]
      in %k over b < 1, h < 1, n < 2, d < 1 at [b, h, n, d]
      in %v over b < 1, h < 1, n < 2, e < 1 at [b, h, n, e]
      in %mask over b < 1, h < 2, m < 2, n < 2 at [m, n]
      out %y over b < 1, h < 2, m < 2, e < 1 at [b, h, m, e]
    })",
                     {floats({1, 2, 2, 1}, {0, 1, 2, 3}), floats({1, 1, 2, 1}, {1, 2}),
                      floats({1, 1, 2, 1}, {10, 20}), tensor<u8>(DType::b8, {2, 2}, {1, 1, 0, 0})});
  const auto data = elements<float>(y[0]);
  EXPECT_EQ(data[0], 15);
  EXPECT_EQ(data[1], 0);
  const float p = 1 / (1 + std::exp(2.0f));
  EXPECT_NEAR(data[2], 10 * p + 20 * (1 - p), 1e-5);
  EXPECT_EQ(data[3], 0);
}

TEST(InterpProgram, SortAndTopk) {
  const std::string text = R"(
    buffer %x : f32[1, 5] input
    buffer %v : f32[1, 5] output
    buffer %i : i64[1, 5] output
    buffer %tv : f32[1, 2] output
    buffer %ti : i64[1, 2] output
    sort s {
      in %x over r < 1, n < 5 at [r, n]
      out %v over r < 1, n < 5 at [r, n]
      out %i over r < 1, n < 5 at [r, n]
    }
    topk t descending {
      in %x over r < 1, n < 5 at [r, n]
      out %tv over r < 1, n < 2 at [r, n]
      out %ti over r < 1, n < 2 at [r, n]
    })";
  const auto y = run(text, {floats({1, 5}, {3, kNan, 1, 3, -2})});
  EXPECT_EQ(elements<i64>(y[1]), (std::vector<i64>{4, 2, 0, 3, 1}));
  EXPECT_EQ(elements<float>(y[0])[0], -2);
  EXPECT_TRUE(std::isnan(elements<float>(y[0])[4]));
  EXPECT_EQ(elements<i64>(y[3]), (std::vector<i64>{1, 0}));
}

TEST(InterpProgram, FourierTransforms) {
  const auto y = run(R"(
    buffer %x : f32[2, 4] input
    buffer %half : f32[2, 3, 2] output
    buffer %all : f32[2, 4, 2] output
    buffer %back : f32[2, 4] output
    fft h r2c dim 1 forward {
      in %x over i < 2, j < 4 at [i, j]
      out %half over i < 2, k < 3, p < 2 at [i, k, p]
    }
    fft b c2r dim 1 backward by_n {
      in %half over i < 2, k < 3, p < 2 at [i, k, p]
      out %back over i < 2, j < 4 at [i, j]
    }
    fft a r2c dim 0 forward {
      in %x over i < 2, j < 4 at [i, j]
      out %all over i < 2, j < 4, p < 2 at [i, j, p]
    })",
                     {floats({2, 4}, {1, 2, 4, 8, 0, 1, 0, 0})});
  const std::vector<float> wanted[] = {
      {15, 0, -3, 6, -5, 0, 1, 0, 0, -1, -1, 0},
      {1, 0, 3, 0, 4, 0, 8, 0, 1, 0, 1, 0, 4, 0, 8, 0},
      {1, 2, 4, 8, 0, 1, 0, 0},
  };
  for (std::size_t out = 0; out < 3; ++out) {
    const auto found = elements<float>(y[out]);
    ASSERT_EQ(found.size(), wanted[out].size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[out][i], 1e-6);
  }
}

TEST(InterpProgram, AFourierTransformOfOtherSizesIsAnError) {
  const std::string text = R"(
    size s0 in 0..9
    buffer %x : f32[s0] input
    buffer %y : f32[5, 2] output
    fft f r2c dim 0 forward {
      in %x over j < s0 at [j]
      out %y over k < 5, p < 2 at [k, p]
    })";
  EXPECT_EQ(run_error(text, {floats({4}, {1, 2, 3, 4})}),
            "node f: a transform of 4 elements into 5");
  EXPECT_EQ(run_error(text, {floats({0}, {})}), "node f: a transform of no elements");
}

const std::string kStep = R"(
      buffer %h, %x : f32[2] input
      buffer %n : f32[2]
      body b {
        dims i0 < 2
        v0 = load f32 %h[i0]
        v1 = load f32 %x[i0]
        v2 = add v0, v1
        store %n[i0], v2
      }
)";

TEST(InterpProgram, WhileForAndIf) {
  const auto w = run(R"(
    buffer %h, %x : f32[2] input
    buffer %y : f32[2] output
    while w carry %h with %x gives %y {
      program condition {
        buffer %h, %x : f32[2] input
        buffer %go : bool[] output
        body b {
          v0 = load f32 %h[0]
          v1 = const f32 10
          v2 = lt v0, v1
          store %go[], v2
        }
      }
      program body { )" + kStep +
                         R"(
        output %n : f32[2]
      }
    })",
                     {floats({2}, {0, 1}), floats({2}, {3, 5})});
  EXPECT_EQ(elements<float>(w[0]), (std::vector<float>{12, 21}));
  const auto f = run(R"(
    size s0 in 0..10
    buffer %h : f32[2] input
    buffer %xs : f32[s0, 2] input
    buffer %last : f32[2] output
    buffer %all : f32[s0, 2] output
    for f t < s0 carry %h with %xs gives %last, %all {
      program step {
        buffer %h : f32[2] input
        buffer %xs : f32[s0, 2] input
        buffer %n : f32[2]
        body b {
          dims i0 < 2
          v0 = load f32 %h[i0]
          v1 = load f32 %xs[s0 - 1 - t, i0]
          v2 = add v0, v1
          store %n[i0], v2
        }
        output %n : f32[2]
        output %n : f32[2]
      }
    })",
                     {floats({2}, {100, 200}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(elements<float>(f[0]), (std::vector<float>{109, 212}));
  EXPECT_EQ(elements<float>(f[1]), (std::vector<float>{105, 206, 108, 210, 109, 212}));
  const std::string branch = R"(
    buffer %p : bool[] input
    buffer %h, %x : f32[2] input
    buffer %y : f32[2] output
    if c on %p with %h, %x gives %y {
      program yes { )" + kStep +
                             R"(
        output %n : f32[2]
      }
      program no {
        buffer %h, %x : f32[2] input
        output %x : f32[2]
      }
    })";
  const Value h = floats({2}, {0, 1}), x = floats({2}, {3, 5});
  const auto yes = run(branch, {tensor<u8>(DType::b8, {}, {1}), h, x});
  EXPECT_EQ(elements<float>(yes[0]), (std::vector<float>{3, 6}));
  const auto no = run(branch, {tensor<u8>(DType::b8, {}, {0}), h, x});
  EXPECT_EQ(elements<float>(no[0]), (std::vector<float>{3, 5}));
}

TEST(InterpProgram, SizesAreBoundSolvedAndChecked) {
  const std::string text = R"(
    size s0 in 2..8
    check s0 % 2 == 0 "the batch must be even"
    buffer %x : f32[2*s0 + 1] input
    buffer %y : f32[s0, s0] input
    buffer %z : f32[s0] output
    body b {
      dims i0 < s0
      v0 = load f32 %x[2*i0]
      v1 = load f32 %y[i0, i0]
      v2 = add v0, v1
      store %z[i0], v2
    })";
  const auto x = [](i64 n) { return Value(floats({n}, std::vector<float>(n, 1.0f))); };
  const auto y = [](i64 m, i64 n) {
    return Value(floats({m, n}, std::vector<float>(m * n, 2.0f)));
  };
  EXPECT_EQ(elements<float>(run(text, {x(9), y(4, 4)})[0]), (std::vector<float>(4, 3.0f)));
  EXPECT_EQ(run_error(text, {x(9), y(4, 5)}), "dim 1 of input 1 (y) is 5, expected s0 = 4");
  EXPECT_EQ(run_error(text, {x(8), y(4, 4)}), "dim 0 of input 0 (x) is 8, expected s0*2 + 1 = 9");
  EXPECT_EQ(run_error(text, {x(7), y(3, 3)}), "the batch must be even");
  EXPECT_EQ(run_error(text, {x(19), y(9, 9)}), "dim 0 of input 1 (y): size s0 is 9, outside 2..8");
  EXPECT_EQ(run_error(text, {x(9)}), "1 inputs given, 2 expected");
  EXPECT_EQ(run_error(text, {x(9), Value(i64{3})}), "input 1 (y) is an int, expected a tensor");
  EXPECT_EQ(run_error(text, {x(9), ints({4, 4}, std::vector<i64>(16))}),
            "input 1 (y) is i64, expected f32");
}

TEST(InterpProgram, SizesFromData) {
  const std::string text = R"(
    size u0 in 0..4 from %n
    buffer %x : f32[4] input
    buffer %n : i64[]
    buffer %y : f32[u0] output
    body count {
      dims i0 < 1 | reduce r0 < 4
      v0 = load f32 %x[r0]
      v1 = const f32 0
      v2 = gt v0, v1
      v3 = cast i64 v2
      v4 = reduce.sum v3 over r0 tree 1x1
      store %n[], v4
    }
    body first {
      dims i0 < u0
      v0 = load f32 %x[i0]
      store %y[i0], v0
    })";
  EXPECT_EQ(elements<float>(run(text, {floats({4}, {1, 2, -1, 0})})[0]),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(run(text, {floats({4}, {-1, -2, -1, 0})})[0]), std::vector<float>{});
}

TEST(InterpProgram, StateMutationAndAliases) {
  const std::string text = R"(
    buffer %x : f32[2, 2] input
    buffer %at : i64[] input
    buffer %count : f32[] state = {5.0}
    buffer %next : f32[]
    buffer %y, %m : f32[2, 2]
    body b {
      v0 = load f32 %count[]
      v1 = const f32 1
      v2 = add v0, v1
      store %next[], v2
    }
    body c {
      dims i0 < 2, i1 < 2
      v0 = load f32 %x[i0, i1]
      v1 = load f32 %next[]
      v2 = mul v0, v1
      store %y[i0, i1], v2
      v3 = neg v0
      store %m[i0, i1], v3
    }
    body d {
      v0 = load i64 %at[]
      n0 = index v0 in 0..0 assert
      v1 = value n0
    }
    output into input 0 %m : f32[2, 2]
    output %y : f32[2] strides [2]
    output alias of output 1 %y : f32[2] strides [2] offset 1
    output alias of input 0 %x : f32[2, 2] strides [1, 2]
    output value 7
    output constant string "s"
    commit %count = %next)";
  Result<interp::Interp> model = interp::Interp::create(parse(text), {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const runtime::Tensor x = floats({2, 2}, {1, 2, 3, 4});
  const Value zero = ints({}, {0}), one = ints({}, {1});
  const auto first = model->run(std::vector<Value>{x, zero});
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_EQ(first->size(), 5u);
  EXPECT_EQ(elements<float>((*first)[0]), (std::vector<float>{6, 18}));
  EXPECT_EQ(elements<float>((*first)[1]), (std::vector<float>{12, 24}));
  EXPECT_EQ(std::get<runtime::Tensor>((*first)[0]).data + 4,
            std::get<runtime::Tensor>((*first)[1]).data);
  EXPECT_EQ(elements<float>(x), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(std::get<runtime::Tensor>((*first)[2]).data, x.data);
  EXPECT_EQ(elements<float>((*first)[2]), (std::vector<float>{-1, -3, -2, -4}));
  EXPECT_EQ(std::get<i64>((*first)[3]), 7);
  EXPECT_EQ(std::get<std::string>((*first)[4]), "s");
  // A call that fails changes neither inputs nor state.
  EXPECT_FALSE(model->run(std::vector<Value>{x, one}).ok());
  EXPECT_EQ(elements<float>(x), (std::vector<float>{-1, -2, -3, -4}));
  const auto second = model->run(std::vector<Value>{x, zero});
  EXPECT_EQ(elements<float>((*second)[0]), (std::vector<float>{-7, -21}));
}

TEST(InterpProgram, ConstantsAndLayouts) {
  const auto y = run(R"(
    buffer %c : i32[2, 3] strides [1, 2] const = {1, 2, 3, 4, 5, 6}
    buffer %s : f32[3] const = seed 4
    buffer %b : i32[2, 3] layout [d1 // 2: 4, d0: 2, d1: 1]
    buffer %y : i32[3, 2] output
    buffer %z : f32[3] output
    body a { dims i0 < 2, i1 < 3
      v0 = load i32 %c[i0, i1]
      store %b[i0, i1], v0 }
    body b { dims i0 < 3, i1 < 2
      v0 = load i32 %b[i1, i0]
      store %y[i0, i1], v0 }
    body c { dims i0 < 3
      v0 = load f32 %s[i0]
      store %z[i0], v0 })",
                     {});
  EXPECT_EQ(elements<i32>(y[0]), (std::vector<i32>{1, 2, 3, 4, 5, 6}));
  EXPECT_NE(elements<float>(y[1])[0], elements<float>(y[1])[1]);
  EXPECT_EQ(run_error("buffer %c : f32[2] const \"m.w\"\n output %c : f32[2]", {}),
            "constant %c has no data (m.w)");
  EXPECT_EQ(run_error("buffer %c : f32[3] const = {1, 2}\n output %c : f32[3]", {}),
            "constant %c needs 3 elements, its storage has 2");
}

TEST(InterpProgram, InputsWithOtherStrides) {
  runtime::Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  std::swap(x.shape[0], x.shape[1]);
  std::swap(x.strides[0], x.strides[1]);
  const auto y = run("buffer %x : f32[2, 3] input\n output %x : f32[2, 3]", {x});
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_NE(std::get<runtime::Tensor>(y[0]).data, x.data);
  EXPECT_EQ(run_error("buffer %x : f32[2, 3] input\n output alias of input 0 %x : f32[2, 3]", {x}),
            "input 0 (x) has other strides than stated, and an output views it");
}

TEST(InterpProgram, ComplexTensorsArePairs) {
  const std::vector<float> parts = {1, 2, 3, 4};
  runtime::Tensor x = *runtime::Tensor::allocate(DType::c64, {2});
  std::memcpy(x.data, parts.data(), 16);
  const std::string text = R"(
    input "x" %x complex
    buffer %x : f32[2, 2] input
    buffer %y : f32[2, 2]
    body conj { dims i0 < 2
      v0 = load f32 %x[i0, 0]
      store %y[i0, 0], v0
      v1 = load f32 %x[i0, 1]
      v2 = neg v1
      store %y[i0, 1], v2 }
    output %y : c64[2])";
  const auto y = run(text, {x});
  const auto& t = std::get<runtime::Tensor>(y[0]);
  EXPECT_EQ(t.dtype, DType::c64);
  EXPECT_EQ(t.shape, std::vector<i64>{2});
  std::vector<float> out(4);
  std::memcpy(out.data(), t.data, 16);
  EXPECT_EQ(out, (std::vector<float>{1, -2, 3, -4}));
  const auto wide = run(text, {x}, {.widen = true, .f64_outputs = true});
  EXPECT_EQ(std::get<runtime::Tensor>(wide[0]).dtype, DType::c128);
}

}  // namespace
}  // namespace coil
