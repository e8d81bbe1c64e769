// Each factorisation by what defines it: the factors give back the matrix, and are of the right
// form.

#include <gtest/gtest.h>

#include <complex>
#include <random>

#include "runtime/factor/factor.h"

namespace coil::runtime {
namespace {

using Complex = std::complex<double>;

/// Row-major [rows, cols].
struct Dense {
  i64 rows = 0, cols = 0;
  std::vector<Complex> data;

  Dense() = default;
  Dense(i64 r, i64 c) : rows(r), cols(c), data(static_cast<std::size_t>(r * c)) {}
  Complex& operator()(i64 i, i64 j) { return data[static_cast<std::size_t>(i * cols + j)]; }
  Complex operator()(i64 i, i64 j) const { return data[static_cast<std::size_t>(i * cols + j)]; }
};

Dense operator*(const Dense& a, const Dense& b) {
  Dense c(a.rows, b.cols);
  for (i64 i = 0; i < c.rows; ++i)
    for (i64 k = 0; k < a.cols; ++k)
      for (i64 j = 0; j < c.cols; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}
Dense adjoint(const Dense& a) {
  Dense c(a.cols, a.rows);
  for (i64 i = 0; i < c.rows; ++i)
    for (i64 j = 0; j < c.cols; ++j) c(i, j) = std::conj(a(j, i));
  return c;
}
Dense transposed(const Dense& a) {
  Dense c = adjoint(a);
  for (Complex& x : c.data) x = std::conj(x);
  return c;
}
Dense identity(i64 n) {
  Dense c(n, n);
  for (i64 i = 0; i < n; ++i) c(i, i) = 1;
  return c;
}
Dense diagonal(const Dense& v) {
  Dense c(v.rows, v.rows);
  for (i64 i = 0; i < v.rows; ++i) c(i, i) = v(i, 0);
  return c;
}
Dense left_columns(const Dense& a, i64 count) {
  Dense c(a.rows, count);
  for (i64 i = 0; i < c.rows; ++i)
    for (i64 j = 0; j < count; ++j) c(i, j) = a(i, j);
  return c;
}
double apart(const Dense& a, const Dense& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.cols, b.cols);
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double d = std::abs(a.data[i] - b.data[i]);
    largest = d > largest || std::isnan(d) ? d : largest;
  }
  return largest;
}

struct Kind {
  bool is_complex = false;
};

Dense random_matrix(i64 rows, i64 cols, Kind kind, u32 seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Dense a(rows, cols);
  for (Complex& x : a.data) x = {normal(random), kind.is_complex ? normal(random) : 0};
  return a;
}
Dense hermitian(i64 n, Kind kind, u32 seed) {
  const Dense a = random_matrix(n, n, kind, seed), h = adjoint(a);
  Dense c(n, n);
  for (std::size_t i = 0; i < c.data.size(); ++i) c.data[i] = a.data[i] + h.data[i];
  return c;
}

/// A call with operands of its own; matrices are given by rows, results are read back alike.
class Call {
 public:
  Call(FactorKind kind, Kind numbers, u8 flags = 0) : numbers_(numbers) {
    args_.kind = kind;
    args_.flags = flags;
  }
  Call& in(const Dense& a, std::size_t dims = 2) {
    add(a.rows, a.cols, dims, numbers_.is_complex);
    double* to = reinterpret_cast<double*>(memory_.back().data());
    for (std::size_t i = 0; i < a.data.size(); ++i) {
      if (!numbers_.is_complex) to[i] = a.data[i].real();
      if (numbers_.is_complex) to[2 * i] = a.data[i].real(), to[2 * i + 1] = a.data[i].imag();
    }
    return *this;
  }
  Call& out(i64 rows, i64 cols) { return add(rows, cols, 2, numbers_.is_complex); }
  Call& vector_out(i64 n) { return add(n, 1, 1, numbers_.is_complex); }
  Call& real_out(i64 n) { return add(n, 1, 1, false); }
  Call& complex_out(i64 rows, i64 cols, std::size_t dims) { return add(rows, cols, dims, true); }
  Call& ints(std::vector<i32> values, std::size_t dims) {
    CallOperand o;
    o.dtype = DType::i32;
    o.shape = {1};
    if (dims == 1) o.shape.push_back(static_cast<i64>(values.size()));
    o.strides.assign(o.shape.size(), 1);
    memory_.emplace_back(values.size() * 4 + 8);
    std::copy(values.begin(), values.end(), reinterpret_cast<i32*>(memory_.back().data()));
    operands_.push_back(o);
    return *this;
  }

