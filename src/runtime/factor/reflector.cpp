// Householder, "Unitary triangularization of a nonsymmetric matrix" (1958), with the signs and
// scales that LAPACK's larfg chooses, so that factors can be exchanged with it.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {

template <class T>
T make_reflector(T& alpha, T* tail, i64 n) {
  const double below = length(tail, n);
  if (below == 0 && imag(alpha) == 0) return T(0);
  const double whole = std::hypot(std::hypot(real(alpha), imag(alpha)), below);
  const double beta = -std::copysign(whole, real(alpha));
  const T tau = (beta - alpha) / beta;
  const T scale = T(1) / (alpha - beta);
  for (i64 i = 0; i < n; ++i) tail[i] *= scale;
  alpha = beta;
  return tau;
}

template <class T>
void reflect(T tau, const T* tail, Matrix<T> c) {
  if (tau == T(0) || c.rows == 0) return;
  for (i64 j = 0; j < c.cols; ++j) {
    T* x = c.column(j);
    const T sum = tau * (x[0] + dot(tail, x + 1, c.rows - 1));
    x[0] -= sum;
    add_scaled(x + 1, -sum, tail, c.rows - 1);
  }
}

template <class T>
void reflect_right(T tau, const T* tail, Matrix<T> c, T* sums) {
  if (tau == T(0) || c.cols == 0) return;
  for (i64 i = 0; i < c.rows; ++i) sums[i] = c(i, 0);
  for (i64 j = 1; j < c.cols; ++j) add_scaled(sums, tail[j - 1], c.column(j), c.rows);
  add_scaled(c.column(0), -tau, sums, c.rows);
  for (i64 j = 1; j < c.cols; ++j) add_scaled(c.column(j), -tau * conj(tail[j - 1]), sums, c.rows);
}

template <class T>
void factor_qr(Matrix<T> a, T* tau) {
  for (i64 k = 0; k < std::min(a.rows, a.cols); ++k) {
    T* tail = a.column(k) + k + 1;
    tau[k] = make_reflector(a(k, k), tail, a.rows - k - 1);
    reflect(conj(tau[k]), tail, corner(a, k, k + 1));
  }
}

template <class T>
void apply_q(Matrix<T> a, const T* tau, i64 count, Matrix<T> c) {
  for (i64 k = count; k-- > 0;) reflect(tau[k], a.column(k) + k + 1, corner(c, k, 0));
}

template <class T>
void to_hessenberg(Matrix<T> a, Matrix<T> q, Workspace& work) {
  const i64 n = a.rows;
  T* tau = work.take<T>(n);
  T* sums = work.take<T>(n);
  if (work.counts()) return;
  for (i64 k = 0; k + 2 < n; ++k) {
    T* tail = a.column(k) + k + 2;
    tau[k] = make_reflector(a(k + 1, k), tail, n - k - 2);
    reflect(conj(tau[k]), tail, corner(a, k + 1, k + 1));
    reflect_right(tau[k], tail, corner(a, 0, k + 1), sums);
  }
  set_identity(q);
  for (i64 k = n - 2; k-- > 0;) {
    reflect(tau[k], a.column(k) + k + 2, corner(q, k + 1, k + 1));
    for (i64 i = k + 2; i < n; ++i) a(i, k) = 0;
  }
}

template <class T>
Status run_qr(const Task& task) {
  const i64 m = task.size(0, 1), n = task.size(0, 2);
  const Matrix<T> a = task.work.matrix<T>(m, n);
  T* tau = task.work.take<T>(std::min(m, n));
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  factor_qr(a, tau);
  store(task, 1, a);
  store(task, 2, static_cast<const T*>(tau));
  return Ok{};
}

template <class T>
Status run_reflectors(const Task& task) {
  const i64 m = task.size(0, 1), n = task.size(0, 2), count = task.size(1, 1);
  const Matrix<T> a = task.work.matrix<T>(m, n), q = task.work.matrix<T>(m, task.size(2, 2));
  T* tau = task.work.take<T>(count);
  if (task.work.counts()) return Ok{};
  if (count > std::min(m, n))
    return error("{} reflectors in a matrix of {} rows and {} columns", count, m, n);
  load(task, 0, a);
  load(task, 1, tau);
  set_identity(q);
  apply_q(a, static_cast<const T*>(tau), count, q);
  store(task, 2, q);
  return Ok{};
}

#define COIL_REFLECTORS_OF(T)                                    \
  template T make_reflector<T>(T&, T*, i64);                     \
  template void reflect<T>(T, const T*, Matrix<T>);              \
  template void reflect_right<T>(T, const T*, Matrix<T>, T*);    \
  template void factor_qr<T>(Matrix<T>, T*);                     \
  template void apply_q<T>(Matrix<T>, const T*, i64, Matrix<T>); \
  template void to_hessenberg<T>(Matrix<T>, Matrix<T>, Workspace&);
COIL_REFLECTORS_OF(double)
COIL_REFLECTORS_OF(Complex)
#undef COIL_REFLECTORS_OF
COIL_FACTOR_OF_BOTH(run_qr)
COIL_FACTOR_OF_BOTH(run_reflectors)

}  // namespace coil::runtime::factor
