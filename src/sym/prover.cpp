#include "sym/prover.h"

#include <algorithm>

#include "sym/arena.h"

namespace coil::sym {
namespace {

/// The polynomial that a true Lt or Le says is >= 0.
std::optional<Poly> slack(const Arena::Impl& impl, Kind kind, Expr a, Expr b) {
  std::optional<Poly> d = poly_add(impl.poly(b), impl.poly(a), -1);
  if (d && kind == Kind::Lt && !add_term(*d, {}, -1)) return std::nullopt;
  return d;
}

/// x % n as x - x // n * n, so that a remainder meets its quotient.
Expr without_mod(Arena& arena, Arena::Impl& impl, Expr e) {
  Expr out = e;
  for (Expr x : impl.reachable(e)) {
    if (impl.kind(x) != Kind::Mod) continue;
    const std::optional<Linear> linear = linear_in(impl.poly(out), x);
    if (!linear || linear->factor.empty()) continue;
    const Expr dividend = arena.operands(x)[0];
    const Expr n = arena.operands(x)[1];
    const Expr rest = arena.sub(dividend, arena.mul(arena.floordiv(dividend, n), n));
    if (rest == x) continue;
    out = arena.add(arena.mul(rest, impl.from_poly(linear->factor)), impl.from_poly(linear->rest));
  }
  return out;
}

/// What facts say: polynomials that are >= 0 (an equality gives two).
class Known {
 public:
  Known(Arena& arena, Arena::Impl& impl, const Facts& facts) : arena_(arena), impl_(impl) {
    for (Expr e : facts.conditions()) add(e);
  }
  const std::vector<Poly>& slacks() const { return slacks_; }
  const std::vector<std::pair<Expr, Expr>>& equalities() const { return equalities_; }
  bool stated(Expr condition) const {
    return std::ranges::find(conditions_, condition) != conditions_.end();
  }

 private:
  void add(Expr e) {
    const std::span<const Expr> in = impl_.operands(e);
    const Kind kind = impl_.kind(e);
    conditions_.push_back(e);
    if (kind == Kind::And) {
      for (Expr o : in) add(o);
    } else if (kind == Kind::Lt || kind == Kind::Le) {
      if (const std::optional<Poly> p = slack(impl_, kind, in[0], in[1])) slacks_.push_back(*p);
    } else if (kind == Kind::Eq) {
      equalities_.emplace_back(in[0], in[1]);
      const Expr difference = without_mod(arena_, impl_, arena_.sub(in[0], in[1]));
      slacks_.push_back(impl_.poly(difference));
      slacks_.push_back(impl_.poly(arena_.neg(difference)));
    }
  }