  Status run() {
    for (std::size_t i = 0; i < operands_.size(); ++i) operands_[i].data = memory_[i].data();
    args_.operands = operands_;
    COIL_TRY(check_factor(args_));
    std::vector<std::byte> scratch(static_cast<std::size_t>(factor_scratch_bytes(args_)) + 64);
    const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
    return run_factor(args_, 0, scratch.data() + (64 - at % 64) % 64);
  }
  Dense result(std::size_t operand) const {
    const CallOperand& o = operands_[operand];
    const bool pairs = is_pairs_[operand];
    const std::size_t dims = o.shape.size() - (pairs ? 1 : 0);
    Dense a(o.shape[1], dims == 3 ? o.shape[2] : 1);
    const double* from = reinterpret_cast<const double*>(memory_[operand].data());
    for (std::size_t i = 0; i < a.data.size(); ++i)
      a.data[i] = pairs ? Complex{from[2 * i], from[2 * i + 1]} : Complex{from[i]};
    return a;
  }
  i32 int_at(std::size_t operand, std::size_t i) const {
    return reinterpret_cast<const i32*>(memory_[operand].data())[i];
  }
  std::vector<i32> ints_of(std::size_t operand) const {
    std::vector<i32> out;
    for (i64 i = 0; i < operands_[operand].shape[1]; ++i)
      out.push_back(int_at(operand, static_cast<std::size_t>(i)));
    return out;
  }

 private:
  Call& add(i64 rows, i64 cols, std::size_t dims, bool pairs) {
    CallOperand o;
    o.dtype = DType::f64;
    o.shape = {1, rows};
    if (dims == 2) o.shape.push_back(cols);
    if (pairs) o.shape.push_back(2);
    o.strides.assign(o.shape.size(), 1);
    for (std::size_t d = o.shape.size() - 1; d-- > 0;)
      o.strides[d] = o.strides[d + 1] * o.shape[d + 1];
    is_pairs_.resize(operands_.size() + 1);
    is_pairs_.back() = pairs;
    operands_.push_back(o);
    memory_.emplace_back(static_cast<std::size_t>(rows * cols * 16 + 8));
    return *this;
  }

  Kind numbers_;
  FactorArgs args_;
  std::vector<CallOperand> operands_;
  std::vector<bool> is_pairs_;
  std::vector<std::vector<std::byte>> memory_;
};

constexpr i64 kSizes[] = {0, 1, 2, 3, 4, 7, 16, 33};
constexpr double kClose = 1e-11;

class Factor : public ::testing::TestWithParam<bool> {
 protected:
  Kind kind() const { return {GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Numbers, Factor, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "complex" : "real"; });

TEST_P(Factor, Cholesky) {
  for (i64 n : kSizes) {
    const Dense b = random_matrix(n, n + 2, kind(), 1);
    const Dense a = b * adjoint(b);
    Call call(FactorKind::cholesky, kind());
    ASSERT_TRUE(call.in(a).out(n, n).ints({0}, 0).run().ok());
    const Dense l = call.result(1);
    EXPECT_LT(apart(l * adjoint(l), a), kClose * 100) << n;
    EXPECT_EQ(call.int_at(2, 0), 0);
    for (i64 i = 0; i < n; ++i)
      for (i64 j = i + 1; j < n; ++j) EXPECT_EQ(l(i, j), Complex(0));
  }
}

TEST_P(Factor, CholeskyNamesTheFirstMinorThatIsNotPositive) {
  Dense a = identity(4);
  a(2, 2) = -1;
  Call call(FactorKind::cholesky, kind());
  ASSERT_TRUE(call.in(a).out(4, 4).ints({0}, 0).run().ok());
  EXPECT_EQ(call.int_at(2, 0), 3);
}

TEST_P(Factor, LuAndItsPermutation) {
  for (i64 m : kSizes)
    for (i64 n : kSizes) {
      const i64 k = std::min(m, n);
      const Dense a = random_matrix(m, n, kind(), 2);
      Call call(FactorKind::lu, kind());
      const std::vector<i32> zeros(static_cast<std::size_t>(k));
      ASSERT_TRUE(call.in(a).out(m, n).ints(zeros, 1).ints({7}, 0).run().ok());
      EXPECT_EQ(call.int_at(3, 0), 0);
      const Dense lu = call.result(1);
      Dense l(m, k), u(k, n), permuted(m, n);
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < k; ++j) l(i, j) = i == j ? 1 : i > j ? lu(i, j) : 0;
      for (i64 i = 0; i < k; ++i)
        for (i64 j = i; j < n; ++j) u(i, j) = lu(i, j);
      std::vector<i64> order(static_cast<std::size_t>(m));
      for (i64 i = 0; i < m; ++i) order[static_cast<std::size_t>(i)] = i;
      for (i64 i = 0; i < k; ++i)
        std::swap(order[static_cast<std::size_t>(i)],
                  order[static_cast<std::size_t>(call.int_at(2, static_cast<std::size_t>(i)) - 1)]);
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) permuted(i, j) = a(order[static_cast<std::size_t>(i)], j);
      EXPECT_LT(apart(l * u, permuted), kClose) << m << " " << n;
    }
}

