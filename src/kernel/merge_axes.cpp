#include "kernel/merge_axes.h"

#include <algorithm>
#include <set>

namespace coil {
namespace {

template <class F>
void for_each_inst(Kernel& kernel, F f) {
  for (Stage& s : kernel.stages)
    for (KernelInst& i : s.insts) f(i);
}

void replace(Kernel& kernel, const std::vector<std::pair<sym::Expr, sym::Expr>>& by) {
  for_each_inst(kernel, [&](KernelInst& i) {
    for_each_expr(i.inst, [&](sym::Expr& e) { e = kernel.syms->substitute(e, by); });
  });
}

void drop_axes_of_one(Kernel& kernel) {
  sym::Arena& syms = *kernel.syms;
  std::vector<std::pair<sym::Expr, sym::Expr>> zeros;
  for (const Axis& a : kernel.grid)
    if (syms.is_const(a.extent, 1)) zeros.push_back({a.var, syms.constant(0)});
  if (zeros.empty()) return;
  std::erase_if(kernel.grid, [&](const Axis& a) { return syms.is_const(a.extent, 1); });
  replace(kernel, zeros);
}

/// Whether all accesses see `outer` and `inner` as one line: outer's stride is inner's times its
/// extent. Anything else that names them (a value, a mask) needs them apart.
bool are_one_line(Kernel& kernel, const Axis& outer, const Axis& inner) {
  sym::Arena& syms = *kernel.syms;
  bool yes = true;
  for_each_inst(kernel, [&](KernelInst& i) {
    if (!yes) return;
    if (i.kind == KernelOp::Value || i.kind == KernelOp::Accumulate) {
      yes = !i.inst.expr.valid() ||
            (!syms.uses(i.inst.expr, outer.var) && !syms.uses(i.inst.expr, inner.var));
      return;
    }
    if (i.kind != KernelOp::Load && i.kind != KernelOp::Store) return;
    const sym::Expr at = address(syms, kernel.buffers[i.buffer].layout, i.inst.index);
    const std::optional<sym::Expr> p = syms.stride(at, outer.var), q = syms.stride(at, inner.var);
    yes = p && q && *p == syms.mul(*q, inner.extent);
  });
  return yes;
}

bool merge_pair(Kernel& kernel, std::size_t at) {
  sym::Arena& syms = *kernel.syms;
  const Axis outer = kernel.grid[at], inner = kernel.grid[at + 1];
  if (!are_one_line(kernel, outer, inner)) return false;
  Axis merged;
  merged.extent = syms.mul(outer.extent, inner.extent);
  sym::Variable v = syms.var(outer.var);
  v.range = sym::Range{0, sym::kMaxInt};
  v.extent = merged.extent;
  merged.var = syms.variable(v);
  Kernel trial = kernel;
  replace(trial, {{outer.var, syms.floordiv(merged.var, inner.extent)},
                  {inner.var, syms.mod(merged.var, inner.extent)}});
  trial.grid[at] = merged;
  trial.grid.erase(trial.grid.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  bool linear = true;  // the addresses must come out linear in the new axis
  for_each_inst(trial, [&](KernelInst& i) {
    if (i.kind == KernelOp::Load || i.kind == KernelOp::Store)
      linear &= syms.stride(address(syms, trial.buffers[i.buffer].layout, i.inst.index), merged.var)
                    .has_value();
  });
  if (linear) kernel = std::move(trial);
  return linear;
}

}  // namespace

void merge_grid_axes(Kernel& kernel) {
  drop_axes_of_one(kernel);
  for (std::size_t at = kernel.grid.size(); at-- > 0;)
    while (at + 1 < kernel.grid.size() && merge_pair(kernel, at)) continue;
}

void collect_symbols(Kernel& kernel) {
  sym::Arena& syms = *kernel.syms;
  std::vector<sym::Expr> used, bound;
  const auto use = [&](sym::Expr e) { syms.variables(e, used); };
  for (const Axis& a : kernel.grid) {
    bound.push_back(a.var);
    use(a.extent);
  }
  for (Stage& s : kernel.stages) {
    for (const Axis& a : s.loop) {
      bound.push_back(a.var);
      use(a.extent);
    }
    for (KernelInst& i : s.insts) {
      if (i.kind == KernelOp::Index) bound.push_back(i.inst.expr);
      if (i.kind == KernelOp::Scalar && std::find(kernel.scalars.begin(), kernel.scalars.end(),
                                                  i.inst.scalar) == kernel.scalars.end())
        kernel.scalars.push_back(i.inst.scalar);
      for_each_expr(i.inst, use);
    }
  }
  for (const KernelBuffer& b : kernel.buffers) {
    for (const LayoutEntry& e : b.layout.entries) use(e.stride);
    for (sym::Expr e : b.shape) use(e);
    if (b.layout.offset.valid()) use(b.layout.offset);
  }
  kernel.symbols.clear();
  for (sym::Expr v : used)
    if (std::find(bound.begin(), bound.end(), v) == bound.end()) kernel.symbols.push_back(v);
}

void name_apart(Kernel& kernel) {
  sym::Arena& syms = *kernel.syms;
  std::set<std::string> taken;
  std::set<sym::Expr> seen;
  std::vector<std::pair<sym::Expr, sym::Expr>> renamed;
  for (sym::Expr s : kernel.symbols) taken.insert(syms.var(s).name);
  const auto name = [&](sym::Expr var) {
    if (!seen.insert(var).second || taken.insert(syms.var(var).name).second) return;
    sym::Variable v = syms.var(var);
    const std::string base = v.name;
    for (int i = 2; !taken.insert(v.name).second; ++i) v.name = str("{}_{}", base, i);
    renamed.push_back({var, syms.variable(v)});
  };
  for (const Axis& a : kernel.grid) name(a.var);
  for (const Stage& s : kernel.stages) {
    for (const Axis& a : s.loop) name(a.var);
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Index) name(i.inst.expr);
  }
  if (renamed.empty()) return;
  const auto rename = [&](sym::Expr& e) { e = syms.substitute(e, renamed); };
  for (Axis& a : kernel.grid) rename(a.var);
  for (Stage& s : kernel.stages)
    for (Axis& a : s.loop) rename(a.var);
  replace(kernel, renamed);
  for_each_inst(kernel, [&](KernelInst& i) {
    if (i.kind == KernelOp::Index) rename(i.inst.expr);
  });
}

}  // namespace coil
