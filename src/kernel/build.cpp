// From a group of bodies to one kernel, stage by stage: values and buffers are renumbered, what a
// body hands to a later one at the same point stays a value, equal instructions are one.

#include <algorithm>
#include <bit>
#include <map>

#include "kernel/kernel.h"
#include "kernel/merge_axes.h"
#include "schedule/accesses.h"
#include "schedule/memory.h"

namespace coil {
namespace {

using Substitution = std::vector<std::pair<sym::Expr, sym::Expr>>;

/// A body at work: where its dims are, and the kernel's values of its own.
struct Frame {
  const Body* body = nullptr;
  Substitution dims;
  Side<Val, Val> values;
  u32 first_combine = 0;
  Val mask;  // of a body computed again under a masked load: its loads are masked too
};

class Builder {
 public:
  Builder(const LoopProgram& program, const Schedule& schedule, const Group& group)
      : program_(program), schedule_(schedule), group_(group) {}

  BuiltKernel run() {
    Kernel& k = out_.kernel;
    k.name = group_.name;
    k.syms = program_.syms;
    k.grid = group_.grid;
    if (group_.node.valid()) start_block();
    build_stages(group_);
    for (const Group& part : group_.closing) close_with(part);
    for_each_instance(group_, [&](const Instance& i) { note_source(program_.bodies[i.body]); });
    if (!group_.node.valid()) merge_grid_axes(k);
    collect_symbols(k);
    name_apart(k);
    return std::move(out_);
  }

 private:
  /// An epilogue runs over the elements of a block, which is its first buffer.
  void start_block() {
    Kernel& k = out_.kernel;
    out_.block = block_of(program_, program_.structured[group_.node]);
    axes_ = out_.block.dims;
    k.grid = {out_.block.row, out_.block.col};
    const std::vector<sym::Expr> strides = {out_.block.ld, k.syms->constant(1)};
    k.buffers.push_back({"block",
                         out_.block.dtype,
                         {out_.block.rows, out_.block.cols},
                         strided_layout(strides, sym::Expr()),
                         false,
                         false});
    out_.arguments.push_back(BufferId());
  }

  /// The node's result, rounded as the node would have.
  Val load_block(Inst inst) {
    const DType dtype = inst.dtype;
    const Val mask = inst.mask;
    inst.dtype = out_.block.dtype;
    inst.index = {out_.block.row.var, out_.block.col.var};
    inst.mask = Val();
    Val v = pure(KernelOp::Load, inst, 0);
    if (dtype != inst.dtype) v = op(ops::ScalarOp::cast, dtype, {v});
    return masked(mask, v, inst.other);
  }

  Frame frame_of(const Body& body) {
    Frame f;
    f.body = &body;
    f.values = Side<Val, Val>(body.val_dtypes.size());
    f.first_combine = static_cast<u32>(out_.kernel.combines.size());
    for (const ops::Combine& c : body.combines) out_.kernel.combines.push_back(c);
    return f;
  }

  /// All stages of a group: the whole kernel's, or of one that closes it.
  void build_stages(const Group& part) {
    part_ = &part;
    inner_ = part.inner;
    frames_.clear();
    u32 last = 0;
    for (const Instance& i : part.instances) {
      frames_.push_back(frame_of(program_.bodies[i.body]));
      Frame& f = frames_.back();
      for (std::size_t d = 0; d < i.dims.size(); ++d)
        if (f.body->dims[d].var != i.dims[d])
          f.dims.push_back({f.body->dims[d].var, program_.syms->substitute(i.dims[d], axes_)});
      if (!axes_.empty())
        for (const Dim& d : f.body->dims)
          if (const auto own = axis_of(d.var); own.valid()) f.dims.push_back({d.var, own});
      last = std::max(last, i.stage + (has_kind(*f.body, InstKind::Reduce) ? 1 : 0));
    }
    for (Axis& a : inner_) a.var = program_.syms->substitute(a.var, axes_);
    for (u32 stage = 0; stage <= last; ++stage) build_stage(stage);
  }

  /// What stands for an axis that is a body's own dim, where closing stages have axes of their own.
  sym::Expr axis_of(sym::Expr var) const {
    for (const auto& [from, to] : axes_)
      if (from == var) return to;
    return sym::Expr();
  }

  /// A group without a grid, over axes of its own: those of other stages may have the same names.
  void close_with(const Group& part) {
    registers_.clear();
    known_.clear();
    axes_.clear();
    for (const Axis& a : part.grid) axes_.push_back({a.var, program_.syms->constant(0)});
    for (const Axis& a : part.inner) {
      sym::Variable axis = program_.syms->var(a.var);
      axis.name = str("c{}", closing_axes_++);
      axes_.push_back({a.var, program_.syms->variable(axis)});
    }
    build_stages(part);
  }