TEST_P(Factor, LuSolves) {
  for (const u8 flags : {0, 8, 16, 24})
    for (i64 n : kSizes) {
      const Dense a = random_matrix(n, n, kind(), 14), x = random_matrix(n, 3, kind(), 15);
      const std::vector<i32> zeros(static_cast<std::size_t>(n));
      Call call(FactorKind::lu, kind());
      ASSERT_TRUE(call.in(a).out(n, n).ints(zeros, 1).ints({0}, 0).run().ok());
      Dense wanted = a;
      if (flags & kFactorConjugated) wanted = transposed(adjoint(wanted));
      if (flags & kFactorTransposed) wanted = transposed(wanted);
      Call solve(FactorKind::lu_solve, kind(), flags);
      solve.in(call.result(1)).ints(call.ints_of(2), 1).in(wanted * x).out(n, 3);
      ASSERT_TRUE(solve.run().ok());
      EXPECT_LT(apart(solve.result(3), x), 1e-9) << n << " " << int{flags};
    }
}

TEST_P(Factor, LuOfASingularMatrix) {
  Dense a(3, 3);
  for (i64 i = 0; i < 3; ++i)
    for (i64 j = 0; j < 3; ++j) a(i, j) = static_cast<double>((i + 1) * (j + 1));
  Call call(FactorKind::lu, kind());
  ASSERT_TRUE(call.in(a).out(3, 3).ints({0, 0, 0}, 1).ints({0}, 0).run().ok());
  EXPECT_EQ(call.int_at(3, 0), 2);
}

TEST_P(Factor, Qr) {
  for (i64 m : kSizes)
    for (i64 n : kSizes) {
      const i64 k = std::min(m, n);
      const Dense a = random_matrix(m, n, kind(), 3);
      Call call(FactorKind::qr, kind());
      ASSERT_TRUE(call.in(a).out(m, n).vector_out(k).run().ok());
      const Dense packed = call.result(1), tau = call.result(2);
      Dense r(m, n);
      for (i64 i = 0; i < m; ++i)
        for (i64 j = i; j < n; ++j) r(i, j) = packed(i, j);
      Call form(FactorKind::reflectors, kind());
      ASSERT_TRUE(form.in(packed).in(tau, 1).out(m, m).run().ok());
      const Dense q = form.result(2);
      EXPECT_LT(apart(q * r, a), kClose) << m << " " << n;
      EXPECT_LT(apart(adjoint(q) * q, identity(m)), kClose) << m << " " << n;
    }
}

