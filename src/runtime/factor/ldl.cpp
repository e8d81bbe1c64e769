// A = L D L^T or L D L^H with blocks of one and two rows in D: Bunch and Kaufman, "Some stable
// methods for calculating inertia and solving symmetric linear systems" (1977). Factors and pivots
// are stored as LAPACK's sytrf and hetrf do for a lower triangle: a positive pivot p of row k swaps
// it with row p; two equal negative ones swap the second row of a block.

#include "runtime/factor/matrix.h"

namespace coil::runtime::factor {
namespace {

const double kGrowth = (1 + std::sqrt(17.0)) / 8;

enum class Across : u8 { Same, Conjugate };
Across across_of(const Task& task) {
  return task.has(kFactorHermitian) ? Across::Conjugate : Across::Same;
}

/// The element across the diagonal.
template <class T>
T across(T x, Across how) {
  return how == Across::Conjugate ? conj(x) : x;
}
/// A diagonal element, which is real in a Hermitian matrix.
template <class T>
T on_diagonal(T x, Across how) {
  return how == Across::Conjugate ? T(real(x)) : x;
}

template <class T>
class Factoring {
 public:
  Factoring(Matrix<T> a, i64* pivots, Across how) : a_(a), pivots_(pivots), how_(how) {}

  /// The 1-based position of the first block that is zero, or 0.
  i64 run() {
    i64 info = 0;
    for (i64 k = 0; k < a_.rows;) {
      const Choice choice = choose(k);
      if (choice.is_zero) {
        if (info == 0) info = k + 1;
        a_(k, k) = diagonal(k);
      } else {
        swap(k, choice);
        if (choice.size == 1)
          eliminate_one(k);
        else
          eliminate_two(k);
      }
      for (i64 s = 0; s < choice.size; ++s)
        pivots_[k + s] = choice.size == 1 ? choice.row + 1 : -(choice.row + 1);
      k += choice.size;
    }
    return info;
  }

 private:
  struct Choice {
    i64 row = 0, size = 1;
    bool is_zero = false;
  };

  T diagonal(i64 k) const { return on_diagonal(a_(k, k), how_); }

  Choice choose(i64 k) const {
    const i64 n = a_.rows;
    const double here = size_of_pivot(diagonal(k));
    i64 row = k;
    double largest = 0;
    for (i64 i = k + 1; i < n; ++i)
      if (size_of_pivot(a_(i, k)) > largest) largest = size_of_pivot(a_(row = i, k));
    if (std::max(here, largest) == 0 || std::isnan(here)) return {k, 1, true};
    if (here >= kGrowth * largest) return {k, 1, false};
    double in_row = 0;
    for (i64 j = k; j < row; ++j) in_row = std::max(in_row, size_of_pivot(a_(row, j)));
    for (i64 i = row + 1; i < n; ++i) in_row = std::max(in_row, size_of_pivot(a_(i, row)));
    if (here >= kGrowth * largest * (largest / in_row)) return {k, 1, false};
    if (size_of_pivot(diagonal(row)) >= kGrowth * in_row) return {row, 1, false};
    return {row, 2, false};
  }

  void swap(i64 k, const Choice& choice) {
    const i64 from = k + choice.size - 1, to = choice.row;
    if (from != to) {
      for (i64 i = to + 1; i < a_.rows; ++i) std::swap(a_(i, from), a_(i, to));
      for (i64 j = from + 1; j < to; ++j) {
        const T below = across(a_(j, from), how_);
        a_(j, from) = across(a_(to, j), how_);
        a_(to, j) = below;
      }
      a_(to, from) = across(a_(to, from), how_);
      std::swap(a_(from, from), a_(to, to));
      if (choice.size == 2) std::swap(a_(k + 1, k), a_(to, k));
    }
    for (i64 i : {k, from, to}) a_(i, i) = diagonal(i);
  }

  void eliminate_one(i64 k) {
    const T inverse = T(1) / a_(k, k);
    for (i64 j = k + 1; j < a_.rows; ++j) {
      const T factor = inverse * across(a_(j, k), how_);
      add_scaled(a_.column(j) + j, -factor, a_.column(k) + j, a_.rows - j);
      a_(j, j) = diagonal(j);
    }
    for (i64 i = k + 1; i < a_.rows; ++i) a_(i, k) *= inverse;
  }

