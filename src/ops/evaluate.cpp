// The reference evaluator: picks the loop of an op and a dtype once for a whole array.

#include <array>
#include <cstring>

#include "ops/cast.h"
#include "ops/loop.h"
#include "ops/meaning.h"
#include "ops/memory.h"
#include "ops/scalar.h"

namespace coil::ops {
namespace {

using Operands = std::span<const void* const>;

/// Whether ops of a domain take values of this C++ type; agrees with `accepts`.
template <class Value>
constexpr bool takes(Domain domain) {
  constexpr bool kFloat = std::is_floating_point_v<Value>;
  constexpr bool kBool = std::is_same_v<Value, bool>;
  switch (domain) {
    case Domain::Float: return kFloat;
    case Domain::Int: return !kFloat && !kBool;
    case Domain::Number: return !kBool;
    case Domain::Bits: return !kFloat;
    case Domain::Wide: return std::is_same_v<Value, i64>;
    case Domain::Any: return true;
  }
}

/// Runs `f` over `arity` arrays of dtype Memory.
template <int arity, class Memory, class Result, class F>
void map_op(F f, i64 n, Operands operands, void* result) {
  using Stored = typename Memory::Stored;
  auto* out = static_cast<typename Result::Stored*>(result);
  const auto in = [&](int k) { return static_cast<const Stored*>(operands[k]); };
  const auto one = [&](auto... stored) { return Result::store(f(Memory::load(stored)...)); };
  if constexpr (arity == 1) map_elements(one, n, out, in(0));
  if constexpr (arity == 2) map_elements(one, n, out, in(0), in(1));
  if constexpr (arity == 3) map_elements(one, n, out, in(0), in(1), in(2));
}

/// Ops of the result rules Same and Bool, but for `where`.
template <class Memory>
void evaluate_as(ScalarOp op, i64 n, Operands operands, void* result) {
  using Value = typename Memory::Value;
#define COIL_CASE(name, arity, Result, domain)                                               \
  case ScalarOp::name:                                                                       \
    if constexpr (takes<Value>(Domain::domain) && ScalarOp::name != ScalarOp::where)         \
      return map_op<arity, Memory, Result>([](auto... x) { return meaning::name(x...); }, n, \
                                           operands, result);                                \
    break;
#define COIL_CASE_Same(name, arity, domain) COIL_CASE(name, arity, Memory, domain)
#define COIL_CASE_Bool(name, arity, domain) COIL_CASE(name, arity, BoolMemory, domain)
#define COIL_CASE_Given(name, arity, domain) \
  case ScalarOp::name:                       \
    break;
#define S(name, arity, result, domain) COIL_CASE_##result(name, arity, domain)
  switch (op) {
#include "ops/scalar.def"
  }
#undef S
#undef COIL_CASE_Given
#undef COIL_CASE_Bool
#undef COIL_CASE_Same
#undef COIL_CASE
  COIL_UNREACHABLE();
}

/// Moves whole elements of type Stored, whatever their dtype.
template <class Stored>
void select(i64 n, Operands operands, void* result) {
  const auto one = [](u8 condition, Stored a, Stored b) {
    return meaning::where(condition != 0, a, b);
  };
  map_elements(one, n, static_cast<Stored*>(result), static_cast<const u8*>(operands[0]),
               static_cast<const Stored*>(operands[1]), static_cast<const Stored*>(operands[2]));
}

void evaluate_where(DType dtype, i64 n, Operands operands, void* result) {
  switch (size_of(dtype)) {
    case 1: return select<u8>(n, operands, result);
    case 2: return select<u16>(n, operands, result);
    case 4: return select<u32>(n, operands, result);
    default: return select<u64>(n, operands, result);
  }
}

DType result_dtype(ScalarOp op, DType operands, DType given) {
  switch (info(op).result) {
    case ResultRule::Same: return operands;
    case ResultRule::Bool: return DType::b8;
    case ResultRule::Given: return given;
  }
  COIL_UNREACHABLE();
}

void check_types(ScalarOp op, DType from, DType to, Operands operands) {
  const ScalarInfo& row = info(op);
  COIL_CHECK(accepts(op, from), "{} does not take {}", row.name, name(from));
  COIL_CHECK(result_dtype(op, from, to) == to, "{} of {} gives no {}", row.name, name(from),
             name(to));
  COIL_CHECK(static_cast<int>(operands.size()) == row.arity, "{} takes {} operands, not {}",
             row.name, row.arity, operands.size());
  if (op == ScalarOp::cast) COIL_CHECK(!is_complex(to), "a cast gives no complex");
  if (op == ScalarOp::bitcast)
    COIL_CHECK(accepts(op, to) && size_of(from) == size_of(to), "bitcast of {} to {}", name(from),
               name(to));
}

/// A shift count of another integer dtype as one of `dtype`; what is outside 0..width-1 stays so.
Scalar shift_count(DType dtype, const Scalar& count) {
  constexpr i64 kOutside = 127;  // above every width, and a value of every integer dtype
  const bool inside = count.as_int() >= 0 && count.as_int() < 8 * size_of(dtype);
  return Scalar::of_int(dtype, inside ? count.as_int() : kOutside);
}

}  // namespace

void evaluate(ScalarOp op, DType from, DType to, i64 n, std::span<const void* const> operands,
              void* result) {
  check_types(op, from, to, operands);
  if (op == ScalarOp::cast) return cast_elements(from, to, n, operands[0], result);
  if (op == ScalarOp::where) return evaluate_where(from, n, operands, result);
  if (op == ScalarOp::bitcast) {
    std::memmove(result, operands[0], static_cast<std::size_t>(n * size_of(to)));
    return;
  }
  with_memory(from, [&]<class M>(M) {
    // Narrow floats have no arithmetic; their memory differs in type from what is computed.
    if constexpr (std::is_same_v<M, BoolMemory> ||
                  std::is_same_v<typename M::Stored, typename M::Value>)
      evaluate_as<M>(op, n, operands, result);
  });
}

Scalar evaluate(ScalarOp op, DType to, std::span<const Scalar> operands) {
  constexpr std::size_t kMaxOperands = 3;
  COIL_CHECK(!operands.empty() && operands.size() <= kMaxOperands, "{} operands", operands.size());
  const bool is_shift = op == ScalarOp::shl || op == ScalarOp::shr;
  const DType from = op == ScalarOp::where ? operands.back().dtype : operands[0].dtype;
  alignas(8) std::array<std::byte, 8> elements[kMaxOperands];
  std::array<const void*, kMaxOperands> pointers;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool is_condition = op == ScalarOp::where && k == 0;
    const bool is_count = is_shift && k == 1;
    const Scalar value = is_count ? shift_count(from, operands[k]) : operands[k];
    COIL_CHECK(value.dtype == (is_condition ? DType::b8 : from), "operand {} of {} is {}", k,
               info(op).name, name(value.dtype));
    write_element(value.dtype, elements[k].data(), 0, value);
    pointers[k] = elements[k].data();
  }
  alignas(8) std::array<std::byte, 8> result;
  evaluate(op, from, to, 1, std::span(pointers).first(operands.size()), result.data());
  return read_element(to, result.data(), 0);
}

}  // namespace coil::ops
