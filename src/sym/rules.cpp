#include "sym/rules.h"

#include <algorithm>
#include <array>

#include "sym/arena.h"

namespace coil::sym {
namespace {

constexpr RuleText kRuleTexts[] = {
#define ROW(name, pattern, replacement, condition) {#name, pattern, replacement, condition},
#include "sym/rules.def"
#undef ROW
};

constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::Select) + 1;

Pattern to_pattern(const Tree& tree, std::vector<std::string>& names) {
  Pattern out;
  out.kind = tree.kind;
  out.value = tree.value;
  if (tree.kind == Kind::Var) {
    auto it = std::ranges::find(names, tree.name);
    out.slot = static_cast<u32>(it - names.begin());
    if (it == names.end()) names.push_back(tree.name);
    COIL_CHECK(names.size() <= kMaxSlots);
    if (tree.name[0] == 'c') out.accepts = Pattern::Accepts::Constants;
    if (tree.name[0] == 'b') out.accepts = Pattern::Accepts::Booleans;
  }
  for (const Tree& c : tree.children) out.children.push_back(to_pattern(c, names));
  return out;
}

Pattern read_pattern(const char* row, const char* text, std::vector<std::string>& names) {
  TextReader in(text, row);
  Result<Tree> tree = parse_tree(in);
  COIL_CHECK(tree.ok() && in.at_end(), "rules.def, row {}: {}", row, text);
  return to_pattern(*tree, names);
}

std::array<std::vector<Rule>, kKinds> read_rules() {
  std::array<std::vector<Rule>, kKinds> out;
  for (const RuleText& row : kRuleTexts) {
    std::vector<std::string> names;
    Rule rule;
    rule.name = row.name;
    rule.pattern = read_pattern(row.name, row.pattern, names);
    const std::size_t bound = names.size();
    rule.replacement = read_pattern(row.name, row.replacement, names);
    if (*row.condition != '\0') rule.condition = read_pattern(row.name, row.condition, names);
    COIL_CHECK(names.size() == bound, "rules.def, row {}: a name is not in the pattern", row.name);
    out[static_cast<std::size_t>(rule.pattern.kind)].push_back(std::move(rule));
  }
  return out;
}

}  // namespace

std::span<const RuleText> rule_texts() { return kRuleTexts; }

const std::vector<Rule>& rules_for(Kind kind) {
  static const std::array<std::vector<Rule>, kKinds> rules = read_rules();
  return rules[static_cast<std::size_t>(kind)];
}

namespace {

using Bindings = std::array<Expr, kMaxSlots>;

/// Finds the ways in which a pattern fits; each is offered to `Next`, which returns true to stop.
class Matcher {
 public:
  using Next = std::function<bool(const Bindings&)>;
  explicit Matcher(Arena::Impl& impl) : impl_(impl) {}

  bool match(const Pattern& p, Expr e, const Bindings& b, const Next& next) {
    switch (p.kind) {
      case Kind::Const: return impl_.as_const(e) == p.value && next(b);
      case Kind::Var: return bind(p, e, b, next);
      case Kind::Add: return match_sum(p, e, b, next);
      case Kind::Mul: return match_multiple(p, e, b, next);
      case Kind::FloorDiv:
      case Kind::Mod:
      case Kind::Min:
      case Kind::Max:
      case Kind::Eq:
      case Kind::Ne:
      case Kind::Lt:
      case Kind::Le:
      case Kind::And:
      case Kind::Or:
      case Kind::Not:
      case Kind::Select: break;
    }
    return impl_.kind(e) == p.kind && match_node(p, impl_.operands(e), b, next);
  }

  bool match_node(const Pattern& p, std::span<const Expr> operands, const Bindings& b,
                  const Next& next) {
    if (operands.size() != p.children.size()) return false;
    if (p.kind == Kind::FloorDiv || p.kind == Kind::Mod) {
      const Pattern& divisor = p.children[1];
      if (divisor.kind == Kind::Mul && !bound(divisor.children[0], b) &&
          !bound(divisor.children[1], b))
        return match_common_factor(p, operands, b, next);
      return match(divisor, operands[1], b, [&](const Bindings& with) {
        return match(p.children[0], operands[0], with, next);
      });
    }
    const bool commutes = p.kind == Kind::Min || p.kind == Kind::Max || p.kind == Kind::Eq ||
                          p.kind == Kind::Ne || p.kind == Kind::And || p.kind == Kind::Or;
    if (match_from(p, operands, 0, b, next)) return true;
    if (!commutes) return false;
    const Expr swapped[] = {operands[1], operands[0]};
    return match_from(p, swapped, 0, b, next);
  }

 private:
  bool match_from(const Pattern& p, std::span<const Expr> operands, std::size_t i,
                  const Bindings& b, const Next& next) {
    if (i == operands.size()) return next(b);
    return match(p.children[i], operands[i], b,
                 [&](const Bindings& with) { return match_from(p, operands, i + 1, with, next); });
  }

