// Fourier transforms. A task takes a few rows into scratch, where they lie side by side, transforms
// them there and writes the results. The core transforms forwards; backwards is the same with real
// and imaginary parts changed over. A length with a large prime factor is a convolution (Bluestein,
// "A linear filtering approach to the computation of the discrete Fourier transform", 1970), in f64
// whatever the operands are. A real side of even length is a complex one of half the length.

#include "templates/cpu/fft.h"

#include "templates/cpu/fft_core.h"

#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

constexpr i64 kMostRows = 16;
/// Elements of a task's rows: they, and a copy, stay in cache.
constexpr i64 kTaskElements = 16384;

/// What a call comes down to, from sizes alone.
struct Shape {
  i64 batch = 1;
  bool halved = false;  // the real side's elements are taken in pairs
  i64 length = 1;       // of the complex transform
  bool convolved = false;
  i64 core = 1;  // the length that the core transforms: `length`, or that of the convolution
  i64 rows = 1;  // of a task
};

Shape shape_of(const FftArgs& a, int threads) {
  Shape s;
  for (i64 d = 0; d < a.batch_rank; ++d) s.batch *= a.batch_shape[d];
  s.halved = !(a.x_is_complex && a.y_is_complex) && a.n > 0 && a.n % 2 == 0;
  s.length = larger(s.halved ? a.n / 2 : a.n, 1);
  s.convolved = without_radices(s.length) != 1;
  s.core = s.length;
  if (s.convolved)
    for (s.core = 1; s.core < 2 * s.length - 1;) s.core *= 2;
  const i64 share = (s.batch + threads - 1) / threads;
  s.rows = larger(1, smaller(smaller(kMostRows, kTaskElements / s.core), share));
  return s;
}

/// Takes arrays of complex numbers out of memory, one after the other; without memory, counts
/// bytes.
template <class T>
struct Arrays {
  char* memory;
  i64 used = 0;
  Parts<T> take(i64 count) {
    const i64 bytes = round_up(count * i64(sizeof(T)), kCacheLine);
    const i64 start = used;
    used += 2 * bytes;
    if (!memory) return {nullptr, nullptr};
    return {reinterpret_cast<T*>(memory + start), reinterpret_cast<T*>(memory + start + bytes)};
  }
};

/// Tables that all tasks share, and each worker's memory.
template <class T>
struct Memory {
  Parts<T> roots, halves, chirp, filter;
  i64 table_bytes, worker_bytes;
  char* scratch;

  Memory(const Shape& s, void* given) : scratch(static_cast<char*>(given)) {
    Arrays<T> tables{scratch};
    roots = tables.take(s.core);
    halves = tables.take(s.halved ? s.length + 1 : 0);
    chirp = tables.take(s.convolved ? s.length : 0);
    filter = tables.take(s.convolved ? s.core : 0);
    table_bytes = tables.used;
    worker_bytes = 4 * round_up(s.core * s.rows * i64(sizeof(T)), kCacheLine);
  }
  Arrays<T> of_worker(int worker) const { return {scratch + table_bytes + worker * worker_bytes}; }
};

/// A transform of E elements, computed in T.
template <class E, class T>
struct Fft {
  const FftArgs& a;
  const Shape& s;
  const Memory<T>& memory;

  Transform<T> core() const { return {s.core, memory.roots}; }

  void fill_tables() const {
    fill_roots(memory.roots, s.core, s.core);
    if (s.halved) fill_roots(memory.halves, 2 * s.length, s.length + 1);
    if (!s.convolved) return;
    // exp(-pi i j^2 / length), as 2 length-th roots; the square stays below 2 length.
    for (i64 j = 0, square = 0; j < s.length; ++j) {
      const Root root = unit_root(square, 2 * s.length);
      memory.chirp.re[j] = T(root.re);
      memory.chirp.im[j] = T(root.im);
      square = (square + 2 * j + 1) % (2 * s.length);
    }
    fill_filter();
  }
  /// The transform of the chirp's conjugate, which is even, over the convolution's length.
  void fill_filter() const {
    Arrays<T> arrays = memory.of_worker(0);
    const Parts<T> data = arrays.take(s.core * s.rows), other = arrays.take(s.core * s.rows);
    for (i64 j = 0; j < s.core; ++j) data.re[j] = data.im[j] = T(0);
    for (i64 j = 0; j < s.length; ++j) {
      const i64 back = j == 0 ? 0 : s.core - j;
      data.re[j] = data.re[back] = memory.chirp.re[j];
      data.im[j] = data.im[back] = -memory.chirp.im[j];
    }
    const Parts<T> result = transform(core(), 1, data, other);
    for (i64 j = 0; j < s.core; ++j) {
      memory.filter.re[j] = result.re[j] / T(s.core);
      memory.filter.im[j] = result.im[j] / T(s.core);
    }
  }
};

