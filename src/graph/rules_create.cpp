// Ops that make tensors from numbers, and copies in the shape of other tensors.

#include <cmath>

#include "graph/rule.h"

namespace coil {
namespace {

DType dtype_of_number(const Arg& number) {
  if (std::holds_alternative<bool>(number)) return DType::b8;
  if (std::holds_alternative<Complex>(number)) return DType::c64;
  return std::holds_alternative<sym::Expr>(number) ? DType::i64 : DType::f32;
}

Result<Types> full(const Call& call) {
  const DType dtype = call.dtype("dtype", dtype_of_number(call.arg("fill_value")));
  return Types{call.contiguous(dtype, call.sizes("size"))};
}

Result<Types> of_size(const Call& call) {
  Type out = call.contiguous(call.dtype("dtype", DType::f32), call.sizes("size"));
  if (call.has("memory_format"))
    out.strides =
        strides_for(call.graph, out, call.format("memory_format", MemoryFormat::Contiguous));
  return Types{std::move(out)};
}

Result<Types> integers_of_size(const Call& call) {
  return Types{call.contiguous(call.dtype("dtype", DType::i64), call.sizes("size"))};
}

Result<Types> empty_strided(const Call& call) {
  if (call.sizes("size").size() != call.sizes("stride").size())
    return call.fail("size and stride differ in length");
  return Types{
      call.strided(call.dtype("dtype", DType::f32), call.sizes("size"), call.sizes("stride"))};
}

Result<Types> empty_permuted(const Call& call) {
  const Sizes& shape = call.sizes("size");
  const std::vector<i64> order = COIL_TRY(call.dims("physical_layout", shape.size()));
  if (order.size() != shape.size()) return call.fail("physical_layout differs in length from size");
  Sizes permuted;
  for (i64 d : order) permuted.push_back(shape[static_cast<std::size_t>(d)]);
  const Sizes dense = contiguous_strides(call.syms, permuted);
  Sizes strides(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    strides[static_cast<std::size_t>(order[i])] = dense[i];
  return Types{call.strided(call.dtype("dtype", DType::f32), shape, std::move(strides))};
}

Result<Types> like(const Call& call) {
  const Type& self = call.self();
  const MemoryFormat format = call.format("memory_format", MemoryFormat::Preserve);
  Sizes strides = format == MemoryFormat::Preserve
                      ? pointwise_strides(call.graph, std::span(&self, 1), self.shape)
                      : strides_for(call.graph, self, format);
  return Types{call.strided(call.dtype("dtype", self.dtype), self.shape, std::move(strides))};
}

Result<Types> new_of_size(const Call& call) {
  return Types{call.contiguous(call.dtype("dtype", call.self().dtype), call.sizes("size"))};
}

Result<Types> new_empty_strided(const Call& call) {
  if (call.sizes("size").size() != call.sizes("stride").size())
    return call.fail("size and stride differ in length");
  return Types{call.strided(call.dtype("dtype", call.self().dtype), call.sizes("size"),
                            call.sizes("stride"))};
}

Result<Types> scalar_tensor(const Call& call) {
  return Types{call.contiguous(call.dtype("dtype", DType::f32), {})};
}

Result<double> fixed_number(const Call& call, const Arg& number) {
  if (const double* d = std::get_if<double>(&number)) return *d;
  if (const sym::Expr* e = std::get_if<sym::Expr>(&number))
    if (std::optional<i64> value = call.syms.as_const(*e)) return static_cast<double>(*value);
  return call.fail("needs fixed numbers beside floats");
}

Result<Types> arange(const Call& call) {
  const auto number = [&](std::string_view name, i64 otherwise) {
    const Arg given =
        call.schema.arg_index(name) >= 0 ? call.arg(name) : Arg(call.number(otherwise));
    const bool* flag = std::get_if<bool>(&given);
    return flag != nullptr ? Arg(call.number(*flag)) : given;
  };
  if (is_complex(call.dtype("dtype", DType::i64))) return call.fail("has no complex form");
  const Arg start = number("start", 0);
  const Arg end = number("end", 0);
  const Arg step = number("step", 1);
  const sym::Expr* first = std::get_if<sym::Expr>(&start);
  const sym::Expr* last = std::get_if<sym::Expr>(&end);
  const sym::Expr* by = std::get_if<sym::Expr>(&step);
  if (first != nullptr && last != nullptr && by != nullptr) {
    const std::optional<i64> stride = call.syms.as_const(*by);
    if (!stride || *stride == 0 || *stride == INT64_MIN)
      return call.fail("step must be a fixed number other than 0");
    sym::Expr distance = call.syms.sub(*last, *first);
    if (*stride < 0) distance = call.syms.neg(distance);
    const sym::Expr steps = call.number(*stride < 0 ? -*stride : *stride);
    const sym::Expr count = call.syms.ceildiv(distance, steps);
    if (known_less(call.graph, count, call.number(0))) return call.fail("the range is empty");
    return Types{call.contiguous(call.dtype("dtype", DType::i64), {count})};
  }
  const double from = COIL_TRY(fixed_number(call, start));
  const double to = COIL_TRY(fixed_number(call, end));
  const double stride = COIL_TRY(fixed_number(call, step));
  const double count = std::ceil((to - from) / stride);
  if (!(count >= 0 && count < 9e15)) return call.fail("the range has no valid length");
  return Types{
      call.contiguous(call.dtype("dtype", DType::f32), {call.number(static_cast<i64>(count))})};
}

Result<Types> linspace(const Call& call) {
  bool has_complex = false;
  for (std::string_view end : {"start", "end"})
    has_complex |= std::holds_alternative<Complex>(call.arg(end));
  const DType dtype = call.dtype("dtype", has_complex ? DType::c64 : DType::f32);
  if (has_complex && !is_complex(dtype))
    return call.fail("there is no range of {} with complex ends", name(dtype));
  return Types{call.contiguous(dtype, {call.integer("steps")})};
}

Result<Types> eye(const Call& call) {
  const sym::Expr rows = call.integer("n");
  const sym::Expr columns = call.schema.arg_index("m") >= 0 ? call.integer("m") : rows;
  return Types{call.contiguous(call.dtype("dtype", DType::f32), {rows, columns})};
}

Result<Types> randperm(const Call& call) {
  return Types{call.contiguous(call.dtype("dtype", DType::i64), {call.integer("n")})};
}

Result<Types> random_bits(const Call& call) {
  const Type& key = call.tensor("random_key");
  if (key.dtype != DType::i64 || key.ndim() != 1 || !known_value(call.graph, key.shape[0], 2))
    return call.fail("the key must be i64[2], not {}", text(call.syms, key));
  const Sizes& shape = call.sizes("size");
  if (!call.has("stride")) return Types{call.contiguous(DType::i64, shape)};
  if (call.sizes("stride").size() != shape.size())
    return call.fail("size and stride differ in length");
  return Types{call.strided(DType::i64, shape, call.sizes("stride"))};
}

constexpr RuleRow kRules[] = {
    {"random_bits", random_bits},
    {"full", full},
    {"ones", of_size},
    {"zeros", of_size},
    {"empty.memory_format", of_size},
    {"rand", of_size},
    {"randn", of_size},
    {"randint", integers_of_size},
    {"randint.low", integers_of_size},
    {"randperm", randperm},
    {"empty_strided", empty_strided},
    {"empty_permuted", empty_permuted},
    {"full_like", like},
    {"ones_like", like},
    {"zeros_like", like},
    {"empty_like", like},
    {"rand_like", like},
    {"randn_like", like},
    {"randint_like", like},
    {"randint_like.low_dtype", like},
    {"new_full", new_of_size},
    {"new_ones", new_of_size},
    {"new_zeros", new_of_size},
    {"new_empty", new_of_size},
    {"new_empty_strided", new_empty_strided},
    {"scalar_tensor", scalar_tensor},
    {"arange", arange},
    {"arange.start", arange},
    {"arange.start_step", arange},
    {"linspace", linspace},
    {"linspace.Tensor_Tensor", linspace},
    {"linspace.Tensor_Scalar", linspace},
    {"linspace.Scalar_Tensor", linspace},
    {"logspace", linspace},
    {"logspace.Tensor_Tensor", linspace},
    {"logspace.Tensor_Scalar", linspace},
    {"logspace.Scalar_Tensor", linspace},
    {"eye", eye},
    {"eye.m", eye},
};

}  // namespace

std::span<const RuleRow> create_rules() { return kRules; }

}  // namespace coil
