#pragma once
// Questions about symbolic integers, and the three stores that must never be mixed up.

#include <vector>

#include "sym/expr.h"

namespace coil::sym {

enum class Answer : u8 { Yes, No, Unknown };

/// Conditions that hold: given by the program (range constraints) or proved. Boolean expressions.
class Facts {
 public:
  void add(Expr condition) { conditions_.push_back(condition); }
  const std::vector<Expr>& conditions() const { return conditions_; }

 private:
  std::vector<Expr> conditions_;
};

/// Conditions that were assumed and must be checked at entry, in the order they were assumed.
class Guards {
 public:
  struct Guard {
    Expr condition;
    std::string reason;
  };
  void add(Expr condition, std::string reason) {
    guards_.push_back({condition, std::move(reason)});
  }
  const std::vector<Guard>& all() const { return guards_; }

 private:
  std::vector<Guard> guards_;
};

/// Sample values of variables, for heuristics only: nothing that must be right may read them.
class Hints {
 public:
  void set(Expr var, i64 value) { values_[var] = value; }
  std::optional<i64> get(Expr var) const {
    auto it = values_.find(var);
    return it == values_.end() ? std::nullopt : std::optional<i64>(it->second);
  }
  /// The expression at the hints; `fallback` where a variable has none.
  i64 guess(const Arena& arena, Expr e, i64 fallback) const;

 private:
  std::map<Expr, i64> values_;
};

/// Answers from ranges, extents and facts. Yes and No are proofs; Unknown says nothing.
class Prover {
 public:
  Prover(Arena& arena, const Facts& facts) : arena_(arena), facts_(facts) {}

  /// Of any boolean expression.
  Answer holds(Expr condition) const;
  Answer equal(Expr a, Expr b) const;
  Answer less(Expr a, Expr b) const;
  Answer less_equal(Expr a, Expr b) const;
  /// Whether a % divisor == 0.
  Answer divides(Expr divisor, Expr a) const;

  bool is_true(Expr condition) const { return holds(condition) == Answer::Yes; }
  bool is_equal(Expr a, Expr b) const { return equal(a, b) == Answer::Yes; }

 private:
  Arena& arena_;
  const Facts& facts_;
};

}  // namespace coil::sym
