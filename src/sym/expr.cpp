#include "sym/expr.h"

#include <algorithm>
#include <tuple>

#include "sym/arena.h"
#include "sym/tree.h"

namespace coil::sym {
namespace {

/// Variables first, constants last.
int rank(Kind kind) { return kind == Kind::Const ? 255 : static_cast<int>(kind); }

/// i2 before i10: the letters, then the number at the end.
std::tuple<std::string_view, std::size_t, std::string_view> name_order(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  return {name.substr(0, digits), name.size() - digits, name.substr(digits)};
}

u64 mix(u64 hash, u64 value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

}  // namespace

bool is_boolean(Kind kind) {
  switch (kind) {
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not: return true;
    case Kind::Const:
    case Kind::Var:
    case Kind::Add:
    case Kind::Mul:
    case Kind::FloorDiv:
    case Kind::Mod:
    case Kind::Min:
    case Kind::Max:
    case Kind::Select: return false;
  }
  COIL_UNREACHABLE();
}

std::optional<i64> Arena::Impl::as_const(Expr e) const {
  const Node& n = node(e);
  return n.kind == Kind::Const ? std::optional<i64>(n.value) : std::nullopt;
}

const Variable& Arena::Impl::var(Expr e) const {
  COIL_CHECK(kind(e) == Kind::Var);
  return variables[static_cast<std::size_t>(node(e).value)];
}

const Expr* Arena::Impl::store(std::span<const Expr> operands) {
  constexpr std::size_t kBlock = 4096;
  if (operands.empty()) return nullptr;
  if (block_used + operands.size() > block_size) {
    block_size = std::max(kBlock, operands.size());
    block_used = 0;
    blocks.push_back(std::make_unique<Expr[]>(block_size));
  }
  Expr* out = blocks.back().get() + block_used;
  block_used += operands.size();
  std::ranges::copy(operands, out);
  return out;
}

Expr Arena::Impl::intern(Kind kind, std::span<const Expr> operands, i64 value) {
  u64 hash = mix(static_cast<u64>(kind), static_cast<u64>(value));
  for (Expr o : operands) hash = mix(hash, o.index);
  auto [begin, end] = interned.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Node& n = node(it->second);
    if (n.kind == kind && n.value == value &&
        std::ranges::equal(this->operands(it->second), operands))
      return it->second;
  }
  COIL_CHECK(nodes.size() < ~u32{0}, "too many expressions");
  Node n;
  n.kind = kind;
  n.count = static_cast<u32>(operands.size());
  n.operands = store(operands);
  for (Expr o : operands) n.terms = std::min(kMaxTerms, n.terms + node(o).terms);
  n.value = value;
  nodes.push_back(n);
  const Expr e(nodes.size() - 1);
  interned.emplace(hash, e);
  nodes.back().range_epoch = epoch;
  const Range range = compute_range(e);
  nodes.back().range = range;
  return e;
}

int Arena::Impl::compare(Expr a, Expr b) const {
  while (a != b) {
    const Node& x = node(a);
    const Node& y = node(b);
    if (x.kind != y.kind) return rank(x.kind) < rank(y.kind) ? -1 : 1;
    if (x.kind == Kind::Const) return x.value < y.value ? -1 : 1;
    if (x.kind == Kind::Var) {
      const Variable& u = var(a);
      const Variable& v = var(b);
      if (u.role != v.role) return u.role < v.role ? -1 : 1;
      if (u.name != v.name) return name_order(u.name) < name_order(v.name) ? -1 : 1;
      return x.value < y.value ? -1 : 1;
    }
    u32 i = 0;
    while (i < x.count && i < y.count && x.operands[i] == y.operands[i]) ++i;
    if (i == x.count || i == y.count) return x.count < y.count ? -1 : 1;
    a = x.operands[i];
    b = y.operands[i];
  }
  return 0;
}

void Arena::Impl::sort(std::vector<Expr>& items) const {
  std::ranges::sort(items, [this](Expr a, Expr b) { return compare(a, b) < 0; });
}

Expr Arena::Impl::raw(Kind kind, std::vector<Expr> operands) {
  ++overflows;
  if (kind == Kind::Add || kind == Kind::Mul) sort(operands);
  return intern(kind, operands);
}

Expr Arena::Impl::settle(Expr e) {
  const Range r = range(e);
  return r.lo == r.hi && r.lo != kMinInt && r.lo != kMaxInt ? self.constant(r.lo) : e;
}

/// Reads a product as one term; operands that are sums or unfolded products are atoms.
static bool split_product(std::span<const Expr> operands, const Arena& arena, Monomial& m, i64& c) {
  for (Expr o : operands) {
    const std::optional<i64> value = arena.as_const(o);
    if (!value) {
      m.push_back(o);
    } else if (__builtin_mul_overflow(c, *value, &c)) {
      return false;
    }
  }
  std::ranges::sort(m);
  return true;
}

Poly Arena::Impl::poly(Expr e) const {
  Poly out;
  const Poly atom{{{e}, 1}};
  auto add = [&](Expr t) {
    Monomial m;
    i64 c = 1;
    if (kind(t) != Kind::Mul) {
      if (const std::optional<i64> value = as_const(t)) return add_term(out, {}, *value);
      return add_term(out, {t}, 1);
    }
    return split_product(operands(t), self, m, c) && add_term(out, m, c);
  };
  if (kind(e) != Kind::Add) return add(e) ? out : atom;
  for (Expr t : operands(e))
    if (!add(t)) return atom;
  return out;
}

Expr Arena::Impl::term(const std::vector<Expr>& sorted_atoms, i64 coefficient) {
  if (sorted_atoms.empty()) return self.constant(coefficient);
  if (coefficient == 1 && sorted_atoms.size() == 1) return sorted_atoms[0];
  std::vector<Expr> operands = sorted_atoms;
  if (coefficient != 1) operands.push_back(self.constant(coefficient));
  return intern(Kind::Mul, operands);
}

Expr Arena::Impl::from_poly(Poly p) {
  if (p.size() > 1) rewrite_sum(p);
  struct Term {
    std::vector<Expr> atoms;
    i64 coefficient;
  };
  std::vector<Term> terms;
  for (const auto& [m, c] : p) {
    terms.push_back({m, c});
    sort(terms.back().atoms);
  }
  std::ranges::sort(terms, [this](const Term& a, const Term& b) {
    if (a.atoms.empty() || b.atoms.empty()) return !a.atoms.empty();
    for (std::size_t i = 0; i < a.atoms.size() && i < b.atoms.size(); ++i)
      if (const int order = compare(a.atoms[i], b.atoms[i])) return order < 0;
    return a.atoms.size() < b.atoms.size();
  });
  std::vector<Expr> operands;
  for (const Term& t : terms) operands.push_back(term(t.atoms, t.coefficient));
  if (operands.empty()) return self.constant(0);
  return operands.size() == 1 ? operands[0] : intern(Kind::Add, operands);
}

std::vector<Expr> Arena::Impl::reachable(Expr e) const {
  std::vector<Expr> out{e};
  std::vector<Expr> pending{e};
  std::unordered_map<Expr, bool> seen{{e, true}};
  while (!pending.empty()) {
    const Expr at = pending.back();
    pending.pop_back();
    for (Expr o : operands(at)) {
      if (!seen.emplace(o, true).second) continue;
      out.push_back(o);
      pending.push_back(o);
    }
  }
  std::ranges::sort(out);  // an operand is older than its users
  return out;
}

Arena::Arena() : impl_(new Impl(*this)) {}
Arena::~Arena() { delete impl_; }

Expr Arena::constant(i64 value) { return impl_->intern(Kind::Const, {}, value); }

Expr Arena::variable(Variable v) {
  COIL_CHECK(!v.extent.valid() || v.extent.index < impl_->nodes.size());
  impl_->variables.push_back(std::move(v));
  return impl_->intern(Kind::Var, {}, static_cast<i64>(impl_->variables.size() - 1));
}

Expr Arena::add(Expr a, Expr b) {
  const std::optional<Poly> p = poly_add(impl_->poly(a), impl_->poly(b));
  return p ? impl_->from_poly(*p) : impl_->raw(Kind::Add, {a, b});
}

Expr Arena::sub(Expr a, Expr b) {
  const std::optional<Poly> p = poly_add(impl_->poly(a), impl_->poly(b), -1);
  return p ? impl_->from_poly(*p) : impl_->raw(Kind::Add, {a, neg(b)});
}

Expr Arena::neg(Expr a) { return mul(a, constant(-1)); }

Expr Arena::mul(Expr a, Expr b) {
  constexpr std::size_t kMaxTerms = 64;
  const Poly x = impl_->poly(a);
  const Poly y = impl_->poly(b);
  const bool expand = x.size() <= 1 || y.size() <= 1 || x.size() * y.size() <= kMaxTerms;
  const std::optional<Poly> p =
      expand ? poly_mul(x, y) : std::optional<Poly>(Poly{{monomial_mul({a}, {b}), 1}});
  return p ? impl_->from_poly(*p) : impl_->raw(Kind::Mul, {a, b});
}

Expr Arena::sum(std::span<const Expr> terms) {
  std::optional<Poly> total = Poly{};
  for (Expr t : terms) {
    for (const auto& [m, c] : impl_->poly(t))
      if (total && !add_term(*total, m, c)) total.reset();
  }
  if (total) return impl_->from_poly(std::move(*total));
  Expr out = constant(0);
  for (Expr t : terms) out = add(out, t);
  return out;
}

Expr Arena::product(std::span<const Expr> factors) {
  Expr out = constant(1);
  for (Expr f : factors) out = mul(out, f);
  return out;
}

Kind Arena::kind(Expr e) const { return impl_->kind(e); }
std::span<const Expr> Arena::operands(Expr e) const { return impl_->operands(e); }
std::optional<i64> Arena::as_const(Expr e) const { return impl_->as_const(e); }
bool Arena::is_const(Expr e, i64 value) const { return as_const(e) == value; }
const Variable& Arena::var(Expr e) const { return impl_->var(e); }
Range Arena::range(Expr e) const { return impl_->range(e); }
std::size_t Arena::size() const { return impl_->nodes.size(); }
std::size_t Arena::terms(Expr e) const { return impl_->node(e).terms; }

void Arena::set_range(Expr var, Range range) {
  COIL_CHECK(kind(var) == Kind::Var);
  Variable& v = impl_->variables[static_cast<std::size_t>(impl_->node(var).value)];
  v.range = {std::max(v.range.lo, range.lo), std::min(v.range.hi, range.hi)};
  ++impl_->epoch;
  impl_->rewrites.clear();
}

bool Arena::uses(Expr e, Expr var) const {
  return std::ranges::binary_search(impl_->reachable(e), var);
}

void Arena::variables(Expr e, std::vector<Expr>& out) const {
  std::vector<Expr> found;
  for (Expr x : impl_->reachable(e))
    if (kind(x) == Kind::Var && std::ranges::find(out, x) == out.end()) found.push_back(x);
  impl_->sort(found);
  out.insert(out.end(), found.begin(), found.end());
}

Expr Arena::substitute(Expr e, const std::vector<std::pair<Expr, Expr>>& from_to) {
  std::unordered_map<Expr, Expr> done;
  for (const auto& [from, to] : from_to) {
    COIL_CHECK(kind(from) == Kind::Var);
    done.emplace(from, to);
  }
  for (Expr x : impl_->reachable(e)) {
    if (done.contains(x)) continue;
    std::vector<Expr> operands;
    bool same = true;
    for (Expr o : impl_->operands(x)) {
      operands.push_back(done.at(o));
      same &= operands.back() == o;
    }
    done.emplace(x, same ? x : impl_->build(kind(x), operands));
  }
  return done.at(e);
}

std::optional<Expr> Arena::stride(Expr e, Expr var) {
  if (!uses(e, var)) return constant(0);
  if (std::optional<Linear> linear = linear_in(impl_->poly(e), var)) {
    const Expr factor = impl_->from_poly(linear->factor);
    const Expr rest = impl_->from_poly(linear->rest);
    if (!uses(factor, var) && !uses(rest, var)) return factor;
  }
  const u64 overflows = impl_->overflows;
  const Expr next = substitute(e, {{var, add(var, constant(1))}});
  const Expr difference = sub(next, e);
  if (overflows != impl_->overflows || uses(difference, var)) return std::nullopt;
  return difference;
}

std::optional<i64> Arena::eval(Expr e, const std::function<std::optional<i64>(Expr)>& value) const {
  std::unordered_map<Expr, ExprValue> values;
  std::vector<ExprValue> operands;
  for (Expr x : impl_->reachable(e)) {
    ExprValue v;
    if (kind(x) == Kind::Const) {
      v = impl_->node(x).value;
    } else if (kind(x) == Kind::Var) {
      if (const std::optional<i64> given = value(x)) v = *given;
    } else {
      operands.clear();
      for (Expr o : impl_->operands(x)) operands.push_back(values.at(o));
      v = evaluate(kind(x), operands);
    }
    values.emplace(x, v);
  }
  return runtime::narrow(values.at(e));
}

}  // namespace coil::sym
