// Eigenvalues of a Hermitian matrix: reflectors make it tridiagonal and real (Householder; Martin,
// Reinsch and Wilkinson, "Householder's tridiagonalization of a symmetric matrix", 1968), then QL
// steps with implicit shifts make it diagonal (Dubrulle, Martin and Wilkinson, "The implicit QL
// algorithm", 1968).

#include <algorithm>

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

constexpr int kMostSteps = 60;  // of one eigenvalue

/// The tridiagonal form of a Hermitian matrix.
struct Tridiagonal {
  double* diagonal;
  double* beside;  // one less, then room for one
};

/// a = Q T Q^H of its lower triangle; the reflectors of Q stay below the subdiagonal of a.
template <class T>
void to_tridiagonal(Matrix<T> a, T* tau, T* product, Tridiagonal t) {
  const i64 n = a.rows;
  for (i64 j = 0; j < n; ++j) {
    a(j, j) = real(a(j, j));
    for (i64 i = 0; i < j; ++i) a(i, j) = conj(a(j, i));
  }
  for (i64 k = 0; k + 1 < n; ++k) {
    const i64 size = n - k - 1;
    T* v = a.column(k) + k + 1;
    tau[k] = make_reflector(v[0], v + 1, size - 1);
    t.beside[k] = real(v[0]);
    if (tau[k] == T(0)) continue;
    // A - v w^H - w v^H with w = tau A v - (tau / 2) (tau A v)^H v v
    v[0] = 1;
    const Matrix<T> rest = corner(a, k + 1, k + 1);
    for (i64 j = 0; j < size; ++j) product[j] = tau[k] * dot(rest.column(j), v, size);
    add_scaled(product, -0.5 * tau[k] * dot(product, v, size), v, size);
    for (i64 j = 0; j < size; ++j) {
      add_scaled(rest.column(j), -conj(product[j]), v, size);
      add_scaled(rest.column(j), -conj(v[j]), product, size);
      rest(j, j) = real(rest(j, j));
    }
  }
  for (i64 k = 0; k < n; ++k) t.diagonal[k] = real(a(k, k));
}

/// Turns the columns i and i + 1 against each other.
template <class T>
void rotate_columns(Matrix<T> z, i64 i, double c, double s) {
  T* x = z.column(i);
  T* y = z.column(i + 1);
  for (i64 r = 0; r < z.rows; ++r) {
    const T old = y[r];
    y[r] = s * x[r] + c * old;
    x[r] = c * x[r] - s * old;
  }
}

/// One QL step on the rows first..last; columns of z are turned with it.
template <class T>
void ql_step(Tridiagonal t, i64 first, i64 last, Matrix<T> z) {
  double* d = t.diagonal;
  double* e = t.beside;
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  g = d[last] - d[first] + e[first] / (g + std::copysign(std::hypot(g, 1.0), g));
  double s = 1, c = 1, p = 0;
  for (i64 i = last - 1; i >= first; --i) {
    const double f = s * e[i], b = c * e[i];
    double r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // the rest splits off here
      d[i + 1] -= p;
      e[last] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    rotate_columns(z, i, c, s);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

/// The eigenvalues, in the diagonal; z (without rows where no vectors are wanted) is turned with
/// it.
template <class T>
bool to_diagonal(Tridiagonal t, i64 n, Matrix<T> z) {
  if (n > 0) t.beside[n - 1] = 0;
  for (i64 first = 0; first < n; ++first)
    for (int step = 0;; ++step) {
      i64 last = first;
      while (last + 1 < n && std::abs(t.beside[last]) > kEps * (std::abs(t.diagonal[last]) +
                                                                std::abs(t.diagonal[last + 1])))
        ++last;
      if (last == first) break;
      if (step == kMostSteps) return false;
      ql_step(t, first, last, z);
    }
  return true;
}

/// By selection: each column is moved once.
template <class T>
void sort_rising(double* values, i64 n, Matrix<T> z) {
  for (i64 i = 0; i < n; ++i) {
    const i64 least = std::min_element(values + i, values + n) - values;
    if (least == i) continue;
    std::swap(values[i], values[least]);
    for (i64 r = 0; r < z.rows; ++r) std::swap(z(r, i), z(r, least));
  }
}

}  // namespace

template <class T>
Status run_eigh(const Task& task) {
  const i64 n = task.size(0, 1);
  const bool with_vectors = task.has_operand(2);
  const Matrix<T> a = task.work.matrix<T>(n, n);
  const Matrix<T> z = task.work.matrix<T>(with_vectors ? n : 0, n);
  T* tau = task.work.take<T>(n);
  T* product = task.work.take<T>(n);
  const Tridiagonal t = {task.work.take<double>(n), task.work.take<double>(n)};
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  for (i64 j = 0; j < n; ++j)
    for (i64 i = 0; i < j; ++i) {
      if (task.has(kFactorUpper)) a(j, i) = conj(a(i, j));
      a(i, j) = 0;
    }
  if (!is_finite(a)) {  // eager's LAPACK says nothing of it either
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(t.diagonal, n, nan);
    std::fill_n(z.data, z.rows * z.cols, T(nan));
    store(task, 1, static_cast<const double*>(t.diagonal));
    if (with_vectors) store(task, 2, z);
    return Ok{};
  }
  to_tridiagonal(a, tau, product, t);
  if (with_vectors) {
    set_identity(z);
    for (i64 k = n - 1; k-- > 0;) reflect(tau[k], a.column(k) + k + 2, corner(z, k + 1, k + 1));
  }
  if (!to_diagonal(t, n, z))
    return error(
        "linalg.eigh: (Batch element {}): The algorithm failed to converge because the "
        "input matrix is ill-conditioned or has too many repeated eigenvalues.",
        task.batch);
  sort_rising(t.diagonal, n, z);
  store(task, 1, static_cast<const double*>(t.diagonal));
  if (with_vectors) store(task, 2, z);
  return Ok{};
}

COIL_FACTOR_OF_BOTH(run_eigh)

}  // namespace coil::runtime::factor
