// How a kernel runs on a GPU: what one program (a block of threads) takes as a tile. Each rule
// leaves its reason.

#include <algorithm>
#include <bit>
#include <functional>

#include "kernel/mapping_gpu.h"

namespace coil {
namespace {

constexpr i64 kPointwiseTile = 1024;  // grid points of a program without loops: 8 a thread
constexpr i64 kColumnTile = 256;      // grid points of a program that loops over rows
constexpr i64 kTransposeTile = 32;    // each side of a tile of rank 2
constexpr i64 kLongestRowInTile = 16384;
constexpr i64 kRowChunk = 2048;   // elements at once of a longer row
constexpr i64 kShortestRow = 16;  // a shorter row leaves most of a warp idle
constexpr i64 kElementsOfThread = 16;
constexpr int kMostWarps = 16;

i64 power_of_two(i64 least) {
  return static_cast<i64>(std::bit_ceil(static_cast<u64>(std::max<i64>(1, least))));
}

using Substitution = std::vector<std::pair<sym::Expr, sym::Expr>>;

class GpuMapper {
 public:
  explicit GpuMapper(Kernel& kernel) : kernel_(kernel), syms_(*kernel.syms) {}

  Status run() {
    kernel_.mapping = Mapping{};
    COIL_TRY(find_row());
    if (const std::string why = why_serial(); !why.empty()) return serial(why);
    if (kernel_.grid.empty() && row_.empty()) return serial("one program: there is a single point");
    if (row_takes_lanes()) return lanes_on_row();
    if (kernel_.grid.empty())
      return serial("one program: the row is short, and there is no other axis");
    if (row_.empty() && transposes()) return Ok{};
    return lanes_on_grid();
  }

 private:
  Mapping& mapping() { return kernel_.mapping; }
  void because(std::string reason) { mapping().reasons.push_back(std::move(reason)); }

  /// The axes that the loops go over must be the same in all stages.
  Status find_row() {
    for (const Stage& s : kernel_.stages) {
      // A field of a stage that is not named here has no rule yet, and does not compile.
      const auto& [loop, insts, closing] = s;
      if (closing) return error("stages that close a kernel have no mapping to a GPU yet");
      if (loop.empty() || insts.empty()) continue;
      if (row_.empty()) row_ = loop;
      const auto same = [](const Axis& a, const Axis& b) { return a.extent == b.extent; };
      if (!std::equal(loop.begin(), loop.end(), row_.begin(), row_.end(), same))
        return error("loops over different rows in one kernel have no mapping to a GPU");
    }
    return Ok{};
  }

  /// Programs run in any order, so that what depends on order is one program's work.
  std::string why_serial() const {
    std::vector<sym::Expr> from_data;
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts)
        if (i.kind == KernelOp::Index) from_data.push_back(i.inst.expr);
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts) {
        if (i.kind != KernelOp::Store) continue;
        const DType dtype = kernel_.buffers[i.buffer].dtype;
        if (i.inst.store_combine != StoreCombine::None) {
          if (!combines_atomically(i.inst.store_combine, dtype))
            return str("one program, in order: stores of {} that meet are combined in order",
                       name(dtype));
          continue;
        }
        for (sym::Expr e : i.inst.index)
          for (sym::Expr v : from_data)
            if (syms_.uses(e, v))
              return "one program, in order: stores may meet, and the last one wins";
      }
    return "";
  }

  Status serial(std::string why) {
    mapping().serial = true;
    mapping().units = syms_.constant(1);
    because(std::move(why));
    return Ok{};
  }

  // ---- what is contiguous ----

  enum class Where { Everywhere, InLoops };

  /// How well lanes along an axis fit the accesses; `axis_of` gives it for each stage.
  i64 score(const std::function<sym::Expr(const Stage&)>& axis_of, Where where) const {
    i64 total = 0;
    for (const Stage& s : kernel_.stages) {
      if (where == Where::InLoops && s.loop.empty()) continue;
      const sym::Expr axis = axis_of(s);
      for (const KernelInst& i : s.insts) {
        if (i.kind != KernelOp::Load && i.kind != KernelOp::Store) continue;
        if (kernel_.buffers[i.buffer].kept) continue;
        const std::optional<sym::Expr> stride = stride_of(i, axis);
        if (!stride) continue;
        if (syms_.is_const(*stride, 1)) total += i.kind == KernelOp::Store ? 6 : 4;
        if (syms_.is_const(*stride, 0)) total += 1;
      }
    }
    return total;
  }

