#include "kernel/split_cpu.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kernel/launch_builder.h"
#include "kernel/merge_axes.h"

namespace coil {
namespace {

bool has(const Stage& s, KernelOp kind) {
  return std::any_of(s.insts.begin(), s.insts.end(),
                     [&](const KernelInst& i) { return i.kind == kind; });
}

template <class F>
void for_each_use(const Inst& inst, F f) {
  for (Val v : inst.operands) f(v);
  if (inst.mask.valid()) f(inst.mask);
}

/// Points of a loop's last axis in a unit of work. All reductions of a loop have the blocks of one
/// tree; a scan that is exact may be cut anywhere. 0: the loop is not cut.
i64 block_of(const Stage& s, const CpuTuning& tuning) {
  for (const KernelInst& i : s.insts)
    if (i.kind == KernelOp::Accumulate) return i.inst.tree.block;
  return has(s, KernelOp::Scan) ? tuning.scan_block : 0;
}

/// Whether a scan takes what another one of its loop gives.
bool scans_a_scan(const Stage& s) {
  std::set<Val> scanned;
  for (const KernelInst& i : s.insts) {
    bool after = false;
    for_each_use(i.inst, [&](Val v) { after |= scanned.contains(v); });
    if (after && i.kind == KernelOp::Scan) return true;
    if (after || i.kind == KernelOp::Scan)
      scanned.insert(i.inst.results.begin(), i.inst.results.end());
  }
  return false;
}

/// Whether combining in another order gives the same bits.
bool is_exact(const ops::Combine& c) {
  return !c.name.empty() && c.values.size() == 1 && !is_float(c.values[0]);
}

sym::Expr blocks_along(sym::Arena& syms, const Axis& row, i64 block) {
  return syms.ceildiv(row.extent, syms.constant(block));
}

/// Blocks of all of a loop: those of its last axis, for each point of the others.
sym::Expr blocks_of(sym::Arena& syms, const Stage& s, i64 block) {
  sym::Expr out = blocks_along(syms, s.loop.back(), block);
  for (std::size_t a = 0; a + 1 < s.loop.size(); ++a) out = syms.mul(out, s.loop[a].extent);
  return out;
}

std::vector<sym::Expr> vars_of(const std::vector<Axis>& axes) {
  std::vector<sym::Expr> out;
  for (const Axis& a : axes) out.push_back(a.var);
  return out;
}

std::vector<sym::Expr> extents_of(const std::vector<Axis>& axes) {
  std::vector<sym::Expr> out;
  for (const Axis& a : axes) out.push_back(a.extent);
  return out;
}

template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Why the launches would not do the same; "" where they would.
std::string why_whole(const Kernel& k) {
  if (k.mapping.serial) return "stores may meet, and the last one wins";
  std::vector<std::pair<sym::Expr, const Stage*>> indices;
  for (const Stage& s : k.stages)
    for (const KernelInst& i : s.insts) {
      if (i.kind == KernelOp::Scan && !is_exact(k.combines[i.inst.combine]))
        return "a scan of floats goes in order, element after element";
      if (i.kind == KernelOp::Scan && (s.loop.size() > 1 || has(s, KernelOp::Accumulate)))
        return "a loop with a scan reduces or has several axes";
      if (i.kind == KernelOp::Scan && scans_a_scan(s))
        return "a scan goes over another one's results";
      if (i.kind == KernelOp::Index && !s.loop.empty())
        return "an index is checked, and reports its place in the row";
      if (i.kind == KernelOp::Index) indices.push_back({i.inst.expr, &s});
      if (i.kind == KernelOp::Accumulate && i.inst.tree.block == 0)
        return "the tree of its reductions has no blocks";
      Inst copy = i.inst;
      bool crosses = false;
      for_each_expr(copy, [&](sym::Expr e) {
        for (const auto& [index, stage] : indices) crosses |= stage != &s && k.syms->uses(e, index);
      });
      if (crosses) return "an index that was checked before a loop is used after it";
    }
  return "";
}

class Splitter : LaunchBuilder {
 public:
  Splitter(const Kernel& whole, const CpuTuning& tuning, Launches& out)
      : LaunchBuilder(whole, out),
        tuning_(tuning),
        makers_(whole.val_dtypes.size()),
        made_in_(whole.val_dtypes.size()),
        outlives_(whole.val_dtypes.size()),
        left_(whole.val_dtypes.size()),
        rows_(whole.buffers.size()),
        partials_(whole.num_accumulators) {
    for (std::size_t s = 0; s < whole.stages.size(); ++s)
      for (const KernelInst& k : whole.stages[s].insts) {
        for_each_use(k.inst, [&](Val v) {
          if (made_in_[v.index] != s) outlives_[v.index] = true;
        });
        for (Val v : k.inst.results) {
          makers_[v.index] = &k;
          made_in_[v.index] = s;
        }
        if (k.kind == KernelOp::Index) indices_.push_back(k.inst.expr);
      }
  }

