// The Schur form of a Hessenberg matrix by QR steps: Francis, "The QR transformation" (1961, 1962),
// with the deflation and the exceptional shifts of Martin, Peters and Wilkinson, "The QR algorithm
// for real Hessenberg matrices" (1970). Real matrices take both shifts of a conjugate pair at once.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

constexpr int kMostSteps = 90;         // of one eigenvalue
constexpr int kExceptionalEvery = 10;  // steps, where the usual shifts go round in circles

/// The first row of the block that ends at row `last`: what is negligible above it becomes 0.
template <class T>
i64 first_of_block(Matrix<T> a, i64 last) {
  i64 first = last;
  for (; first > 0; --first) {
    const double beside = std::abs(a(first - 1, first - 1)) + std::abs(a(first, first));
    const double scale = beside > 0 ? beside : 1.0;
    if (std::abs(a(first, first - 1)) <= std::max(kEps * scale, std::numeric_limits<double>::min()))
      break;
  }
  if (first > 0) a(first, first - 1) = 0;
  return first;
}

/// What is done to rows and columns of a, and to columns of z.
template <class T>
struct Rotation {
  T x = 1, y = 0;  // (x, y) becomes (r, 0)

  void rows(Matrix<T> a, i64 i, i64 from) const {
    for (i64 j = from; j < a.cols; ++j) {
      const T u = a(i, j), v = a(i + 1, j);
      a(i, j) = conj(x) * u + conj(y) * v;
      a(i + 1, j) = x * v - y * u;
    }
  }
  void columns(Matrix<T> a, i64 j, i64 rows) const {
    for (i64 i = 0; i < rows; ++i) {
      const T u = a(i, j), v = a(i, j + 1);
      a(i, j) = u * x + v * y;
      a(i, j + 1) = v * conj(x) - u * conj(y);
    }
  }
};

template <class T>
Rotation<T> rotation(T x, T y) {
  const double size = std::hypot(std::abs(x), std::abs(y));
  return size == 0 ? Rotation<T>{} : Rotation<T>{x / size, y / size};
}

/// Makes a 2x2 block of two real eigenvalues triangular.
void split_block(Matrix<double> a, Matrix<double> z, i64 first) {
  const i64 last = first + 1;
  const double p = 0.5 * (a(first, first) - a(last, last));
  const double apart = p * p + a(first, last) * a(last, first);
  if (apart < 0) return;
  const Rotation<double> turn = rotation(p + std::copysign(std::sqrt(apart), p), a(last, first));
  turn.rows(a, first, first);
  turn.columns(a, first, last + 1);
  turn.columns(z, first, z.rows);
  a(last, first) = 0;
}

/// The sum and the product of two shifts.
struct Shifts {
  double sum, product;
};

Shifts shifts_of(Matrix<double> a, i64 last, int step) {
  if (step > 0 && step % kExceptionalEvery == 0) {
    const double w = std::abs(a(last, last - 1)) + std::abs(a(last - 1, last - 2));
    return {1.5 * w, w * w};
  }
  const double p = a(last - 1, last - 1), q = a(last, last);
  return {p + q, p * q - a(last, last - 1) * a(last - 1, last)};
}

/// One double step on the rows first..last, at least three: a bulge of two rows runs down the
/// diagonal.
void francis_step(Matrix<double> a, Matrix<double> z, i64 first, i64 last, Shifts s) {
  double v[3] = {a(first, first) * (a(first, first) - s.sum) + s.product +
                     a(first, first + 1) * a(first + 1, first),
                 a(first + 1, first) * (a(first, first) + a(first + 1, first + 1) - s.sum),
                 a(first + 1, first) * a(first + 2, first + 1)};
  for (i64 k = first; k < last; ++k) {
    const i64 size = std::min<i64>(3, last - k + 1);
    if (k > first)
      for (i64 i = 0; i < size; ++i) v[i] = a(k + i, k - 1);
    const double tau = make_reflector(v[0], v + 1, size - 1);
    const i64 from = std::max(k - 1, first);
    Matrix<double> rows = corner(a, k, from), columns = corner(a, 0, k), all = corner(z, 0, k);
    rows.rows = size;
    columns.rows = std::min(k + 3, last) + 1;
    columns.cols = all.cols = size;
    reflect(tau, v + 1, rows);
    if (k > first)
      for (i64 i = 1; i < size; ++i) a(k + i, k - 1) = 0;
    for (const Matrix<double>& m : {columns, all})
      for (i64 i = 0; i < m.rows; ++i) {
        double sum = m(i, 0);
        for (i64 j = 1; j < size; ++j) sum += m(i, j) * v[j];
        m(i, 0) -= tau * sum;
        for (i64 j = 1; j < size; ++j) m(i, j) -= tau * sum * v[j];
      }
  }
}

/// Wilkinson's: the eigenvalue of the last 2x2 block that is nearer to its last element.
Complex shift_of(Matrix<Complex> a, i64 last, int step) {
  if (step > 0 && step % kExceptionalEvery == 0)
    return a(last, last) + std::abs(a(last, last - 1)) * 1.5;
  const Complex p = 0.5 * (a(last - 1, last - 1) - a(last, last));
  const Complex both = a(last - 1, last) * a(last, last - 1);
  Complex root = std::sqrt(p * p + both);
  if (real(conj(p) * root) < 0) root = -root;
  const Complex far = p + root;
  return far == Complex(0) ? a(last, last) : a(last, last) - both / far;
}

void single_step(Matrix<Complex> a, Matrix<Complex> z, i64 first, i64 last, Complex shift) {
  Complex x = a(first, first) - shift, y = a(first + 1, first);
  for (i64 k = first; k < last; ++k) {
    if (k > first) {
      x = a(k, k - 1);
      y = a(k + 1, k - 1);
    }
    const Rotation<Complex> turn = rotation(x, y);
    turn.rows(a, k, std::max(k - 1, first));
    if (k > first) a(k + 1, k - 1) = 0;
    turn.columns(a, k, std::min(k + 2, last) + 1);
    turn.columns(z, k, z.rows);
  }
}

}  // namespace

bool to_schur(Matrix<double> a, Matrix<double> z) {
  int step = 0;
  for (i64 last = a.rows - 1; last > 0;) {
    const i64 first = first_of_block(a, last);
    if (last - first < 2) {
      if (first < last) split_block(a, z, first);
      last = first - 1;
      step = 0;
    } else if (step == kMostSteps) {
      return false;
    } else {
      francis_step(a, z, first, last, shifts_of(a, last, step++));
    }
  }
  return true;
}

bool to_schur(Matrix<Complex> a, Matrix<Complex> z) {
  int step = 0;
  for (i64 last = a.rows - 1; last > 0;) {
    const i64 first = first_of_block(a, last);
    if (first == last) {
      --last;
      step = 0;
    } else if (step == kMostSteps) {
      return false;
    } else {
      single_step(a, z, first, last, shift_of(a, last, step++));
    }
  }
  return true;
}

}  // namespace coil::runtime::factor