/// One task: `rows` rows from `first`.
template <class E, class T>
struct FftTask {
  const Fft<E, T>& fft;
  const FftArgs& a;
  const Shape& s;
  i64 rows;
  i64 x_at[kMostRows], y_at[kMostRows];
  Parts<T> data, other;

  FftTask(const Fft<E, T>& f, i64 first, int worker) : fft(f), a(f.a), s(f.s) {
    rows = smaller(s.rows, s.batch - first);
    for (i64 r = 0; r < rows; ++r) {
      x_at[r] = y_at[r] = 0;
      i64 rest = first + r;
      for (i64 d = a.batch_rank; d-- > 0; rest /= a.batch_shape[d]) {
        x_at[r] += rest % a.batch_shape[d] * a.x_batch_strides[d];
        y_at[r] += rest % a.batch_shape[d] * a.y_batch_strides[d];
      }
    }
    Arrays<T> arrays = f.memory.of_worker(worker);
    data = arrays.take(s.core * s.rows);
    other = arrays.take(s.core * s.rows);
  }

  T x(i64 row, i64 j, i64 part) const {
    return T(static_cast<const E*>(a.x)[x_at[row] + j * a.x_stride + part * a.x_part_stride]);
  }
  void put(i64 row, i64 k, Pair<T> value) const {
    E* y = static_cast<E*>(a.y) + y_at[row] + k * a.y_stride;
    y[0] = E(value.re * T(a.scale));
    if (a.y_is_complex) y[a.y_part_stride] = E(value.im * T(a.scale));
  }
  /// Element j of a signal of which x is the first half; the exponent's sign is brought to -.
  Pair<T> half_signal(i64 row, i64 j) const {
    const bool is_mirrored = 2 * j > a.n;
    const i64 at = is_mirrored ? a.n - j : j;
    const bool is_real = at == 0 || 2 * at == a.n;
    const T im = is_real ? T(0) : x(row, at, 1);
    return {x(row, at, 0), is_mirrored == a.forward ? -im : im};
  }
  static Pair<T> at(const Parts<T>& p, i64 i) { return {p.re[i], p.im[i]}; }
  static void set(const Parts<T>& p, i64 i, Pair<T> value) {
    p.re[i] = value.re;
    p.im[i] = value.im;
  }

  /// Row `row` of element j, before the complex transform.
  Pair<T> first_form(i64 row, i64 j) const {
    if (!a.x_is_complex && s.halved) return {x(row, 2 * j, 0), x(row, 2 * j + 1, 0)};
    if (!a.x_is_complex) return {x(row, j, 0), T(0)};
    if (!a.y_is_complex && s.halved) {
      // The even and the odd results are transforms of half the length: of the sums of elements
      // half a signal apart, and of their differences times a root.
      const Pair<T> low = half_signal(row, j), high = half_signal(row, j + s.length);
      return add_turned(add(low, high), mul(at(fft.memory.halves, j), sub(low, high)));
    }
    if (!a.y_is_complex) return half_signal(row, j);
    return {x(row, j, a.forward ? 0 : 1), x(row, j, a.forward ? 1 : 0)};
  }
  void read() const {
    for (i64 j = 0; j < s.length; ++j)
      for (i64 r = 0; r < rows; ++r) set(data, j * rows + r, first_form(r, j));
  }