  std::optional<sym::Expr> stride_of(const KernelInst& i, sym::Expr axis) const {
    return syms_.stride(address(syms_, kernel_.buffers[i.buffer].layout, i.inst.index), axis);
  }

  i64 grid_score(std::size_t axis, Where where) const {
    return score([&](const Stage&) { return kernel_.grid[axis].var; }, where);
  }

  std::size_t best_grid_axis() const {
    std::size_t best = kernel_.grid.size() - 1;
    for (std::size_t a = kernel_.grid.size(); a-- > 0;)
      if (grid_score(a, Where::Everywhere) > grid_score(best, Where::Everywhere)) best = a;
    return best;
  }

  bool row_takes_lanes() {
    if (row_.empty()) return false;
    const sym::Range length = syms_.range(extent_of(row_));
    if (length.hi != sym::kMaxInt && length.hi < kShortestRow) return false;
    if (kernel_.grid.empty()) return true;
    const i64 along_row = score([](const Stage& s) { return s.loop.back().var; }, Where::InLoops);
    i64 along_grid = 0;
    for (std::size_t a = 0; a < kernel_.grid.size(); ++a)
      along_grid = std::max(along_grid, grid_score(a, Where::InLoops));
    return along_row >= along_grid;
  }

  sym::Expr extent_of(const std::vector<Axis>& axes) {
    sym::Expr out = syms_.constant(1);
    for (const Axis& a : axes) out = syms_.mul(out, a.extent);
    return out;
  }

  // ---- axes joined into one ----

  /// One axis that stands for `axes` in row-major order.
  Axis join_axes(const std::vector<Axis>& axes, std::string name) {
    sym::Variable v;
    v.name = std::move(name);
    v.role = syms_.var(axes[0].var).role;
    v.extent = extent_of(axes);
    const i64 most = syms_.range(v.extent).hi;
    v.range = {0, most == sym::kMaxInt ? most : std::max<i64>(most, 1) - 1};
    const sym::Expr extent = v.extent;
    return {syms_.variable(std::move(v)), extent};
  }

  /// What each of `axes` is in terms of the axis that stands for them.
  Substitution places_on(const Axis& joined, const std::vector<Axis>& axes) {
    Substitution to;
    sym::Expr inner = syms_.constant(1);
    for (std::size_t a = axes.size(); a-- > 0;) {
      sym::Expr at = syms_.floordiv(joined.var, inner);
      if (a > 0) at = syms_.mod(at, axes[a].extent);
      to.push_back({axes[a].var, at});
      inner = syms_.mul(inner, axes[a].extent);
    }
    return to;
  }

  void substitute(Stage& s, const Substitution& to) {
    for (KernelInst& i : s.insts) {
      for (sym::Expr& e : i.inst.index) e = syms_.substitute(e, to);
      if (i.kind == KernelOp::Value) i.inst.expr = syms_.substitute(i.inst.expr, to);
    }
  }

  // ---- mappings ----

  Status lanes_on_row() {
    const std::string name = syms_.var(row_.back().var).name;
    const Axis row = join_axes(row_, name);
    for (Stage& s : kernel_.stages) {
      if (s.loop.empty()) continue;
      substitute(s, places_on(row, s.loop));
      s.loop = {row};
    }
    const i64 longest = syms_.range(row.extent).hi;
    const bool whole = longest <= kLongestRowInTile;
    const i64 tile = whole ? power_of_two(longest) : kRowChunk;
    mapping().tile = {{row.var, tile}};
    mapping().chunk = whole ? 0 : tile;
    mapping().units = extent_of(kernel_.grid);
    because(str("a row a program, lanes on {}: most accesses of the loops are contiguous along it",
                name));
    because(
        whole ? str("the row is one tile: it has at most {} elements", longest)
              : str("the row goes by chunks: nothing bounds it to {} elements", kLongestRowInTile));
    return Ok{};
  }

