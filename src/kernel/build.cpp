// From a group of bodies to one kernel: values and buffers are renumbered, what a body hands to the
// next one at the same point stays a value, and a reduction cuts the code into stages.

#include <algorithm>

#include "kernel/kernel.h"
#include "kernel/merge_axes.h"
#include "schedule/memory.h"

namespace coil {
namespace {

class Builder {
 public:
  Builder(const LoopProgram& program, const Schedule& schedule, const Group& group)
      : program_(program), schedule_(schedule), group_(group) {}

  BuiltKernel run() {
    Kernel& k = out_.kernel;
    k.name = group_.name;
    k.syms = program_.syms;
    k.grid = group_.grid;
    k.stages.emplace_back();
    k.stages.back().loop = group_.inner;
    for (const Instance& instance : group_.instances) add(instance);
    merge_grid_axes(k);
    collect_symbols(k);
    return std::move(out_);
  }

 private:
  u32 argument(BufferId b, bool written) {
    auto at = std::find(out_.arguments.begin(), out_.arguments.end(), b);
    const u32 index = static_cast<u32>(at - out_.arguments.begin());
    if (at == out_.arguments.end()) {
      const Buffer& buffer = program_.buffers[b];
      out_.arguments.push_back(b);
      out_.kernel.buffers.push_back({buffer.name, buffer.dtype, buffer.shape, buffer.layout, false});
    }
    out_.kernel.buffers[index].written |= written;
    return index;
  }

  Val fresh(DType dtype) {
    out_.kernel.val_dtypes.push_back(dtype);
    return Val(out_.kernel.val_dtypes.size() - 1);
  }

  void add(const Instance& instance) {
    const Body& body = program_.bodies[instance.body];
    body_ = &body;
    values_ = Side<Val, Val>(body.val_dtypes.size());
    std::vector<std::pair<sym::Expr, sym::Expr>> dims;
    for (std::size_t i = 0; i < body.dims.size(); ++i)
      if (body.dims[i].var != instance.dims[i]) dims.push_back({body.dims[i].var, instance.dims[i]});
    const u32 first_combine = static_cast<u32>(out_.kernel.combines.size());
    for (const ops::Combine& c : body.combines) out_.kernel.combines.push_back(c);
    bool reduced = false;
    for (const Inst& inst : body.insts) {
      Inst mine = renumber(inst, dims, first_combine);
      if (inst.kind == InstKind::Reduce) {
        add_reduce(inst, std::move(mine));
        reduced = true;
        continue;
      }
      if (reduced) {
        start_straight_stage();
        reduced = false;
      }
      emit(inst, std::move(mine));
    }
    note_source(body);
  }

  /// The instruction over the kernel's values and axes; results are not yet given.
  Inst renumber(const Inst& inst, const std::vector<std::pair<sym::Expr, sym::Expr>>& dims,
                u32 first_combine) {
    Inst mine = inst;
    for (Val& v : mine.operands) v = values_[v];
    if (mine.mask.valid()) mine.mask = values_[mine.mask];
    sym::Arena& syms = *program_.syms;
    for (sym::Expr& e : mine.index) e = syms.substitute(e, dims);
    if (inst.kind == InstKind::Value) mine.expr = syms.substitute(inst.expr, dims);
    mine.combine += first_combine;
    mine.results.clear();
    return mine;
  }

  void add_reduce(const Inst& inst, Inst mine) {
    const u32 accumulator = out_.kernel.num_accumulators++;
    out_.kernel.stages.back().insts.push_back({KernelOp::Accumulate, mine, 0, accumulator});
    mine.operands.clear();
    for (Val r : inst.results) {
      values_[r] = fresh(program_.bodies[group_.instances.back().body].val_dtypes[r.index]);
      mine.results.push_back(values_[r]);
    }
    finishes_.push_back({KernelOp::Finish, std::move(mine), 0, accumulator});
  }

  void start_straight_stage() {
    out_.kernel.stages.emplace_back();
    out_.kernel.stages.back().insts = std::move(finishes_);
    finishes_.clear();
  }

