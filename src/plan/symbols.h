#pragma once
// Numbering of symbols and expressions of a plan.

#include <map>

#include "loop/program.h"
#include "runtime/plan.h"

namespace coil {

/// Slots of the variables of one compilation, shared by a plan and its subplans.
class SlotTable {
 public:
  explicit SlotTable(const sym::Arena& syms) : syms_(syms) {}
  u32 slot(sym::Expr var);
  const std::vector<sym::Expr>& vars() const { return vars_; }
  std::vector<std::string> names() const;

 private:
  const sym::Arena& syms_;
  std::map<sym::Expr, u32> slots_;
  std::vector<sym::Expr> vars_;
};

/// Expressions of one plan, each stored once.
class ExprTable {
 public:
  ExprTable(sym::Arena& syms, SlotTable& symbols, runtime::Plan& plan)
      : syms_(syms), symbols_(symbols), plan_(plan) {}
  runtime::ExprRef add(sym::Expr e);
  std::vector<runtime::ExprRef> add(const std::vector<sym::Expr>& list);

 private:
  sym::Arena& syms_;
  SlotTable& symbols_;
  runtime::Plan& plan_;
  std::map<sym::Expr, runtime::ExprRef> known_;
};

/// How the sizes of the arguments give the program's size variables; an Error names a variable that
/// no argument determines.
Status bind_sizes(const LoopProgram& program, SlotTable& symbols, runtime::Plan& plan);

}  // namespace coil
