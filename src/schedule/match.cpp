#include "schedule/match.h"

#include <algorithm>
#include <map>

namespace coil {
namespace {

using sym::Expr;

/// One side of the matching: the axes of the group, or the dims of the body.
struct Loops {
  std::vector<Axis> axes;
  std::map<Expr, Expr> given;  // axis -> expression over the other side
  std::map<Expr, bool> bound;  // has a counterpart
  std::map<Expr, std::vector<std::pair<Expr, Expr>>> pieces;  // axis -> (other axis, its weight)

  const Axis* find(Expr e) const {
    for (const Axis& a : axes)
      if (a.var == e) return &a;
    return nullptr;
  }
};

class Matcher {
 public:
  Matcher(const LoopProgram& program, const Group& group, const Body& body)
      : syms_(*program.syms), prover_(syms_, program.facts), group_(group), body_(body) {
    for (const Axis& a : group.grid) left_.axes.push_back(a);
    for (const Axis& a : group.inner) left_.axes.push_back(a);
    for (const Dim& d : body.dims) right_.axes.push_back({d.var, d.extent});
    for (Loops* side : {&left_, &right_})
      for (const Axis& a : side->axes)
        if (syms_.is_const(a.extent, 1)) {
          side->bound[a.var] = true;
          side->given[a.var] = syms_.constant(0);
          units_.push_back({a.var, syms_.constant(0)});
        }
  }

  void relate(const SharedAccess& access) {
    if (access.group.size() != access.body.size()) return;
    for (std::size_t d = 0; d < access.group.size(); ++d)
      relate(syms_.substitute(access.group[d], units_), syms_.substitute(access.body[d], units_));
    join_pieces(left_, right_);
    join_pieces(right_, left_);
  }

  std::variant<Fit, std::string> finish() {
    if (const std::string why = match_rest(); !why.empty()) return why;
    Fit fit;
    if (const std::string why = choose_axes(fit); !why.empty()) return why;
    for (const Axis& c : right_.axes) {
      const auto given = right_.given.find(c.var);
      fit.dims.push_back(given == right_.given.end() ? c.var : given->second);
    }
    for (const auto& [axis, expr] : left_.given)
      if (!syms_.is_const(left_.find(axis)->extent, 1)) fit.moved.push_back({axis, expr});
    for (const Axis& a : fit.inner)
      for (Expr e : fit.dims) fit.is_row |= syms_.uses(e, a.var);
    fit.is_row |= reduces_;
    return fit;
  }

 private:
  bool free(const Loops& side, Expr e) const { return side.find(e) && !side.bound.contains(e); }
  /// Axes that stay as they are: those of a row, and of a node's result.
  bool is_fixed(Expr axis) const {
    return group_.node.valid() || std::any_of(group_.inner.begin(), group_.inner.end(),
                                              [&](const Axis& a) { return a.var == axis; });
  }

  void relate(Expr f, Expr g) {
    if (free(left_, f) && free(right_, g)) {
      if (prover_.is_equal(left_.find(f)->extent, right_.find(g)->extent)) pair(f, g);
      return;
    }
    if (free(left_, f) && !is_fixed(f) && spans(right_, g, left_.find(f)->extent)) {
      give(left_, f, g, right_);
    } else if (free(right_, g) && spans(left_, f, right_.find(g)->extent)) {
      give(right_, g, f, left_);
    } else if (free(left_, f) && is_fixed(f) && spans(right_, g, left_.find(f)->extent)) {
      give_digits(f, g);
    } else if (free(left_, f)) {
      piece(right_, g, f, left_.find(f)->extent);
    } else if (free(right_, g)) {
      piece(left_, f, g, right_.find(g)->extent);
    } else {
      termwise(f, g);
    }
  }

  void pair(Expr axis, Expr dim) {
    left_.bound[axis] = right_.bound[dim] = true;
    partner_[axis] = dim;
  }

  /// `e` is a mixed radix number of free axes that takes each value below `extent` once.
  bool spans(const Loops& side, Expr e, Expr extent) {
    std::vector<Expr> vars;
    syms_.variables(e, vars);
    std::vector<std::pair<Expr, Expr>> digits;  // extent, weight
    std::vector<std::pair<Expr, Expr>> zero;
    for (Expr v : vars) {
      const Axis* a = side.find(v);
      if (!a) continue;  // a size
      const std::optional<Expr> weight = syms_.stride(e, v);
      if (!free(side, v) || !weight) return false;
      digits.push_back({a->extent, *weight});
      zero.push_back({v, syms_.constant(0)});
    }
    return !digits.empty() && syms_.is_const(syms_.substitute(e, zero), 0) &&
           is_radix(digits, extent);
  }