  /// The columns below the block times its inverse; the rest less what these two explain.
  void eliminate_two(i64 k) {
    const T d11 = a_(k, k), d21 = a_(k + 1, k), d22 = a_(k + 1, k + 1);
    // Scaled by d21, by which the block is large.
    const T first = d11 / across(d21, how_), second = d22 / d21;
    const T scale = first * second - T(1);
    for (i64 j = k + 2; j < a_.rows; ++j) {
      const T x = a_(j, k), y = a_(j, k + 1);
      const T u = (second * x - y) / (scale * across(d21, how_));
      const T v = (first * y - x) / (scale * d21);
      for (i64 i = j; i < a_.rows; ++i)
        a_(i, j) -= a_(i, k) * across(u, how_) + a_(i, k + 1) * across(v, how_);
      a_(j, k) = u;
      a_(j, k + 1) = v;
      a_(j, j) = diagonal(j);
    }
  }

  Matrix<T> a_;
  i64* pivots_;
  Across how_;
};

/// The solution of a factored system.
template <class T>
struct Solving {
  Matrix<T> a;
  const i64* pivots;
  Across how;
  Matrix<T> x;

  void swap_rows(i64 i, i64 j) const {
    for (i64 c = 0; c < x.cols && i != j; ++c) std::swap(x(i, c), x(j, c));
  }
  i64 row(i64 k) const { return std::abs(pivots[k]) - 1; }
  i64 block(i64 k) const { return pivots[k] < 0 ? 2 : 1; }

  void forward() const {
    for (i64 k = 0, size = 1; k < a.rows; k += size) {
      size = block(k);
      swap_rows(k + size - 1, row(k));
      for (i64 c = 0; c < x.cols; ++c)
        for (i64 s = 0; s < size; ++s)
          add_scaled(x.column(c) + k + size, -x(k + s, c), a.column(k + s) + k + size,
                     a.rows - k - size);
      size == 1 ? divide_one(k) : divide_two(k);
    }
  }
  void divide_one(i64 k) const {
    for (i64 c = 0; c < x.cols; ++c) x(k, c) /= on_diagonal(a(k, k), how);
  }
  void divide_two(i64 k) const {
    const T low = a(k + 1, k), high = across(low, how);
    const T first = on_diagonal(a(k, k), how) / high;
    const T second = on_diagonal(a(k + 1, k + 1), how) / low;
    const T scale = first * second - T(1);
    for (i64 c = 0; c < x.cols; ++c) {
      const T u = x(k, c) / high, v = x(k + 1, c) / low;
      x(k, c) = (second * u - v) / scale;
      x(k + 1, c) = (first * v - u) / scale;
    }
  }
  void backward() const {
    for (i64 end = a.rows; end > 0;) {
      const i64 size = block(end - 1), k = end - size;
      for (i64 c = 0; c < x.cols; ++c)
        for (i64 s = 0; s < size; ++s)
          for (i64 i = end; i < a.rows; ++i) x(k + s, c) -= across(a(i, k + s), how) * x(i, c);
      swap_rows(end - 1, row(k));
      end = k;
    }
  }
};

/// Whether pivots are ones that a factorisation gives.
Status check_pivots(const i64* pivots, i64 n) {
  for (i64 k = 0; k < n; ++k) {
    const i64 row = std::abs(pivots[k]);
    const bool is_pair = pivots[k] < 0;
    if (row < 1 || row > n || (is_pair && (k + 1 >= n || pivots[k + 1] != pivots[k])))
      return error("pivot {} is {} in a matrix of {} rows", k, pivots[k], n);
    if (is_pair) ++k;
  }
  return Ok{};
}

}  // namespace

template <class T>
Status run_ldl(const Task& task) {
  const i64 n = task.size(0, 1);
  const Matrix<T> a = task.work.matrix<T>(n, n);
  i64* pivots = task.work.take<i64>(n);
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  for (i64 j = 1; j < n; ++j)
    for (i64 i = 0; i < j; ++i) a(i, j) = 0;
  const i64 info = Factoring<T>(a, pivots, across_of(task)).run();
  store(task, 1, a);
  store_ints(task, 2, pivots);
  store_info(task, 3, info);
  return Ok{};
}

template <class T>
Status run_ldl_solve(const Task& task) {
  const i64 n = task.size(0, 1);
  const Matrix<T> a = task.work.matrix<T>(n, n), x = task.work.matrix<T>(n, task.size(2, 2));
  i64* pivots = task.work.take<i64>(n);
  if (task.work.counts()) return Ok{};
  load(task, 0, a);
  load_ints(task, 1, pivots);
  load(task, 2, x);
  COIL_TRY(check_pivots(pivots, n));
  const Solving<T> solving{a, pivots, across_of(task), x};
  solving.forward();
  solving.backward();
  store(task, 3, x);
  return Ok{};
}

COIL_FACTOR_OF_BOTH(run_ldl)
COIL_FACTOR_OF_BOTH(run_ldl_solve)

}  // namespace coil::runtime::factor
