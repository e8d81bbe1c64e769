#include "ops/scalar.h"

#include <array>
#include <bit>
#include <cmath>

#include "ops/memory.h"

namespace coil::ops {
namespace {

constexpr auto kInfo = std::to_array<ScalarInfo>({
#define S(name, arity, result, domain) {#name, arity, ResultRule::result, Domain::domain},
#include "ops/scalar.def"
#undef S
});
static_assert(kInfo.size() == kNumScalarOps);

/// A value of any C++ type as a Scalar of the dtype with this memory.
template <class Memory, class From>
Scalar scalar_from(DType dtype, From value) {
  const auto converted = convert<typename Memory::Value>(value);
  const auto rounded = Memory::load(Memory::store(converted));
  if constexpr (std::is_floating_point_v<typename Memory::Value>)
    return {dtype, static_cast<double>(rounded), 0};
  else
    return {dtype, 0, static_cast<i64>(rounded)};
}

}  // namespace

const ScalarInfo& info(ScalarOp op) { return kInfo[static_cast<std::size_t>(op)]; }

bool is_elementary(ScalarOp op) {
  return (op >= ScalarOp::exp && op <= ScalarOp::hypot) || op == ScalarOp::pow ||
         (op >= ScalarOp::zeta && op <= ScalarOp::legendre_p) || op == ScalarOp::philox;
}

std::optional<ScalarOp> scalar_from_name(std::string_view name) {
  for (std::size_t op = 0; op < kInfo.size(); ++op)
    if (kInfo[op].name == name) return static_cast<ScalarOp>(op);
  return std::nullopt;
}

bool accepts(ScalarOp op, DType operands) {
  if (is_complex(operands)) return false;
  if (op == ScalarOp::cast) return true;
  if (op == ScalarOp::bitcast) return !is_bool(operands);
  if (is_narrow_float(operands)) return false;
  switch (info(op).domain) {
    case Domain::Float: return is_float(operands);
    case Domain::Int: return is_int(operands);
    case Domain::Number: return !is_bool(operands);
    case Domain::Bits: return !is_float(operands);
    case Domain::Wide: return operands == DType::i64;
    case Domain::Any: return true;
  }
  COIL_UNREACHABLE();
}

Scalar Scalar::of_float(DType dtype, double value) {
  if (is_bool(dtype)) return of_int(dtype, value != 0);  // no fraction is lost on the way
  return with_memory(dtype, [&]<class M>(M) { return scalar_from<M>(dtype, value); });
}

Scalar Scalar::of_int(DType dtype, i64 value) {
  return with_memory(dtype, [&]<class M>(M) { return scalar_from<M>(dtype, value); });
}

double Scalar::as_double() const {
  if (is_float(dtype)) return f;
  return dtype == DType::u64 ? static_cast<double>(static_cast<u64>(i)) : static_cast<double>(i);
}

i64 Scalar::as_int() const { return is_float(dtype) ? truncate<i64>(f) : i; }

bool Scalar::operator==(const Scalar& o) const {
  if (dtype != o.dtype) return false;
  if (!is_float(dtype)) return i == o.i;
  return std::bit_cast<u64>(f) == std::bit_cast<u64>(o.f) || (std::isnan(f) && std::isnan(o.f));
}

Scalar read_element(DType dtype, const void* data, i64 index) {
  return with_memory(dtype, [&]<class M>(M) {
    return scalar_from<M>(dtype, M::load(static_cast<const typename M::Stored*>(data)[index]));
  });
}

void write_element(DType dtype, void* data, i64 index, const Scalar& value) {
  with_memory(dtype, [&]<class M>(M) {
    using Value = typename M::Value;
    auto& element = static_cast<typename M::Stored*>(data)[index];
    if (is_float(value.dtype)) {
      element = M::store(convert<Value>(value.f));
    } else if (value.dtype == DType::u64) {
      element = M::store(convert<Value>(static_cast<u64>(value.i)));
    } else {
      element = M::store(convert<Value>(value.i));
    }
  });
}

}  // namespace coil::ops
