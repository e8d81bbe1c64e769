// How a kernel runs on a CPU: which axis the lanes take, what threads share. Each rule leaves its
// reason.

#include <algorithm>
#include <set>

#include "kernel/kernel.h"

namespace coil {
namespace {

constexpr i64 kLanes = 16;
constexpr i64 kChunkPoints = 4096;         // grid points of a pointwise kernel in one unit of work
constexpr i64 kTurnedChunk = 256;          // the same along the lanes of tiles that are turned
constexpr i64 kLongestRow = i64{1} << 40;  // of a block: a unit of work is a row
constexpr i64 kGrainPoints = 16384;        // points that pay for waking a thread
constexpr i64 kMostKeptBytes = 262144;     // of kept rows: they lie on the stack

struct Access1 {
  sym::Expr address;
  bool store;
};

std::vector<Access1> accesses(const Kernel& kernel) {
  std::vector<Access1> out;
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Load || i.kind == KernelOp::Store)
        out.push_back({address(*kernel.syms, kernel.buffers[i.buffer].layout, i.inst.index),
                       i.kind == KernelOp::Store});
  return out;
}

/// Whether the place of a load or store depends on indices that were loaded.
bool place_is_data(const Kernel& kernel, const Inst& inst) {
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Index &&
          std::any_of(inst.index.begin(), inst.index.end(),
                      [&](sym::Expr e) { return kernel.syms->uses(e, i.inst.expr); }))
        return true;
  return false;
}

/// Stages whose stores may meet: they combine, or their place comes from data.
std::vector<const Stage*> stages_where_stores_meet(const Kernel& kernel) {
  const auto may_meet = [&](const KernelInst& i) {
    return i.kind == KernelOp::Store &&
           (i.inst.store_combine != StoreCombine::None || place_is_data(kernel, i.inst));
  };
  std::vector<const Stage*> out;
  for (const Stage& s : kernel.stages)
    if (std::any_of(s.insts.begin(), s.insts.end(), may_meet)) out.push_back(&s);
  return out;
}

/// Whether loops are as long at all points of the axis: lanes run through them side by side.
bool loops_are_even(const Kernel& kernel, const Axis& axis) {
  for (const Stage& s : kernel.stages)
    for (const Axis& a : s.loop)
      if (kernel.syms->uses(a.extent, axis.var)) return false;
  return true;
}

