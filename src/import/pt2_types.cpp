#include "import/pt2_types.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace coil {

DType dtype_of_file(i64 number) {
  struct Row {
    i64 number;
    DType dtype;
  };
  static constexpr Row kRows[] = {
      {1, DType::u8},    {2, DType::i8},   {3, DType::i16},       {4, DType::i32},
      {5, DType::i64},   {6, DType::f16},  {7, DType::f32},       {8, DType::f64},
      {9, DType::c32},   {10, DType::c64}, {11, DType::c128},     {12, DType::b8},
      {13, DType::bf16}, {28, DType::u16}, {29, DType::f8e4m3fn}, {30, DType::f8e5m2},
      {34, DType::u32},  {35, DType::u64},
  };
  for (const Row& row : kRows)
    if (row.number == number) return row.dtype;
  fail("the file's dtype number {} is one that coil does not support", number);
}

Arg memory_format_of_file(i64 number) {
  switch (number) {
    case 1: return MemoryFormat::Contiguous;
    case 2: return MemoryFormat::ChannelsLast;
    case 3: return MemoryFormat::ChannelsLast3d;
    case 4: return MemoryFormat::Preserve;
    default: fail("the file's memory format number {} is unknown", number);
  }
}

std::optional<HostNumber> host_number_of(const Json& value, SymbolTable& symbols) {
  const HostMath math(symbols.syms());
  const auto [kind, content] = arm_of(value);
  if (kind == "as_int") return math.integer(integer_of(content));
  if (kind == "as_bool") return math.integer(bool_of(content) ? 1 : 0);
  if (kind == "as_float") return math.real(real_of(content));
  if (kind != "as_expr") fail("the program is damaged: '{}' is no symbolic number", kind);
  std::optional<HostNumber> number =
      value_or_throw(parse_srepr(symbols, text_field(content, "expr_str")));
  const Json* hint = find_field(content, "hint");
  if (number && hint != nullptr && symbols.syms().kind(number->num) == sym::Kind::Var) {
    const auto [hint_kind, hint_value] = arm_of(*hint);
    if (hint_kind == "as_int") symbols.set_hint(number->num, integer_of(hint_value));
  }
  return number;
}

sym::Expr sym_int_of(const Json& value, SymbolTable& symbols) {
  const std::optional<HostNumber> number = host_number_of(value, symbols);
  const HostMath math(symbols.syms());
  const std::optional<sym::Expr> integer = number ? math.as_integer(*number) : std::nullopt;
  if (integer) return *integer;
  const auto [kind, content] = arm_of(value);
  fail("the size {} is one that coil cannot express",
       kind == "as_expr" ? text_field(content, "expr_str") : std::string(kind));
}

Type tensor_type_of(const Json& meta, SymbolTable& symbols) {
  constexpr i64 kStrided = 7;
  if (const i64 layout = integer_field(meta, "layout"); layout != kStrided && layout != 0)
    fail("a tensor is sparse or has another layout (number {}) that coil does not support", layout);
  Type type;
  type.dtype = dtype_of_file(integer_field(meta, "dtype"));
  for (const Json& size : array_of(field(meta, "sizes"))) {
    type.shape.push_back(sym_int_of(size, symbols));
    if (symbols.syms().as_const(type.shape.back()).value_or(0) < 0)
      fail("the program is damaged: a tensor has a negative size");
  }
  for (const Json& stride : array_of(field(meta, "strides")))
    type.strides.push_back(sym_int_of(stride, symbols));
  constexpr std::size_t kMaxDims = 64;
  if (type.strides.size() != type.shape.size() || type.shape.size() > kMaxDims)
    fail("the program is damaged: a tensor has {} sizes and {} strides", type.shape.size(),
         type.strides.size());
  // Element counts fit in i64, so that arithmetic on sizes does not overflow later.
  i64 numel = 1;
  for (sym::Expr size : type.shape) {
    const std::optional<i64> fixed = symbols.syms().as_const(size);
    if (fixed && *fixed > 0 && __builtin_mul_overflow(numel, *fixed, &numel))
      fail("a tensor has more elements than a machine can address");
  }
  if (numel > (i64{1} << 58)) fail("a tensor has more elements than a machine can address");
  return type;
}

}  // namespace coil
