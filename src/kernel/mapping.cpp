// How a kernel runs on a CPU: which axis the lanes take, what threads share. Each rule leaves its
// reason.

#include <algorithm>

#include "kernel/kernel.h"

namespace coil {
namespace {

constexpr i64 kLanes = 16;
constexpr i64 kChunkPoints = 4096;         // grid points of a pointwise kernel in one unit of work
constexpr i64 kLongestRow = i64{1} << 40;  // of a block: a unit of work is a row
constexpr i64 kGrainPoints = 16384;        // points that pay for waking a thread

struct Access1 {
  sym::Expr address;
  bool store;
};

std::vector<Access1> accesses(const Kernel& kernel) {
  std::vector<Access1> out;
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (!s.closing && (i.kind == KernelOp::Load || i.kind == KernelOp::Store))
        out.push_back({address(*kernel.syms, kernel.buffers[i.buffer].layout, i.inst.index),
                       i.kind == KernelOp::Store});
  return out;
}

/// Stages whose stores may meet: they combine, or their place comes from data.
std::vector<const Stage*> stages_where_stores_meet(const Kernel& kernel) {
  std::vector<sym::Expr> from_data;
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Index) from_data.push_back(i.inst.expr);
  const auto may_meet = [&](const KernelInst& i) {
    if (i.kind != KernelOp::Store) return false;
    if (i.inst.store_combine != StoreCombine::None) return true;
    return std::any_of(i.inst.index.begin(), i.inst.index.end(), [&](sym::Expr e) {
      return std::any_of(from_data.begin(), from_data.end(),
                         [&](sym::Expr v) { return kernel.syms->uses(e, v); });
    });
  };
  std::vector<const Stage*> out;
  for (const Stage& s : kernel.stages)
    if (!s.closing && std::any_of(s.insts.begin(), s.insts.end(), may_meet)) out.push_back(&s);
  return out;
}

/// Lanes follow the axis along which most accesses are contiguous; ties go to the inner one.
std::size_t best_lane_axis(const Kernel& kernel) {
  const std::vector<Access1> all = accesses(kernel);
  std::size_t best = kernel.grid.size() - 1;
  i64 best_score = -1;
  for (std::size_t a = kernel.grid.size(); a-- > 0;) {
    i64 score = 0;
    for (const Access1& access : all) {
      const std::optional<sym::Expr> stride =
          kernel.syms->stride(access.address, kernel.grid[a].var);
      if (!stride) continue;
      if (kernel.syms->is_const(*stride, 1)) score += access.store ? 6 : 4;
      if (kernel.syms->is_const(*stride, 0)) score += 2;
    }
    if (const std::optional<i64> extent = kernel.syms->as_const(kernel.grid[a].extent);
        extent && *extent < 4)
      score = 0;
    if (score > best_score) {
      best_score = score;
      best = a;
    }
  }
  return best;
}

const Inst* first_accumulate(const Kernel& kernel) {
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Accumulate && !s.closing) return &i.inst;
  return nullptr;
}

/// The axes that loops of stages go over: the same in all of them.
const std::vector<Axis>& row_of(const Kernel& kernel) {
  for (const Stage& s : kernel.stages)
    if (!s.loop.empty() && !s.closing) return s.loop;
  return kernel.stages[0].loop;
}

sym::Expr product_of_grid(const Kernel& kernel, sym::Expr without) {
  sym::Expr out = kernel.syms->constant(1);
  for (const Axis& a : kernel.grid)
    if (a.var != without) out = kernel.syms->mul(out, a.extent);
  return out;
}

i64 points_of(const Kernel& kernel, const std::vector<Axis>& axes) {
  i64 points = 1;
  for (const Axis& a : axes) {
    const i64 extent = kernel.syms->as_const(a.extent).value_or(64);
    points = std::min<i64>(kGrainPoints, points * std::clamp<i64>(extent, 1, kGrainPoints));
  }
  return points;
}

bool goes_in_lanes(const Stage& s) {
  return std::any_of(s.insts.begin(), s.insts.end(), [](const KernelInst& i) {
    return i.kind == KernelOp::Accumulate && i.inst.tree.lanes > 1;
  });
}

bool has_lanes(const std::vector<TileDim>& tiles, sym::Expr axis) {
  return std::any_of(tiles.begin(), tiles.end(), [&](const TileDim& t) { return t.axis == axis; });
}

}  // namespace

void map_epilogue_to_cpu(Kernel& kernel) {
  Mapping& m = kernel.mapping;
  m = Mapping{};
  m.tile.push_back({kernel.grid[1].var, kLanes});
  m.chunk = kLongestRow;
  m.units = kernel.grid[0].extent;
  m.serial = true;
  m.reasons.push_back(
      "one thread, lanes on the columns: it runs on a block that a thread of the template has "
      "finished");
}

void map_to_cpu(Kernel& kernel, const Machine&) {
  Mapping& m = kernel.mapping;
  m = Mapping{};
  sym::Arena& syms = *kernel.syms;
  const std::vector<Axis>& row = row_of(kernel);
  const i64 loop_points = points_of(kernel, row);
  const Inst* reduce = first_accumulate(kernel);
  const std::vector<const Stage*> meet = stages_where_stores_meet(kernel);
  m.serial = !meet.empty();
  for (const Stage& s : kernel.stages)
    if (s.closing && goes_in_lanes(s) && !has_lanes(m.closing, s.loop.back().var))
      m.closing.push_back({s.loop.back().var, kLanes});
  if (reduce && reduce->tree.lanes > 1) {
    m.tile.push_back({row.back().var, reduce->tree.lanes});
    m.units = product_of_grid(kernel, sym::Expr());
    m.grain = std::max<i64>(1, kGrainPoints / loop_points);
    m.reasons.push_back(str("lanes on {}: the reduction's tree has {} lanes along the row",
                            syms.text(m.tile[0].axis), reduce->tree.lanes));
  } else if (kernel.grid.empty()) {
    m.units = syms.constant(1);
    m.reasons.push_back("scalar code: there is no parallel axis");
  } else if (std::any_of(meet.begin(), meet.end(),
                         [](const Stage* s) { return !s->loop.empty(); })) {
    m.units = product_of_grid(kernel, sym::Expr());
    m.reasons.push_back("scalar code on one thread: stores along the row may meet, row after row");
  } else {
    const std::size_t lane = m.serial ? kernel.grid.size() - 1 : best_lane_axis(kernel);
    const Axis& axis = kernel.grid[lane];
    m.tile.push_back({axis.var, kLanes});
    m.chunk = row.empty() ? kChunkPoints : kLanes;
    m.units = syms.mul(product_of_grid(kernel, axis.var),
                       syms.ceildiv(axis.extent, syms.constant(m.chunk)));
    const i64 unit_points =
        std::min(m.chunk, syms.as_const(axis.extent).value_or(m.chunk)) * loop_points;
    m.grain = std::max<i64>(1, kGrainPoints / std::max<i64>(1, unit_points));
    m.reasons.push_back(
        m.serial ? "one thread, lanes in order: stores may meet, and the last one wins"
                 : str("lanes on {}: most accesses are contiguous along it", syms.text(axis.var)));
  }
}

}  // namespace coil