  bool is_radix(std::vector<std::pair<Expr, Expr>> digits, Expr extent) {
    Expr reached = syms_.constant(1);
    while (!digits.empty()) {
      const auto next = std::find_if(digits.begin(), digits.end(),
                                     [&](const auto& d) { return d.second == reached; });
      if (next == digits.end()) return false;
      reached = syms_.mul(reached, next->first);
      digits.erase(next);
    }
    return prover_.is_equal(reached, extent);
  }

  void give(Loops& to, Expr axis, Expr value, Loops& from) {
    to.bound[axis] = true;
    to.given[axis] = value;
    std::vector<Expr> vars;
    syms_.variables(value, vars);
    for (Expr v : vars)
      if (from.find(v)) from.bound[v] = true;
  }

  /// Each dim that `value` spans is a digit of a fixed axis.
  void give_digits(Expr axis, Expr value) {
    std::vector<Expr> vars;
    syms_.variables(value, vars);
    for (Expr v : vars) {
      const Axis* dim = right_.find(v);
      if (!dim) continue;
      const Expr above = syms_.floordiv(axis, *syms_.stride(value, v));
      right_.bound[v] = true;
      right_.given[v] = syms_.mod(above, dim->extent);
    }
    left_.bound[axis] = true;
  }

  /// `e` is (v // weight) % extent of an axis v of `whole`: one digit of it is `digit`.
  void piece(Loops& whole, Expr e, Expr digit, Expr extent) {
    Expr at = e, weight = syms_.constant(1);
    if (syms_.kind(at) == sym::Kind::Mod) {
      if (!prover_.is_equal(syms_.operands(at)[1], extent)) return;
      at = syms_.operands(at)[0];
    }
    if (syms_.kind(at) == sym::Kind::FloorDiv) {
      weight = syms_.operands(at)[1];
      at = syms_.operands(at)[0];
    }
    if (free(whole, at)) whole.pieces[at].push_back({digit, weight});
  }

  void join_pieces(Loops& whole, Loops& parts) {
    for (auto& [axis, pieces] : whole.pieces) {
      std::vector<std::pair<Expr, Expr>> digits;
      Expr sum = syms_.constant(0);
      bool all_free = free(whole, axis);
      for (const auto& [digit, weight] : pieces) {
        all_free &= free(parts, digit);
        if (!all_free) break;
        digits.push_back({parts.find(digit)->extent, weight});
        sum = syms_.add(sum, syms_.mul(digit, weight));
      }
      if (!all_free || !is_radix(digits, whole.find(axis)->extent)) continue;
      if (is_fixed(axis))
        give_digits(axis, sum);
      else
        give(whole, axis, sum, parts);
    }
    whole.pieces.clear();
  }

  /// a*k + b*m against c*k + d*m: the axes of equal weight and extent are the same.
  void termwise(Expr f, Expr g) {
    std::vector<Expr> fs, gs;
    syms_.variables(f, fs);
    syms_.variables(g, gs);
    for (Expr a : fs) {
      const std::optional<Expr> weight = free(left_, a) ? syms_.stride(f, a) : std::nullopt;
      if (!weight) continue;
      for (Expr c : gs) {
        if (!free(right_, c)) continue;
        const std::optional<Expr> other = syms_.stride(g, c);
        if (other && *other == *weight &&
            prover_.is_equal(left_.find(a)->extent, right_.find(c)->extent)) {
          pair(a, c);
          break;
        }
      }
    }
  }

