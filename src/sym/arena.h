#pragma once
// The inside of Arena, for the .cpp files of this folder only.

#include <deque>
#include <memory>
#include <unordered_map>

#include "sym/expr.h"
#include "sym/poly.h"

namespace coil::sym {

struct Arena::Impl {
  struct Node {
    Kind kind;
    u32 count = 0;                   // of operands
    u32 terms = 1;                   // of the text; stops at kMaxTerms
    const Expr* operands = nullptr;  // into `blocks`, so that spans stay valid while building
    i64 value = 0;                   // Const: the value; Var: the index in `variables`
    Range range;                     // as known at `range_epoch`
    u32 range_epoch = 0;
  };

  std::vector<Node> nodes;
  std::deque<Variable> variables;
  std::unordered_multimap<u64, Expr> interned;
  std::vector<std::unique_ptr<Expr[]>> blocks;
  std::size_t block_used = 0;
  std::size_t block_size = 0;
  std::map<std::vector<u32>, std::optional<Expr>> rewrites;  // of (kind, operands...), at `epoch`
  u32 epoch = 0;          // steps when a variable's range narrows
  u64 overflows = 0;      // how often a fold was left undone
  int rewrite_depth = 0;  // rows within rows

  static constexpr u32 kMaxTerms = u32{1} << 30;

  const Node& node(Expr e) const { return nodes.at(e.index); }
  Kind kind(Expr e) const { return node(e).kind; }
  std::span<const Expr> operands(Expr e) const { return {node(e).operands, node(e).count}; }
  std::optional<i64> as_const(Expr e) const;
  const Variable& var(Expr e) const;

  explicit Impl(Arena& owner) : self(owner) {}
  Arena& self;

  // expr.cpp
  const Expr* store(std::span<const Expr> operands);
  Expr intern(Kind kind, std::span<const Expr> operands, i64 value = 0);
  /// Sums and products that overflowed, and kinds whose operands have an order.
  Expr raw(Kind kind, std::vector<Expr> operands);
  /// `e`, or the constant that its range leaves.
  Expr settle(Expr e);
  Expr compare_with(Kind kind, Expr a, Expr b);
  Expr equality(Kind kind, Expr a, Expr b);
  Expr fold_list(Kind kind, std::vector<Expr> operands);
  Expr as_boolean(Expr e);
  Expr build(Kind kind, std::span<const Expr> operands);
  /// Structural order; 0 only for equal ids.
  int compare(Expr a, Expr b) const;
  void sort(std::vector<Expr>& items) const;
  Poly poly(Expr e) const;
  /// The canonical expression of p, after the rows of rules.def for sums.
  Expr from_poly(Poly p);
  Expr term(const std::vector<Expr>& sorted_atoms, i64 coefficient);
  /// Every expression within `e`, operands before users.
  std::vector<Expr> reachable(Expr e) const;

  // rules.cpp
  /// What the first fitting row of rules.def makes of this node, if any.
  std::optional<Expr> rewrite(Kind kind, std::span<const Expr> operands);
  void rewrite_sum(Poly& p);

  // bounds.cpp
  Range range(Expr e);
  Range compute_range(Expr e);
  Range range_of(const Poly& p);
  /// Whether p >= 0 follows from ranges and extents.
  bool nonnegative(const Poly& p);
};

/// The bound that saturates: values at or past the ends of i64 read as none.
Range add_ranges(Range a, Range b);
Range mul_ranges(Range a, Range b);

bool is_boolean(Kind kind);

}  // namespace coil::sym
