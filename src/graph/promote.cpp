#include "graph/rules.h"

namespace coil {
namespace {

int signed_size(DType d) { return is_unsigned(d) ? 2 * size_of(d) : size_of(d); }

DType promote_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType with_sign = is_unsigned(a) ? b : a;
  const DType without = is_unsigned(a) ? a : b;
  if (size_of(with_sign) >= signed_size(without)) return with_sign;
  switch (size_of(without)) {
    case 1: return DType::i16;
    case 2: return DType::i32;
    default: return DType::i64;
  }
}

DType promote_floats(DType a, DType b) {
  if (size_of(a) == size_of(b)) return DType::f32;  // f16 and bf16, or two 8-bit floats
  return size_of(a) > size_of(b) ? a : b;
}

/// What a dtype adds to a complex result: its real part, if it is a float of some kind.
std::optional<DType> real_part(DType d) {
  if (is_complex(d)) return real_of(d);
  if (is_float(d)) return d;
  return std::nullopt;
}

/// No complex type has parts of bf16 or of 8 bits: as in torch, theirs is c64.
DType complex_with(DType part) {
  const bool has_own = part == DType::f16 || part == DType::f32 || part == DType::f64;
  return has_own ? complex_of(part) : DType::c64;
}

/// `higher` is the dtype of operands whose dims outrank those of `lower`: only a greater category
/// (bool, integer, float, complex) of the latter changes it.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_complex(*higher)) return higher;
  if (is_float(*higher)) return is_complex(*lower) ? complex_with(*higher) : *higher;
  if (is_bool(*higher) || is_float(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

/// Python numbers take part as torch's default dtypes.
DType of_python(DType d) {
  if (is_complex(d)) return DType::c64;
  if (is_float(d)) return DType::f32;
  return is_bool(d) ? DType::b8 : DType::i64;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_complex(a) || is_complex(b)) {
    const std::optional<DType> x = real_part(a);
    const std::optional<DType> y = real_part(b);
    if (!x || !y) return is_complex(a) ? a : b;
    return complex_with(*x == *y ? *x : promote_floats(*x, *y));
  }
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  return promote_integers(a, b);
}

DType promote(const Promotion& operands) {
  std::optional<DType> with_dims;
  std::optional<DType> without_dims;
  std::optional<DType> numbers;
  for (const Type& t : operands.tensors) {
    std::optional<DType>& of = t.ndim() > 0 ? with_dims : without_dims;
    of = of ? promote(*of, t.dtype) : t.dtype;
  }
  for (DType d : operands.scalars)
    numbers = numbers ? promote(*numbers, of_python(d)) : of_python(d);
  const std::optional<DType> result = combine(with_dims, combine(without_dims, numbers));
  COIL_CHECK(result.has_value(), "promotion of nothing");
  return *result;
}

}  // namespace coil
