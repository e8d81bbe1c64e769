#include "arrays.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "ops/scalar.h"

namespace coil::cli {
namespace {

using runtime::Tensor;
using runtime::Value;

/// `in3_bf16_call2` taken apart.
struct ArrayName {
  std::string base;  // "in3", or an input's own name
  bool is_bf16 = false;
  std::size_t call = 0;  // from 0
};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::size_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix) || !all_digits(text.substr(prefix.size()))) return std::nullopt;
  std::size_t value = 0;
  std::from_chars(text.data() + prefix.size(), text.data() + text.size(), value);
  return value;
}

ArrayName parse_name(std::string_view text) {
  ArrayName out;
  if (const std::size_t at = text.rfind("_call"); at != text.npos)
    if (const auto k = number_after(text.substr(at), "_call"); k && *k >= 1 && *k <= 100000) {
      out.call = *k - 1;
      text = text.substr(0, at);
    }
  if (text.ends_with("_bf16")) {
    out.is_bf16 = true;
    text.remove_suffix(5);
  }
  out.base = text;
  return out;
}

Result<Tensor> tensor_of(const NpyArray& array, bool is_bf16) {
  if (is_bf16 && array.dtype != DType::u16)
    return error("array '{}' holds {}, expected the bits of bfloat16 as u16", array.name,
                 name(array.dtype));
  Tensor t = COIL_TRY(Tensor::allocate(is_bf16 ? DType::bf16 : array.dtype, array.shape));
  if (array.bytes > 0) std::memcpy(t.data, array.data, static_cast<std::size_t>(array.bytes));
  return t;
}

/// The array as the kind of argument that the input takes.
Result<Value> argument(const ProgramInput& input, const Tensor& t) {
  if (input.buffer.valid()) return Value(t);
  if (input.is_fixed && !std::holds_alternative<double>(input.fixed))
    return error("input '{}' takes no array", input.name);
  if (t.ndim() != 0 || is_complex(t.dtype))
    return error("input '{}' is a number, found {}", input.name, describe(t));
  const ops::Scalar s = ops::read_element(t.dtype, t.data, 0);
  if (input.is_float || input.is_fixed) return Value(s.as_double());
  return Value(s.as_int());
}

/// What a fixed input must be; a file need not hold it.
Value fixed_value(const ProgramInput& input) {
  if (const auto* f = std::get_if<double>(&input.fixed)) return *f;
  if (const auto* b = std::get_if<bool>(&input.fixed)) return *b;
  if (const auto* s = std::get_if<std::string>(&input.fixed)) return *s;
  return std::monostate{};
}

}  // namespace

Result<std::vector<std::vector<Value>>> read_inputs(const std::string& path,
                                                    const LoopProgram& program) {
  const std::vector<NpyArray> arrays = COIL_TRY(read_npz(path));
  std::vector<std::vector<std::optional<Value>>> calls(1);
  for (const NpyArray& array : arrays) {
    ArrayName n = parse_name(array.name);
    std::optional<std::size_t> index;
    for (const std::string& candidate : {array.name, n.base})
      for (std::size_t i = 0; !index && i < program.inputs.size(); ++i)
        if (program.inputs[i].name == candidate) {
          index = i;
          if (candidate == array.name) n = {candidate, false, 0};
        }
    if (!index) index = number_after(n.base, "in");
    if (!index || *index >= program.inputs.size()) {
      if (number_after(n.base, "out")) continue;  // expected outputs may lie beside the inputs
      return error("{}: array '{}' is no input of the model; its inputs are {}", path, array.name,
                   join(program.inputs, ", ", [](const ProgramInput& i) { return i.name; }));
    }
    if (calls.size() <= n.call) calls.resize(n.call + 1);
    for (auto& c : calls) c.resize(program.inputs.size());
    calls[n.call][*index] =
        COIL_TRY(argument(program.inputs[*index], COIL_TRY(tensor_of(array, n.is_bf16))));
  }
  std::vector<std::vector<Value>> out;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    calls[k].resize(program.inputs.size());
    std::vector<Value> values;
    for (std::size_t i = 0; i < calls[k].size(); ++i) {
      if (!calls[k][i] && program.inputs[i].is_fixed) calls[k][i] = fixed_value(program.inputs[i]);
      if (!calls[k][i])
        return error("{}: no array for input '{}' of call {} (in{}{})", path,
                     program.inputs[i].name, k + 1, i,
                     k == 0 ? std::string() : str("_call{}", k + 1));
      values.push_back(*calls[k][i]);
    }
    out.push_back(std::move(values));
  }
  return out;
}

