#include "lower/args.h"

#include "base/check.h"
#include "graph/builder.h"

namespace coil::lowering {
namespace {

const Arg kNone = None{};

}  // namespace

Args::Args(sym::Arena& syms, std::string_view op, std::span<const Arg> args, std::size_t first)
    : syms_(syms), args_(args), first_(first) {
  auto schema = ops::find_schema(op);
  COIL_CHECK(schema.has_value(), "no schema of {}", op);
  schema_ = std::move(*schema);
}

const Arg& Args::operator[](std::string_view name) const {
  const int at = schema_.arg_index(name);
  if (at < 0) return kNone;
  const std::size_t position = static_cast<std::size_t>(at);
  if (position < first_ || position - first_ >= args_.size()) return kNone;
  return args_[position - first_];
}

ValueId Args::tensor(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (std::holds_alternative<None>(arg)) return {};
  if (const ValueId* tensor = std::get_if<ValueId>(&arg)) return *tensor;
  throw BuildError{error("argument {} is not a tensor", name)};
}

std::vector<ValueId> Args::tensors(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* one = std::get_if<ValueId>(&arg)) return {*one};
  const auto* list = std::get_if<std::vector<ValueId>>(&arg);
  return list ? *list : std::vector<ValueId>{};
}

Expr Args::size(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* e = std::get_if<Expr>(&arg)) return *e;
  if (const auto* b = std::get_if<bool>(&arg)) return syms_.constant(*b);
  return {};
}

Exprs Args::sizes(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* one = std::get_if<Expr>(&arg)) return {*one};
  const auto* list = std::get_if<Exprs>(&arg);
  return list ? *list : Exprs{};
}

i64 Args::fixed(std::string_view name, Expr value) const {
  const std::optional<i64> number = value.valid() ? syms_.as_const(value) : std::nullopt;
  if (!number) throw BuildError{error("argument {} is not a fixed number", name)};
  return *number;
}

i64 Args::integer(std::string_view name) const { return fixed(name, size(name)); }

std::vector<i64> Args::integers(std::string_view name) const {
  std::vector<i64> out;
  for (Expr e : sizes(name)) out.push_back(fixed(name, e));
  return out;
}

std::size_t Args::dim(std::string_view name, std::size_t rank) const {
  const i64 dim = integer(name);
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<i64>(rank) : dim);
}

bool Args::flag(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* b = std::get_if<bool>(&arg)) return *b;
  if (const auto* e = std::get_if<Expr>(&arg)) return !syms_.is_const(*e, 0);
  return false;
}

double Args::number(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* d = std::get_if<double>(&arg)) return *d;
  if (const auto* b = std::get_if<bool>(&arg)) return *b;
  return static_cast<double>(integer(name));
}

std::vector<double> Args::numbers(std::string_view name) const {
  const Arg& arg = (*this)[name];
  if (const auto* list = std::get_if<std::vector<double>>(&arg)) return *list;
  std::vector<double> out;
  for (i64 v : integers(name)) out.push_back(static_cast<double>(v));
  return out;
}

std::string Args::text(std::string_view name) const {
  const auto* s = std::get_if<std::string>(&(*this)[name]);
  return s ? *s : "";
}

std::vector<bool> dim_set(std::span<const i64> dims, std::size_t rank) {
  std::vector<bool> set(rank, dims.empty());
  for (i64 dim : dims) {
    if (rank == 0) break;
    set.at(static_cast<std::size_t>(dim < 0 ? dim + static_cast<i64>(rank) : dim)) = true;
  }
  return set;
}

}  // namespace coil::lowering
