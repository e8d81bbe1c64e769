#include "graph/rule.h"

#include <algorithm>
#include <set>

namespace coil {

bool Call::has(std::string_view name) const {
  const int i = schema.arg_index(name);
  return i >= 0 && !std::holds_alternative<None>(node.args.at(static_cast<std::size_t>(i)));
}

const Arg& Call::arg(std::string_view name) const {
  const int i = schema.arg_index(name);
  COIL_CHECK(i >= 0, "{} has no argument {}", op_, name);
  return node.args.at(static_cast<std::size_t>(i));
}

const Type& Call::tensor(std::string_view name) const {
  return graph.type(std::get<ValueId>(arg(name)));
}

Types Call::tensors(std::string_view name) const {
  Types out;
  for (ValueId v : std::get<std::vector<ValueId>>(arg(name)))
    if (v.valid()) out.push_back(graph.type(v));
  return out;
}

const Type& Call::self() const { return graph.type(std::get<ValueId>(node.args.at(0))); }

bool Call::flag(std::string_view name) const {
  const Arg& value = arg(name);
  if (const sym::Expr* e = std::get_if<sym::Expr>(&value)) return !syms.is_const(*e, 0);
  return std::get<bool>(value);
}

DType Call::dtype(std::string_view name, DType otherwise) const {
  return has(name) ? std::get<DType>(arg(name)) : otherwise;
}

MemoryFormat Call::format(std::string_view name, MemoryFormat otherwise) const {
  return has(name) ? std::get<MemoryFormat>(arg(name)) : otherwise;
}

Result<i64> Call::constant(std::string_view name) const {
  if (std::optional<i64> value = syms.as_const(integer(name))) return *value;
  return fail("{} is {}, but must be a fixed number", name, syms.text(integer(name)));
}

Result<std::vector<i64>> Call::constants(std::string_view name) const {
  std::vector<i64> out;
  for (sym::Expr e : sizes(name)) {
    const std::optional<i64> value = syms.as_const(e);
    if (!value) return fail("{} holds {}, but must hold fixed numbers", name, syms.text(e));
    out.push_back(*value);
  }
  return out;
}

Result<i64> Call::dim(std::string_view name, std::size_t ndim) const {
  Result<i64> wrapped = wrap_dim(COIL_TRY(constant(name)), ndim);
  if (!wrapped.ok()) return in_context(op_, wrapped.error());
  return wrapped;
}

Result<std::vector<i64>> Call::dims(std::string_view name, std::size_t ndim) const {
  std::vector<i64> out = COIL_TRY(constants(name));
  for (i64& d : out) {
    Result<i64> wrapped = wrap_dim(d, ndim);
    if (!wrapped.ok()) return in_context(op_, wrapped.error());
    d = *wrapped;
  }
  std::vector<i64> sorted = out;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    return fail("a dim appears twice in {}", name);
  return out;
}

Type Call::contiguous(DType dtype, Sizes shape) const {
  Sizes strides = contiguous_strides(syms, shape);
  return strided(dtype, std::move(shape), std::move(strides));
}

Type Call::strided(DType dtype, Sizes shape, Sizes strides) const {
  return Type{TypeKind::Tensor, dtype, std::move(shape), std::move(strides), sym::Expr()};
}

std::string Call::shape_text(std::span<const sym::Expr> shape) const {
  return "[" + join(shape, ", ", [&](sym::Expr e) { return syms.text(e); }) + "]";
}

Result<i64> wrap_dim(i64 dim, std::size_t ndim) {
  const i64 count = ndim == 0 ? 1 : static_cast<i64>(ndim);
  if (dim < -count || dim >= count)
    return error("dim {} is outside {}..{} of a tensor with {} dims", dim, -count, count - 1, ndim);
  return dim < 0 ? dim + count : dim;
}

bool known_equal(Graph& graph, sym::Expr a, sym::Expr b) {
  return a == b || sym::Prover(*graph.syms, graph.facts).is_equal(a, b);
}

bool known_value(Graph& graph, sym::Expr size, i64 value) {
  if (std::optional<i64> constant = graph.syms->as_const(size)) return *constant == value;
  return known_equal(graph, size, graph.syms->constant(value));
}
bool known_empty(Graph& graph, const Type& type) {
  return std::ranges::any_of(type.shape, [&](sym::Expr n) { return known_value(graph, n, 0); });
}

bool known_less(Graph& graph, sym::Expr a, sym::Expr b) {
  return sym::Prover(*graph.syms, graph.facts).less(a, b) == sym::Answer::Yes;
}

bool known_less_equal(Graph& graph, sym::Expr a, sym::Expr b) {
  return a == b || sym::Prover(*graph.syms, graph.facts).less_equal(a, b) == sym::Answer::Yes;
}

sym::Expr smaller(Graph& graph, sym::Expr a, sym::Expr b) {
  if (known_less_equal(graph, a, b)) return a;
  return known_less_equal(graph, b, a) ? b : graph.syms->min(a, b);
}

sym::Expr larger(Graph& graph, sym::Expr a, sym::Expr b) {
  if (known_less_equal(graph, b, a)) return a;
  return known_less_equal(graph, a, b) ? b : graph.syms->max(a, b);
}

sym::Expr data_variable(Graph& graph, sym::Range range) {
  // Names are unique in the whole arena, which subgraphs share.
  const sym::Arena& syms = *graph.syms;
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < syms.size(); ++i)
    if (syms.kind(sym::Expr(i)) == sym::Kind::Var) names.insert(syms.var(sym::Expr(i)).name);
  int number = 0;
  while (names.contains(str("u{}", number))) ++number;
  return graph.syms->variable({str("u{}", number), sym::Role::Value, range, sym::Expr()});
}

Sizes reduced_shape(const Call& call, const Type& self, std::span<const i64> dims, bool keep) {
  Sizes shape;
  for (std::size_t i = 0; i < self.ndim(); ++i) {
    const bool gone = std::ranges::find(dims, static_cast<i64>(i)) != dims.end();
    if (!gone) shape.push_back(self.shape[i]);
    if (gone && keep) shape.push_back(call.number(1));
  }
  return shape;
}

Status require_equal(Graph& graph, sym::Expr a, sym::Expr b, std::string_view what) {
  if (a == b) return Ok{};
  sym::Arena& syms = *graph.syms;
  switch (sym::Prover(syms, graph.facts).equal(a, b)) {
    case sym::Answer::Yes: return Ok{};
    case sym::Answer::No: return error("{} {} and {} differ", what, syms.text(a), syms.text(b));
    case sym::Answer::Unknown: break;
  }
  const sym::Expr condition = syms.eq(a, b);
  for (const Check& check : graph.checks)
    if (check.condition == condition) return Ok{};
  graph.checks.push_back(
      {condition, str("{} {} and {} must agree", what, syms.text(a), syms.text(b))});
  return Ok{};
}

}  // namespace coil
