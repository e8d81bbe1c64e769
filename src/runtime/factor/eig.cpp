// Eigenvalues and eigenvectors of a general matrix, from its Schur form.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

/// Whether rows i - 1 and i are one 2x2 block.
template <class T>
bool is_block_end(Matrix<T> a, i64 i) {
  return !kIsComplex<T> && i > 0 && a(i, i - 1) != T(0);
}

/// The vector x of (a - value) x = 0 with x[k] = 1 and nothing below, by substitution upwards.
template <class T>
class Substitution {
 public:
  Substitution(Matrix<T> a, double smallest, Complex* x) : a_(a), smallest_(smallest), x_(x) {}

  void run(Complex value, i64 k) {
    for (i64 i = k + 1; i < a_.rows; ++i) x_[i] = 0;
    x_[k] = 1;
    i64 i = k - 1;
    if (is_block_end(a_, k)) x_[i--] = (value - a_(k, k)) / a_(k, k - 1);
    while (i >= 0) {
      if (is_block_end(a_, i)) {
        solve_two(value, i - 1, k);
        i -= 2;
      } else {
        x_[i] = -rest(i, i + 1, k) / away(a_(i, i) - value);
        limit(i, k);
        --i;
      }
    }
  }

 private:
  Complex rest(i64 row, i64 first, i64 k) const {
    Complex sum = 0;
    for (i64 j = first; j <= k; ++j) sum += a_(row, j) * x_[j];
    return sum;
  }
  /// Not zero: equal eigenvalues give a vector that is nearly a multiple of another.
  Complex away(Complex z) const { return std::abs(z) < smallest_ ? Complex(smallest_) : z; }

  void solve_two(Complex value, i64 i, i64 k) {
    const Complex p = a_(i, i) - value, q = a_(i, i + 1), r = a_(i + 1, i);
    const Complex s = a_(i + 1, i + 1) - value;
    const Complex u = -rest(i, i + 2, k), v = -rest(i + 1, i + 2, k);
    Complex determinant = p * s - q * r;
    if (std::abs(determinant) < smallest_ * smallest_) determinant = smallest_ * smallest_;
    x_[i] = (u * s - q * v) / determinant;
    x_[i + 1] = (p * v - u * r) / determinant;
    limit(i, k);
    limit(i + 1, k);
  }
  /// Vectors may grow by 1/eps at each of many equal eigenvalues.
  void limit(i64 i, i64 k) {
    constexpr double kLarge = 1e100;
    const double size = std::abs(x_[i]);
    if (size < kLarge) return;
    for (i64 j = 0; j <= k; ++j)
      if (j >= i) x_[j] /= size;
  }

  Matrix<T> a_;
  double smallest_;
  Complex* x_;
};

/// Of length 1, and as LAPACK has it: the largest element of a complex vector is real.
void normalise(Complex* x, i64 n) {
  const double size = length(x, n);
  i64 most = 0;
  bool is_real = true;
  for (i64 i = 0; i < n; ++i) {
    is_real = is_real && x[i].imag() == 0;
    if (std::abs(x[i]) > std::abs(x[most])) most = i;
  }
  if (size == 0) return;
  const Complex phase = is_real ? Complex(1) : conj(x[most]) / std::abs(x[most]);
  for (i64 i = 0; i < n; ++i) x[i] = x[i] * phase / size;
  if (!is_real) x[most] = x[most].real();
}

}  // namespace

template <class T>
void schur_values(Matrix<T> a, Complex* values) {
  for (i64 i = 0; i < a.rows; ++i) {
    values[i] = a(i, i);
    if (!is_block_end(a, i)) continue;
    const double p = 0.5 * (real(a(i - 1, i - 1)) - real(a(i, i)));
    const double apart = p * p + real(a(i - 1, i)) * real(a(i, i - 1));
    const double mean = real(a(i, i)) + p, part = std::sqrt(std::max(-apart, 0.0));
    values[i - 1] = {mean, part};
    values[i] = {mean, -part};
  }
}

template <class T>
void schur_vectors(Matrix<T> a, Matrix<T> z, const Complex* values, Matrix<Complex> vectors) {
  const i64 n = a.rows;
  double largest = 0;
  for (i64 i = 0; i < n * n; ++i) largest = std::max(largest, std::abs(a.data[i]));
  const double smallest = std::max(kEps * largest, std::numeric_limits<double>::min());
  for (i64 k = 0; k < n; ++k) {
    Complex* out = vectors.column(k);
    if (is_block_end(a, k)) {  // the conjugate of the one before
      for (i64 i = 0; i < n; ++i) out[i] = conj(vectors(i, k - 1));
      continue;
    }
    // Of a 2x2 block, both rows belong to each of its eigenvalues.
    const i64 last = k + 1 < n && is_block_end(a, k + 1) ? k + 1 : k;
    Complex* x = vectors.column(n);
    Substitution<T>(a, smallest, x).run(values[k], last);
    std::fill_n(out, n, Complex(0));
    for (i64 j = 0; j <= last; ++j)
      for (i64 i = 0; i < n; ++i) out[i] += z(i, j) * x[j];
    normalise(out, n);
  }
}

template <class T>
Status run_eig(const Task& task) {
  const i64 n = task.size(0, 1);
  const bool with_vectors = task.has_operand(2);
  const Matrix<T> a = task.work.matrix<T>(n, n), z = task.work.matrix<T>(n, n);
  Complex* values = task.work.take<Complex>(n);
  // One column more than vectors, for the substitution.
  Matrix<Complex> vectors = task.work.matrix<Complex>(n, with_vectors ? n + 1 : 0);
  if (!task.work.counts()) {
    load(task, 0, a);
    if (!is_finite(a))
      return error("torch.linalg.eig: input tensor should not contain infs or NaNs.");
  }
  to_hessenberg(a, z, task.work);
  if (task.work.counts()) return Ok{};
  if (!to_schur(a, z))
    return error(
        "linalg.eig: (Batch element {}): The algorithm failed to converge because the "
        "input matrix is ill-conditioned or has too many repeated eigenvalues.",
        task.batch);
  schur_values(a, values);
  store(task, 1, static_cast<const Complex*>(values));
  if (!with_vectors) return Ok{};
  schur_vectors(a, z, values, vectors);
  vectors.cols = n;
  store(task, 2, vectors);
  return Ok{};
}

template void schur_values<double>(Matrix<double>, Complex*);
template void schur_values<Complex>(Matrix<Complex>, Complex*);
COIL_FACTOR_OF_BOTH(run_eig)

}  // namespace coil::runtime::factor
