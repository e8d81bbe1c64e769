#include "graph/unify.h"

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

constexpr i64 kMaxElements = i64{1} << 48;
constexpr std::size_t kMaxTerms = 1024;  // of a size or stride; what is longer, no program means

}  // namespace

bool Unifier::is_data(sym::Expr e) const {
  return graph_.syms->kind(e) == sym::Kind::Var && graph_.syms->var(e).role == sym::Role::Value;
}

void Unifier::define(const Type& type) {
  std::vector<sym::Expr> variables;
  for (sym::Expr e : type.shape) graph_.syms->variables(e, variables);
  if (type.expr.valid()) graph_.syms->variables(type.expr, variables);
  for (sym::Expr v : variables)
    if (is_data(v)) defined_.insert(v);
}

bool Unifier::match(sym::Expr derived, sym::Expr written) {
  if (!derived.valid() || !written.valid()) return derived == written;
  if (!fresh_.empty()) derived = graph_.syms->substitute(derived, fresh_);
  if (known_equal(graph_, derived, written)) return true;
  if (!is_data(derived) || !is_data(written) || defined_.contains(derived) ||
      defined_.contains(written))
    return false;
  // Two sizes of one node are two variables, and no other names them.
  for (const auto& [from, to] : fresh_)
    if (to == derived || to == written) return false;
  const sym::Range have = graph_.syms->var(written).range;
  const sym::Range known = graph_.syms->var(derived).range;
  const sym::Range both{std::max(have.lo, known.lo), std::min(have.hi, known.hi)};
  if (both.lo > both.hi) return false;
  graph_.syms->set_range(written, both);
  fresh_.emplace_back(derived, written);
  return true;
}

bool Unifier::match(const Type& derived, const Type& written) {
  if (derived.kind != written.kind || derived.ndim() != written.ndim()) return false;
  if (derived.is_tensor() && derived.dtype != written.dtype) return false;
  for (std::size_t i = 0; i < derived.ndim(); ++i)
    if (!match(derived.shape[i], written.shape[i])) return false;
  for (std::size_t i = 0; i < derived.strides.size(); ++i)
    if (!match(derived.strides[i], written.strides[i])) return false;
  return match(derived.expr, written.expr);
}

Status check_type(sym::Arena& syms, const Type& type) {
  i64 count = 1;
  for (sym::Expr size : type.shape) {
    const std::optional<i64> fixed = syms.as_const(size);
    if (fixed && *fixed < 0) return error("a size is {}", *fixed);
    if (fixed && *fixed > 0 && __builtin_mul_overflow(count, *fixed, &count)) count = INT64_MAX;
    if (count > kMaxElements) return error("{} has too many elements", text(syms, type));
    if (syms.terms(size) > kMaxTerms)
      return error("a size is an expression of {} terms", syms.terms(size));
  }
  return Ok{};
}

Result<i64> storage_extent(sym::Arena& syms, const Type& type, i64 offset) {
  if (!type.is_tensor()) return error("a constant must be a tensor");
  if (offset < 0 || offset > kMaxElements) return error("offset {} is out of range", offset);
  i64 last = offset;
  bool is_empty = false;
  for (std::size_t i = 0; i < type.ndim(); ++i) {
    const std::optional<i64> size = syms.as_const(type.shape[i]);
    const std::optional<i64> stride = syms.as_const(type.strides[i]);
    if (!size || !stride) return error("a constant has fixed sizes only, not {}", text(syms, type));
    if (*size < 0 || *stride < 0) return error("a constant has no negative sizes or strides");
    is_empty |= *size == 0;
    i64 reach = 0;
    if (__builtin_mul_overflow(std::max<i64>(*size - 1, 0), *stride, &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > kMaxElements)
      return error("{} reaches too far", text(syms, type));
  }
  return is_empty ? 0 : last + 1;
}

}  // namespace coil