  void build_stage(u32 number) {
    Stage stage;
    if (number % 2 == 1) stage.loop = inner_;
    stage.closing = part_ != &group_;
    out_.kernel.stages.push_back(std::move(stage));
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const Instance& instance = part_->instances[i];
      const bool reduces = has_kind(*frames_[i].body, InstKind::Reduce);
      if (instance.stage == number) elements(frames_[i]);
      if (reduces && instance.stage + 1 == number) results(frames_[i]);
    }
    if (out_.kernel.stages.back().insts.empty()) out_.kernel.stages.pop_back();
    if (number % 2 == 1) forget_loop();
  }

  void forget_loop() {
    std::erase_if(registers_, [](const Register& r) { return r.in_loop; });
    std::erase_if(known_, [](const auto& entry) { return entry.second.in_loop; });
  }

  bool in_loop() const { return !out_.kernel.stages.back().loop.empty(); }

  /// What runs for each point of all dims.
  void elements(Frame& f) {
    for (const Inst& inst : f.body->insts) {
      if (inst.kind == InstKind::Reduce) {
        add_reduce(f, inst);
      } else if (is_after_reduce(f, inst)) {
        return;
      } else {
        emit(f, inst);
      }
    }
  }

  bool is_after_reduce(const Frame& f, const Inst& inst) const {
    return std::any_of(f.body->insts.data(), &inst,
                       [](const Inst& i) { return i.kind == InstKind::Reduce; });
  }

  /// What a reduction leaves, and what its body computes from that.
  void results(Frame& f) {
    for (const Inst& inst : f.body->insts) {
      if (inst.kind == InstKind::Reduce)
        add_finish(f, inst);
      else if (is_after_reduce(f, inst))
        emit(f, inst);
    }
  }

  u32 argument(BufferId b, bool written) {
    auto at = std::find(out_.arguments.begin(), out_.arguments.end(), b);
    const u32 index = static_cast<u32>(at - out_.arguments.begin());
    if (at == out_.arguments.end()) {
      const Buffer& buffer = program_.buffers[b];
      out_.arguments.push_back(b);
      out_.kernel.buffers.push_back(
          {buffer.name, buffer.dtype, buffer.shape, buffer.layout, false, false});
      if (is_kept(b)) keep(out_.kernel.buffers.back());
    }
    out_.kernel.buffers[index].written |= written;
    return index;
  }

  bool is_kept(BufferId b) const { return schedule_.buffers.get(b).place == Place::Kept; }

  /// One row of the buffer, in the order of the inner axes.
  void keep(KernelBuffer& b) {
    sym::Arena& syms = *program_.syms;
    b.kept = true;
    b.shape.clear();
    for (const Axis& a : inner_) b.shape.push_back(a.extent);
    std::vector<sym::Expr> strides(b.shape.size(), syms.constant(1));
    for (std::size_t i = b.shape.size(); i-- > 1;)
      strides[i - 1] = syms.mul(strides[i], b.shape[i]);
    b.layout = strided_layout(strides, sym::Expr());
  }

  Val fresh(DType dtype) {
    out_.kernel.val_dtypes.push_back(dtype);
    return Val(out_.kernel.val_dtypes.size() - 1);
  }

  /// The instruction over the kernel's values and axes; results are not yet given.
  Inst renumber(Frame& f, const Inst& inst) {
    Inst mine = inst;
    for (Val& v : mine.operands) v = f.values[v];
    if (mine.mask.valid()) mine.mask = f.values[mine.mask];
    sym::Arena& syms = *program_.syms;
    for (sym::Expr& e : mine.index) e = syms.substitute(e, f.dims);
    if (inst.kind == InstKind::Value) mine.expr = syms.substitute(inst.expr, f.dims);
    mine.combine += f.first_combine;
    mine.results.clear();
    return mine;
  }

  void add_reduce(Frame& f, const Inst& inst) {
    accumulator_of_[&inst] = out_.kernel.num_accumulators++;
    out_.kernel.stages.back().insts.push_back(
        {KernelOp::Accumulate, renumber(f, inst), 0, accumulator_of_[&inst]});
  }

  void add_finish(Frame& f, const Inst& inst) {
    Inst mine = inst;
    mine.operands.clear();
    mine.results.clear();
    mine.combine += f.first_combine;
    for (Val r : inst.results) {
      f.values[r] = fresh(f.body->val_dtypes[r.index]);
      mine.results.push_back(f.values[r]);
    }
    out_.kernel.stages.back().insts.push_back(
        {KernelOp::Finish, std::move(mine), 0, accumulator_of_[&inst]});
  }