  /// Dims that no access names run along the inner axes that are left, in order.
  std::string match_rest() {
    std::vector<Axis> inner;
    for (const Axis& a : group_.inner)
      if (free(left_, a.var)) inner.push_back(a);
    std::size_t next = 0;
    for (const Axis& c : right_.axes) {
      if (!free(right_, c.var)) continue;
      if (next == inner.size() || !prover_.is_equal(inner[next].extent, c.extent))
        return str("dim {} of {} has no counterpart in {}", syms_.text(c.var), body_.name,
                   group_.name);
      pair(inner[next++].var, c.var);
    }
    for (const Axis& a : group_.grid)
      if (free(left_, a.var))
        return str("{} does not run along {} of {}", body_.name, syms_.text(a.var), group_.name);
    const bool some = std::any_of(group_.inner.begin(), group_.inner.end(),
                                  [&](const Axis& a) { return free(left_, a.var); });
    const bool all = std::all_of(group_.inner.begin(), group_.inner.end(), [&](const Axis& a) {
      return free(left_, a.var) || syms_.is_const(a.extent, 1);
    });
    return some && !all ? str("{} runs along a part of the row of {}", body_.name, group_.name)
                        : "";
  }

  std::string choose_axes(Fit& fit) {
    std::vector<Axis> reduced;
    for (const Dim& d : body_.dims)
      if (d.kind != DimKind::Parallel) reduced.push_back({d.var, d.extent});
    reduces_ = !reduced.empty();
    if (reduces_ && !group_.inner.empty()) return same_row(fit, reduced);
    fit.inner = group_.inner;
    for (const Axis& r : reduced) {
      if (const auto given = right_.given.find(r.var);
          given != right_.given.end() && !syms_.is_const(r.extent, 1))
        make_digits(r.var, given->second);
      fit.inner.push_back(r);
      right_.given.erase(r.var);
    }
    for (const auto& [axis, dim] : partner_) {
      const bool along_row =
          std::any_of(reduced.begin(), reduced.end(), [&](const Axis& r) { return r.var == dim; });
      if (along_row)
        left_.given[axis] = dim;
      else
        right_.given[dim] = axis;
    }
    grid_axes(fit);
    return "";
  }

  /// Axes that make up a reduced dim become digits of it: the tree needs the dim itself.
  void make_digits(Expr dim, Expr sum) {
    for (const Axis& a : left_.axes)
      if (syms_.uses(sum, a.var))
        left_.given[a.var] = syms_.mod(syms_.floordiv(dim, *syms_.stride(sum, a.var)), a.extent);
  }

  /// A second reduction of a group goes over the same row, dim by dim.
  std::string same_row(Fit& fit, const std::vector<Axis>& reduced) {
    const std::string no = str("{} reduces over another row than {}", body_.name, group_.name);
    if (reduced.size() != group_.inner.size()) return no;
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      const auto partner = partner_.find(group_.inner[i].var);
      const bool unit =
          syms_.is_const(reduced[i].extent, 1) && syms_.is_const(group_.inner[i].extent, 1);
      if (!unit && (partner == partner_.end() || partner->second != reduced[i].var)) return no;
      if (unit) partner_[group_.inner[i].var] = reduced[i].var;
    }
    for (const auto& [axis, dim] : partner_) right_.given[dim] = axis;
    fit.inner = group_.inner;
    grid_axes(fit);
    return "";
  }

  /// In the order of the body's dims where it has its own, else of the group.
  void grid_axes(Fit& fit) {
    const auto add = [&](const Axis& a) {
      for (const std::vector<Axis>* list : {&fit.grid, &fit.inner})
        for (const Axis& have : *list)
          if (have.var == a.var) return;
      fit.grid.push_back(a);
    };
    const auto dims_of = [&](Expr e) {
      for (const Axis& c : right_.axes)
        if (syms_.uses(e, c.var)) add(c);
    };
    for (const Axis& a : group_.grid) {
      const auto given = left_.given.find(a.var);
      if (given == left_.given.end() || syms_.is_const(a.extent, 1))
        add(a);
      else
        dims_of(given->second);
    }
  }

  sym::Arena& syms_;
  sym::Prover prover_;
  const Group& group_;
  const Body& body_;
  Loops left_, right_;
  std::map<Expr, Expr> partner_;  // axis -> dim that runs with it
  std::vector<std::pair<Expr, Expr>> units_;
  bool reduces_ = false;
};

}  // namespace

std::variant<Fit, std::string> match(const LoopProgram& program, const Group& group,
                                     const Body& body, const std::vector<SharedAccess>& shared) {
  Matcher matcher(program, group, body);
  for (const SharedAccess& s : shared) matcher.relate(s);
  return matcher.finish();
}

}  // namespace coil