  /// Result k of row `row`, from the complex transform.
  Pair<T> last_form(const Parts<T>& z, i64 row, i64 k) const {
    if (a.x_is_complex) {
      const Pair<T> value = at(z, k * rows + row);
      return a.forward ? value : Pair<T>{value.im, value.re};
    }
    Pair<T> value;
    if (s.halved) {
      // The transform of the even elements is half of low + conj(high), that of the odd ones half
      // of -i (low - conj(high)).
      const bool is_mirrored = k > s.length;
      const i64 j = is_mirrored ? a.n - k : k;
      const Pair<T> low = at(z, j % s.length * rows + row);
      const Pair<T> opposite = at(z, (s.length - j) % s.length * rows + row);
      const Pair<T> high = {opposite.re, -opposite.im};
      const Pair<T> odd = mul(at(fft.memory.halves, j), sub(low, high));
      value = scaled(sub_turned(add(low, high), odd), T(0.5));
      if (is_mirrored) value.im = -value.im;
    } else {
      value = at(z, k * rows + row);
    }
    return a.forward ? value : Pair<T>{value.re, -value.im};
  }
  void write(const Parts<T>& z) const {
    if (!a.y_is_complex && s.halved) {
      for (i64 k = 0; k < s.length; ++k)
        for (i64 r = 0; r < rows; ++r) {
          const Pair<T> both = at(z, k * rows + r);
          put(r, 2 * k, {both.re, T(0)});
          put(r, 2 * k + 1, {both.im, T(0)});
        }
      return;
    }
    for (i64 k = 0; k < a.count; ++k)
      for (i64 r = 0; r < rows; ++r) {
        const Pair<T> value = !a.y_is_complex ? at(z, k * rows + r) : last_form(z, r, k);
        put(r, k, value);
      }
  }

  void multiply(const Parts<T>& z, const Parts<T>& by, i64 count) const {
    for (i64 j = 0; j < count; ++j)
      for (i64 r = 0; r < rows; ++r) {
        const i64 i = j * rows + r;
        set(z, i, mul(at(z, i), at(by, j)));
      }
  }
  /// The complex transform as a convolution with the chirp.
  Parts<T> convolve() const {
    multiply(data, fft.memory.chirp, s.length);
    for (i64 i = s.length * rows; i < s.core * rows; ++i) data.re[i] = data.im[i] = T(0);
    const Parts<T> there = transform(fft.core(), rows, data, other);
    multiply(there, fft.memory.filter, s.core);
    const Parts<T> free = there.re == data.re ? other : data;
    const Parts<T> back = transform(fft.core(), rows, {there.im, there.re}, {free.im, free.re});
    const Parts<T> result = {back.im, back.re};
    multiply(result, fft.memory.chirp, s.length);
    return result;
  }

  void run() const {
    read();
    write(s.convolved ? convolve() : transform(fft.core(), rows, data, other));
  }
};

/// Runs f with the types of elements and of the arithmetic.
template <class F>
void with_types(const FftArgs& args, const Shape& s, F f) {
  if (args.dtype == DType::f64) return f(TypeTag<double>{}, TypeTag<double>{});
  if (args.dtype != DType::f32) fail_unsupported(args.dtype);
  if (s.convolved) return f(TypeTag<float>{}, TypeTag<double>{});
  f(TypeTag<float>{}, TypeTag<float>{});
}

}  // namespace

void fft(const FftArgs& args, runtime::ThreadPool& pool, void* scratch) {
  const Shape s = shape_of(args, pool.threads());
  if (s.batch == 0 || args.count == 0) return;
  with_types(args, s, [&](auto element, auto computed) {
    using E = typename decltype(element)::type;
    using T = typename decltype(computed)::type;
    const Memory<T> memory(s, scratch);
    const Fft<E, T> call{args, s, memory};
    call.fill_tables();
    for_each_task(pool, (s.batch + s.rows - 1) / s.rows,
                  [&](i64 task, int worker) { FftTask<E, T>(call, task * s.rows, worker).run(); });
  });
}

i64 fft_scratch_bytes(const FftArgs& args, int threads) {
  const Shape s = shape_of(args, threads);
  i64 bytes = 0;
  with_types(args, s, [&](auto, auto computed) {
    const Memory<typename decltype(computed)::type> memory(s, nullptr);
    bytes = memory.table_bytes + memory.worker_bytes * threads;
  });
  return bytes;
}

}  // namespace coil::templates::COIL_ISA