  void emit(Frame& f, const Inst& inst) {
    Inst mine = renumber(f, inst);
    switch (inst.kind) {
      case InstKind::Load: f.values[inst.results[0]] = load(f, std::move(mine)); return;
      case InstKind::Store: store(std::move(mine)); return;
      case InstKind::Const:
        f.values[inst.results[0]] = pure(KernelOp::Const, std::move(mine));
        return;
      case InstKind::Value:
        f.values[inst.results[0]] = pure(KernelOp::Value, std::move(mine));
        return;
      case InstKind::Scalar:
        f.values[inst.results[0]] = pure(KernelOp::Scalar, std::move(mine));
        return;
      case InstKind::Op: f.values[inst.results[0]] = pure(KernelOp::Op, std::move(mine)); return;
      case InstKind::Index:
        if (!mine.mask.valid()) mine.mask = mask_of_uses(f, inst);
        out_.kernel.index_from.push_back(source_of(*f.body));
        push(KernelOp::Index, std::move(mine), 0);
        return;
      case InstKind::Scan:
        for (std::size_t i = 0; i < inst.results.size(); ++i) {
          f.values[inst.results[i]] = fresh(out_.kernel.combines[mine.combine].values[i]);
          mine.results.push_back(f.values[inst.results[i]]);
        }
        push(KernelOp::Scan, std::move(mine), 0);
        return;
      case InstKind::Reduce: COIL_UNREACHABLE();
    }
  }

  void push(KernelOp kind, Inst inst, u32 buffer) {
    KernelInst k;
    k.kind = kind;
    k.inst = std::move(inst);
    k.buffer = buffer;
    out_.kernel.stages.back().insts.push_back(std::move(k));
  }

  /// An instruction of one result that depends on its operands only: the value of an equal one, if
  /// there is.
  Val pure(KernelOp kind, Inst inst, u32 buffer = 0) {
    const std::vector<i64> key = key_of(kind, inst, buffer);
    if (const auto known = known_.find(key); known != known_.end()) return known->second.value;
    const DType dtype = kind == KernelOp::Value ? DType::i64 : inst.dtype;
    const Val result = fresh(dtype);
    inst.results = {result};
    push(kind, std::move(inst), buffer);
    known_[key] = {result, in_loop()};
    return result;
  }

  static std::vector<i64> key_of(KernelOp kind, const Inst& inst, u32 buffer) {
    std::vector<i64> key = {i64(kind),   i64(inst.op),         i64(inst.dtype),
                            i64(buffer), i64(inst.mask.index), i64(inst.scalar)};
    const auto scalar = [&](const ops::Scalar& s) {
      key.insert(key.end(), {i64(s.dtype), std::bit_cast<i64>(s.f), s.i});
    };
    if (kind == KernelOp::Const) scalar(inst.constant);
    if (kind == KernelOp::Load && inst.mask.valid()) scalar(inst.other);
    if (kind == KernelOp::Value) key.push_back(i64(inst.expr.index));
    for (Val v : inst.operands) key.push_back(i64(v.index));
    for (sym::Expr e : inst.index) key.push_back(i64(e.index));
    return key;
  }

  Val op(ops::ScalarOp op, DType dtype, std::vector<Val> operands) {
    Inst inst;
    inst.kind = InstKind::Op;
    inst.op = op;
    inst.dtype = dtype;
    inst.operands = std::move(operands);
    return pure(KernelOp::Op, std::move(inst));
  }

  /// `v` where the mask holds, else what a masked-off load gives.
  Val masked(Val mask, Val v, const ops::Scalar& other) {
    if (!mask.valid()) return v;
    const DType wide = compute_dtype(other.dtype);  // no narrow float is chosen by itself
    Inst inst;
    inst.kind = InstKind::Const;
    inst.dtype = wide;
    inst.constant = other;
    inst.constant.dtype = wide;
    const Val otherwise = pure(KernelOp::Const, std::move(inst));
    if (wide == other.dtype) return op(ops::ScalarOp::where, wide, {mask, v, otherwise});
    const Val widened = op(ops::ScalarOp::cast, wide, {v});
    return op(ops::ScalarOp::cast, other.dtype,
              {op(ops::ScalarOp::where, wide, {mask, widened, otherwise})});
  }