/// Lanes follow the axis along which most accesses are contiguous; ties go to the inner one.
std::optional<std::size_t> best_lane_axis(const Kernel& kernel) {
  const std::vector<Access1> all = accesses(kernel);
  std::optional<std::size_t> best;
  i64 best_score = -1;
  for (std::size_t a = kernel.grid.size(); a-- > 0;) {
    if (!loops_are_even(kernel, kernel.grid[a])) continue;
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

/// Whether an access is strided along the axis of the lanes and contiguous along another.
bool is_turned(const Kernel& kernel, const KernelInst& k, sym::Expr lanes, sym::Expr across) {
  if (k.kind != KernelOp::Load && k.kind != KernelOp::Store) return false;
  if (k.inst.mask.valid() || k.inst.store_combine != StoreCombine::None) return false;
  sym::Arena& syms = *kernel.syms;
  const sym::Expr at = address(syms, kernel.buffers[k.buffer].layout, k.inst.index);
  const std::optional<sym::Expr> stride = syms.stride(at, lanes), other = syms.stride(at, across);
  return stride && other && syms.is_const(*other, 1) && !syms.is_const(*stride, 0) &&
         !syms.is_const(*stride, 1) && !place_is_data(kernel, k.inst);
}

/// The axis across the lanes along which the most accesses are turned, if there is one. A buffer
/// that is read and written would need its accesses in order.
std::optional<std::size_t> best_axis_across(const Kernel& kernel, std::size_t lane) {
  std::set<u32> read, written;
  for (const Stage& s : kernel.stages) {
    if (!s.loop.empty()) return std::nullopt;
    for (const KernelInst& i : s.insts) {
      if (i.kind == KernelOp::Load) read.insert(i.buffer);
      if (i.kind == KernelOp::Store) written.insert(i.buffer);
    }
  }
  for (u32 b : read)
    if (written.contains(b)) return std::nullopt;
  const auto is_narrow = [&](std::size_t a) {
    const std::optional<i64> extent = kernel.syms->as_const(kernel.grid[a].extent);
    return extent && *extent < kLanes / 2;
  };
  if (is_narrow(lane)) return std::nullopt;
  std::optional<std::size_t> best;
  i64 most = 0;
  for (std::size_t a = kernel.grid.size(); a-- > 0;) {
    if (a == lane || is_narrow(a)) continue;
    i64 turned = 0;
    for (const Stage& s : kernel.stages)
      for (const KernelInst& i : s.insts)
        turned += is_turned(kernel, i, kernel.grid[lane].var, kernel.grid[a].var);
    if (turned > most) {
      most = turned;
      best = a;
    }
  }
  return best;
}

/// The axes that the first loop goes over: all do, but where groups close a kernel.
const std::vector<Axis>& row_of(const Kernel& kernel) {
  for (const Stage& s : kernel.stages)
    if (!s.loop.empty()) return s.loop;
  return kernel.stages[0].loop;
}

/// Points of the grid; of a tiled axis its tiles.
sym::Expr product_of_grid(const Kernel& kernel, const std::vector<TileDim>& tiles) {
  sym::Arena& syms = *kernel.syms;
  sym::Expr out = syms.constant(1);
  for (const Axis& a : kernel.grid) {
    sym::Expr points = a.extent;
    for (const TileDim& t : tiles)
      if (t.axis == a.var) points = syms.ceildiv(points, syms.constant(t.extent));
    out = syms.mul(out, points);
  }
  return out;
}

/// An extent, as far as it is known; a block's is full in all but the last one.
i64 likely_extent(const sym::Arena& syms, sym::Expr extent) {
  constexpr i64 kUnknown = 64;
  if (syms.kind(extent) == sym::Kind::Min)
    for (sym::Expr e : syms.operands(extent))
      if (const std::optional<i64> most = syms.as_const(e)) return *most;
  return syms.as_const(extent).value_or(kUnknown);
}

i64 points_of(const Kernel& kernel, const std::vector<Axis>& axes) {
  i64 points = 1;
  for (const Axis& a : axes) {
    const i64 extent = likely_extent(*kernel.syms, a.extent);
    points = std::min<i64>(kGrainPoints, points * std::clamp<i64>(extent, 1, kGrainPoints));
  }
  return points;
}

/// The last axes of loops whose reductions have trees of several lanes.
std::vector<TileDim> rows_in_lanes(const Kernel& kernel) {
  std::vector<TileDim> out;
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate || i.inst.tree.lanes == 1) continue;
      const TileDim dim = {s.loop.back().var, i.inst.tree.lanes};
      if (std::none_of(out.begin(), out.end(),
                       [&](const TileDim& t) { return t.axis == dim.axis; }))
        out.push_back(dim);
    }
  return out;
}

bool has_slots(const Stage& s) {
  return std::any_of(s.insts.begin(), s.insts.end(), [](const KernelInst& i) {
    return i.kind == KernelOp::Accumulate && i.inst.tree.accs > 1;
  });
}

/// Whether a body is long enough to hide the latency of its own operations.
bool is_long_body(const Stage& stage) {
  constexpr i64 kLongBody = 16, kElementary = 8;
  i64 cost = 0;
  for (const KernelInst& k : stage.insts) {
    if (k.kind == KernelOp::Index) cost += kLongBody;
    if (k.kind == KernelOp::Op) cost += ops::is_elementary(k.inst.op) ? kElementary : 1;
    if (k.kind == KernelOp::Load || k.kind == KernelOp::Accumulate) ++cost;
  }
  return cost >= kLongBody;
}

