// Tensors made from nothing, as full, full_like, arange.start_step and linspace.

#include <algorithm>

#include "passes/composite.h"

namespace coil {
namespace {

double fill_of(const Composite& c) {
  return c.base().find("ones") == std::string_view::npos ? 0 : 1;
}

Values constant(Composite& c) {
  return {c.filled(c.integers("size"), fill_of(c), c.dtype_or("dtype", DType::f32))};
}

Values new_constant(Composite& c) {
  return {c.filled(c.integers("size"), fill_of(c), c.dtype_or("dtype", c.dtype(c.self())))};
}

ValueId full_like(Composite& c, Arg value, const Arg& dtype, const Arg& format) {
  return c.call("full_like", {c.self(), std::move(value), dtype, None{}, None{}, None{}, format});
}

Values constant_like(Composite& c) {
  const DType dtype = c.dtype_or("dtype", c.dtype(c.self()));
  return {full_like(c, c.scalar(fill_of(c), dtype), c.arg("dtype"), c.arg("memory_format"))};
}

Values new_full(Composite& c) {
  const DType dtype = c.dtype_or("dtype", c.dtype(c.self()));
  return {c.call("full", {c.integers("size"), c.arg("fill_value"), dtype})};
}

Values filled(Composite& c) { return {full_like(c, c.arg("value"), None{}, None{})}; }
/// In the layout of a new tensor like self, which `copy` alone would not change.
Values filled_from_tensor(Composite& c) {
  const ValueId made = full_like(c, c.scalar(0, c.dtype(c.self())), None{}, None{});
  return {c.call("copy", {made, c.tensor("value")})};
}
Values zeroed(Composite& c) {
  return {full_like(c, c.scalar(0, c.dtype(c.self())), None{}, None{})};
}

Values arange(Composite& c) {
  const Arg start = c.op() == "arange" ? Arg(c.n(0)) : c.arg("start");
  return {c.call("arange.start_step", {start, c.arg("end"), c.n(1), c.arg("dtype")})};
}

/// An end of a logspace: of integers, what their dtype holds of it, but for a range of one step.
Arg end_of_range(Composite& c, std::string_view name, DType dtype) {
  const Arg& given = c.arg(name);
  if (!is_int(dtype) || c.is(c.integer("steps"), 1)) return given;
  if (const auto* whole = std::get_if<sym::Expr>(&given); whole && dtype == DType::u8)
    return c.syms.mod(*whole, c.n(256));
  if (const double* number = std::get_if<double>(&given)) return c.n(static_cast<i64>(*number));
  const ValueId* known_later = std::get_if<ValueId>(&given);
  if (known_later == nullptr) return given;
  const ValueId held = c.call("scalar_tensor", {*known_later, DType::f64});
  return c.call("item", {c.to(c.to(held, dtype), DType::f64)});
}

/// Exponents of half floats stay wide: rounded, they would be off by as much as the result is times
/// the logarithm of the base.
Values logspace(Composite& c) {
  Arg wanted = c.arg("dtype");  // None: that of the ends
  Arg start = c.arg("start"), end = c.arg("end");
  if (const DType* given = std::get_if<DType>(&wanted)) {
    const DType dtype = *given;
    if (is_float(dtype)) {
      wanted = compute_dtype(dtype);
    } else if (!is_complex(dtype)) {
      start = end_of_range(c, "start", dtype);
      end = end_of_range(c, "end", dtype);
      wanted = DType::f64;
    }
  }
  const ValueId exponents =
      c.call("linspace", {std::move(start), std::move(end), c.arg("steps"), wanted});
  return {c.to(c.call("pow.Scalar", {c.real("base"), exponents}),
               c.dtype_or("dtype", c.dtype(exponents)))};
}

/// Ends that are tensors, as numbers.
Values range_of_tensors(Composite& c) {
  std::vector<Arg> args = c.args();
  for (std::size_t i = 0; i < 2; ++i)
    if (const ValueId* end = std::get_if<ValueId>(&args[i]); end && c.type(*end).is_tensor()) {
      if (is_complex(c.dtype(*end))) c.fail("ends that are complex tensors are not supported");
      args[i] = c.call("item", {c.to(*end, DType::f64)});
    }
  return {c.call(std::string(c.base()), std::move(args))};
}

Values lift_fresh_copy(Composite& c) {
  return {c.call("clone", {c.self(), MemoryFormat::Contiguous})};
}

/// Rows and columns of a triangle, listed row by row.
Values triangle_indices(Composite& c) {
  const i64 rows = c.count_of("row"), columns = c.count_of("col");
  const i64 offset = std::clamp(c.fixed("offset"), -rows, columns);
  const bool lower = c.op() == "tril_indices";
  const DType dtype = c.dtype_or("dtype", DType::i64);
  const ValueId square = c.filled({c.n(rows), c.n(columns)}, 1, DType::i64);
  i64 count = 0;
  for (i64 r = 0; r < rows; ++r) {
    const i64 inside = std::clamp<i64>(r + offset + (lower ? 1 : 0), 0, columns);
    count += lower ? inside : columns - inside;
  }
  // The positions of the ones, first to last, are the first `count` of a stable order by "not
  // inside".
  const ValueId inside = c.call(lower ? "tril" : "triu", {square, c.n(offset)});
  const ValueId order =
      c.call_all("sort.stable", {c.reshape(inside, {c.n(-1)}), true, c.n(0), true}).at(1);
  const ValueId flat = c.slice(order, 0, c.n(0), c.n(count));
  const ValueId row =
      c.call("div.Scalar_mode", {flat, c.n(std::max<i64>(columns, 1)), std::string("floor")});
  const ValueId column = c.call("remainder.Scalar", {flat, c.n(std::max<i64>(columns, 1))});
  return {c.to(c.cat({c.unsqueeze(row, 0), c.unsqueeze(column, 0)}, 0), dtype)};
}

constexpr DecompositionRow kRows[] = {
    {"zeros", constant},
    {"ones", constant},
    {"new_zeros", new_constant},
    {"new_ones", new_constant},
    {"zeros_like", constant_like},
    {"ones_like", constant_like},
    {"new_full", new_full},
    {"fill.Scalar", filled},
    {"fill.Tensor", filled_from_tensor},
    {"zero", zeroed},
    {"arange", arange},
    {"arange.start", arange},
    {"logspace", logspace},
    {"linspace.Tensor_Tensor", range_of_tensors},
    {"linspace.Tensor_Scalar", range_of_tensors},
    {"linspace.Scalar_Tensor", range_of_tensors},
    {"logspace.Tensor_Tensor", range_of_tensors},
    {"logspace.Tensor_Scalar", range_of_tensors},
    {"logspace.Scalar_Tensor", range_of_tensors},
    {"lift_fresh_copy", lift_fresh_copy},
    {"tril_indices", triangle_indices},
    {"triu_indices", triangle_indices},
};

}  // namespace

std::span<const DecompositionRow> create_decompositions() { return kRows; }

}  // namespace coil
