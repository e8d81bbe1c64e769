#include "kernel/launch_builder.h"

#include <algorithm>

#include "kernel/merge_axes.h"

namespace coil {

void LaunchBuilder::begin(std::vector<Axis> grid) {
  now_ = Kernel{};
  now_.name = str("{}_{}", whole_.name, out_.launches.size() + launches_.size());
  now_.syms = whole_.syms;
  now_.buffers = whole_.buffers;
  now_.buffers.insert(now_.buffers.end(), scratch_.begin(), scratch_.end());
  now_.symbols = whole_.symbols;
  now_.scalars = whole_.scalars;
  now_.combines = whole_.combines;
  now_.from = whole_.from;
  now_.grid = std::move(grid);
  values_.assign(whole_.val_dtypes.size(), Val());
}

Axis LaunchBuilder::axis(std::string name, sym::Role role, sym::Expr extent) const {
  const i64 most = syms_.range(extent).hi;
  sym::Variable v;
  v.name = std::move(name);
  v.role = role;
  v.extent = extent;
  v.range = {0, most == sym::kMaxInt ? most : std::max<i64>(most, 1) - 1};
  return {syms_.variable(std::move(v)), extent};
}

// ---- instructions ----

Val LaunchBuilder::fresh(DType dtype) {
  now_.val_dtypes.push_back(dtype);
  return Val{static_cast<u32>(now_.val_dtypes.size() - 1)};
}

Val LaunchBuilder::emit(KernelOp kind, Inst inst) {
  inst.results = {fresh(inst.dtype)};
  insts().push_back({kind, inst, 0, 0});
  return inst.results[0];
}

Val LaunchBuilder::constant(const ops::Scalar& value) {
  Inst inst;
  inst.kind = InstKind::Const;
  inst.dtype = value.dtype;
  inst.constant = value;
  return emit(KernelOp::Const, std::move(inst));
}

Val LaunchBuilder::value(sym::Expr expr) {
  Inst inst;
  inst.kind = InstKind::Value;
  inst.dtype = DType::i64;
  inst.expr = expr;
  return emit(KernelOp::Value, std::move(inst));
}

Val LaunchBuilder::op(ops::ScalarOp what, DType dtype, std::vector<Val> operands) {
  Inst inst;
  inst.op = what;
  inst.dtype = dtype;
  inst.operands = std::move(operands);
  return emit(KernelOp::Op, std::move(inst));
}

bool LaunchBuilder::copy(const KernelInst& k, const Places& places) {
  KernelInst c = k;
  for (Val& v : c.inst.operands)
    if (!(v = values_[v.index]).valid()) return false;
  if (c.inst.mask.valid() && !(c.inst.mask = values_[c.inst.mask.index]).valid()) return false;
  for_each_expr(c.inst, [&](sym::Expr& e) { e = syms_.substitute(e, places); });
  for (Val& v : c.inst.results) v = values_[v.index] = fresh(whole_.val_dtypes[v.index]);
  insts().push_back(std::move(c));
  return true;
}

u32 LaunchBuilder::scratch(std::string_view what, DType dtype, std::vector<sym::Expr> shape) {
  KernelBuffer b;
  const auto is_taken = [&](const KernelBuffer& other) { return other.name == b.name; };
  std::size_t number = out_.scratch.size();
  do {
    b.name = str("{}_{}{}", whole_.name, what, number++);
  } while (std::any_of(out_.whole.buffers.begin(), out_.whole.buffers.end(), is_taken) ||
           std::any_of(out_.scratch.begin(), out_.scratch.end(), is_taken));
  b.dtype = dtype;
  b.shape = std::move(shape);
  std::vector<sym::Expr> strides(b.shape.size());
  sym::Expr step = syms_.constant(1);
  for (std::size_t d = b.shape.size(); d-- > 0; step = syms_.mul(step, b.shape[d]))
    strides[d] = step;
  b.layout = strided_layout(strides, sym::Expr());
  b.written = true;
  scratch_.push_back(b);
  now_.buffers.push_back(b);
  out_.scratch.push_back(std::move(b));
  return static_cast<u32>(now_.buffers.size() - 1);
}

Val LaunchBuilder::load(u32 buffer, std::vector<sym::Expr> index) {
  KernelInst k;
  k.kind = KernelOp::Load;
  k.buffer = buffer;
  k.inst.kind = InstKind::Load;
  k.inst.dtype = now_.buffers[buffer].dtype;
  k.inst.index = std::move(index);
  k.inst.results = {fresh(k.inst.dtype)};
  insts().push_back(k);
  return k.inst.results[0];
}

void LaunchBuilder::store(u32 buffer, std::vector<sym::Expr> index, Val v) {
  KernelInst k;
  k.kind = KernelOp::Store;
  k.buffer = buffer;
  k.inst.kind = InstKind::Store;
  k.inst.dtype = now_.buffers[buffer].dtype;
  k.inst.index = std::move(index);
  k.inst.operands = {v};
  insts().push_back(std::move(k));
}

// ---- combines ----

bool LaunchBuilder::lifts_to_itself(u32 combine) const {
  const ops::Combine& c = now_.combines[combine];
  if (c.name.empty() || c.values.size() != 1) return false;
  const ops::RegionInst r = ops::lift(c)[0];
  return !r.constant && r.operands[0] == 0;
}

u32 LaunchBuilder::on_partials(u32 combine) {
  if (lifts_to_itself(combine) || now_.combines[combine].name.empty()) return combine;
  ops::Combine c = now_.combines[combine];
  c.name.clear();
  const auto at = std::find(now_.combines.begin(), now_.combines.end(), c);
  if (at != now_.combines.end()) return static_cast<u32>(at - now_.combines.begin());
  now_.combines.push_back(std::move(c));
  return static_cast<u32>(now_.combines.size() - 1);
}

std::vector<Val> LaunchBuilder::lifted(const Inst& inst, sym::Expr position) {
  const ops::Combine c = now_.combines[inst.combine];
  std::vector<Val> operands;
  for (Val v : inst.operands) operands.push_back(values_[v.index]);
  if (c.name.empty() || lifts_to_itself(inst.combine)) return operands;
  std::vector<Val> out;
  for (const ops::RegionInst& r : ops::lift(c)) {
    if (r.constant) {
      out.push_back(constant(*r.constant));
      continue;
    }
    const Val from = r.operands[0] == 0 ? operands[0] : value(position);
    const bool same = now_.val_dtypes[from.index] == r.dtype;
    out.push_back(same ? from : op(ops::ScalarOp::cast, r.dtype, {from}));
  }
  return out;
}

u32 LaunchBuilder::accumulate(u32 combine, std::vector<Val> operands, ops::Tree tree) {
  KernelInst k;
  k.kind = KernelOp::Accumulate;
  k.inst.kind = InstKind::Reduce;
  k.inst.combine = on_partials(combine);
  k.inst.dtype = now_.combines[combine].values[0];
  k.inst.operands = std::move(operands);
  k.inst.tree = tree;
  k.accumulator = now_.num_accumulators++;
  insts().push_back(k);
  return k.accumulator;
}

std::vector<Val> LaunchBuilder::finish(u32 accumulator, u32 combine) {
  KernelInst k;
  k.kind = KernelOp::Finish;
  k.accumulator = accumulator;
  k.inst.kind = InstKind::Reduce;
  k.inst.combine = on_partials(combine);
  k.inst.dtype = now_.combines[combine].values[0];
  for (DType d : now_.combines[combine].values) k.inst.results.push_back(fresh(d));
  insts().push_back(k);
  return k.inst.results;
}

std::vector<Val> LaunchBuilder::combined(u32 combine, const std::vector<Val>& left,
                                         const std::vector<Val>& right) {
  const ops::Combine c = now_.combines[combine];
  std::vector<Val> all = left;
  all.insert(all.end(), right.begin(), right.end());
  for (const ops::RegionInst& r : c.insts) {
    std::vector<Val> operands;
    for (u32 o : r.operands) operands.push_back(all[o]);
    all.push_back(r.constant ? constant(*r.constant) : op(r.op, r.dtype, std::move(operands)));
  }
  std::vector<Val> out;
  for (u32 r : c.results) out.push_back(all[r]);
  return out;
}

}  // namespace coil
