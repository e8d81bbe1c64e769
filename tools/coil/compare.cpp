#include "compare.h"

#include <cmath>

#include "ops/scalar.h"

namespace coil::cli {
namespace {

using runtime::Tensor;

struct Element {
  ops::Scalar re, im;
};

std::vector<Element> elements(const Tensor& t) {
  std::vector<Element> out;
  out.reserve(static_cast<std::size_t>(t.numel()));
  const bool complex = is_complex(t.dtype);
  const DType part = complex ? real_of(t.dtype) : t.dtype;
  for_each_element(t, [&](i64 offset) {
    if (complex)
      out.push_back({ops::read_element(part, t.data, 2 * offset),
                     ops::read_element(part, t.data, 2 * offset + 1)});
    else
      out.push_back({ops::read_element(part, t.data, offset), {}});
  });
  return out;
}

std::string index_text(i64 flat, const std::vector<i64>& shape) {
  std::vector<i64> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return "[" + join(index, ", ", [](i64 i) { return std::to_string(i); }) + "]";
}

std::string value_text(const Element& e, bool complex) {
  if (!is_float(e.re.dtype)) return str("{}", e.re.i);
  return complex ? str("({:.9g}, {:.9g})", e.re.f, e.im.f) : str("{:.9g}", e.re.f);
}

/// Whether x is as good as y; integers are compared exactly.
bool close(const Element& x, const Element& y, Tolerance tolerance, double& abs_error,
           double& rel_error) {
  abs_error = rel_error = 0;
  if (!is_float(y.re.dtype)) {
    if (x.re.i == y.re.i) return true;
    abs_error = std::fabs(static_cast<double>(x.re.i) - static_cast<double>(y.re.i));
    rel_error = abs_error / std::fabs(static_cast<double>(y.re.i));
    return abs_error <= tolerance.atol + tolerance.rtol * std::fabs(static_cast<double>(y.re.i));
  }
  const bool x_nan = std::isnan(x.re.f) || std::isnan(x.im.f),
             y_nan = std::isnan(y.re.f) || std::isnan(y.im.f);
  if (x_nan || y_nan) return x_nan == y_nan;
  if (x.re.f == y.re.f && x.im.f == y.im.f) return true;
  abs_error = std::hypot(x.re.f - y.re.f, x.im.f - y.im.f);
  const double size = std::hypot(y.re.f, y.im.f);
  rel_error = abs_error / size;
  return std::isfinite(size) && abs_error <= tolerance.atol + tolerance.rtol * size;
}

}  // namespace

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::c32: return {1e-3, 1e-5};
    case DType::bf16: return {1.6e-2, 1e-5};
    case DType::f32:
    case DType::c64: return {1.3e-6, 1e-5};
    case DType::f64:
    case DType::c128: return {1e-7, 1e-7};
    case DType::f8e4m3fn:
    case DType::f8e5m2:
    case DType::u8:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u16:
    case DType::u32:
    case DType::u64:
    case DType::b8: return {0, 0};
  }
  COIL_UNREACHABLE();
}

Comparison compare(const Tensor& found, const Tensor& expected, Tolerance tolerance) {
  Comparison out;
  if (found.dtype != expected.dtype || found.shape != expected.shape) {
    out.ok = false;
    out.mismatch = str("{}, expected {}", describe(found), describe(expected));
    return out;
  }
  const std::vector<Element> x = elements(found), y = elements(expected);
  const bool complex = is_complex(found.dtype);
  out.count = static_cast<i64>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double abs_error = 0, rel_error = 0;
    const bool good = close(x[i], y[i], tolerance, abs_error, rel_error);
    out.largest_abs = std::fmax(out.largest_abs, abs_error);
    if (std::isfinite(rel_error)) out.largest_rel = std::fmax(out.largest_rel, rel_error);
    if (good) continue;
    ++out.bad;
    if (out.bad == 1)
      out.mismatch = str("at {}: {}, expected {}", index_text(static_cast<i64>(i), found.shape),
                         value_text(x[i], complex), value_text(y[i], complex));
  }
  out.ok = out.bad == 0;
  return out;
}

std::vector<double> as_doubles(const Tensor& t) {
  std::vector<double> out;
  for (const Element& e : elements(t)) {
    out.push_back(e.re.as_double());
    if (is_complex(t.dtype)) out.push_back(e.im.as_double());
  }
  return out;
}

}  // namespace coil::cli
