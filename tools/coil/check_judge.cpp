#include "check_judge.h"

#include <cmath>

#include "arrays.h"
#include "base/text.h"
#include "compare.h"
#include "ops/scalar.h"

namespace coil::cli {
namespace {

using runtime::Tensor;
using runtime::Value;

constexpr double kOwnErrors = 4, kUlps = 4;  // of the rule in the README

/// Spacing of the numbers just above 1, and the smallest positive one.
struct Precision {
  double epsilon, smallest;
};
Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return {0x1p-52, 0x1p-1074};
    case DType::f32:
    case DType::c64: return {0x1p-23, 0x1p-149};
    case DType::f16:
    case DType::c32: return {0x1p-10, 0x1p-24};
    case DType::bf16: return {0x1p-7, 0x1p-133};
    case DType::f8e4m3fn: return {0x1p-3, 0x1p-9};
    case DType::f8e5m2: return {0x1p-2, 0x1p-16};
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

double rms(const std::vector<double>& values) {
  double largest = 0, sum = 0, count = 0;
  for (double v : values)
    if (std::isfinite(v)) largest = std::fmax(largest, std::fabs(v));
  if (largest == 0) return 0;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    sum += v / largest * (v / largest);
    ++count;
  }
  return largest * std::sqrt(sum / count);
}

double ulp(double value, Precision p) {
  if (value <= 0 || p.epsilon == 0) return p.smallest;
  return std::fmax(p.smallest, std::ldexp(p.epsilon, std::ilogb(value)));
}

std::string place(std::size_t flat, const Tensor& t) {
  const std::size_t parts = is_complex(t.dtype) ? 2 : 1;
  i64 at = static_cast<i64>(flat / parts);
  std::vector<i64> index(t.shape.size());
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = at % t.shape[d];
    at /= t.shape[d];
  }
  const std::string part = parts == 1 ? "" : flat % 2 == 0 ? ".real" : ".imag";
  return "at [" + join(index, ", ", [](i64 i) { return std::to_string(i); }) + "]" + part;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Counts elements that are wrong and keeps the first.
class Judge {
 public:
  explicit Judge(const Tensor& shape) : shape_(shape) {}
  void wrong(std::size_t at, const std::string& found, const std::string& expected) {
    if (++bad_ == 1) first_ = str("{}: {}, expected {}", place(at, shape_), found, expected);
  }
  Verdict verdict(double error) const {
    const std::string more =
        bad_ > 1 ? str(" ({} of {} are wrong)", bad_, shape_.numel()) : std::string();
    return {bad_ == 0, error, first_ + more};
  }

 private:
  const Tensor& shape_;
  i64 bad_ = 0;
  std::string first_;
};

Verdict judge_floats(const Tensor& found, const Tensor& plain, const Tensor& wide) {
  const double tolerance = tolerance_of(plain, wide);
  const std::vector<double> t = as_doubles(found), p = as_doubles(plain), w = as_doubles(wide);
  Judge judge(found);
  double worst = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (same(t[i], w[i]) || (same(t[i], p[i]) && !(std::isfinite(p[i]) && std::isfinite(w[i]))))
      continue;
    const double error = std::fabs(t[i] - (std::isfinite(w[i]) ? w[i] : p[i]));
    if (std::isfinite(error)) worst = std::fmax(worst, error / tolerance);
    if (!(error <= tolerance)) judge.wrong(i, str("{:.9g}", t[i]), str("{:.9g}", w[i]));
  }
  return judge.verdict(worst);
}

Verdict judge_exact(const Tensor& found, const Tensor& plain) {
  std::vector<i64> x, y;
  const auto read = [](const Tensor& t, std::vector<i64>& out) {
    for_each_element(t, [&](i64 at) { out.push_back(ops::read_element(t.dtype, t.data, at).i); });
  };
  read(found, x);
  read(plain, y);
  Judge judge(found);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i]) judge.wrong(i, str("{}", x[i]), str("{}", y[i]));
  return judge.verdict(0);
}

/// A tensor; a float that the host holds as a double is f32 where that says it all.
std::optional<Tensor> judged(const Value& value) {
  const auto* f = std::get_if<double>(&value);
  if (!f || static_cast<double>(static_cast<float>(*f)) != *f) return as_tensor(value);
  Result<Tensor> t = Tensor::allocate(DType::f32, {});
  if (!t.ok()) return std::nullopt;
  ops::write_element(DType::f32, t->data, 0, ops::Scalar::of_float(DType::f32, *f));
  return *t;
}

bool is_float_like(DType dtype) { return is_float(dtype) || is_complex(dtype); }

}  // namespace

double tolerance_of(const Tensor& plain, const Tensor& wide) {
  if (!is_float_like(plain.dtype) || plain.shape != wide.shape) return 0;
  const std::vector<double> p = as_doubles(plain), w = as_doubles(wide);
  double own = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (std::isfinite(p[i]) && std::isfinite(w[i])) own = std::fmax(own, std::fabs(p[i] - w[i]));
  return kOwnErrors * own + kUlps * ulp(rms(w), precision_of(plain.dtype));
}

Verdict judge(const Value& found, const Value& plain, const Value& wide) {
  const std::optional<Tensor> t = judged(found), p = judged(plain), w = as_tensor(wide);
  if (!t || !p || !w) {
    if (found.index() != plain.index()) return {false, 0, "another kind of value"};
    const auto *x = std::get_if<std::string>(&found), *y = std::get_if<std::string>(&plain);
    if (!x || *x == *y) return {};
    return {false, 0, str("{}, expected {}", quoted(*x), quoted(*y))};
  }
  if (found.index() != plain.index()) return {false, 0, "another kind of value"};
  const bool is_host_float = std::holds_alternative<double>(plain);
  if ((t->dtype != p->dtype && !is_host_float) || t->shape != p->shape)
    return {false, 0, str("{}, expected {}", describe(*t), describe(*p))};
  if (!is_float_like(t->dtype)) return judge_exact(*t, *p);
  if (w->shape != p->shape)
    return judge_floats(*t, *p, *p);  // sizes that hang on a rounded comparison
  return judge_floats(*t, *p, *w);
}

bool identical(const Value& a, const Value& b) {
  const std::optional<Tensor> x = as_tensor(a), y = as_tensor(b);
  if (!x || !y) return !x == !y;
  if (x->shape != y->shape || is_float_like(x->dtype) != is_float_like(y->dtype)) return false;
  if (!is_float_like(x->dtype)) return x->dtype == y->dtype && judge_exact(*x, *y).ok;
  const std::vector<double> p = as_doubles(*x), q = as_doubles(*y);
  return p.size() == q.size() && std::equal(p.begin(), p.end(), q.begin(), same);
}

bool is_inexact(const Value& value) {
  if (const auto* t = std::get_if<Tensor>(&value)) return is_float_like(t->dtype);
  return std::holds_alternative<double>(value);
}

}  // namespace coil::cli
