#pragma once
// Complex transforms of rows that lie side by side in scratch: Stockham's self-sorting form of the
// algorithm of Cooley and Tukey (1965), as in Van Loan, "Computational Frameworks for the Fast
// Fourier Transform" (1992), section 1.7. Real and imaginary parts are apart and element j of row r
// is at j * rows + r, so each stage is long runs of equal work. Included by fft.isa.cpp only.

#include "templates/cpu/isa.h"

namespace coil::templates::COIL_ISA {

// ---- roots of unity ----

struct Root {
  double re, im;
};

/// exp(-2 pi i k / n) for 0 <= k < n, to the last bit or two: the angle is brought into an eighth
/// of the circle as a fraction of integers.
inline Root unit_root(i64 k, i64 n) {
  constexpr double quarter_circle = 1.5707963267948966;
  const i64 quarter = 4 * k / n, rest = 4 * k % n;
  const bool mirrored = 2 * rest > n;
  const double angle = quarter_circle * double(mirrored ? n - rest : rest) / double(n);
  const double c = __builtin_cos(angle), s = __builtin_sin(angle);
  const double x = mirrored ? s : c, y = mirrored ? c : s;
  if (quarter == 0) return {x, -y};
  if (quarter == 1) return {-y, -x};
  return quarter == 2 ? Root{-x, y} : Root{y, x};
}

/// Complex numbers, real parts apart from imaginary ones.
template <class T>
struct Parts {
  T *re, *im;
};

/// The first `count` n-th roots, in order; symmetries stand for most of the sines.
template <class T>
void fill_roots(Parts<T> w, i64 n, i64 count) {
  const i64 computed = n % 4 == 0 ? n / 8 : n / 2;
  for (i64 k = 0; k < count; ++k) {
    if (k <= computed) {
      const Root root = unit_root(k, n);
      w.re[k] = T(root.re);
      w.im[k] = T(root.im);
    } else if (n % 4 != 0) {
      w.re[k] = w.re[n - k];
      w.im[k] = -w.im[n - k];
    } else if (4 * k <= n) {
      w.re[k] = -w.im[n / 4 - k];
      w.im[k] = -w.re[n / 4 - k];
    } else {
      w.re[k] = w.im[k - n / 4];
      w.im[k] = -w.re[k - n / 4];
    }
  }
}

// ---- stages ----

constexpr i64 kRadices[] = {4, 2, 3, 5, 7, 11, 13};

/// What is left of n without the factors that have a stage; 1 where all have.
inline i64 without_radices(i64 n) {
  for (const i64 p : kRadices)
    while (n % p == 0) n /= p;
  return n;
}

template <class V>
struct Pair {
  V re, im;
};
template <class V>
COIL_INLINE Pair<V> add(Pair<V> a, Pair<V> b) {
  return {kernel::add(a.re, b.re), kernel::add(a.im, b.im)};
}
template <class V>
COIL_INLINE Pair<V> sub(Pair<V> a, Pair<V> b) {
  return {kernel::sub(a.re, b.re), kernel::sub(a.im, b.im)};
}
template <class V>
COIL_INLINE Pair<V> scaled(Pair<V> a, kernel::elem<V> by) {
  const V factor = kernel::like<V>(by);
  return {kernel::mul(a.re, factor), kernel::mul(a.im, factor)};
}
/// a + i b and a - i b.
template <class V>
COIL_INLINE Pair<V> add_turned(Pair<V> a, Pair<V> b) {
  return {kernel::sub(a.re, b.im), kernel::add(a.im, b.re)};
}
template <class V>
COIL_INLINE Pair<V> sub_turned(Pair<V> a, Pair<V> b) {
  return {kernel::add(a.re, b.im), kernel::sub(a.im, b.re)};
}
template <class V>
COIL_INLINE Pair<V> mul(Pair<V> a, Pair<V> b) {
  return {kernel::sub(kernel::mul(a.re, b.re), kernel::mul(a.im, b.im)),
          kernel::add(kernel::mul(a.re, b.im), kernel::mul(a.im, b.re))};
}

/// The transform of P elements in place; `roots` are the P-th roots of unity.
template <int P, class V>
COIL_INLINE void butterfly(Pair<V>* a, const Pair<kernel::elem<V>>* roots) {
  if constexpr (P == 2) {
    const Pair<V> sum = add(a[0], a[1]);
    a[1] = sub(a[0], a[1]);
    a[0] = sum;
  } else if constexpr (P == 4) {
    const Pair<V> s0 = add(a[0], a[2]), d0 = sub(a[0], a[2]);
    const Pair<V> s1 = add(a[1], a[3]), d1 = sub(a[1], a[3]);
    a[0] = add(s0, s1);
    a[1] = sub_turned(d0, d1);
    a[2] = sub(s0, s1);
    a[3] = add_turned(d0, d1);
  } else {
    constexpr int half = P / 2;
    Pair<V> sums[half + 1], differences[half + 1];
    for (int j = 1; j <= half; ++j) {
      sums[j] = add(a[j], a[P - j]);
      differences[j] = sub(a[j], a[P - j]);
    }
    const Pair<V> first = a[0];
    for (int j = 1; j <= half; ++j) a[0] = add(a[0], sums[j]);
    for (int t = 1; t <= half; ++t) {
      Pair<V> even = first;
      Pair<V> odd = scaled(differences[1], roots[t].im);
      for (int j = 1; j <= half; ++j) even = add(even, scaled(sums[j], roots[j * t % P].re));
      for (int j = 2; j <= half; ++j) odd = add(odd, scaled(differences[j], roots[j * t % P].im));
      a[t] = add_turned(even, odd);
      a[P - t] = sub_turned(even, odd);
    }
  }
}

/// Where a group of P elements comes from and goes to, `from_step` and `to_step` apart.
template <class T>
struct Run {
  Parts<T> from, to;
  i64 from_step, to_step, length;
};

/// `length` transforms of P elements that lie side by side, the results times the twiddles.
template <int P, bool kTwiddles, class T>
void run_butterflies(const Run<T>& run, const Pair<T>* roots, const Pair<T>* twiddles) {
  const auto at = [&](auto tag, i64 k) {
    using V = typename decltype(tag)::type;
    Pair<V> a[P];
    for (int j = 0; j < P; ++j)
      a[j] = {kernel::load_from<V>(run.from.re + j * run.from_step + k),
              kernel::load_from<V>(run.from.im + j * run.from_step + k)};
    butterfly<P>(a, roots);
    for (int t = 0; t < P; ++t) {
      if (kTwiddles && t > 0)
        a[t] = mul(a[t], Pair<V>{kernel::like<V>(twiddles[t].re), kernel::like<V>(twiddles[t].im)});
      kernel::store_lanes(a[t].re, run.to.re + t * run.to_step + k);
      kernel::store_lanes(a[t].im, run.to.im + t * run.to_step + k);
    }
  };
  constexpr int kLanes = kernel::kRegisterBytes / int(sizeof(T));
  i64 k = 0;
  for (; k + kLanes <= run.length; k += kLanes) at(TypeTag<kernel::vec<T, kLanes>>{}, k);
  for (; k < run.length; ++k) at(TypeTag<T>{}, k);
}

/// A complex transform of `n` elements and the n-th roots of unity that it needs.
template <class T>
struct Transform {
  i64 n;
  Parts<T> roots;
};

/// One stage: transforms of length `length` become P times as many of length / P. `rows` is what
/// lies side by side: rows of the batch times transforms that earlier stages made.
template <int P, class T>
void run_stage(const Transform<T>& t, i64 length, i64 rows, Parts<T> from, Parts<T> to) {
  const i64 rest = length / P, step = t.n / length;
  Pair<T> roots[P], twiddles[P];
  for (int j = 0; j < P; ++j) roots[j] = {t.roots.re[j * (t.n / P)], t.roots.im[j * (t.n / P)]};
  for (i64 q = 0; q < rest; ++q) {
    const Run<T> run = {{from.re + rows * q, from.im + rows * q},
                        {to.re + rows * P * q, to.im + rows * P * q},
                        rows * rest,
                        rows,
                        rows};
    if (q == 0) {
      run_butterflies<P, false>(run, roots, twiddles);
      continue;
    }
    for (int j = 1; j < P; ++j) twiddles[j] = {t.roots.re[q * j * step], t.roots.im[q * j * step]};
    run_butterflies<P, true>(run, roots, twiddles);
  }
}

template <int P>
struct Radix {};

/// Transforms `rows` rows from `data`; the result is in `data` or in `other`, whichever is
/// returned. t.n has no factors but those of kRadices.
template <class T>
Parts<T> transform(const Transform<T>& t, i64 rows, Parts<T> data, Parts<T> other) {
  i64 length = t.n;
  const auto stages = [&]<int P>(Radix<P>) {
    while (length % P == 0) {
      run_stage<P>(t, length, rows, data, other);
      length /= P;
      rows *= P;
      const Parts<T> swap = data;
      data = other;
      other = swap;
    }
  };
  stages(Radix<4>{});
  stages(Radix<2>{});
  stages(Radix<3>{});
  stages(Radix<5>{});
  stages(Radix<7>{});
  stages(Radix<11>{});
  stages(Radix<13>{});
  return data;
}

}  // namespace coil::templates::COIL_ISA
