// exp of a matrix: Higham, "The scaling and squaring method for the matrix exponential revisited"
// (2005), always with the approximant of degree 13.

#include <algorithm>

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

constexpr double kTheta = 5.371920351148152;  // the largest norm that degree 13 takes
constexpr double kPade[] = {64764752532480000.,
                            32382376266240000.,
                            7771770303897600.,
                            1187353796428800.,
                            129060195264000.,
                            10559470521600.,
                            670442572800.,
                            33522128640.,
                            1323241920.,
                            40840800.,
                            960960.,
                            16380.,
                            182.,
                            1.};

/// The largest sum of a column.
template <class T>
double norm1(Matrix<T> a) {
  double largest = 0;
  for (i64 j = 0; j < a.cols; ++j) {
    double sum = 0;
    for (i64 i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
    largest = sum > largest || std::isnan(sum) ? sum : largest;
  }
  return largest;
}

template <class T>
struct Exponential {
  Matrix<T> a, a2, a4, a6, odd, even, part;
  i64* pivots;

  Exponential(Workspace& work, i64 n) : pivots(work.take<i64>(n)) {
    for (Matrix<T>* m : {&a, &a2, &a4, &a6, &odd, &even, &part}) *m = work.matrix<T>(n, n);
  }

  /// to = c6 a6 + c4 a4 + c2 a2 + c0
  void combine(Matrix<T> to, double c6, double c4, double c2, double c0) {
    for (i64 i = 0; i < a.rows * a.cols; ++i)
      to.data[i] = c6 * a6.data[i] + c4 * a4.data[i] + c2 * a2.data[i];
    for (i64 i = 0; i < a.rows; ++i) to(i, i) += c0;
  }

  /// a becomes its exponential.
  void run() {
    const i64 n = a.rows;
    int squarings = 0;
    std::frexp(norm1(a) / kTheta, &squarings);
    squarings = std::max(squarings, 0);
    for (i64 i = 0; i < n * n; ++i) a.data[i] *= std::ldexp(1.0, -squarings);
    multiply(a, a, a2);
    multiply(a2, a2, a4);
    multiply(a2, a4, a6);
    const double* b = kPade;
    combine(part, b[13], b[11], b[9], 0);
    multiply(a6, part, even);
    combine(part, b[7], b[5], b[3], b[1]);
    for (i64 i = 0; i < n * n; ++i) part.data[i] += even.data[i];
    multiply(a, part, odd);
    combine(part, b[12], b[10], b[8], 0);
    multiply(a6, part, even);
    combine(part, b[6], b[4], b[2], b[0]);
    for (i64 i = 0; i < n * n; ++i) {
      const T sum = even.data[i] + part.data[i];
      even.data[i] = sum - odd.data[i];
      a.data[i] = sum + odd.data[i];
    }
    factor_lu(even, pivots);
    for (i64 k = 0; k < n; ++k)
      for (i64 j = 0; j < n && pivots[k] != k; ++j) std::swap(a(k, j), a(pivots[k], j));
    solve_triangle(even, {false, true}, a);
    solve_triangle(even, {true, false}, a);
    for (int s = 0; s < squarings; ++s) {
      multiply(a, a, part);
      std::copy(part.data, part.data + n * n, a.data);
    }
  }
};

}  // namespace

template <class T>
void multiply(Matrix<T> a, Matrix<T> b, Matrix<T> c) {
  for (i64 j = 0; j < c.cols; ++j) {
    std::fill_n(c.column(j), c.rows, T(0));
    for (i64 k = 0; k < a.cols; ++k) add_scaled(c.column(j), b(k, j), a.column(k), c.rows);
  }
}
template void multiply<double>(Matrix<double>, Matrix<double>, Matrix<double>);
template void multiply<Complex>(Matrix<Complex>, Matrix<Complex>, Matrix<Complex>);

template <class T>
Status run_matrix_exp(const Task& task) {
  const i64 n = task.size(0, 1);
  Exponential<T> exponential(task.work, n);
  if (task.work.counts()) return Ok{};
  load(task, 0, exponential.a);
  if (is_finite(exponential.a))
    exponential.run();
  else
    std::fill_n(exponential.a.data, n * n, T(std::numeric_limits<double>::quiet_NaN()));
  store(task, 1, exponential.a);
  return Ok{};
}

COIL_FACTOR_OF_BOTH(run_matrix_exp)

}  // namespace coil::runtime::factor