  std::vector<Kernel> run() {
    for (stage_ = 0; stage_ < whole_.stages.size(); ++stage_) {
      const Stage& s = whole_.stages[stage_];
      if (s.loop.empty()) {
        straight(s);
      } else if (has(s, KernelOp::Accumulate)) {
        blocks(s);
      } else if (has(s, KernelOp::Scan)) {
        scans(s);
      } else {
        points(s);
      }
    }
    return std::move(launches_);
  }

 private:
  /// What the blocks of a loop leave of an accumulator.
  struct Left {
    Partials partials;
    const Stage* loop = nullptr;
    std::vector<sym::Expr> blocks;  // extents: of the loop's outer axes, and the blocks of the last
  };

  // ---- a launch ----

  /// Begins with what earlier straight stages left, as far as this one uses it.
  void begin_stage(const Stage& s, std::vector<Axis> grid) {
    begin(std::move(grid));
    open({});
    for (const KernelInst& k : s.insts)
      for_each_use(k.inst, [&](Val v) {
        if (made_in_[v.index] != stage_ && !values_[v.index].valid()) bring(v);
      });
  }

  void bring(Val v) {
    if (const std::optional<u32> buffer = left_[v.index])
      values_[v.index] = load(*buffer, vars_of(whole_.grid));
    else
      copy(*makers_[v.index], {});
  }

  /// Whether every launch makes it for itself.
  bool is_cheap(const KernelInst& k) const {
    if (k.kind == KernelOp::Const || k.kind == KernelOp::Scalar) return true;
    return k.kind == KernelOp::Value &&
           std::none_of(indices_.begin(), indices_.end(),
                        [&](sym::Expr n) { return syms_.uses(k.inst.expr, n); });
  }

  void end() {
    keep_what_is_used(now_);
    if (now_.stages.empty()) return;
    now_.scalars.clear();
    collect_symbols(now_);
    name_apart(now_);
    launches_.push_back(std::move(now_));
  }

  // ---- stages ----

  void straight(const Stage& s) {
    begin_stage(s, whole_.grid);
    std::vector<u32> accumulators(whole_.num_accumulators);
    for (const Stage& loop : whole_.stages) fold(loop, s, accumulators);
    open({});
    for (const KernelInst& k : s.insts) {
      if (k.kind != KernelOp::Finish) {
        copy_in_row(k, {});
        continue;
      }
      const std::vector<Val> results = finish(accumulators[k.accumulator], k.inst.combine);
      for (std::size_t v = 0; v < results.size(); ++v)
        values_[k.inst.results[v].index] = results[v];
    }
    for (const KernelInst& k : s.insts)
      for (Val v : k.inst.results)
        if (outlives_[v.index] && !is_cheap(k)) {
          left_[v.index] = scratch("left", whole_.val_dtypes[v.index], extents_of(whole_.grid));
          store(*left_[v.index], vars_of(whole_.grid), values_[v.index]);
        }
    end();
  }

  /// A loop over what the blocks of `loop` left of the accumulators that `s` finishes.
  void fold(const Stage& loop, const Stage& s, std::vector<u32>& accumulators) {
    std::vector<Axis> over;
    for (const KernelInst& k : s.insts) {
      if (k.kind != KernelOp::Finish || partials_[k.accumulator].loop != &loop) continue;
      const Left& left = partials_[k.accumulator];
      if (over.empty()) {
        for (sym::Expr e : left.blocks)
          over.push_back(axis(str("u{}", over.size()), sym::Role::Reduce, e));
        open(over);
      }
      std::vector<Val> operands;
      for (u32 b : left.partials.buffers)
        operands.push_back(load(b, joined(vars_of(over), vars_of(whole_.grid))));
      accumulators[k.accumulator] =
          accumulate(left.partials.combine, std::move(operands), ops::Tree{1, 0, 0});
    }
  }