  /// Conditions, and variables that stand for one; not an index that happens to be 0 or 1.
  bool boolean(Expr e) const {
    if (impl_.kind(e) != Kind::Var) return is_boolean(impl_.kind(e));
    return impl_.var(e).role == Role::Value && impl_.range(e).lo >= 0 && impl_.range(e).hi <= 1;
  }

  static bool bound(const Pattern& p, const Bindings& b) {
    return p.kind == Kind::Var && b[p.slot].valid();
  }

  bool bind(const Pattern& p, Expr e, const Bindings& b, const Next& next) {
    if (b[p.slot].valid()) return b[p.slot] == e && next(b);
    if (p.accepts == Pattern::Accepts::Constants && !impl_.as_const(e)) return false;
    if (p.accepts == Pattern::Accepts::Booleans && !boolean(e)) return false;
    Bindings with = b;
    with[p.slot] = e;
    return next(with);
  }

  /// q*n + r with n known, or k*(...) + r where (...) is the pattern of an atom.
  bool match_sum(const Pattern& p, Expr e, const Bindings& b, const Next& next) {
    const Pattern& product = p.children[0];
    const Pattern& rest = p.children[1];
    COIL_CHECK(product.kind == Kind::Mul && rest.kind == Kind::Var);
    const Pattern& first = product.children[0];
    const Pattern& second = product.children[1];
    if (second.kind != Kind::Var) return match_atom_term(p, e, b, next);
    const bool first_known = bound(first, b);
    const Pattern& quotient = first_known ? second : first;
    const Pattern& divisor = first_known ? first : second;
    COIL_CHECK(bound(divisor, b) && !bound(quotient, b));
    const std::optional<Division> d = poly_div(impl_.poly(e), impl_.poly(b[divisor.slot]));
    if (!d || d->quotient.empty()) return false;
    Bindings with = b;
    with[quotient.slot] = impl_.from_poly(d->quotient);
    with[rest.slot] = impl_.from_poly(d->remainder);
    return next(with);
  }

  bool match_atom_term(const Pattern& p, Expr e, const Bindings& b, const Next& next) {
    const Pattern& atom = p.children[0].children[1];
    const Poly sum = impl_.poly(e);
    for (const auto& [m, c] : sum) {
      for (Expr a : m) {
        if (impl_.kind(a) != atom.kind) continue;
        Poly rest = sum;
        rest.erase(m);
        Bindings with = b;
        with[p.children[0].children[0].slot] = impl_.from_poly({{*monomial_div(m, {a}), c}});
        with[p.children[1].slot] = impl_.from_poly(std::move(rest));
        if (match(atom, a, with, next)) return true;
      }
    }
    return false;
  }

  /// x*n with one of both known.
  bool match_multiple(const Pattern& p, Expr e, const Bindings& b, const Next& next) {
    const bool first_known = bound(p.children[0], b);
    const Pattern& known = p.children[first_known ? 0 : 1];
    const Pattern& other = p.children[first_known ? 1 : 0];
    if (!bound(known, b)) return false;
    const std::optional<Division> d = poly_div(impl_.poly(e), impl_.poly(b[known.slot]));
    if (!d || !d->remainder.empty()) return false;
    return match(other, impl_.from_poly(d->quotient), b, next);
  }

  static u64 magnitude(i64 c) { return c < 0 ? 0 - static_cast<u64>(c) : static_cast<u64>(c); }
  static i64 common(i64 a, i64 b) {
    u64 x = magnitude(a);
    for (u64 y = magnitude(b); y != 0;) {
      const u64 rest = x % y;
      x = y;
      y = rest;
    }
    return static_cast<i64>(std::min<u64>(x, INT64_MAX));
  }

  /// (...) // (g*n): each g that some term of the dividend has in common with the whole divisor.
  bool match_common_factor(const Pattern& p, std::span<const Expr> operands, const Bindings& b,
                           const Next& next) {
    const Poly dividend = impl_.poly(operands[0]);
    const Poly divisor = impl_.poly(operands[1]);
    Monomial shared = divisor.begin()->first;
    i64 content = 0;
    for (const auto& [m, c] : divisor) {
      shared = monomial_gcd(shared, m);
      content = common(content, c);
    }
    std::vector<std::pair<i64, Monomial>> factors;
    for (const auto& [m, c] : dividend)
      factors.emplace_back(common(content, c), monomial_gcd(shared, m));
    std::ranges::sort(factors, std::greater<>());
    factors.erase(std::ranges::unique(factors).begin(), factors.end());
    for (const auto& [c, m] : factors) {
      if (c == 1 && m.empty()) continue;
      const std::optional<Division> d = poly_div(divisor, Poly{{m, c}});
      if (!d || !d->remainder.empty() || poly_as_const(d->quotient) == 1) continue;
      Bindings with = b;
      with[p.children[1].children[0].slot] = impl_.from_poly({{m, c}});
      with[p.children[1].children[1].slot] = impl_.from_poly(d->quotient);
      if (match(p.children[0], operands[0], with, next)) return true;
    }
    return false;
  }