TEST_P(Factor, LdlSolves) {
  for (const bool is_hermitian : {false, true})
    for (i64 n : kSizes) {
      Dense a = hermitian(n, kind(), 4);
      if (!is_hermitian) {
        const Dense b = random_matrix(n, n, kind(), 4), t = transposed(b);
        for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] = b.data[i] + t.data[i];
      }
      for (i64 i = 0; i < n; ++i) a(i, i) *= i % 3 == 0 ? 0.01 : 1;  // so that pairs are chosen
      const u8 flags = is_hermitian ? kFactorHermitian : 0;
      const std::vector<i32> zeros(static_cast<std::size_t>(n));
      Call call(FactorKind::ldl, kind(), flags);
      ASSERT_TRUE(call.in(a).out(n, n).ints(zeros, 1).ints({0}, 0).run().ok());
      const Dense x = random_matrix(n, 2, kind(), 5);
      Call solve(FactorKind::ldl_solve, kind(), flags);
      ASSERT_TRUE(solve.in(call.result(1)).ints(call.ints_of(2), 1).in(a * x).out(n, 2).run().ok());
      EXPECT_LT(apart(solve.result(3), x), 1e-8) << n << " " << is_hermitian;
    }
}

TEST_P(Factor, LdlSolveRefusesPivotsThatAreNone) {
  for (const std::vector<i32>& pivots : {std::vector<i32>{0, 1}, {3, 1}, {1, -2}, {-2, -1}}) {
    Call solve(FactorKind::ldl_solve, kind());
    EXPECT_FALSE(solve.in(identity(2)).ints(pivots, 1).in(identity(2)).out(2, 2).run().ok());
  }
}

TEST_P(Factor, Triangular) {
  for (const u8 flags : {0, 1, 2, 3})
    for (i64 n : kSizes) {
      Dense a = random_matrix(n, n, kind(), 6), triangle(n, n);
      for (i64 i = 0; i < n; ++i)
        for (i64 j = 0; j < n; ++j) {
          a(i, j) = i == j ? a(i, j) + 9.0 : a(i, j) * 0.2;
          if (flags & kFactorUpper ? i <= j : i >= j) triangle(i, j) = a(i, j);
          if (i == j && flags & kFactorUnit) triangle(i, j) = 1;
        }
      const Dense x = random_matrix(n, 3, kind(), 7);
      Call call(FactorKind::triangular, kind(), flags);
      ASSERT_TRUE(call.in(a).in(triangle * x).out(n, 3).run().ok());
      EXPECT_LT(apart(call.result(2), x), kClose) << n;
    }
}

TEST_P(Factor, Eigh) {
  for (i64 n : kSizes) {
    const Dense a = hermitian(n, kind(), 8);
    Call call(FactorKind::eigh, kind()), values(FactorKind::eigh, kind());
    ASSERT_TRUE(call.in(a).real_out(n).out(n, n).run().ok());
    const Dense w = call.result(1), v = call.result(2);
    EXPECT_LT(apart(v * diagonal(w) * adjoint(v), a), kClose) << n;
    EXPECT_LT(apart(adjoint(v) * v, identity(n)), kClose) << n;
    for (i64 i = 1; i < n; ++i) EXPECT_LE(w(i - 1, 0).real(), w(i, 0).real());
    ASSERT_TRUE(values.in(a).real_out(n).run().ok());
    EXPECT_LT(apart(values.result(1), w), kClose);
  }
}

TEST_P(Factor, EighReadsTheTriangleThatItIsToldTo) {
  const Dense a = hermitian(5, kind(), 16);
  for (const bool upper : {false, true}) {
    Dense half = a;
    for (i64 i = 0; i < 5; ++i)
      for (i64 j = 0; j < 5; ++j)
        if (upper ? i > j : i < j) half(i, j) = 77;
    Call call(FactorKind::eigh, kind(), upper ? kFactorUpper : 0);
    ASSERT_TRUE(call.in(half).real_out(5).out(5, 5).run().ok());
    const Dense v = call.result(2);
    EXPECT_LT(apart(v * diagonal(call.result(1)) * adjoint(v), a), kClose);
  }
}