  /// A loop cut into blocks, which are points of a grid as those of the loop's outer axes are.
  struct Cut {
    std::vector<Axis> grid;  // without the whole kernel's
    Axis in_block;
    Places places;  // of the loop's axes
  };
  Cut cut(const Stage& s) const {
    Cut c;
    c.grid = to_grid(s, s.loop.size() - 1, c.places);
    const Axis& row = s.loop.back();
    const i64 block = block_of(s, tuning_);
    c.grid.push_back(axis("b", sym::Role::Loop, blocks_along(syms_, row, block)));
    const sym::Expr length = syms_.constant(block), before = syms_.mul(c.grid.back().var, length);
    c.in_block = axis(syms_.var(row.var).name, syms_.var(row.var).role,
                      syms_.min(length, syms_.sub(row.extent, before)));
    c.places.push_back({row.var, syms_.add(before, c.in_block.var)});
    return c;
  }

  /// A unit of work for each block.
  void blocks(const Stage& s) {
    const Cut c = cut(s);
    begin_stage(s, joined(c.grid, whole_.grid));
    open({c.in_block});
    std::vector<std::pair<u32, const KernelInst*>> accumulators;
    for (const KernelInst& k : s.insts) {
      if (k.kind != KernelOp::Accumulate) {
        copy_in_row(k, c.places);
        continue;
      }
      const sym::Expr position = syms_.substitute(row_major(s.loop), c.places);
      accumulators.push_back({accumulate(k.inst.combine, lifted(k.inst, position),
                                         {k.inst.tree.lanes, k.inst.tree.accs, 0}),
                              &k});
    }
    open({});
    for (const auto& [accumulator, k] : accumulators)
      partials_[k->accumulator] = {leave(accumulator, k->inst.combine, c), &s, extents_of(c.grid)};
    end();
  }

  /// What a block's accumulator has come to goes to scratch.
  Partials leave(u32 accumulator, u32 combine, const Cut& c) {
    Partials out{accumulator, combine, {}};
    for (Val v : finish(accumulator, combine)) {
      out.buffers.push_back(scratch("partial", now_.val_dtypes[v.index],
                                    joined(extents_of(c.grid), extents_of(whole_.grid))));
      store(out.buffers.back(), joined(vars_of(c.grid), vars_of(whole_.grid)), v);
    }
    return out;
  }

  // ---- scans ----

  /// Three launches: what each block adds up to, the scan of that, and each block with what stands
  /// before it.
  void scans(const Stage& s) {
    const Cut c = cut(s);
    std::vector<Partials> totals = totals_of_blocks(s, c);
    scan_totals(s, totals, c.grid.back());
    begin_stage(s, joined(c.grid, whole_.grid));
    const sym::Expr block = c.grid.back().var;
    const Val is_later = op(ops::ScalarOp::gt, DType::b8,
                            {value(block), constant(ops::Scalar::of_int(DType::i64, 0))});
    std::vector<Val> carries;
    for (const Partials& p : totals) {
      carries.push_back(
          load(p.buffers[0], joined({syms_.sub(block, syms_.constant(1))}, vars_of(whole_.grid))));
      insts().back().inst.mask = is_later;
      insts().back().inst.other = whole_.combines[p.combine].identity[0];
    }
    open({c.in_block});
    for (const KernelInst& k : s.insts) {
      copy_in_row(k, c.places);
      if (k.kind != KernelOp::Scan) continue;
      const Val whole = k.inst.results[0];
      values_[whole.index] = combined(k.inst.combine, {carries.front()}, {values_[whole.index]})[0];
      carries.erase(carries.begin());
    }
    end();
  }

  std::vector<Partials> totals_of_blocks(const Stage& s, const Cut& c) {
    begin_stage(s, joined(c.grid, whole_.grid));
    open({c.in_block});
    const ops::Tree tree = is_contiguous(s) ? ops::Tree{16, 4, 0} : ops::Tree{1, 4, 0};
    std::vector<std::pair<u32, u32>> accumulators;  // and their combines
    for (const KernelInst& k : s.insts) {
      if (k.kind == KernelOp::Scan)
        accumulators.push_back(
            {accumulate(k.inst.combine, lifted(k.inst, c.in_block.var), tree), k.inst.combine});
      else if (k.kind != KernelOp::Store)
        copy_in_row(k, c.places);  // but for what needs the scan
    }
    open({});
    std::vector<Partials> out;
    for (const auto& [accumulator, combine] : accumulators)
      out.push_back(leave(accumulator, combine, c));
    end();
    return out;
  }

