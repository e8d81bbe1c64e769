#include "plan/symbols.h"

#include <algorithm>

#include "sym/code.h"

namespace coil {

u32 SlotTable::slot(sym::Expr var) {
  auto [at, fresh] = slots_.try_emplace(var, static_cast<u32>(vars_.size()));
  if (fresh) vars_.push_back(var);
  return at->second;
}

std::vector<std::string> SlotTable::names() const {
  std::vector<std::string> out;
  for (sym::Expr v : vars_) out.push_back(syms_.var(v).name);
  return out;
}

runtime::ExprRef ExprTable::add(sym::Expr e) {
  auto [at, fresh] = known_.try_emplace(e, static_cast<u32>(plan_.exprs.size()));
  if (fresh) {
    Result<runtime::ExprCode> code =
        sym::compile(syms_, e, [&](sym::Expr v) { return std::optional<u32>(symbols_.slot(v)); });
    COIL_CHECK(code.ok(), "{}", code.error().message);
    plan_.exprs.push_back(std::move(*code));
  }
  return at->second;
}

std::vector<runtime::ExprRef> ExprTable::add(const std::vector<sym::Expr>& list) {
  std::vector<runtime::ExprRef> out;
  for (sym::Expr e : list) out.push_back(add(e));
  return out;
}

namespace {

/// The factor c where `e` is c * v for one Size variable v.
std::optional<std::pair<sym::Expr, i64>> multiple_of_variable(sym::Arena& syms, sym::Expr e) {
  std::vector<sym::Expr> vars;
  syms.variables(e, vars);
  if (vars.size() != 1 || syms.var(vars[0]).role != sym::Role::Size) return std::nullopt;
  const std::optional<sym::Expr> stride = syms.stride(e, vars[0]);
  const std::optional<i64> factor = stride ? syms.as_const(*stride) : std::nullopt;
  if (!factor || *factor <= 0 || syms.mul(*stride, vars[0]) != e) return std::nullopt;
  return std::pair(vars[0], *factor);
}

}  // namespace

Status bind_sizes(const LoopProgram& program, SlotTable& symbols, runtime::Plan& plan) {
  sym::Arena& syms = *program.syms;
  std::vector<sym::Expr> bound;
  // Plain sizes first, so that a size is read off directly where that is possible.
  for (const bool plain : {true, false})
    for (u32 i = 0; i < program.inputs.size(); ++i) {
      const ProgramInput& input = program.inputs[i];
      std::vector<sym::Expr> sizes;
      if (input.buffer.valid()) sizes = program.buffers[input.buffer].shape;
      if (input.is_complex) sizes.pop_back();
      const bool is_int = !input.buffer.valid() && !input.is_float && !input.is_fixed;
      if (is_int) sizes.push_back(input.size);
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        const auto multiple = multiple_of_variable(syms, sizes[d]);
        if (!multiple || (multiple->second == 1) != plain) continue;
        if (std::find(bound.begin(), bound.end(), multiple->first) != bound.end()) continue;
        bound.push_back(multiple->first);
        plan.bindings.push_back({symbols.slot(multiple->first), i,
                                 is_int ? -1 : static_cast<i32>(d), multiple->second});
      }
    }
  for (sym::Expr v : symbols.vars())
    if (syms.var(v).role == sym::Role::Size &&
        std::find(bound.begin(), bound.end(), v) == bound.end())
      return error("no input determines the size {}", syms.var(v).name);
  for (sym::Expr v : bound) {
    const sym::Range r = syms.var(v).range;
    plan.ranges.push_back({symbols.slot(v), r.lo, r.hi});
  }
  return Ok{};
}

}  // namespace coil
