#include "passes/composite.h"

#include <algorithm>
#include <numeric>

#include "graph/rules.h"

namespace coil {
namespace {

ops::Schema schema_of(const std::string& op) {
  std::optional<ops::Schema> schema = ops::find_schema(op);
  COIL_CHECK(schema.has_value(), "a decomposition of {}, which has no schema", op);
  return *schema;
}

}  // namespace

Composite::Composite(GraphBuilder& b, const Node& node)
    : builder(b), syms(b.syms()), op_(node.op), args_(node.args), schema_(schema_of(node.op)) {}

bool Composite::has(std::string_view name) const {
  const int i = schema_.arg_index(name);
  return i >= 0 && !std::holds_alternative<None>(args_.at(static_cast<std::size_t>(i)));
}

const Arg& Composite::arg(std::string_view name) const {
  const int i = schema_.arg_index(name);
  COIL_CHECK(i >= 0, "{} has no argument {}", op_, name);
  return args_.at(static_cast<std::size_t>(i));
}

ValueId Composite::self() const { return std::get<ValueId>(args_.at(0)); }

ValueId Composite::tensor(std::string_view name) const {
  return has(name) ? std::get<ValueId>(arg(name)) : ValueId();
}

Values Composite::tensors(std::string_view name) const {
  const Values& list = std::get<Values>(arg(name));
  if (list.empty()) fail("{} must hold at least one tensor", name);
  return list;
}

sym::Expr Composite::integer(std::string_view name) const { return std::get<sym::Expr>(arg(name)); }

Exprs Composite::integers(std::string_view name) const {
  return has(name) ? Exprs(std::get<std::vector<sym::Expr>>(arg(name))) : Exprs();
}

i64 Composite::fixed(std::string_view name) const {
  if (std::optional<i64> value = syms.as_const(integer(name))) return *value;
  fail("{} is {}, but must be a fixed number", name, syms.text(integer(name)));
}

i64 Composite::count_of(std::string_view name) const {
  constexpr i64 kMost = 65536;
  const i64 count = fixed(name);
  if (count < 0 || count > kMost) fail("{} is {}, but must be from 0 to {}", name, count, kMost);
  return count;
}

Dims Composite::all_fixed(std::string_view name) const {
  Dims out;
  for (sym::Expr e : integers(name)) {
    const std::optional<i64> value = syms.as_const(e);
    if (!value) fail("{} holds {}, but must hold fixed numbers", name, syms.text(e));
    out.push_back(*value);
  }
  return out;
}

double Composite::real(std::string_view name) const {
  const Arg& value = arg(name);
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const bool* number = std::get_if<bool>(&value)) return *number ? 1 : 0;
  if (const sym::Expr* number = std::get_if<sym::Expr>(&value))
    if (std::optional<i64> fixed = syms.as_const(*number)) return static_cast<double>(*fixed);
  fail("{} must be a fixed number", name);
}

bool Composite::flag(std::string_view name) const {
  const Arg& value = arg(name);
  if (const bool* set = std::get_if<bool>(&value)) return *set;
  return std::holds_alternative<sym::Expr>(value) && !syms.is_const(std::get<sym::Expr>(value), 0);
}

const std::string& Composite::word(std::string_view name) const {
  return std::get<std::string>(arg(name));
}

DType Composite::dtype_or(std::string_view name, DType otherwise) const {
  return has(name) ? std::get<DType>(arg(name)) : otherwise;
}

i64 Composite::wrap(i64 d, i64 of) const {
  const i64 count = std::max<i64>(of, 1);
  if (d < -count || d >= count) fail("dim {} of a tensor with {} dims", d, of);
  return d < 0 ? d + count : d;
}

i64 Composite::dim(std::string_view name, ValueId of) const { return wrap(fixed(name), ndim(of)); }

Dims Composite::dims(std::string_view name, ValueId of) const {
  Dims out;
  if (has(name) && std::holds_alternative<sym::Expr>(arg(name))) return {dim(name, of)};
  out = all_fixed(name);
  for (i64& d : out) d = wrap(d, ndim(of));
  if (!out.empty()) return out;
  out.resize(static_cast<std::size_t>(ndim(of)));
  std::iota(out.begin(), out.end(), i64{0});
  return out;
}

bool Composite::is(sym::Expr size, i64 value) const { return same(size, n(value)); }

bool Composite::same(sym::Expr a, sym::Expr b) const {
  return a == b || sym::Prover(syms, builder.graph().facts).is_equal(a, b);
}