  Arena& arena_;
  Arena::Impl& impl_;
  std::vector<Expr> conditions_;
  std::vector<Poly> slacks_;
  std::vector<std::pair<Expr, Expr>> equalities_;
};

using Renaming = std::vector<std::pair<Expr, Expr>>;

bool renames(const Renaming& renaming, Expr var) {
  return std::ranges::find(renaming, var, &Renaming::value_type::first) != renaming.end();
}

/// `e` with one name for all that facts call equal: s0 == s1 makes s0 read s1, and s0 % 8 == 0
/// makes it read s0 // 8 * 8.
Expr with_equalities(Arena& arena, const Known& known, Expr e) {
  Renaming renaming;
  for (const auto& [x, y] : known.equalities()) {
    const bool forward = arena.kind(x) == Kind::Var && !renames(renaming, x);
    const Expr from = forward ? x : y;
    if (arena.kind(from) != Kind::Var || renames(renaming, from)) continue;
    const Expr to = arena.substitute(forward ? y : x, renaming);
    if (arena.uses(to, from)) continue;
    for (auto& [f, t] : renaming) t = arena.substitute(t, {{from, to}});
    renaming.emplace_back(from, to);
  }
  e = arena.substitute(e, renaming);
  Renaming multiples;
  for (const auto& [x, y] : known.equalities()) {
    if (arena.kind(x) != Kind::Mod || !arena.is_const(y, 0)) continue;
    const Expr of = arena.substitute(arena.operands(x)[0], renaming);
    const Expr n = arena.substitute(arena.operands(x)[1], renaming);
    if (arena.kind(of) != Kind::Var || renames(multiples, of)) continue;
    multiples.emplace_back(of, arena.mul(arena.floordiv(of, n), n));
  }
  return arena.substitute(e, multiples);
}

/// goal >= 0 from bounds alone, or after taking away up to two facts (c >= 0 and goal - c >= 0).
bool nonnegative(Arena::Impl& impl, const std::vector<Poly>& facts, const Poly& goal, int most) {
  if (impl.nonnegative(goal)) return true;
  if (most == 0) return false;
  for (const Poly& fact : facts) {
    // A fact that shares no term with the goal cannot help.
    const bool shares = std::ranges::any_of(
        fact, [&](const auto& t) { return !t.first.empty() && goal.contains(t.first); });
    if (!shares) continue;
    const std::optional<Poly> rest = poly_add(goal, fact, -1);
    if (rest && nonnegative(impl, facts, *rest, most - 1)) return true;
  }
  return false;
}

Answer negate(Answer a) {
  return a == Answer::Unknown ? a : a == Answer::Yes ? Answer::No : Answer::Yes;
}

constexpr int kMaxFactsPerProof = 2;

}  // namespace

i64 Hints::guess(const Arena& arena, Expr e, i64 fallback) const {
  auto value = [&](Expr var) -> std::optional<i64> { return get(var).value_or(fallback); };
  return arena.eval(e, value).value_or(fallback);
}

Answer Prover::less_equal(Expr a, Expr b) const {
  Arena::Impl& impl = *arena_.impl_;
  const Known known(arena_, impl, facts_);
  const std::optional<Poly> yes = slack(impl, Kind::Le, a, b);
  if (yes && nonnegative(impl, known.slacks(), *yes, kMaxFactsPerProof)) return Answer::Yes;
  const std::optional<Poly> no = slack(impl, Kind::Lt, b, a);
  if (no && nonnegative(impl, known.slacks(), *no, kMaxFactsPerProof)) return Answer::No;
  return Answer::Unknown;
}

Answer Prover::less(Expr a, Expr b) const { return negate(less_equal(b, a)); }

Answer Prover::equal(Expr a, Expr b) const {
  if (a == b) return Answer::Yes;
  Arena::Impl& impl = *arena_.impl_;
  const Expr difference = arena_.sub(a, b);
  const Expr plain = without_mod(arena_, impl, difference);
  if (arena_.is_const(difference, 0) || arena_.is_const(plain, 0)) return Answer::Yes;
  const Known known(arena_, impl, facts_);
  if (known.stated(arena_.eq(a, b))) return Answer::Yes;
  if (known.stated(arena_.ne(a, b))) return Answer::No;
  if (arena_.is_const(with_equalities(arena_, known, difference), 0)) return Answer::Yes;
  const Answer up = less_equal(a, b);
  if (up == Answer::No) return Answer::No;
  const Answer down = less_equal(b, a);
  if (down == Answer::No) return Answer::No;
  return up == Answer::Yes && down == Answer::Yes ? Answer::Yes : Answer::Unknown;
}

Answer Prover::divides(Expr divisor, Expr a) const {
  if (arena_.is_const(divisor, 0)) return Answer::Unknown;
  const Known known(arena_, *arena_.impl_, facts_);
  const Expr rest =
      arena_.mod(with_equalities(arena_, known, a), with_equalities(arena_, known, divisor));
  return equal(rest, arena_.constant(0));
}

Answer Prover::holds(Expr condition) const {
  Arena::Impl& impl = *arena_.impl_;
  if (const std::optional<i64> value = arena_.as_const(condition))
    return *value != 0 ? Answer::Yes : Answer::No;
  const Known known(arena_, impl, facts_);
  if (known.stated(condition)) return Answer::Yes;
  const std::span<const Expr> in = arena_.operands(condition);
  const Kind kind = arena_.kind(condition);
  if (kind == Kind::Not) return negate(holds(in[0]));
  if (kind == Kind::And || kind == Kind::Or) {
    const Answer deciding = kind == Kind::And ? Answer::No : Answer::Yes;
    Answer out = negate(deciding);
    for (Expr o : in) {
      const Answer one = holds(o);
      if (one == deciding) return deciding;
      if (one == Answer::Unknown) out = Answer::Unknown;
    }
    return out;
  }
  if (kind == Kind::Lt) return less(in[0], in[1]);
  if (kind == Kind::Le) return less_equal(in[0], in[1]);
  if (kind == Kind::Eq) return equal(in[0], in[1]);
  if (kind == Kind::Ne) return negate(equal(in[0], in[1]));
  if (known.stated(arena_.logical_not(condition))) return Answer::No;
  return negate(equal(condition, arena_.constant(0)));
}

}  // namespace coil::sym