/// A long body is printed once, not once for each slot: its own operations hide the latency, and
/// the compiler's time goes with the text.
void roll_long_bodies(Kernel& kernel) {
  for (u32 s = 0; s < kernel.stages.size(); ++s) {
    const Stage& stage = kernel.stages[s];
    if (!is_long_body(stage) || !has_slots(stage)) continue;
    kernel.mapping.rolled.push_back(s);
    kernel.mapping.reasons.push_back(str("the loop of stage {} is rolled: its body is long", s));
  }
}

}  // namespace

bool is_turned(const Kernel& kernel, const KernelInst& inst) {
  const std::vector<TileDim>& tile = kernel.mapping.tile;
  return tile.size() == 2 && is_turned(kernel, inst, tile[0].axis, tile[1].axis);
}

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

namespace {

i64 kept_bytes(const Kernel& kernel) {
  i64 all = 0;
  for (const KernelBuffer& b : kernel.buffers) {
    i64 bytes = b.kept ? size_of(b.dtype) : 0;
    for (sym::Expr e : b.shape) bytes *= b.kept ? kernel.syms->as_const(e).value_or(1) : 1;
    all += bytes;
  }
  return all;
}

/// Registers of 64 bytes that a tile of a loop's accumulators and scans takes.
i64 carried_registers(const Kernel& kernel, const Stage& stage) {
  i64 bytes = 0;
  for (const KernelInst& k : stage.insts) {
    if (k.kind != KernelOp::Accumulate && k.kind != KernelOp::Scan) continue;
    const i64 slots = k.kind == KernelOp::Scan ? 1 : std::max<i64>(1, k.inst.tree.accs);
    for (DType d : kernel.combines[k.inst.combine].values)
      bytes += slots * std::max<i64>(4, size_of(d)) * kLanes;
  }
  return bytes / 64;
}

/// Whether each step of a loop reads the next row of a matrix: of a page per step, a tile uses a
/// line or two, and the prefetcher, which stays within a page, learns nothing.
bool goes_down_columns(const Kernel& kernel, const Stage& stage, sym::Expr lanes) {
  constexpr i64 kFarRow = 256;
  sym::Arena& syms = *kernel.syms;
  return std::any_of(stage.insts.begin(), stage.insts.end(), [&](const KernelInst& k) {
    if (k.kind != KernelOp::Load) return false;
    const sym::Expr at = address(syms, kernel.buffers[k.buffer].layout, k.inst.index);
    const std::optional<sym::Expr> along = syms.stride(at, lanes),
                                   down = syms.stride(at, stage.loop.back().var);
    return along && down && syms.is_const(*along, 1) &&
           syms.as_const(*down).value_or(kFarRow) >= kFarRow;
  });
}

/// How many tiles go through the loops in step: more of each row that they go down is read at
/// once. Registers bound it, and the units of work that are left for threads.
i64 tiles_abreast(const Kernel& kernel, std::size_t lane) {
  constexpr i64 kMostTiles = 4, kRegisters = 16, kUnitsForThreads = 16, kLongColumn = 16;
  sym::Arena& syms = *kernel.syms;
  if (std::ranges::any_of(kernel.buffers, &KernelBuffer::kept)) return 1;
  bool goes_down = false;
  i64 registers = 1;
  for (const Stage& s : kernel.stages) {
    for (const KernelInst& k : s.insts)
      if (k.kind == KernelOp::Index) return 1;
    if (s.loop.empty()) continue;
    if (is_long_body(s)) return 1;
    registers = std::max(registers, carried_registers(kernel, s));
    goes_down |= likely_extent(syms, s.loop.back().extent) >= kLongColumn &&
                 goes_down_columns(kernel, s, kernel.grid[lane].var);
  }
  i64 tiles = goes_down ? kMostTiles : 1;
  const i64 points = points_of(kernel, kernel.grid);
  while (tiles > 1 &&
         (tiles * registers > kRegisters || points < tiles * kLanes * kUnitsForThreads))
    tiles /= 2;
  return tiles;
}

/// Lanes, and units of work, along the grid.
void map_grid(Kernel& kernel, std::size_t lane, i64 loop_points) {
  Mapping& m = kernel.mapping;
  sym::Arena& syms = *kernel.syms;
  const Axis& axis = kernel.grid[lane];
  m.tile.push_back({axis.var, kLanes});
  const std::optional<std::size_t> across =
      m.serial ? std::nullopt : best_axis_across(kernel, lane);
  m.abreast = m.serial || across ? 1 : tiles_abreast(kernel, lane);
  m.chunk = across ? kTurnedChunk : row_of(kernel).empty() ? kChunkPoints : kLanes * m.abreast;
  std::vector<TileDim> unit = {{axis.var, m.chunk}};
  if (across) unit.push_back(m.tile.emplace_back(kernel.grid[*across].var, kLanes));
  m.units = product_of_grid(kernel, unit);
  i64 unit_points = std::min(m.chunk, syms.as_const(axis.extent).value_or(m.chunk)) * loop_points;
  if (across) unit_points *= kLanes;
  m.grain = std::max<i64>(1, kGrainPoints / std::max<i64>(1, unit_points));
  m.reasons.push_back(
      m.serial ? "one thread, lanes in order: stores may meet, and the last one wins"
               : str("lanes on {}: most accesses are contiguous along it", syms.text(axis.var)));
  if (m.abreast > 1)
    m.reasons.push_back(
        str("{} tiles abreast: each step of a loop reads another row, and so more of it at once",
            m.abreast));
  if (across)
    m.reasons.push_back(
        str("tiles of {0} x {0} are turned in registers: other accesses are contiguous along {1}",
            kLanes, syms.text(m.tile[1].axis)));
}

}  // namespace