  /// A tile of rank 2 where some accesses are contiguous along one axis and some along another.
  bool transposes() {
    if (kernel_.grid.size() < 2) return false;
    const std::size_t lane = best_grid_axis();
    for (std::size_t other = kernel_.grid.size(); other-- > 0;) {
      if (other == lane || !is_contiguous_along_only(other, lane)) continue;
      if (syms_.range(kernel_.grid[other].extent).hi < kShortestRow) continue;
      if (syms_.range(kernel_.grid[lane].extent).hi < kShortestRow) continue;
      const Axis inner = kernel_.grid[lane], outer = kernel_.grid[other];
      const auto blocks = [&](const Axis& a) {
        return syms_.ceildiv(a.extent, syms_.constant(kTransposeTile));
      };
      mapping().tile = {{inner.var, kTransposeTile}, {outer.var, kTransposeTile}};
      mapping().chunk = kTransposeTile;
      mapping().units = syms_.mul(blocks(inner), blocks(outer));
      for (const Axis& a : kernel_.grid)
        if (a.var != inner.var && a.var != outer.var)
          mapping().units = syms_.mul(mapping().units, a.extent);
      because(str("a tile of {0} x {1}: some accesses are contiguous along {0}, some along {1}",
                  syms_.text(outer.var), syms_.text(inner.var)));
      return true;
    }
    return false;
  }

  bool is_contiguous_along_only(std::size_t axis, std::size_t lane) const {
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts) {
        if (i.kind != KernelOp::Load && i.kind != KernelOp::Store) continue;
        const std::optional<sym::Expr> along = stride_of(i, kernel_.grid[axis].var);
        const std::optional<sym::Expr> across = stride_of(i, kernel_.grid[lane].var);
        if (along && across && syms_.is_const(*along, 1) && !syms_.is_const(*across, 0) &&
            !syms_.is_const(*across, 1))
          return true;
      }
    return false;
  }

  Status lanes_on_grid() {
    // The axis of contiguous accesses becomes the innermost of the joined one.
    const std::size_t lane = best_grid_axis();
    const std::string name = syms_.var(kernel_.grid[lane].var).name;
    std::rotate(kernel_.grid.begin() + static_cast<std::ptrdiff_t>(lane),
                kernel_.grid.begin() + static_cast<std::ptrdiff_t>(lane) + 1, kernel_.grid.end());
    if (kernel_.grid.size() > 1) {
      const Axis joined = join_axes(kernel_.grid, "p");
      for (Stage& s : kernel_.stages) substitute(s, places_on(joined, kernel_.grid));
      kernel_.grid = {joined};
      because(
          str("all axes of the grid are one, with {} innermost: it has most contiguous accesses",
              name));
    }
    const Axis axis = kernel_.grid[0];
    const i64 most = row_.empty() ? kPointwiseTile : kColumnTile;
    const i64 points = syms_.range(axis.extent).hi;
    const i64 tile = points < most ? std::max(kTransposeTile, power_of_two(points)) : most;
    mapping().tile = {{axis.var, tile}};
    mapping().chunk = tile;
    mapping().units = syms_.ceildiv(axis.extent, syms_.constant(tile));
    because(row_.empty()
                ? str("lanes on {}: there is no loop", syms_.text(axis.var))
                : str("lanes on {}, each loops over its row: that is where accesses are contiguous",
                      syms_.text(axis.var)));
    return Ok{};
  }

  Kernel& kernel_;
  sym::Arena& syms_;
  std::vector<Axis> row_;  // of the first loop
};

}  // namespace

bool combines_atomically(StoreCombine combine, DType dtype) {
  const bool fits = is_int(dtype) && size_of(dtype) >= 4;
  switch (combine) {
    case StoreCombine::None:
    case StoreCombine::Prod: return false;
    case StoreCombine::Sum:
    case StoreCombine::Min:
    case StoreCombine::Max: return fits;
  }
  COIL_UNREACHABLE();
}

int gpu_warps(const Mapping& mapping) {
  i64 elements = 1;
  for (const TileDim& t : mapping.tile) elements *= t.extent;
  const i64 each = mapping.tile.empty() ? 32 : elements <= kPointwiseTile ? 8 : kElementsOfThread;
  return static_cast<int>(std::clamp<i64>(elements / (32 * each), 1, kMostWarps));
}

Status map_to_gpu(Kernel& kernel) { return GpuMapper(kernel).run(); }

}  // namespace coil
