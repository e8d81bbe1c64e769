#include "target/cpp/spelling.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/format.h"

namespace coil::cpp {

using ops::ScalarOp;

std::string_view spelling(ScalarOp op) {
  switch (op) {
#define C(name, text)  \
  case ScalarOp::name: \
    return text;
#include "target/cpp/spelling.def"
#undef C
  }
  return "";
}

std::string memory_type(DType dtype) {
  return dtype == DType::b8 ? "b8" : std::string(name(dtype));
}

std::string value_type(DType dtype) {
  return std::string(name(compute_dtype(dtype)));  // bool has the name "bool"
}

std::string cast_type(DType dtype) { return std::string(name(dtype)); }

namespace {

/// Hexadecimal, so that no digit is lost and no library decides how to round.
std::string float_literal(double value, bool is_f32) {
  if (std::isnan(value)) return is_f32 ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + (is_f32 ? "__builtin_inff()" : "__builtin_inf()");
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%a%s", value, is_f32 ? "f" : "");
  return text.data();
}

}  // namespace

std::string literal(const ops::Scalar& value) {
  const DType dtype = value.dtype;
  if (is_bool(dtype)) return value.i ? "true" : "false";
  const std::string type = value_type(dtype);
  if (is_float(dtype)) return str("{}({})", type, float_literal(value.f, dtype != DType::f64));
  if (is_unsigned(dtype)) return str("{}({}ull)", type, static_cast<u64>(value.i));
  if (value.i == INT64_MIN) return "i64(-9223372036854775807 - 1)";
  return str("{}({})", type, value.i);
}

}  // namespace coil::cpp
