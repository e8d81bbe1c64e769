// Singular values by one-sided rotations: Hestenes, "Inversion of matrices by biorthogonalization
// and related results" (1958), on the triangle that a QR factorisation leaves, as Drmac and
// Veselic, "New fast and accurate Jacobi SVD algorithm" (2008), do.

#include <algorithm>
#include <utility>

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

constexpr int kMostSweeps = 60;

/// The columns of a matrix while they are made orthogonal, and what is turned with them.
template <class T>
struct Columns {
  Matrix<T> w, v;
  double error;  // of a product of two columns of length 1
  double noise;  // the square of a length that rounding alone may leave

  Columns(Matrix<T> w, Matrix<T> v)
      : w(w), v(v), error(kEps * std::sqrt(static_cast<double>(w.rows))) {
    double squares = 0;
    for (i64 j = 0; j < w.cols; ++j) squares += real(dot(w.column(j), w.column(j), w.rows));
    noise = error * error * squares;
  }
};

/// Turns the columns p and q so that they become orthogonal; false where they are already, or where
/// one is noise: it takes on part of the other's rounding errors whenever they are turned.
template <class T>
bool make_orthogonal(const Columns<T>& columns, i64 p, i64 q) {
  const auto& [w, v, error, noise] = columns;
  const double a = real(dot(w.column(p), w.column(p), w.rows));
  const double b = real(dot(w.column(q), w.column(q), w.rows));
  const T both = dot(w.column(p), w.column(q), w.rows);
  const double size = std::abs(both);
  if (size <= error * std::sqrt(a * b) || std::min(a, b) <= noise) return false;
  const T phase = conj(both / size);
  const double zeta = (b - a) / (2 * size);
  const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(zeta, 1.0));
  const double c = 1 / std::hypot(t, 1.0), s = c * t;
  for (Matrix<T> m : {w, v})
    for (i64 i = 0; i < m.rows; ++i) {
      const T x = m(i, p), y = phase * m(i, q);
      m(i, p) = c * x - s * y;
      m(i, q) = s * x + c * y;
    }
  return true;
}

template <class T>
bool make_all_orthogonal(Matrix<T> w, Matrix<T> v) {
  const Columns<T> columns(w, v);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool turned = false;
    for (i64 p = 0; p < w.cols; ++p)
      for (i64 q = p + 1; q < w.cols; ++q) turned |= make_orthogonal(columns, p, q);
    if (!turned) return true;
  }
  return false;
}

template <class T>
void sort_falling(double* values, Matrix<T> w, Matrix<T> v) {
  for (i64 i = 0; i < w.cols; ++i) {
    const i64 most = std::max_element(values + i, values + w.cols) - values;
    if (most == i) continue;
    std::swap(values[i], values[most]);
    for (Matrix<T> m : {w, v})
      for (i64 r = 0; r < m.rows; ++r) std::swap(m(r, i), m(r, most));
  }
}

/// The largest element as a power of two, by which a matrix is divided: squares neither overflow
/// nor vanish.
template <class T>
double scale_of(Matrix<T> a) {
  double largest = 0;
  for (i64 j = 0; j < a.cols; ++j)
    for (i64 i = 0; i < a.rows; ++i)
      largest = std::max({largest, std::abs(real(a(i, j))), std::abs(imag(a(i, j)))});
  int exponent = 0;
  std::frexp(largest, &exponent);
  return largest == 0 ? 1.0 : std::ldexp(1.0, std::clamp(exponent, -1000, 1000));
}

template <class T>
void conj_transpose(Matrix<T> from, Matrix<T> to) {
  for (i64 j = 0; j < to.cols; ++j)
    for (i64 i = 0; i < to.rows; ++i) to(i, j) = conj(from(j, i));
}

/// The decomposition x = left diag(values) right^H of a matrix with at least as many rows as
/// columns.
template <class T>
struct Tall {
  Matrix<T> x, w, right, left;  // `right` and `left` have no rows where no vectors are wanted
  T *tau, *tau_w;
  double* values;

  Tall(Workspace& work, i64 rows, i64 cols, i64 left_cols)
      : x(work.matrix<T>(rows, cols)),
        w(work.matrix<T>(cols, cols)),
        right(work.matrix<T>(left_cols < 0 ? 0 : cols, cols)),
        left(work.matrix<T>(left_cols < 0 ? 0 : rows, std::max<i64>(left_cols, 0))),
        tau(work.take<T>(cols)),
        tau_w(work.take<T>(cols)),
        values(work.take<double>(cols)) {}

  bool run() {
    const i64 n = x.cols;
    factor_qr(x, tau);
    for (i64 j = 0; j < n; ++j)
      for (i64 i = 0; i < n; ++i) w(i, j) = i <= j ? x(i, j) : T(0);
    set_identity(right);
    if (!make_all_orthogonal(w, right)) return false;
    for (i64 j = 0; j < n; ++j) values[j] = length(w.column(j), n);
    sort_falling(values, w, right);
    if (left.rows > 0) make_left();
    return true;
  }

  /// The columns of w, scaled to length 1; where a value is (nearly) 0 its column says nothing, and
  /// the reflectors that take w apart give one that is orthogonal to all others.
  void make_left() {
    const i64 n = x.cols;
    factor_qr(w, tau_w);
    set_identity(left);
    const Matrix<T> top = {left.data, n, n, left.ld};
    for (i64 j = 0; j < n; ++j)
      if (real(w(j, j)) < 0) top(j, j) = T(-1);
    apply_q(w, static_cast<const T*>(tau_w), n, top);
    apply_q(x, static_cast<const T*>(tau), n, left);
  }
};

}  // namespace

template <class T>
Status run_svd(const Task& task) {
  const i64 m = task.size(0, 1), n = task.size(0, 2);
  const bool with_vectors = task.has_operand(2), is_tall = m >= n;
  i64 left_cols = -1;
  if (with_vectors) left_cols = is_tall ? task.size(2, 2) : task.size(3, 1);
  const Matrix<T> a = task.work.matrix<T>(m, n);
  const Matrix<T> other = task.work.matrix<T>(is_tall ? n : std::max<i64>(left_cols, 0), n);
  Tall<T> tall(task.work, std::max(m, n), std::min(m, n), left_cols);
  if (task.work.counts()) return Ok{};
  if (with_vectors) {
    const i64 k = std::min(m, n), p = task.size(2, 2), q = task.size(3, 1);
    if (p < k || p > m || q < k || q > n || (is_tall ? q != k : p != k))
      return error("{} and {} singular vectors of {} rows and {} columns", p, q, m, n);
  }
  load(task, 0, a);
  if (!is_finite(a))
    return error(
        "linalg.svd: (Batch element {}): The algorithm failed to converge because the "
        "input matrix contained non-finite values.",
        task.batch);
  const double scale = scale_of(a);
  for (i64 i = 0; i < m * n; ++i) a.data[i] /= scale;
  if (is_tall)
    std::copy(a.data, a.data + m * n, tall.x.data);
  else
    conj_transpose(a, tall.x);
  if (!tall.run())
    return error("linalg.svd: (Batch element {}): The algorithm failed to converge", task.batch);
  for (i64 i = 0; i < std::min(m, n); ++i) tall.values[i] *= scale;
  store(task, 1, static_cast<const double*>(tall.values));
  if (!with_vectors) return Ok{};
  store(task, 2, is_tall ? tall.left : tall.right);
  conj_transpose(is_tall ? tall.right : tall.left, other);
  store(task, 3, other);
  return Ok{};
}

COIL_FACTOR_OF_BOTH(run_svd)

}  // namespace coil::runtime::factor