  Arena::Impl& impl_;
};

Expr instantiate(Arena::Impl& impl, const Pattern& p, const Bindings& b) {
  if (p.kind == Kind::Const) return impl.self.constant(p.value);
  if (p.kind == Kind::Var) return b[p.slot];
  std::vector<Expr> operands;
  for (const Pattern& c : p.children) operands.push_back(instantiate(impl, c, b));
  return impl.build(p.kind, operands);
}

/// The polynomial of a side condition's term; builds no expression.
std::optional<Poly> condition_poly(Arena::Impl& impl, const Pattern& p, const Bindings& b) {
  if (p.kind == Kind::Const) return poly_constant(p.value);
  if (p.kind == Kind::Var) return impl.poly(b[p.slot]);
  COIL_CHECK(p.kind == Kind::Add || p.kind == Kind::Mul);
  const std::optional<Poly> x = condition_poly(impl, p.children[0], b);
  const std::optional<Poly> y = condition_poly(impl, p.children[1], b);
  if (!x || !y) return std::nullopt;
  return p.kind == Kind::Add ? poly_add(*x, *y) : poly_mul(*x, *y);
}

bool provable(Arena::Impl& impl, const Pattern& p, const Bindings& b) {
  if (p.kind == Kind::And)
    return std::ranges::all_of(p.children, [&](const Pattern& c) { return provable(impl, c, b); });
  COIL_CHECK(p.kind == Kind::Lt || p.kind == Kind::Le);
  const std::optional<Poly> x = condition_poly(impl, p.children[0], b);
  const std::optional<Poly> y = condition_poly(impl, p.children[1], b);
  std::optional<Poly> d = x && y ? poly_add(*y, *x, -1) : std::nullopt;
  if (d && p.kind == Kind::Lt && !add_term(*d, {}, -1)) d.reset();
  return d && impl.nonnegative(*d);
}

}  // namespace

std::optional<Expr> Arena::Impl::rewrite(Kind kind, std::span<const Expr> operands) {
  constexpr int kMaxDepth = 64;
  if (rewrite_depth >= kMaxDepth) return std::nullopt;
  std::vector<u32> key{static_cast<u32>(kind)};
  for (Expr o : operands) key.push_back(o.index);
  if (auto it = rewrites.find(key); it != rewrites.end()) return it->second;
  ++rewrite_depth;
  std::optional<Expr> out;
  Matcher matcher(*this);
  for (const Rule& rule : rules_for(kind)) {
    const bool fits = matcher.match_node(rule.pattern, operands, {}, [&](const Bindings& b) {
      if (rule.condition && !provable(*this, *rule.condition, b)) return false;
      const u64 before = overflows;
      const Expr e = instantiate(*this, rule.replacement, b);
      if (overflows == before) out = e;
      return out.has_value();
    });
    if (fits) break;
  }
  --rewrite_depth;
  rewrites.emplace(std::move(key), out);
  return out;
}

/// One step for a row A + B -> C: p - K*A - K*B + K*C for a term K*B of p, if all of K*A is in p.
static std::optional<Poly> sum_step(Arena::Impl& impl, const Rule& rule, const Poly& p) {
  Matcher matcher(impl);
  const Pattern& second = rule.pattern.children[1];
  std::optional<Poly> out;
  for (const auto& [m, c] : p) {
    for (Expr atom : m) {
      if (impl.kind(atom) != second.kind) continue;
      const Poly factor{{*monomial_div(m, {atom}), c}};
      matcher.match(second, atom, {}, [&](const Bindings& b) {
        const u64 before = impl.overflows;
        auto part = [&](const Pattern& pattern) {
          return poly_mul(impl.poly(instantiate(impl, pattern, b)), factor);
        };
        const std::optional<Poly> first = part(rule.pattern.children[0]);
        if (!first || first->empty()) return false;
        for (const auto& [fm, fc] : *first) {
          auto it = p.find(fm);
          if (it == p.end() || it->second != fc || fm == m) return false;
        }
        const std::optional<Poly> whole = part(rule.replacement);
        std::optional<Poly> rest = poly_add(p, *first, -1);
        if (rest) rest->erase(m);
        if (rest && whole) rest = poly_add(*rest, *whole);
        if (rest && whole && impl.overflows == before) out = rest;
        return out.has_value();
      });
      if (out) return out;
    }
  }
  return out;
}

void Arena::Impl::rewrite_sum(Poly& p) {
  constexpr int kMaxDepth = 16;
  if (rewrite_depth >= kMaxDepth) return;
  ++rewrite_depth;
  for (bool changed = true; changed && p.size() > 1;) {
    changed = false;
    for (const Rule& rule : rules_for(Kind::Add)) {
      const std::optional<Poly> next = sum_step(*this, rule, p);
      if (!next) continue;
      p = *next;
      changed = true;
    }
  }
  --rewrite_depth;
}

}  // namespace coil::sym
