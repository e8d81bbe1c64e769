// The transforms of torch.fft in terms of _fft_c2c, _fft_r2c and _fft_c2r.

#include <algorithm>

#include "passes/composite.h"

namespace coil {
namespace {

/// How results are scaled, as the core ops number it.
i64 scale_number(Composite& c, bool forward) {
  const std::string norm = c.has("norm") ? c.word("norm") : "backward";
  if (norm == "ortho") return 1;
  if (norm != "backward" && norm != "forward") c.fail("there is no norm '{}'", norm);
  return (norm == "forward") == forward ? 2 : 0;
}

/// The dims of a transform in order, and how long it is along each.
struct Extent {
  Dims dims;
  Exprs sizes;
};

void check_sizes(Composite& c, const Exprs& sizes) {
  for (sym::Expr size : sizes)
    if (const auto n = c.syms.as_const(size); n && *n < 1)
      c.fail("invalid number of data points ({}) specified", *n);
}

/// Of a transform over one dim with arguments n and dim.
Extent one_dim(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  if (c.ndim(c.self()) == 0) c.fail("a tensor without dims has no transform");
  return {{dim}, {c.has("n") ? c.integer("n") : c.size(c.self(), dim)}};
}

/// Of a transform over several, with arguments s and dim.
Extent all_dims(Composite& c) {
  const i64 ndim = c.ndim(c.self());
  const Exprs sizes = c.integers("s");
  const i64 given = static_cast<i64>(sizes.size());
  Extent extent;
  if (c.has("dim")) {
    for (i64 d : c.all_fixed("dim")) extent.dims.push_back(c.wrap(d, ndim));
    if (c.has("s") && sizes.size() != extent.dims.size()) c.fail("s and dim differ in length");
  } else {
    if (given > ndim) c.fail("{} sizes for {} dims", given, ndim);
    for (i64 d = c.has("s") ? ndim - given : 0; d < ndim; ++d) extent.dims.push_back(d);
  }
  for (std::size_t i = 0; i < extent.dims.size(); ++i) {
    const bool is_own = !c.has("s") || c.is(sizes[i], -1);
    extent.sizes.push_back(is_own ? c.size(c.self(), extent.dims[i]) : sizes[i]);
  }
  return extent;
}

/// Cut off or filled up with zeros at the end, to `extent`.
ValueId resized(Composite& c, ValueId v, const Extent& extent) {
  Exprs pad(static_cast<std::size_t>(2 * c.ndim(v)), c.n(0));
  bool pads = false;
  for (std::size_t i = 0; i < extent.dims.size(); ++i) {
    const i64 dim = extent.dims[i];
    const sym::Expr have = c.size(v, dim), want = extent.sizes[i];
    if (c.same(have, want)) continue;
    const sym::Expr missing = c.syms.max(c.n(0), c.syms.sub(want, have));
    if (!c.is(missing, 0)) {
      pad[static_cast<std::size_t>(2 * (c.ndim(v) - 1 - dim) + 1)] = missing;
      pads = true;
    }
    const auto fixed = c.syms.as_const(missing);
    if (!fixed || *fixed == 0) v = c.slice(v, dim, c.n(0), c.syms.min(have, want));
  }
  return pads ? c.call("constant_pad_nd", {v, pad, c.n(0)}) : v;
}

ValueId as_float(Composite& c, ValueId v) {
  return is_float(c.dtype(v)) || is_complex(c.dtype(v)) ? v : c.to(v, DType::f32);
}
ValueId as_complex(Composite& c, ValueId v) {
  v = as_float(c, v);
  if (is_complex(c.dtype(v))) return v;
  if (c.dtype(v) != DType::f32 && c.dtype(v) != DType::f64)
    c.fail("unsupported dtype {}", name(c.dtype(v)));
  return c.to(v, complex_of(c.dtype(v)));
}
ValueId as_real(Composite& c, ValueId v) {
  if (is_complex(c.dtype(v))) c.fail("expects a real tensor, got {}", name(c.dtype(v)));
  return as_float(c, v);
}
ValueId conj(Composite& c, ValueId v) { return c.call("conj_physical", {v}); }

ValueId c2c(Composite& c, ValueId v, const Dims& dims, bool forward) {
  return c.call("_fft_c2c", {v, c.as_exprs(dims), c.n(scale_number(c, forward)), forward});
}
ValueId r2c(Composite& c, ValueId v, const Dims& dims, bool forward, bool onesided) {
  const ValueId out =
      c.call("_fft_r2c", {v, c.as_exprs(dims), c.n(scale_number(c, forward)), onesided});
  return forward ? out : conj(c, out);
}
ValueId c2r(Composite& c, ValueId v, const Dims& dims, bool forward, sym::Expr size) {
  return c.call("_fft_c2r",
                {forward ? conj(c, v) : v, c.as_exprs(dims), c.n(scale_number(c, forward)), size});
}

/// Whether the op, fft_NAME, transforms forwards: all do but inverses; hfft is the forward one.
bool is_forward(Composite& c) { return !c.base().starts_with("fft_i"); }

Values fft_one(Composite& c) {
  const Extent extent = one_dim(c);
  check_sizes(c, extent.sizes);
  const ValueId v = resized(c, as_float(c, c.self()), extent);
  if (is_complex(c.dtype(v))) return {c2c(c, v, extent.dims, is_forward(c))};
  return {r2c(c, v, extent.dims, is_forward(c), false)};
}

/// rfft and ihfft.
Values half_one(Composite& c) {
  const Extent extent = one_dim(c);
  check_sizes(c, extent.sizes);
  const ValueId v = resized(c, as_real(c, c.self()), extent);
  return {r2c(c, v, extent.dims, is_forward(c), true)};
}

/// Of a transform with a real result: the last dim's size is that of the result, and `extent`
/// becomes that of the half of a signal that makes it.
sym::Expr halve(Composite& c, Extent& extent, bool is_given) {
  if (extent.dims.empty()) c.fail("must transform at least one axis");
  sym::Expr& last = extent.sizes.back();
  const sym::Expr size = is_given ? last : c.syms.mul(c.n(2), c.syms.sub(last, c.n(1)));
  check_sizes(c, {size});
  last = c.syms.add(c.syms.floordiv(size, c.n(2)), c.n(1));
  return size;
}

/// irfft and hfft.
Values real_one(Composite& c) {
  Extent extent = one_dim(c);
  const sym::Expr size = halve(c, extent, c.has("n"));
  const ValueId v = resized(c, as_complex(c, c.self()), extent);
  return {c2r(c, v, extent.dims, c.base() == "fft_hfft", size)};
}

Values fft_all(Composite& c) {
  const Extent extent = all_dims(c);
  check_sizes(c, extent.sizes);
  return {c2c(c, resized(c, as_complex(c, c.self()), extent), extent.dims, is_forward(c))};
}

Values rfft_all(Composite& c) {
  const Extent extent = all_dims(c);
  check_sizes(c, extent.sizes);
  return {r2c(c, resized(c, as_real(c, c.self()), extent), extent.dims, true, true)};
}

Values ihfft_all(Composite& c) {
  const Extent extent = all_dims(c);
  check_sizes(c, extent.sizes);
  if (extent.dims.empty()) c.fail("must transform at least one axis");
  const ValueId v = resized(c, as_real(c, c.self()), extent);
  const ValueId half = r2c(c, v, {extent.dims.back()}, false, true);
  const Dims others(extent.dims.begin(), extent.dims.end() - 1);
  return {others.empty() ? half : c2c(c, half, others, false)};
}

bool last_size_is_given(Composite& c) {
  const Exprs sizes = c.integers("s");
  return !sizes.empty() && !c.is(sizes.back(), -1);
}

Values irfft_all(Composite& c) {
  Extent extent = all_dims(c);
  const sym::Expr size = halve(c, extent, last_size_is_given(c));
  check_sizes(c, extent.sizes);
  return {c2r(c, resized(c, as_complex(c, c.self()), extent), extent.dims, false, size)};
}

Values hfft_all(Composite& c) {
  Extent extent = all_dims(c);
  const sym::Expr size = halve(c, extent, last_size_is_given(c));
  check_sizes(c, extent.sizes);
  ValueId v = resized(c, as_complex(c, c.self()), extent);
  const Dims others(extent.dims.begin(), extent.dims.end() - 1);
  if (!others.empty()) v = c2c(c, v, others, true);
  return {c2r(c, v, {extent.dims.back()}, true, size)};
}

/// Element 0 to the middle, or back.
Values shifted(Composite& c) {
  const bool back = c.base() == "fft_ifftshift";
  const Dims dims = c.dims("dim", c.self());
  Exprs shifts;
  for (i64 d : dims) {
    const sym::Expr size = c.size(c.self(), d);
    shifts.push_back(c.syms.floordiv(back ? c.syms.add(size, c.n(1)) : size, c.n(2)));
  }
  return {c.call("roll", {c.self(), shifts, c.as_exprs(dims)})};
}

/// The frequencies of results: 0, 1, ... and, where both sides are there, ..., -2, -1; over n * d.
/// Eager counts n / 2 + 1 of them on one side, rounded towards 0, for a negative n too.
Values frequencies(Composite& c) {
  const bool onesided = c.base() == "fft_rfftfreq";
  const i64 n = onesided && c.fixed("n") >= -3 && c.fixed("n") < 0 ? c.fixed("n") : c.count_of("n");
  const DType dtype = c.dtype_or("dtype", DType::f32);
  const double step = 1 / (static_cast<double>(n) * c.real("d"));
  const auto range = [&](i64 begin, i64 end) {
    return c.call("arange.start_step", {c.n(begin), c.n(end), c.n(1), dtype});
  };
  const i64 middle = (n + 1) / 2;
  const ValueId all =
      onesided ? range(0, n / 2 + 1) : c.cat({range(0, middle), range(middle - n, 0)}, 0);
  return {c.mul(all, step)};
}

constexpr DecompositionRow kRows[] = {
    {"fft_fft", fft_one},          {"fft_ifft", fft_one},      {"fft_rfft", half_one},
    {"fft_ihfft", half_one},       {"fft_irfft", real_one},    {"fft_hfft", real_one},
    {"fft_fft2", fft_all},         {"fft_ifft2", fft_all},     {"fft_fftn", fft_all},
    {"fft_ifftn", fft_all},        {"fft_rfft2", rfft_all},    {"fft_rfftn", rfft_all},
    {"fft_ihfft2", ihfft_all},     {"fft_ihfftn", ihfft_all},  {"fft_irfft2", irfft_all},
    {"fft_irfftn", irfft_all},     {"fft_hfft2", hfft_all},    {"fft_hfftn", hfft_all},
    {"fft_fftshift", shifted},     {"fft_ifftshift", shifted}, {"fft_fftfreq", frequencies},
    {"fft_rfftfreq", frequencies},
};

}  // namespace

std::span<const DecompositionRow> fft_decompositions() { return kRows; }

}  // namespace coil