void map_to_cpu(Kernel& kernel, const Machine&) {
  Mapping& m = kernel.mapping;
  m = Mapping{};
  sym::Arena& syms = *kernel.syms;
  const i64 loop_points = points_of(kernel, row_of(kernel));
  const std::vector<const Stage*> meet = stages_where_stores_meet(kernel);
  m.serial = !meet.empty();
  m.tile = rows_in_lanes(kernel);
  const auto scalar = [&](std::string reason) {
    m.units = product_of_grid(kernel, {});
    m.reasons.push_back(std::move(reason));
  };
  if (!m.tile.empty()) {
    m.units = product_of_grid(kernel, {});
    m.grain = std::max<i64>(1, kGrainPoints / loop_points);
    m.reasons.push_back(str("lanes on {}: the reduction's tree has {} lanes along the row",
                            join(m.tile, ", ", [&](const TileDim& t) { return syms.text(t.axis); }),
                            m.tile[0].extent));
  } else if (kernel.grid.empty()) {
    scalar("scalar code: there is no parallel axis");
  } else if (kept_bytes(kernel) * kLanes > kMostKeptBytes) {
    scalar("scalar code: a kept row is too long for each lane to have one");
  } else if (std::any_of(meet.begin(), meet.end(),
                         [](const Stage* s) { return !s->loop.empty(); })) {
    scalar("scalar code on one thread: stores along the row may meet, row after row");
  } else if (m.serial) {
    map_grid(kernel, kernel.grid.size() - 1, loop_points);
  } else if (const std::optional<std::size_t> lane = best_lane_axis(kernel)) {
    map_grid(kernel, *lane, loop_points);
  } else {
    scalar("scalar code: loops differ in length along the grid");
    m.grain = std::max<i64>(1, kGrainPoints / loop_points);
  }
  roll_long_bodies(kernel);
}

}  // namespace coil
