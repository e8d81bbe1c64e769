#include "target/triton/spelling.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/format.h"
#include "base/text.h"

namespace coil::triton {

using ops::ScalarOp;

namespace {

struct Spelling {
  std::string_view floats, integers, bools;
};

Spelling spelling(ScalarOp op) {
  switch (op) {
#define T(name, floats, integers, bools) \
  case ScalarOp::name:                   \
    return {floats, integers, bools};
#include "target/triton/spelling.def"
#undef T
  }
  COIL_UNREACHABLE();
}

constexpr int kNumRows = 0
#define T(name, floats, integers, bools) +1
#include "target/triton/spelling.def"
#undef T
    ;
static_assert(kNumRows == ops::kNumScalarOps, "spelling.def has a row for each scalar op");

std::string fill_in(std::string_view pattern, std::span<const std::string> operands,
                    const std::string& type) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$') {
      out += pattern[i];
      continue;
    }
    ++i;
    out += pattern[i] == 't' ? type : operands[static_cast<std::size_t>(pattern[i] - '0')];
  }
  return out;
}

/// Rounds to a narrow float and widens again: values of that dtype are held in f32.
std::string through_narrow(DType to, const std::string& f32) {
  return str("tl.cast(tl.cast({}, {}), tl.float32)", f32, memory_type(to));
}

std::string cast_text(DType from, DType to, const std::string& v) {
  const DType source = compute_dtype(from);
  if (is_bool(to)) return is_bool(from) ? v : str("{} != 0", v);
  if (is_narrow_float(to)) {
    // Rounding to f32 first is what eager does.
    const std::string f32 = source == DType::f32 ? v : str("tl.cast({}, tl.float32)", v);
    return through_narrow(to, f32);
  }
  const std::string type = value_type(to);
  if (is_float(source) && is_int(to)) {
    if (to == DType::u64) return str("float_to_u64({})", v);
    if (size_of(to) < 4 || to == DType::u32)
      return str("tl.cast(tl.cast({}, tl.int64), {})", v, type);
  }
  return str("tl.cast({}, {})", v, type);
}

std::string bitcast_text(DType from, DType to, const std::string& v) {
  const std::string bits = is_narrow_float(from) ? to_memory(from, v) : v;
  return from_memory(to, str("({}).to({}, bitcast=True)", bits, memory_type(to)));
}

std::string float_literal(double value, const std::string& type, bool is_f32) {
  if (std::isnan(value)) return str("tl.full([], float(\"nan\"), {})", type);
  if (std::isinf(value))
    return str("tl.full([], {}float(\"inf\"), {})", value < 0 ? "-" : "", type);
  if (value == 0 && std::signbit(value))
    return is_f32 ? "tl.full([], 0x80000000, tl.uint32).to(tl.float32, bitcast=True)"
                  : "tl.full([], 0x8000000000000000, tl.uint64).to(tl.float64, bitcast=True)";
  return str("tl.full([], {}, {})", float_text(value), type);
}

}  // namespace

bool has_memory_type(DType dtype) {
  return !is_complex(dtype) && dtype != DType::f8e4m3fn && dtype != DType::f8e5m2;
}

std::string memory_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::b8: return "tl.uint8";
    case DType::i8: return "tl.int8";
    case DType::i16: return "tl.int16";
    case DType::i32: return "tl.int32";
    case DType::i64: return "tl.int64";
    case DType::u16: return "tl.uint16";
    case DType::u32: return "tl.uint32";
    case DType::u64: return "tl.uint64";
    case DType::f16: return "tl.float16";
    case DType::bf16: return "tl.bfloat16";
    case DType::f32: return "tl.float32";
    case DType::f64: return "tl.float64";
    case DType::f8e4m3fn:
    case DType::f8e5m2:
    case DType::c32:
    case DType::c64:
    case DType::c128: break;
  }
  COIL_UNREACHABLE();
}

std::string value_type(DType dtype) {
  return is_bool(dtype) ? "tl.int1" : memory_type(compute_dtype(dtype));
}

std::string literal(const ops::Scalar& value) {
  const DType dtype = value.dtype;
  const std::string type = value_type(dtype);
  if (is_float(dtype)) return float_literal(value.f, type, dtype != DType::f64);
  if (is_bool(dtype)) return str("tl.full([], {}, tl.int1)", value.i != 0 ? 1 : 0);
  if (!is_unsigned(dtype)) return str("tl.full([], {}, {})", value.i, type);
  const u64 bits = static_cast<u64>(value.i);
  const int width = 8 * size_of(dtype);
  return str("tl.full([], {}, {})", width == 64 ? bits : bits & ((u64{1} << width) - 1), type);
}

std::string from_memory(DType dtype, const std::string& loaded) {
  if (is_bool(dtype)) return str("{} != 0", loaded);
  if (is_narrow_float(dtype)) return str("tl.cast({}, tl.float32)", loaded);
  return loaded;
}

std::string to_memory(DType dtype, const std::string& value) {
  if (is_bool(dtype)) return str("tl.cast({}, tl.uint8)", value);
  if (dtype == DType::bf16 || dtype == DType::f16)
    return str("tl.cast({}, {})", value, memory_type(dtype));
  return value;
}

Result<std::string> op_text(ScalarOp op, DType from, DType to,
                            std::span<const std::string> operands) {
  if (!has_memory_type(from) || !has_memory_type(to))
    return error("the triton target has no {} of {} to {}", ops::info(op).name, name(from),
                 name(to));
  if (op == ScalarOp::cast) return cast_text(from, to, operands[0]);
  if (op == ScalarOp::bitcast) return bitcast_text(from, to, operands[0]);
  const Spelling s = spelling(op);
  std::string_view pattern = is_float(from) ? s.floats : is_bool(from) ? s.bools : s.integers;
  if (pattern.empty())
    return error("the triton target has no {} of {}", ops::info(op).name, name(from));
  const std::string type = value_type(to);
  constexpr std::string_view kInF64 = "f64:";
  if (!pattern.starts_with(kInF64)) return fill_in(pattern, operands, type);
  pattern.remove_prefix(kInF64.size());
  if (from == DType::f64) return fill_in(pattern, operands, type);
  std::vector<std::string> wide;
  for (const std::string& o : operands) wide.push_back(str("tl.cast({}, tl.float64)", o));
  return str("tl.cast({}, {})", fill_in(pattern, wide, "tl.float64"), type);
}

}  // namespace coil::triton