  /// What an earlier body left in a register, what a body computed again gives, a kept row, or
  /// memory.
  Val load(const Frame& f, Inst inst) {
    if (f.mask.valid()) {
      if (!inst.mask.valid()) inst.other = ops::Scalar::of_int(inst.dtype, 0);
      inst.mask =
          inst.mask.valid() ? op(ops::ScalarOp::bits_and, DType::b8, {inst.mask, f.mask}) : f.mask;
    }
    for (const Register& r : registers_)
      if (r.buffer == inst.buffer) return masked(inst.mask, r.value, inst.other);
    const BufferId b = inst.buffer;
    if (group_.node.valid() && b == program_.structured[group_.node].outputs[0].buffer)
      return load_block(std::move(inst));
    if (const BodyId by = schedule_.recomputed.get(b); by.valid())
      return again(program_.bodies[by], inst);
    const u32 at = argument(b, false);
    if (!is_kept(b)) {
      if (!out_.kernel.buffers[at].written) return pure(KernelOp::Load, std::move(inst), at);
    } else {
      inst.index.clear();
      for (const Axis& a : inner_) inst.index.push_back(a.var);
    }
    const Val result = fresh(inst.dtype);
    inst.results = {result};
    push(KernelOp::Load, std::move(inst), at);
    return result;
  }

  /// The element of `body`'s buffer at the index of a load.
  Val again(const Body& body, const Inst& load) {
    Frame f = frame_of(body);
    for (std::size_t d = 0; d < body.dims.size(); ++d)
      f.dims.push_back({body.dims[d].var, load.index[d]});
    f.mask = load.mask;
    for (const Inst& inst : body.insts) {
      if (inst.kind == InstKind::Store)
        return masked(load.mask, f.values[inst.operands[0]], load.other);
      emit(f, inst);
    }
    COIL_UNREACHABLE();
  }

  void store(Inst inst) {
    const BufferId b = inst.buffer;
    if (!inst.mask.valid() && inst.store_combine == StoreCombine::None)
      registers_.push_back({b, inst.operands[0], in_loop()});
    const Place place = schedule_.buffers.get(b).place;
    if (place == Place::Gone) return;
    const u32 at = argument(b, true);
    if (place == Place::Kept) {
      inst.index.clear();
      for (const Axis& a : inner_) inst.index.push_back(a.var);
    }
    push(KernelOp::Store, std::move(inst), at);
  }

  /// An index that only accesses under one mask use is not checked where the mask is off: the mask,
  /// if it is known by now.
  Val mask_of_uses(const Frame& f, const Inst& index) {
    Val mask;
    bool seen = false;
    for (const Inst& i : f.body->insts) {
      if (i.kind == InstKind::Value && program_.syms->uses(i.expr, index.expr)) return Val();
      if (i.kind != InstKind::Load && i.kind != InstKind::Store) continue;
      if (std::none_of(i.index.begin(), i.index.end(),
                       [&](sym::Expr e) { return program_.syms->uses(e, index.expr); }))
        continue;
      if (!i.mask.valid() || (seen && i.mask != mask)) return Val();
      mask = i.mask;
      seen = true;
    }
    return mask.valid() ? f.values.get(mask) : Val();
  }

  /// `add from %sum_1 @ model.py:12`: what a body computes, and whose code that is.
  std::string source_of(const Body& body) const {
    std::string text = body.name;
    std::vector<std::string> names;
    for (ValueId v : body.from) names.push_back("%" + program_.value_names.get(v));
    if (!names.empty())
      text += " from " + join(names, ", ", [](const std::string& n) { return n; });
    std::vector<std::string> frames;
    for (LocId l : body.locs)
      if (const std::string& f = program_.locs[l].frame;
          !f.empty() && std::find(frames.begin(), frames.end(), f) == frames.end())
        frames.push_back(f);
    if (!frames.empty()) text += " @ " + join(frames, ", ", [](const std::string& f) { return f; });
    return text;
  }

  void note_source(const Body& body) {
    for (const Inst& i : body.insts)
      if (i.kind == InstKind::Load && schedule_.recomputed.get(i.buffer).valid())
        note_source(program_.bodies[schedule_.recomputed.get(i.buffer)]);
    const std::string text = source_of(body);
    std::vector<std::string>& all = out_.kernel.from;
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }

  struct Register {
    BufferId buffer;
    Val value;
    bool in_loop;
  };
  struct Known {
    Val value;
    bool in_loop = false;
  };

  const LoopProgram& program_;
  const Schedule& schedule_;
  const Group& group_;
  BuiltKernel out_;
  std::vector<Frame> frames_;    // one for each instance
  const Group* part_ = nullptr;  // the group itself, or the closing one at work
  std::vector<Axis> inner_;      // of that one, as the kernel has them
  Substitution axes_;            // the group's axes as the kernel has them, where they differ
  u32 closing_axes_ = 0;
  std::map<const Inst*, u32> accumulator_of_;
  std::vector<Register> registers_;  // what bodies of this group stored at this point of the axes
  std::map<std::vector<i64>, Known> known_;
};

}  // namespace

BuiltKernel build_kernel(const LoopProgram& program, const Schedule& schedule, GroupId group) {
  return Builder(program, schedule, schedule.groups[group]).run();
}

}  // namespace coil
