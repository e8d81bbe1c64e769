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

bool multiplies(Composite& c) {
  return c.has("reduce") && (c.word("reduce") == "prod" || c.word("reduce") == "multiply");
}

void check_reduction(Composite& c) {
  if (!c.has("reduce")) return;
  const std::string& reduce = c.word("reduce");
  if (reduce != "add" && reduce != "sum" && reduce != "mean")
    c.fail("the reduction {} of complex tensors is not supported", reduce);
}

/// `v`, whose dims but `dim` begin where those of `like` do, with `value` behind them.
ValueId padded(Composite& c, ValueId v, ValueId like, i64 dim, double value) {
  Exprs pad;
  for (i64 d = c.ndim(v); d-- > 0;) {
    pad.push_back(c.n(0));
    pad.push_back(d == dim ? c.n(0) : c.syms.sub(c.size(like, d), c.size(v, d)));
  }
  return c.call("constant_pad_nd", {v, pad, value});
}

/// Elements multiplied by those that are scattered to them. Products of complex numbers are none of
/// their parts: each place of a line takes the product over the line, of what is meant for it.
Values products(Composite& c, ValueId source) {
  ValueId self = c.self(), index = c.tensor("index");
  if (c.ndim(index) != c.ndim(self) || c.ndim(source) != c.ndim(self))
    c.fail("needs an index and a source of {} dims", c.ndim(self));
  const bool is_single = c.ndim(self) == 0;
  if (is_single)
    for (ValueId* v : {&self, &index, &source}) *v = c.unsqueeze(*v, 0);
  const i64 dim = is_single ? 0 : c.dim("dim", self);
  for (i64 d = 0; d < c.ndim(self); ++d) source = c.slice(source, d, c.n(0), c.size(index, d));
  const ValueId line = c.call("arange.start_step", {c.n(0), c.size(self, dim), c.n(1), DType::i64});
  // Taken from the line, an index is checked.
  const ValueId taken = c.call("gather", {line, c.n(0), c.reshape(index, {c.count(index)}), false});
  Exprs column(static_cast<std::size_t>(c.ndim(self)) + 1, c.n(1));
  column[static_cast<std::size_t>(dim)] = c.size(self, dim);
  const ValueId place = c.unsqueeze(c.view(taken, c.shape(index)), dim);
  const ValueId meant = c.call("eq.Tensor", {place, c.view(line, column)});
  const ValueId factors = c.where(meant, c.unsqueeze(source, dim), 1);
  ValueId product = c.call("prod.dim_int", {factors, c.n(dim + 1), false});
  const ValueId is_hit = c.call("any.dim", {meant, c.n(dim + 1), false});
  const bool includes_self = !c.has("include_self") || c.flag("include_self");
  product = padded(c, product, self, dim, 1);
  if (includes_self) product = c.mul(self, product);
  ValueId out = c.call("where.self", {padded(c, is_hit, self, dim, 0), product, self});
  if (is_single) out = c.squeeze(out, {0});
  return {c.call("clone", {out, MemoryFormat::Contiguous})};
}

/// Single elements at places along a dim: both parts at the same one.
Values elements(Composite& c) {
  if (multiplies(c)) return products(c, c.tensor("src"));
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
  if (multiplies(c)) {
    const Exprs shape = c.shape(c.tensor("index"));
    return products(c, c.call("full", {shape, c.arg("value"), c.dtype(c.self())}));
  }
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