  void emit(const Inst& inst, Inst mine) {
    KernelInst k;
    k.kind = KernelOp::Op;
    switch (inst.kind) {
      case InstKind::Load: {
        if (Val* kept = in_register(inst.buffer)) {
          values_[inst.results[0]] = *kept;
          return;
        }
        k.kind = KernelOp::Load;
        k.buffer = argument(inst.buffer, false);
        break;
      }
      case InstKind::Store:
        if (inst.index.size() == group_.grid.size() && group_.instances.size() > 1)
          registers_.push_back({inst.buffer, mine.operands[0]});
        if (schedule_.buffers.get(inst.buffer).place == Place::Gone) return;
        k.kind = KernelOp::Store;
        k.buffer = argument(inst.buffer, true);
        break;
      case InstKind::Const: k.kind = KernelOp::Const; break;
      case InstKind::Value: k.kind = KernelOp::Value; break;
      case InstKind::Scalar: k.kind = KernelOp::Scalar; break;
      case InstKind::Index:
        k.kind = KernelOp::Index;
        if (!mine.mask.valid()) mine.mask = mask_of_uses(inst);
        break;
      case InstKind::Op: k.kind = KernelOp::Op; break;
      case InstKind::Reduce: COIL_UNREACHABLE();
      case InstKind::Scan: k.kind = KernelOp::Scan; break;
    }
    for (Val r : inst.results) {
      values_[r] = fresh(inst.kind == InstKind::Scan ? out_.kernel.combines[mine.combine].values[mine.results.size()]
                         : result_dtype(inst));
      mine.results.push_back(values_[r]);
    }
    k.inst = std::move(mine);
    out_.kernel.stages.back().insts.push_back(std::move(k));
  }

  /// An index that only accesses under one mask use is not checked where the mask is off: the mask, if
  /// it is known by now.
  Val mask_of_uses(const Inst& index) {
    Val mask;
    bool seen = false;
    for (const Inst& i : body_->insts) {
      if (i.kind == InstKind::Value && program_.syms->uses(i.expr, index.expr)) return Val();
      if (i.kind != InstKind::Load && i.kind != InstKind::Store) continue;
      if (std::none_of(i.index.begin(), i.index.end(), [&](sym::Expr e) { return program_.syms->uses(e, index.expr); }))
        continue;
      if (!i.mask.valid() || (seen && i.mask != mask)) return Val();
      mask = i.mask;
      seen = true;
    }
    return mask.valid() ? values_[mask] : Val();
  }

  static DType result_dtype(const Inst& inst) {
    return inst.kind == InstKind::Value ? DType::i64 : inst.dtype;
  }

  /// The value that an earlier body of this group stored to `b` at the same point.
  Val* in_register(BufferId b) {
    for (auto& [buffer, value] : registers_)
      if (buffer == b) return &value;
    return nullptr;
  }

  void note_source(const Body& body) {
    std::string text = body.name;
    std::vector<std::string> names;
    for (ValueId v : body.from) names.push_back("%" + program_.value_names.get(v));
    if (!names.empty()) text += " from " + join(names, ", ", [](const std::string& n) { return n; });
    std::vector<std::string> frames;
    for (LocId l : body.locs)
      if (const std::string& f = program_.locs[l].frame; !f.empty() && std::find(frames.begin(), frames.end(), f) == frames.end())
        frames.push_back(f);
    if (!frames.empty()) text += " @ " + join(frames, ", ", [](const std::string& f) { return f; });
    out_.kernel.from.push_back(std::move(text));
  }

  const LoopProgram& program_;
  const Schedule& schedule_;
  const Group& group_;
  BuiltKernel out_;
  const Body* body_ = nullptr;  // the one at work
  Side<Val, Val> values_;  // a body's value -> the kernel's
  std::vector<KernelInst> finishes_;
  std::vector<std::pair<BufferId, Val>> registers_;
};

}  // namespace

BuiltKernel build_kernel(const LoopProgram& program, const Schedule& schedule, GroupId group) {
  return Builder(program, schedule, schedule.groups[group]).run();
}

}  // namespace coil
