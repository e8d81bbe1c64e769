// Core ops that move elements of complex tensors, add them up or make them: as ops of their parts.

#include "ops/schema.h"
#include "passes/composite.h"

namespace coil {
namespace {

enum class Part : u8 { Real, Imaginary };

const Type* tensor_type(Composite& c, const Arg& arg) {
  const ValueId* v = std::get_if<ValueId>(&arg);
  return v && v->valid() && c.type(*v).is_tensor() ? &c.type(*v) : nullptr;
}
bool is_complex_tensor(Composite& c, const Arg& arg) {
  const Type* type = tensor_type(c, arg);
  return type && is_complex(type->dtype);
}

/// What an argument is for one part of the result: that part of a complex tensor or number.
Arg part_of(Composite& c, const ops::SchemaArg& formal, const Arg& arg, Part part) {
  const bool is_real = part == Part::Real;
  if (is_complex_tensor(c, arg)) return c.call(is_real ? "real" : "imag", {std::get<ValueId>(arg)});
  if (const DType* dtype = std::get_if<DType>(&arg))
    return is_complex(*dtype) ? real_of(*dtype) : *dtype;
  if (formal.type != ops::ArgType::Scalar || std::holds_alternative<None>(arg)) return arg;
  if (const Complex* z = std::get_if<Complex>(&arg)) return is_real ? z->re : z->im;
  return is_real ? arg : Arg(0.0);
}

/// The op on the real parts, and on the imaginary ones.
ValueId by_parts(Composite& c, const std::vector<Arg>& args) {
  const ops::Schema schema = *ops::find_schema(c.op());
  const auto result = [&](Part part) {
    std::vector<Arg> mine;
    for (std::size_t i = 0; i < args.size(); ++i)
      mine.push_back(part_of(c, schema.args.at(i), args[i], part));
    return c.call(c.op(), mine);
  };
  const ValueId real = result(Part::Real);
  return c.call("complex", {real, result(Part::Imaginary)});
}
Values by_parts(Composite& c) { return {by_parts(c, c.args())}; }

std::size_t position(Composite& c, std::string_view name) {
  const int i = ops::find_schema(c.op())->arg_index(name);
  COIL_CHECK(i >= 0, "{} has no argument {}", c.op(), name);
  return static_cast<std::size_t>(i);
}

/// The op over a last dim of both parts, which `dim` does not reach.
ValueId over_parts(Composite& c, std::vector<Arg> args) {
  args[position(c, "dim")] = c.n(c.dim("dim", c.self()));
  for (Arg& arg : args)
    if (is_complex_tensor(c, arg)) arg = c.call("view_as_real", {std::get<ValueId>(arg)});
  return c.call("view_as_complex", {c.call(c.op(), args)});
}

/// Slices along a dim.
Values slices(Composite& c) {
  if (c.ndim(c.self()) == 0) return by_parts(c);
  return {over_parts(c, c.args())};
}

Values index_add(Composite& c) {
  std::vector<Arg> args = c.args();
  args[position(c, "source")] = c.mul(c.tensor("source"), c.arg("alpha"));
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(position(c, "alpha")));  // it is 1
  return {c.ndim(c.self()) == 0 ? by_parts(c, args) : over_parts(c, args)};
}

void check_reduction(Composite& c) {
  if (!c.has("reduce")) return;
  const std::string& reduce = c.word("reduce");
  if (reduce != "add" && reduce != "sum" && reduce != "mean")
    c.fail("the reduction {} of complex tensors is not supported", reduce);
}

/// Single elements at places along a dim: both parts at the same one.
Values elements(Composite& c) {
  check_reduction(c);
  const ValueId index = c.tensor("index");
  if (c.ndim(c.self()) == 0 || c.ndim(index) != c.ndim(c.self())) return by_parts(c);
  std::vector<Arg> args = c.args();
  Exprs shape = c.shape(index);
  shape.push_back(c.n(2));
  args[position(c, "index")] = c.expand(c.unsqueeze(index, -1), shape);
  return {over_parts(c, args)};
}

/// One number at all of them.
Values number(Composite& c) {
  check_reduction(c);
  return by_parts(c);
}

Values index_fill(Composite& c) {
  std::vector<Arg> args = c.args();
  Arg& value = args[position(c, "value")];
  if (tensor_type(c, value)) value = c.to(std::get<ValueId>(value), c.dtype(c.self()));
  return {by_parts(c, args)};
}

/// Where an element is not 0.
Values positions(Composite& c) {
  std::vector<Arg> args = c.args();
  args[0] = c.ne(c.self(), c.n(0));
  return {c.call(c.op(), args)};
}

Values eye(Composite& c) {
  std::vector<Arg> args = c.args();
  const DType dtype = c.dtype_or("dtype", DType::c64);
  args[position(c, "dtype")] = real_of(dtype);
  return {c.to(c.call(c.op(), args), dtype)};
}

constexpr DecompositionRow kRows[] = {
    {"gather", elements},
    {"scatter.src", elements},
    {"scatter.reduce", elements},
    {"scatter_add", elements},
    {"scatter_reduce.two", elements},
    {"scatter.value", number},
    {"scatter.value_reduce", number},
    {"index_select", slices},
    {"index_copy", slices},
    {"index_add", index_add},
    {"index_fill.int_Scalar", index_fill},
    {"index_fill.int_Tensor", index_fill},
    {"embedding", by_parts},
    {"col2im", by_parts},
    {"nonzero", positions},
    {"nonzero_static", positions},
    {"tril", by_parts},
    {"triu", by_parts},
    {"constant_pad_nd", by_parts},
    {"reflection_pad1d", by_parts},
    {"reflection_pad2d", by_parts},
    {"reflection_pad3d", by_parts},
    {"replication_pad1d", by_parts},
    {"replication_pad2d", by_parts},
    {"replication_pad3d", by_parts},
    {"linspace", by_parts},
    {"eye", eye},
    {"eye.m", eye},
};

}  // namespace

std::span<const DecompositionRow> complex_part_decompositions() { return kRows; }

}  // namespace coil