Result<std::vector<Value>> random_inputs(const LoopProgram& program, u64 seed) {
  const sym::Arena& syms = *program.syms;
  std::mt19937_64 random(seed);
  const auto size = [&](sym::Expr v) -> std::optional<i64> {
    for (const ProgramSize& s : program.sizes)
      if (s.var == v && s.hint) return *s.hint;
    const sym::Range r = syms.var(v).range;
    return std::clamp<i64>(2, std::max<i64>(r.lo, 0), std::max<i64>(r.hi, 0));
  };
  std::vector<Value> out;
  for (const ProgramInput& input : program.inputs) {
    if (input.is_fixed) {
      out.push_back(fixed_value(input));
      continue;
    }
    if (!input.buffer.valid()) {
      if (input.is_float)
        out.push_back(std::normal_distribution<double>()(random));
      else
        out.push_back(syms.eval(input.size, size).value_or(1));
      continue;
    }
    const Buffer& buffer = program.buffers[input.buffer];
    std::vector<i64> shape;
    for (sym::Expr e : buffer.shape) {
      const std::optional<i64> extent = syms.eval(e, size);
      if (!extent)
        return error("the size {} of input '{}' has no sample value; give --inputs", syms.text(e),
                     input.name);
      shape.push_back(*extent);
    }
    if (input.is_complex) shape.pop_back();
    const DType dtype = input.is_complex ? complex_of(buffer.dtype) : buffer.dtype;
    const Tensor t = COIL_TRY(Tensor::allocate(dtype, shape));
    const DType part = input.is_complex ? buffer.dtype : dtype;
    std::normal_distribution<double> normal;
    for (i64 i = 0; i < t.numel() * (input.is_complex ? 2 : 1); ++i) {
      if (is_float(part))
        ops::write_element(part, t.data, i, ops::Scalar::of_float(part, normal(random)));
      else if (is_bool(part))
        ops::write_element(part, t.data, i, ops::Scalar::of_bool(random() & 1));
      else
        ops::write_element(part, t.data, i,
                           ops::Scalar::of_int(part, static_cast<i64>(random() % 4)));
    }
    out.push_back(t);
  }
  return out;
}

Result<std::vector<std::vector<Value>>> input_calls(const std::string& path, u64 seed,
                                                    const LoopProgram& program) {
  if (!path.empty()) return read_inputs(path, program);
  std::vector<std::vector<Value>> calls;
  calls.push_back(COIL_TRY(random_inputs(program, seed)));
  return calls;
}

Result<std::vector<std::vector<Value>>> read_outputs(const std::string& path) {
  std::vector<std::vector<Value>> calls;
  for (const NpyArray& array : COIL_TRY(read_npz(path))) {
    const ArrayName n = parse_name(array.name);
    const std::optional<std::size_t> index = number_after(n.base, "out");
    if (!index) continue;  // inputs may lie beside the outputs
    if (*index > 100000) return error("{}: array '{}' has an absurd number", path, array.name);
    if (calls.size() <= n.call) calls.resize(n.call + 1);
    if (calls[n.call].size() <= *index) calls[n.call].resize(*index + 1, std::monostate{});
    calls[n.call][*index] = COIL_TRY(tensor_of(array, n.is_bf16));
  }
  if (calls.empty()) return error("{} holds no arrays named out0, out1, ...", path);
  return calls;
}

std::optional<Tensor> as_tensor(const Value& value) {
  if (const auto* t = std::get_if<Tensor>(&value)) return *t;
  ops::Scalar s;
  if (const auto* i = std::get_if<i64>(&value))
    s = ops::Scalar::of_int(DType::i64, *i);
  else if (const auto* f = std::get_if<double>(&value))
    s = ops::Scalar::of_float(DType::f64, *f);
  else if (const auto* b = std::get_if<bool>(&value))
    s = ops::Scalar::of_bool(*b);
  else
    return std::nullopt;
  Result<Tensor> t = Tensor::allocate(s.dtype, {});
  if (!t.ok()) return std::nullopt;
  ops::write_element(s.dtype, t->data, 0, s);
  return *t;
}

Status write_outputs(const std::string& path, const std::vector<std::vector<Value>>& calls) {
  std::vector<NpyArray> arrays;
  for (std::size_t k = 0; k < calls.size(); ++k)
    for (std::size_t i = 0; i < calls[k].size(); ++i) {
      const std::optional<Tensor> t = as_tensor(calls[k][i]);
      if (!t) continue;
      const Tensor whole = COIL_TRY(t->contiguous());
      NpyArray a;
      a.name = str("out{}{}{}", i, whole.dtype == DType::bf16 ? "_bf16" : "",
                   k == 0 ? std::string() : str("_call{}", k + 1));
      a.dtype = whole.dtype;
      a.shape = whole.shape;
      a.data = whole.data;
      a.bytes = whole.bytes();
      a.owner = whole.owner;
      arrays.push_back(std::move(a));
    }
  return write_npz(path, arrays);
}

}  // namespace coil::cli