TEST_P(Factor, EighOfEqualValuesAndZeros) {
  for (i64 n : kSizes)
    for (const double value : {0.0, 3.0, 1e-300, 1e300}) {
      Dense a = identity(n);
      for (Complex& x : a.data) x *= value;
      Call call(FactorKind::eigh, kind());
      ASSERT_TRUE(call.in(a).real_out(n).out(n, n).run().ok());
      EXPECT_LE(apart(diagonal(call.result(1)), a), 1e-15 * value);
      EXPECT_LT(apart(adjoint(call.result(2)) * call.result(2), identity(n)), kClose);
    }
}

void expect_eig(const Dense& a, Kind kind) {
  const i64 n = a.rows;
  Call call(FactorKind::eig, kind);
  ASSERT_TRUE(call.in(a).complex_out(n, 1, 1).complex_out(n, n, 2).run().ok());
  const Dense w = call.result(1), v = call.result(2);
  EXPECT_LT(apart(a * v, v * diagonal(w)), 1e-10) << n;
  for (i64 j = 0; j < n; ++j) {
    double sum = 0;
    for (i64 i = 0; i < n; ++i) sum += std::norm(v(i, j));
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  for (i64 j = 0; j < n && !kind.is_complex; ++j) {
    if (w(j, 0).imag() <= 0) continue;
    EXPECT_EQ(w(j + 1, 0), std::conj(w(j, 0)));
  }
}

TEST_P(Factor, Eig) {
  for (i64 n : kSizes) expect_eig(random_matrix(n, n, kind(), 9), kind());
}

TEST_P(Factor, EigOfHardMatrices) {
  Dense cycle(8, 8), jordan = identity(8), rotation(4, 4), zero(5, 5);
  for (i64 i = 0; i < 8; ++i) cycle(i, (i + 1) % 8) = 1;
  for (i64 i = 0; i + 1 < 8; ++i) jordan(i, i + 1) = 1;
  rotation(0, 1) = rotation(2, 3) = 1;
  rotation(1, 0) = rotation(3, 2) = -1;
  for (const Dense& a : {cycle, jordan, rotation, zero, identity(6)}) expect_eig(a, kind());
  expect_eig(hermitian(20, kind(), 3), kind());
  Dense big(60, 60);
  for (i64 i = 0; i < 60; ++i)
    for (i64 j = 0; j < 60; ++j) big(i, j) = i == j ? 2 : i == j + 1 ? 1 : 0;
  expect_eig(big, kind());
}

TEST_P(Factor, Svd) {
  for (i64 m : kSizes)
    for (i64 n : kSizes)
      for (const bool full : {false, true}) {
        const i64 k = std::min(m, n), p = full ? m : k, q = full ? n : k;
        const Dense a = random_matrix(m, n, kind(), 10);
        Call call(FactorKind::svd, kind()), values(FactorKind::svd, kind());
        ASSERT_TRUE(call.in(a).real_out(k).out(m, p).out(q, n).run().ok());
        const Dense s = call.result(1), u = call.result(2), vh = call.result(3);
        const Dense back = left_columns(u, k) * diagonal(s) * adjoint(left_columns(adjoint(vh), k));
        EXPECT_LT(apart(back, a), kClose) << m << " " << n;
        EXPECT_LT(apart(adjoint(u) * u, identity(p)), kClose) << m << " " << n;
        EXPECT_LT(apart(vh * adjoint(vh), identity(q)), kClose) << m << " " << n;
        for (i64 i = 1; i < k; ++i) EXPECT_GE(s(i - 1, 0).real(), s(i, 0).real());
        ASSERT_TRUE(values.in(a).real_out(k).run().ok());
        EXPECT_LT(apart(values.result(1), s), kClose);
      }
}

TEST_P(Factor, SvdOfLowRankHasWholeBases) {
  for (const double size : {0.0, 1.0, 1e-200, 1e200}) {
    Dense a = random_matrix(6, 2, kind(), 11) * random_matrix(2, 5, kind(), 12);
    for (Complex& x : a.data) x *= size;
    Call call(FactorKind::svd, kind());
    ASSERT_TRUE(call.in(a).real_out(5).out(6, 6).out(5, 5).run().ok());
    const Dense s = call.result(1), u = call.result(2), vh = call.result(3);
    EXPECT_LT(apart(adjoint(u) * u, identity(6)), kClose);
    EXPECT_LT(apart(vh * adjoint(vh), identity(5)), kClose);
    EXPECT_LE(apart(left_columns(u, 5) * diagonal(s) * vh, a), kClose * size);
    EXPECT_LE(s(2, 0).real(), 1e-13 * size);
  }
}

/// What rounding leaves beside the one value is not turned for ever.
TEST_P(Factor, SvdOfOneValue) {
  for (i64 m : kSizes)
    for (i64 n : kSizes)
      for (const double value : {-1.5, 0.1, 3.0, 1e-30}) {
        const i64 k = std::min(m, n);
        Dense a(m, n);
        for (Complex& x : a.data) x = value;
        Call call(FactorKind::svd, kind());
        ASSERT_TRUE(call.in(a).real_out(k).out(m, k).out(k, n).run().ok()) << m << " " << n;
        const double size = std::abs(value) * std::sqrt(static_cast<double>(m * n));
        const Dense s = call.result(1), u = call.result(2), vh = call.result(3);
        EXPECT_LT(apart(adjoint(u) * u, identity(k)), kClose) << m << " " << n;
        EXPECT_LT(apart(vh * adjoint(vh), identity(k)), kClose) << m << " " << n;
        EXPECT_LE(apart(u * diagonal(s) * vh, a), kClose * size) << m << " " << n;
        for (i64 i = 0; i < k; ++i) EXPECT_NEAR(s(i, 0).real(), i ? 0 : size, 1e-13 * size);
      }
}

TEST_P(Factor, MatrixExpIsTheInverseOfThatOfItsNegative) {
  for (i64 n : kSizes)
    for (const double size : {0.01, 1.0, 8.0}) {
      Dense a = random_matrix(n, n, kind(), 13), minus = a;
      for (std::size_t i = 0; i < a.data.size(); ++i) {
        a.data[i] *= size / static_cast<double>(n);
        minus.data[i] = -a.data[i];
      }
      Call call(FactorKind::matrix_exp, kind()), back(FactorKind::matrix_exp, kind());
      ASSERT_TRUE(call.in(a).out(n, n).run().ok());
      ASSERT_TRUE(back.in(minus).out(n, n).run().ok());
      EXPECT_LT(apart(call.result(1) * back.result(1), identity(n)), 1e-9) << n << " " << size;
    }
  Call one(FactorKind::matrix_exp, kind());
  Dense a(2, 2);
  a(0, 1) = 3;
  a(1, 1) = 1;
  ASSERT_TRUE(one.in(a).out(2, 2).run().ok());
  EXPECT_NEAR(one.result(1)(1, 1).real(), std::exp(1.0), 1e-14);
  EXPECT_NEAR(one.result(1)(0, 1).real(), 3 * (std::exp(1.0) - 1), 1e-14);
}

TEST_P(Factor, RefusesWhatIsNotFinite) {
  Dense a = identity(3);
  a(2, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Call(FactorKind::svd, kind()).in(a).real_out(3).run().ok());
  EXPECT_FALSE(Call(FactorKind::eig, kind()).in(a).complex_out(3, 1, 1).run().ok());
  Call eigh(FactorKind::eigh, kind());
  ASSERT_TRUE(eigh.in(a).real_out(3).run().ok());
  EXPECT_TRUE(std::isnan(eigh.result(1)(0, 0).real()));
}

TEST_P(Factor, RefusesSizesThatDoNotFit) {
  EXPECT_FALSE(
      Call(FactorKind::cholesky, kind()).in(Dense(3, 2)).out(3, 2).ints({0}, 0).run().ok());
  EXPECT_FALSE(
      Call(FactorKind::triangular, kind()).in(Dense(3, 3)).in(Dense(2, 1)).out(2, 1).run().ok());
  EXPECT_FALSE(Call(FactorKind::svd, kind()).in(Dense(3, 3)).real_out(3).out(3, 3).run().ok());
  EXPECT_FALSE(
      Call(FactorKind::svd, kind()).in(Dense(3, 3)).real_out(3).out(3, 4).out(3, 3).run().ok());
}

}  // namespace
}  // namespace coil::runtime