  void scan_totals(const Stage& s, std::vector<Partials>& totals, const Axis& blocks) {
    begin(whole_.grid);
    const Axis over = axis("u", syms_.var(s.loop[0].var).role, blocks.extent);
    open({over});
    const std::vector<sym::Expr> at = joined({over.var}, vars_of(whole_.grid));
    for (Partials& p : totals) {
      const DType dtype = whole_.combines[p.combine].values[0];
      KernelInst k;
      k.kind = KernelOp::Scan;
      k.inst.kind = InstKind::Scan;
      k.inst.combine = p.combine;
      k.inst.dtype = dtype;
      k.inst.operands = {load(p.buffers[0], at)};
      k.inst.results = {fresh(dtype)};
      insts().push_back(k);
      p.buffers[0] = scratch("before", dtype, joined({blocks.extent}, extents_of(whole_.grid)));
      store(p.buffers[0], at, k.inst.results[0]);
    }
    end();
  }

  /// Whether the loop reads its row along the line in memory.
  bool is_contiguous(const Stage& s) const {
    return std::any_of(s.insts.begin(), s.insts.end(), [&](const KernelInst& k) {
      if (k.kind != KernelOp::Load) return false;
      const auto stride = syms_.stride(
          address(syms_, whole_.buffers[k.buffer].layout, k.inst.index), s.loop.back().var);
      return stride && syms_.is_const(*stride, 1);
    });
  }

  // ---- points ----

  /// All points of the loop are points of the grid.
  void points(const Stage& s) {
    Places places;
    std::vector<Axis> row = to_grid(s, s.loop.size(), places);
    begin_stage(s, joined(whole_.grid, row));
    open({});
    for (const KernelInst& k : s.insts) copy_in_row(k, places);
    merge_grid_axes(now_);
    end();
  }

  /// The first `count` axes of a loop as axes of a grid.
  std::vector<Axis> to_grid(const Stage& s, std::size_t count, Places& places) const {
    std::vector<Axis> out;
    for (std::size_t a = 0; a < count; ++a) {
      out.push_back(axis(syms_.var(s.loop[a].var).name, sym::Role::Loop, s.loop[a].extent));
      places.push_back({s.loop[a].var, out.back().var});
    }
    return out;
  }

  sym::Expr row_major(const std::vector<Axis>& axes) const {
    sym::Expr at = syms_.constant(0);
    for (const Axis& a : axes) at = syms_.add(syms_.mul(at, a.extent), a.var);
    return at;
  }

  /// A row that the whole kernel keeps is one of scratch for each point of its grid.
  void copy_in_row(const KernelInst& k, const Places& places) {
    if (!copy(k, places)) return;
    const bool in_memory = k.kind == KernelOp::Load || k.kind == KernelOp::Store;
    if (!in_memory || !whole_.buffers[k.buffer].kept) return;
    std::optional<u32>& row = rows_[k.buffer];
    const KernelBuffer& kept = whole_.buffers[k.buffer];
    if (!row) row = scratch("row", kept.dtype, joined(extents_of(whole_.grid), kept.shape));
    KernelInst& c = insts().back();
    c.buffer = *row;
    c.inst.index = joined(vars_of(whole_.grid), c.inst.index);
  }

  const CpuTuning& tuning_;
  std::size_t stage_ = 0;
  // by value of the whole kernel
  std::vector<const KernelInst*> makers_;
  std::vector<std::size_t> made_in_;  // the stage
  std::vector<bool> outlives_;        // a later stage uses it
  std::vector<std::optional<u32>> left_;
  std::vector<std::optional<u32>> rows_;  // by buffer of the whole kernel that is kept
  std::vector<Left> partials_;            // by accumulator
  std::vector<sym::Expr> indices_;        // from data
};

}  // namespace

RowSplit decide_row_split(const Kernel& mapped, const CpuTuning& tuning) {
  sym::Arena& syms = *mapped.syms;
  if (syms.range(mapped.mapping.units).hi > tuning.few_units) return {};
  for (const Stage& s : mapped.stages) {
    const i64 block = block_of(s, tuning);
    if (block == 0 || syms.range(blocks_of(syms, s, block)).hi < tuning.least_blocks) continue;
    if (const std::string why = why_whole(mapped); !why.empty())
      return {false, "not split over threads: " + why};
    return {true, str("threads share blocks of {} points of a row: at most {} units of work would "
                      "leave some idle",
                      block, tuning.few_units)};
  }
  return {};
}

std::vector<Kernel> split_rows(const Kernel& mapped, const CpuTuning& tuning, Launches& out) {
  return Splitter(mapped, tuning, out).run();
}

}  // namespace coil
