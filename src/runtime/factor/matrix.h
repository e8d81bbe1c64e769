#pragma once
// What the files of this folder share: matrices by columns, memory for them, and the kinds'
// functions.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "runtime/factor/factor.h"

namespace coil::runtime::factor {

using Complex = std::complex<double>;
inline constexpr double kEps = std::numeric_limits<double>::epsilon();

template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, Complex>;

inline double real(double x) { return x; }
inline double real(Complex x) { return x.real(); }
inline double imag(double) { return 0; }
inline double imag(Complex x) { return x.imag(); }
inline double conj(double x) { return x; }
inline Complex conj(Complex x) { return std::conj(x); }
/// |re| + |im|, by which LAPACK chooses pivots.
inline double size_of_pivot(double x) { return std::abs(x); }
inline double size_of_pivot(Complex x) { return std::abs(x.real()) + std::abs(x.imag()); }

/// Columns one after the other, `ld` elements apart.
template <class T>
struct Matrix {
  T* data = nullptr;
  i64 rows = 0, cols = 0, ld = 0;

  T& operator()(i64 i, i64 j) const { return data[i + j * ld]; }
  T* column(i64 j) const { return data + j * ld; }
};

/// Scratch memory in parts. Without memory it only counts what is asked for.
class Workspace {
 public:
  explicit Workspace(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* take(i64 count) {
    T* at = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (count * static_cast<i64>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
  template <class T>
  Matrix<T> matrix(i64 rows, i64 cols) {
    return {take<T>(rows * cols), rows, cols, rows};
  }
  bool counts() const { return memory_ == nullptr; }
  i64 bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  i64 bytes_ = 0;
};

/// One matrix of the batch: its operands by number.
struct Task {
  const FactorArgs& args;
  i64 batch = 0;
  Workspace& work;

  i64 size(std::size_t operand, std::size_t dim) const { return args.operands[operand].shape[dim]; }
  bool has(FactorFlag flag) const { return (args.flags & flag) != 0; }
  bool has_operand(std::size_t operand) const { return operand < args.operands.size(); }
};

// Matrices [rows, cols] and vectors [n] of an operand; complex ones have a last dim of 2.
template <class T>
void load(const Task& task, std::size_t operand, Matrix<T> to);
template <class T>
void load(const Task& task, std::size_t operand, T* to);
template <class T>
void store(const Task& task, std::size_t operand, Matrix<T> from);
template <class T>
void store(const Task& task, std::size_t operand, const T* from);
void load_ints(const Task& task, std::size_t operand, i64* to);
void store_ints(const Task& task, std::size_t operand, const i64* from);
void store_info(const Task& task, std::size_t operand, i64 info);

template <class T>
void set_identity(Matrix<T> m) {
  for (i64 j = 0; j < m.cols; ++j)
    for (i64 i = 0; i < m.rows; ++i) m(i, j) = i == j ? 1 : 0;
}
template <class T>
bool is_finite(Matrix<T> m) {
  for (i64 j = 0; j < m.cols; ++j)
    for (i64 i = 0; i < m.rows; ++i)
      if (!std::isfinite(real(m(i, j))) || !std::isfinite(imag(m(i, j)))) return false;
  return true;
}
/// y += a * x
template <class T, class A>
void add_scaled(T* y, A a, const T* x, i64 n) {
  for (i64 i = 0; i < n; ++i) y[i] += a * x[i];
}
/// x^H y
template <class T>
T dot(const T* x, const T* y, i64 n) {
  T sum = 0;
  for (i64 i = 0; i < n; ++i) sum += conj(x[i]) * y[i];
  return sum;
}
/// The euclidean length, without overflow on the way.
template <class T>
double length(const T* x, i64 n) {
  double largest = 0;
  for (i64 i = 0; i < n; ++i)
    largest = std::max({largest, std::abs(real(x[i])), std::abs(imag(x[i]))});
  if (largest == 0 || !std::isfinite(largest)) return largest;
  double sum = 0;
  for (i64 i = 0; i < n; ++i) {
    const double re = real(x[i]) / largest, im = imag(x[i]) / largest;
    sum += re * re + im * im;
  }
  return largest * std::sqrt(sum);
}

// ---- reflectors: H = I - tau v v^H, v = (1, tail) ----

/// H^H (alpha, tail) = (beta, 0, ...) with a real beta: overwrites alpha with beta and the tail
/// with v's; gives tau, which is 0 where nothing is to be done.
template <class T>
T make_reflector(T& alpha, T* tail, i64 n);
/// c -= tau v (v^H c) for the columns of c, whose rows are v's.
template <class T>
void reflect(T tau, const T* tail, Matrix<T> c);
/// c -= tau (c v) v^H for the rows of c, whose columns are v's; `sums` has room for c's rows.
template <class T>
void reflect_right(T tau, const T* tail, Matrix<T> c, T* sums);
/// The rows and columns of `m` from (i, j) on.
template <class T>
Matrix<T> corner(Matrix<T> m, i64 i, i64 j) {
  return {m.data + i + j * m.ld, m.rows - i, m.cols - j, m.ld};
}
/// a = QR by reflectors, which stay below R.
template <class T>
void factor_qr(Matrix<T> a, T* tau);
/// c = Q c for Q = H0 H1 ... of `count` reflectors below the diagonal of a.
template <class T>
void apply_q(Matrix<T> a, const T* tau, i64 count, Matrix<T> c);
/// a becomes upper Hessenberg, Q^H a Q; q gets Q.
template <class T>
void to_hessenberg(Matrix<T> a, Matrix<T> q, Workspace& work);

// ---- pieces that several kinds use ----

/// PA = LU in place; 0-based pivots; gives `info`.
template <class T>
i64 factor_lu(Matrix<T> a, i64* pivots);
struct Triangle {
  bool upper = false, unit = false;
};
/// x = a^-1 x
template <class T>
void solve_triangle(Matrix<T> a, Triangle which, Matrix<T> x);
/// c = a b, all square.
template <class T>
void multiply(Matrix<T> a, Matrix<T> b, Matrix<T> c);

/// a, upper Hessenberg, becomes the Schur form: upper triangular, but for 2x2 blocks of two
/// conjugate eigenvalues where T is real. z is multiplied by what was done. False: no convergence.
bool to_schur(Matrix<double> a, Matrix<double> z);
bool to_schur(Matrix<Complex> a, Matrix<Complex> z);
/// The eigenvalues of a Schur form, and its eigenvectors times z, of length 1.
template <class T>
void schur_values(Matrix<T> a, Complex* values);
template <class T>
void schur_vectors(Matrix<T> a, Matrix<T> z, const Complex* values, Matrix<Complex> vectors);

// ---- one function a kind ----

#define FACTOR(kind, signature) \
  template <class T>            \
  Status run_##kind(const Task& task);
#include "runtime/factor/kind.def"
#undef FACTOR

}  // namespace coil::runtime::factor

/// The functions of a kind for real and complex matrices.
#define COIL_FACTOR_OF_BOTH(function)                 \
  template Status function<double>(const Task& task); \
  template Status function<Complex>(const Task& task);
