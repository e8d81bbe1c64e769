// Cholesky's and Gauss's factorisations and the solution of triangular systems, by columns: Golub
// and Van Loan, "Matrix Computations", 4th edition, 3.1, 3.4 and 4.2.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {

template <class T>
void solve_triangle(Matrix<T> a, Triangle which, Matrix<T> x) {
  const i64 n = a.rows;
  for (i64 j = 0; j < x.cols; ++j) {
    T* b = x.column(j);
    for (i64 s = 0; s < n; ++s) {
      const i64 k = which.upper ? n - 1 - s : s;
      if (!which.unit) b[k] /= a(k, k);
      if (which.upper)
        add_scaled(b, -b[k], a.column(k), k);
      else
        add_scaled(b + k + 1, -b[k], a.column(k) + k + 1, n - k - 1);
    }
  }
}

template <class T>
i64 factor_lu(Matrix<T> a, i64* pivots) {
  i64 info = 0;
  for (i64 k = 0; k < std::min(a.rows, a.cols); ++k) {
    i64 at = k;
    for (i64 i = k + 1; i < a.rows; ++i)
      if (size_of_pivot(a(i, k)) > size_of_pivot(a(at, k))) at = i;
    pivots[k] = at;
    if (at != k)
      for (i64 j = 0; j < a.cols; ++j) std::swap(a(k, j), a(at, j));
    if (a(k, k) == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (i64 i = k + 1; i < a.rows; ++i) a(i, k) /= a(k, k);
    for (i64 j = k + 1; j < a.cols; ++j)
      add_scaled(a.column(j) + k + 1, -a(k, j), a.column(k) + k + 1, a.rows - k - 1);
  }
  return info;
}

template <class T>
Status run_triangular(const Task& task) {
  const i64 n = task.size(0, 1);
  const Matrix<T> a = task.work.matrix<T>(n, n), x = task.work.matrix<T>(n, task.size(1, 2));
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  load(task, 1, x);
  solve_triangle(a, {task.has(kFactorUpper), task.has(kFactorUnit)}, x);
  store(task, 2, x);
  return Ok{};
}

template <class T>
Status run_cholesky(const Task& task) {
  const i64 n = task.size(0, 1);
  const Matrix<T> a = task.work.matrix<T>(n, n);
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  i64 info = 0;
  for (i64 j = 0; j < n && info == 0; ++j) {
    T* column = a.column(j);
    for (i64 k = 0; k < j; ++k) add_scaled(column + j, -conj(a(j, k)), a.column(k) + j, n - j);
    const double pivot = real(column[j]);
    column[j] = pivot;
    if (!(pivot > 0)) {
      info = j + 1;
      continue;
    }
    const double root = std::sqrt(pivot);
    column[j] = root;
    for (i64 i = j + 1; i < n; ++i) column[i] /= root;
  }
  for (i64 j = 1; j < n; ++j)
    for (i64 i = 0; i < j; ++i) a(i, j) = 0;
  store(task, 1, a);
  store_info(task, 2, info);
  return Ok{};
}

template <class T>
Status run_lu(const Task& task) {
  const i64 m = task.size(0, 1), n = task.size(0, 2);
  const Matrix<T> a = task.work.matrix<T>(m, n);
  i64* pivots = task.work.take<i64>(std::min(m, n));
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  const i64 info = factor_lu(a, pivots);
  for (i64 k = 0; k < std::min(m, n); ++k) ++pivots[k];
  store(task, 1, a);
  store_ints(task, 2, pivots);
  store_info(task, 3, info);
  return Ok{};
}

/// A = P^T L U: solves with A by swaps, L and U; with A^T by U^T, L^T and the swaps backwards.
template <class T>
Status run_lu_solve(const Task& task) {
  const i64 n = task.size(0, 1);
  const bool transposed = task.has(kFactorTransposed), conjugated = task.has(kFactorConjugated);
  const Matrix<T> a = task.work.matrix<T>(n, n), x = task.work.matrix<T>(n, task.size(2, 2));
  i64* pivots = task.work.take<i64>(n);
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  load_ints(task, 1, pivots);
  load(task, 2, x);
  for (i64 k = 0; k < n; ++k)
    if (pivots[k] < 1 || pivots[k] > n)
      return error("pivot {} is {}, expected 1 to {}", k, pivots[k], n);
  for (i64 j = 0; j < n && transposed; ++j)
    for (i64 i = 0; i < j; ++i) std::swap(a(i, j), a(j, i));
  for (i64 i = 0; i < n * n && conjugated; ++i) a.data[i] = conj(a.data[i]);
  const auto swap_rows = [&](i64 k) {
    for (i64 j = 0; j < x.cols; ++j) std::swap(x(k, j), x(pivots[k] - 1, j));
  };
  for (i64 k = 0; k < n && !transposed; ++k) swap_rows(k);
  solve_triangle(a, {false, !transposed}, x);
  solve_triangle(a, {true, transposed}, x);
  for (i64 k = n; k-- > 0 && transposed;) swap_rows(k);
  store(task, 3, x);
  return Ok{};
}

template <class T>
Status run_permutation(const Task& task) {
  const i64 swaps = task.size(0, 1), n = task.size(1, 1);
  i64* pivots = task.work.take<i64>(swaps);
  i64* order = task.work.take<i64>(n);
  if (task.work.counts()) return Ok{};
  load_ints(task, 0, pivots);
  for (i64 i = 0; i < n; ++i) order[i] = i;
  for (i64 k = 0; k < swaps; ++k) {
    if (k >= n || pivots[k] < 1 || pivots[k] > n)
      return error("pivot {} is {}, expected 1 to {}", k, pivots[k], n);
    std::swap(order[k], order[pivots[k] - 1]);
  }
  store_ints(task, 1, order);
  return Ok{};
}

#define COIL_TRIANGLES_OF(T)                                       \
  template void solve_triangle<T>(Matrix<T>, Triangle, Matrix<T>); \
  template i64 factor_lu<T>(Matrix<T>, i64*);
COIL_TRIANGLES_OF(double)
COIL_TRIANGLES_OF(Complex)
#undef COIL_TRIANGLES_OF
COIL_FACTOR_OF_BOTH(run_triangular)
COIL_FACTOR_OF_BOTH(run_cholesky)
COIL_FACTOR_OF_BOTH(run_lu)
COIL_FACTOR_OF_BOTH(run_permutation)
COIL_FACTOR_OF_BOTH(run_lu_solve)

}  // namespace coil::runtime::factor
