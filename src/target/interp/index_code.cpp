#include "target/interp/index_code.h"

#include <algorithm>

namespace coil::interp {
namespace {

i64 wrapping_add(i64 a, i64 b) {
  return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b));
}
i64 wrapping_mul(i64 a, i64 b) {
  return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b));
}

/// Floor division and its remainder; INT64_MIN / -1 wraps.
i64 floor_div(i64 a, i64 b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_mul(a, -1);
  const i64 quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
i64 floor_mod(i64 a, i64 b) {
  if (b == 0 || b == -1) return 0;
  const i64 rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

i64 apply(sym::Kind kind, i64 a, i64 b) {
  switch (kind) {
    case sym::Kind::Add: return wrapping_add(a, b);
    case sym::Kind::Mul: return wrapping_mul(a, b);
    case sym::Kind::FloorDiv: return floor_div(a, b);
    case sym::Kind::Mod: return floor_mod(a, b);
    case sym::Kind::Min: return std::min(a, b);
    case sym::Kind::Max: return std::max(a, b);
    case sym::Kind::Eq: return a == b;
    case sym::Kind::Ne: return a != b;
    case sym::Kind::Lt: return a < b;
    case sym::Kind::Le: return a <= b;
    case sym::Kind::And: return a != 0 && b != 0;
    case sym::Kind::Or: return a != 0 || b != 0;
    case sym::Kind::Const:
    case sym::Kind::Var:
    case sym::Kind::Not:
    case sym::Kind::Select: break;
  }
  COIL_UNREACHABLE();
}

using Columns = std::span<const sym::Expr>;

std::optional<Linear> linear_of(sym::Expr e, Columns columns, const Env& env);

std::optional<Linear> sum_of(std::span<const sym::Expr> terms, Columns columns, const Env& env) {
  Linear sum{0, std::vector<i64>(columns.size())};
  for (sym::Expr term : terms) {
    const std::optional<Linear> part = linear_of(term, columns, env);
    if (!part) return std::nullopt;
    if (__builtin_add_overflow(sum.base, part->base, &sum.base)) return std::nullopt;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (__builtin_add_overflow(sum.scale[c], part->scale[c], &sum.scale[c])) return std::nullopt;
  }
  return sum;
}

std::optional<Linear> product_of(std::span<const sym::Expr> factors, Columns columns,
                                 const Env& env) {
  Linear product{1, std::vector<i64>(columns.size())};
  for (sym::Expr factor : factors) {
    std::optional<Linear> part = linear_of(factor, columns, env);
    if (!part) return std::nullopt;
    if (!part->is_constant()) std::swap(product, *part);
    if (!part->is_constant()) return std::nullopt;
    if (__builtin_mul_overflow(product.base, part->base, &product.base)) return std::nullopt;
    for (i64& scale : product.scale)
      if (__builtin_mul_overflow(scale, part->base, &scale)) return std::nullopt;
  }
  return product;
}

std::optional<Linear> linear_of(sym::Expr e, Columns columns, const Env& env) {
  const sym::Arena& syms = *env.syms;
  if (const auto at = std::ranges::find(columns, e); at != columns.end()) {
    Linear column{0, std::vector<i64>(columns.size())};
    column.scale[static_cast<std::size_t>(at - columns.begin())] = 1;
    return column;
  }
  if (std::ranges::none_of(columns, [&](sym::Expr c) { return syms.uses(e, c); }))
    return Linear{env.at(e), std::vector<i64>(columns.size())};
  if (syms.kind(e) == sym::Kind::Add) return sum_of(syms.operands(e), columns, env);
  if (syms.kind(e) == sym::Kind::Mul) return product_of(syms.operands(e), columns, env);
  return std::nullopt;
}

}  // namespace

bool Linear::is_constant() const {
  return std::ranges::all_of(scale, [](i64 s) { return s == 0; });
}

void Linear::evaluate(i64 n, std::span<const i64* const> columns, i64* out) const {
  std::fill_n(out, n, base);
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const i64 s = scale[c];
    if (s == 0) continue;
    const i64* column = columns[c];
    for (i64 i = 0; i < n; ++i) out[i] = wrapping_add(out[i], wrapping_mul(s, column[i]));
  }
}

IndexCode::IndexCode(sym::Expr e, Columns columns, const Env& env) { emit(e, columns, env); }

void IndexCode::emit(sym::Expr e, Columns columns, const Env& env) {
  if (std::optional<Linear> linear = linear_of(e, columns, env)) {
    code_.push_back({sym::Kind::Const, 0, std::move(*linear)});
    return;
  }
  const std::span<const sym::Expr> operands = env.syms->operands(e);
  for (sym::Expr operand : operands) emit(operand, columns, env);
  code_.push_back({env.syms->kind(e), static_cast<u32>(operands.size()), {}});
}

void IndexCode::evaluate(i64 n, std::span<const i64* const> columns, i64* out) const {
  if (const Linear* only = linear()) return only->evaluate(n, columns, out);
  std::vector<std::vector<i64>> stack;
  for (const Op& op : code_) {
    if (op.kind == sym::Kind::Const) {
      op.leaf.evaluate(n, columns, stack.emplace_back(n).data());
      continue;
    }
    const std::size_t first = stack.size() - op.arity;
    std::vector<i64>& result = stack[first];
    if (op.kind == sym::Kind::Not) {
      for (i64& x : result) x = x == 0;
    } else if (op.kind == sym::Kind::Select) {
      for (i64 i = 0; i < n; ++i)
        result[i] = result[i] != 0 ? stack[first + 1][i] : stack[first + 2][i];
    } else {
      for (std::size_t k = first + 1; k < stack.size(); ++k)
        for (i64 i = 0; i < n; ++i) result[i] = apply(op.kind, result[i], stack[k][i]);
    }
    stack.resize(first + 1);
  }
  std::copy_n(stack[0].data(), n, out);
}

bool IndexCode::is_within(i64 extent, std::span<const Bounds> bounds) const {
  const Linear* form = linear();
  if (form == nullptr) return false;
  __int128 lo = form->base;
  __int128 hi = form->base;
  for (std::size_t c = 0; c < bounds.size(); ++c) {
    const __int128 scale = form->scale[c];
    if (scale == 0) continue;
    lo += scale * (scale > 0 ? bounds[c].lo : bounds[c].hi);
    hi += scale * (scale > 0 ? bounds[c].hi : bounds[c].lo);
  }
  return lo >= 0 && hi < extent;
}

}  // namespace coil::interp