bool Composite::is_contiguous(ValueId v) const {
  return coil::is_contiguous(builder.graph(), Type(type(v)));
}

bool Composite::is_channels_last(ValueId v) const {
  return coil::is_channels_last(builder.graph(), Type(type(v))) && !is_contiguous(v);
}

sym::Expr Composite::product(const Exprs& sizes, std::size_t first, std::size_t last) const {
  return syms.product(std::span(sizes).subspan(first, last - first));
}

ValueId Composite::permute(ValueId v, const Dims& order) {
  if (std::ranges::is_sorted(order)) return v;
  return call("permute", {v, as_exprs(order)});
}

ValueId Composite::transpose(ValueId v, i64 a, i64 b) {
  if (ndim(v) == 0) return v;
  Dims order(static_cast<std::size_t>(ndim(v)));
  std::iota(order.begin(), order.end(), i64{0});
  std::swap(order[static_cast<std::size_t>(wrap(a, ndim(v)))],
            order[static_cast<std::size_t>(wrap(b, ndim(v)))]);
  return permute(v, order);
}

ValueId Composite::view(ValueId v, Exprs shape) {
  if (shape == type(v).shape) return v;
  return call("view", {v, std::move(shape)});
}

ValueId Composite::reshape(ValueId v, Exprs shape) {
  const Type of = type(v);
  shape = value_or_throw(complete_shape(builder.graph(), of.shape, std::move(shape)));
  if (shape == of.shape) return v;
  if (!view_strides(builder.graph(), of, shape)) v = call("clone", {v, MemoryFormat::Contiguous});
  return view(v, std::move(shape));
}

ValueId Composite::expand(ValueId v, Exprs shape) {
  if (shape == type(v).shape) return v;
  return call("expand", {v, std::move(shape)});
}

ValueId Composite::unsqueeze(ValueId v, i64 d) { return call("unsqueeze", {v, n(d)}); }

ValueId Composite::squeeze(ValueId v, Dims dims) {
  return call("squeeze.dims", {v, as_exprs(dims)});
}

ValueId Composite::select(ValueId v, i64 d, sym::Expr index) {
  return call("select.int", {v, n(d), index});
}

ValueId Composite::slice(ValueId v, i64 d, sym::Expr begin, sym::Expr end) {
  return call("slice.Tensor", {v, n(d), begin, end});
}

ValueId Composite::cat(Values values, i64 d) { return call("cat", {std::move(values), n(d)}); }

ValueId Composite::contiguous(ValueId v) {
  return is_contiguous(v) ? v : call("clone", {v, MemoryFormat::Contiguous});
}

ValueId Composite::to(ValueId v, DType to) {
  return dtype(v) == to ? v : call("_to_copy", {v, to});
}

Arg Composite::scalar(double value, DType dtype) const {
  if (is_float(dtype) || is_complex(dtype)) return value;
  if (is_bool(dtype)) return value != 0;
  return n(static_cast<i64>(value));
}

ValueId Composite::filled(Exprs shape, double value, DType dtype) {
  return call("full", {std::move(shape), scalar(value, dtype), dtype});
}

ValueId Composite::binary(const std::string& op, ValueId a, Arg b) {
  const ValueId* other = std::get_if<ValueId>(&b);
  const bool is_tensor = other != nullptr && type(*other).is_tensor();
  return call(op + (is_tensor ? ".Tensor" : ".Scalar"), {a, std::move(b)});
}

ValueId Composite::where(ValueId condition, ValueId yes, double no) {
  return call("where.ScalarOther", {condition, yes, scalar(no, dtype(yes))});
}

ValueId Composite::sum(ValueId v, const Dims& dims, KeepDim keep) {
  return call("sum.dim_IntList", {v, as_exprs(dims), keep == KeepDim::Yes});
}

ValueId Composite::mean(ValueId v, const Dims& dims, KeepDim keep) {
  return call("mean.dim", {v, as_exprs(dims), keep == KeepDim::Yes});
}

Values Composite::broadcast_all(const Values& values) {
  std::vector<Type> types;
  for (ValueId v : values) types.push_back(type(v));
  const Exprs shape = value_or_throw(broadcast(builder.graph(), types));
  Values out;
  for (ValueId v : values) out.push_back(expand(v, shape));
  return out;
}

Exprs Composite::as_exprs(const Dims& values) const {
  Exprs out;
  for (i64 v : values) out.push_back(n(v));
  return out;
}

DType Composite::common_dtype(const Values& values) const {
  Promotion operands;
  for (ValueId v : values) operands.tensors.push_back(type(v));
  return promote(operands);
}

}  // namespace coil
