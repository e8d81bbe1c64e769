// How a kernel runs on a GPU: what one program (a block of threads) takes as a tile. Each rule
// leaves its reason.

#include <algorithm>
#include <bit>
#include <functional>

#include "kernel/mapping_gpu.h"

namespace coil {
namespace {

// What was measured on an H200 is in the comments: 8 points of 2 to 4 bytes are 16 bytes or more a
// thread, which is what a copy needs; 16 to 64 elements of a row a thread are within 4%, and fewer
// cost up to 37% where warps wait for each other, so that a row of 512 is one warp's.
constexpr i64 kPointwiseTile = 1024;  // grid points of a program without loops
constexpr i64 kPointwiseOfThread = 8;
constexpr i64 kWindowTile = 256;  // grid points of a program that walks short rows
constexpr i64 kWindowOfThread = 4;
constexpr i64 kReducedOfThread = 16;  // elements of a row or of columns
constexpr i64 kColumnTile = 4096;     // elements at once of columns
constexpr i64 kColumnRows = 64;       // of them along the column: each row has 256 bytes of f32
constexpr i64 kTransposeTile = 32;    // each side of a tile that is turned
constexpr i64 kLongestRowInTile = 16384;
constexpr i64 kRowChunk = 2048;                // elements at once of a longer row
constexpr i64 kShortestRow = 16;               // a shorter row leaves most of a warp idle
constexpr i64 kFewestColumns = 16;             // of a tile of columns: 64 bytes of f32
constexpr std::size_t kMostDifferentRows = 3;  // that the loops of a kernel go over
constexpr i64 kMostWarps = 16;

i64 power_of_two(i64 least) {
  return static_cast<i64>(std::bit_ceil(static_cast<u64>(std::max<i64>(1, least))));
}

using Substitution = std::vector<std::pair<sym::Expr, sym::Expr>>;

class GpuMapper {
 public:
  explicit GpuMapper(Kernel& kernel) : kernel_(kernel), syms_(*kernel.syms) {}

  Status run() {
    kernel_.mapping = Mapping{};
    COIL_TRY(find_loops());
    if (const std::string why = why_serial(); !why.empty()) return serial(why);
    if (kernel_.grid.empty() && !has_loops_) return serial("one program: there is a single point");
    if (row_takes_lanes()) {
      join_loops();
      return rows();
    }
    if (kernel_.grid.empty())
      return serial("one program: the row is short, and there is no other axis");
    if (!has_loops_ && transposes()) return Ok{};
    return lanes_on_grid();
  }

  std::optional<sym::Expr> run_as_lines() {
    kernel_.mapping = Mapping{};
    if (!find_loops().ok() || !why_serial().empty() || !can_be_lines()) return {};
    if (row_takes_lanes() || walks_columns() || (!has_loops_ && transposes())) return {};
    const sym::Expr extent = kernel_.grid[best_grid_axis()].extent;
    if (syms_.as_const(extent)) return {};
    lines(grid_tile());
    const sym::Expr tile = syms_.constant(grid_tile());
    const sym::Expr padded = syms_.mul(syms_.ceildiv(extent, tile), tile);
    return syms_.le(syms_.mul(padded, syms_.constant(4)), syms_.mul(extent, syms_.constant(5)));
  }

  /// A row a program: each loop has one axis by now.
  Status rows() {
    const std::vector<Axis> all = different_rows();
    if (all.size() > kMostDifferentRows)
      return error("loops over {} different rows in one kernel; {} are the most", all.size(),
                   kMostDifferentRows);
    const bool whole = longest_row() <= kLongestRowInTile;
    for (const Axis& row : all) {
      const i64 tile = power_of_two(std::min(syms_.range(row.extent).hi, kLongestRowInTile));
      mapping().tile.push_back({row.var, whole ? tile : std::min(tile, kRowChunk)});
    }
    mapping().chunk = whole ? 0 : mapping().tile[0].extent;
    mapping().units = extent_of(kernel_.grid);
    because(str("lanes on {}: most accesses of the loops are contiguous along it",
                syms_.text(all[0].var)));
    because(
        whole ? str("the row is one tile: it has at most {} elements", longest_row())
              : str("the row goes by chunks: nothing bounds it to {} elements", kLongestRowInTile));
    return Ok{};
  }

  /// Lanes on columns, several rows at once: each loop has one axis by now.
  Status columns(const Axis& lanes) {
    const std::vector<Axis> all = different_rows();
    if (all.size() >= kMostDifferentRows)
      return error("loops over {} different rows of columns in one kernel; {} are the most",
                   all.size(), kMostDifferentRows - 1);
    std::vector<TileDim> row_tiles;
    i64 most_rows = kShortestRow;
    for (const Axis& row : all) {
      row_tiles.push_back(
          {row.var, power_of_two(std::min(syms_.range(row.extent).hi, kColumnRows))});
      most_rows = std::max(most_rows, row_tiles.back().extent);
    }
    const i64 most = std::min(kColumnTile / most_rows, power_of_two_of(lanes.extent));
    const i64 tile = std::max(most, kFewestColumns);
    mapping().tile = {{lanes.var, tile}};
    mapping().tile.insert(mapping().tile.end(), row_tiles.begin(), row_tiles.end());
    mapping().chunk = tile;
    mapping().units = syms_.ceildiv(lanes.extent, syms_.constant(tile));
    for (const Axis& a : kernel_.grid)
      if (a.var != lanes.var) mapping().units = syms_.mul(mapping().units, a.extent);
    because(str("lanes on {}, {} rows at once: that is where accesses are contiguous",
                syms_.text(lanes.var), row_tiles[0].extent));
    return Ok{};
  }

 private:
  Mapping& mapping() { return kernel_.mapping; }
  void because(std::string reason) { mapping().reasons.push_back(std::move(reason)); }

  Status find_loops() {
    for (const Stage& s : kernel_.stages) {
      // A field of a stage that is not named here has no rule yet, and does not compile.
      const auto& [loop, insts, closing] = s;
      if (closing) return error("stages that close a kernel are a launch of their own on a GPU");
      has_loops_ |= !loop.empty();
    }
    return Ok{};
  }

  /// The axis of each loop, once.
  std::vector<Axis> different_rows() const {
    std::vector<Axis> out;
    for (const Stage& s : kernel_.stages) {
      const auto is_known = [&](const Axis& a) { return a.var == s.loop[0].var; };
      if (!s.loop.empty() && std::none_of(out.begin(), out.end(), is_known))
        out.push_back(s.loop[0]);
    }
    return out;
  }

  i64 longest_row() {
    i64 longest = 0;
    for (const Stage& s : kernel_.stages)
      if (!s.loop.empty()) longest = std::max(longest, syms_.range(extent_of(s.loop)).hi);
    return longest;
  }

  i64 power_of_two_of(sym::Expr extent) const {
    return power_of_two(std::min(syms_.range(extent).hi, kColumnTile));
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
    if (!has_loops_ || longest_row() < kShortestRow) return false;
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

  /// Each loop as one axis; rows of one length share theirs.
  void join_loops() {
    std::vector<Axis> joined;
    for (Stage& s : kernel_.stages) {
      if (s.loop.empty()) continue;
      const sym::Expr extent = extent_of(s.loop);
      auto row = std::find_if(joined.begin(), joined.end(),
                              [&](const Axis& a) { return a.extent == extent; });
      if (row == joined.end())
        row = joined.insert(joined.end(), join_axes(s.loop, syms_.var(s.loop.back().var).name));
      substitute(s, places_on(*row, s.loop));
      s.loop = {*row};
    }
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

  bool walks_columns() { return has_loops_ && longest_row() >= kShortestRow; }

  Status lanes_on_grid() {
    const std::size_t lane = best_grid_axis();
    if (!walks_columns() && can_be_lines())
      if (const i64 tile = line_tile(kernel_.grid[lane].extent); tile > 0) {
        lines(tile);
        return Ok{};
      }
    join_grid(lane);
    const Axis axis = kernel_.grid[0];
    if (walks_columns()) {
      join_loops();
      return columns(axis);
    }
    const i64 points = syms_.range(axis.extent).hi;
    const i64 tile =
        points < grid_tile() ? std::max(kTransposeTile, power_of_two(points)) : grid_tile();
    mapping().tile = {{axis.var, tile}};
    mapping().chunk = tile;
    mapping().units = syms_.ceildiv(axis.extent, syms_.constant(tile));
    because(!has_loops_
                ? str("lanes on {}: there is no loop", syms_.text(axis.var))
                : str("lanes on {}, each loops over its row: that is where accesses are contiguous",
                      syms_.text(axis.var)));
    return Ok{};
  }

  /// All axes of the grid as one, the axis of contiguous accesses innermost.
  void join_grid(std::size_t lane) {
    const std::string name = syms_.var(kernel_.grid[lane].var).name;
    rotate_to_end(lane);
    if (kernel_.grid.size() == 1) return;
    const Axis joined = join_axes(kernel_.grid, "p");
    for (Stage& s : kernel_.stages) substitute(s, places_on(joined, kernel_.grid));
    kernel_.grid = {joined};
    because(str("all axes of the grid are one, with {} innermost: it has most contiguous accesses",
                name));
  }

  void rotate_to_end(std::size_t lane) {
    const auto at = kernel_.grid.begin() + static_cast<std::ptrdiff_t>(lane);
    std::rotate(at, at + 1, kernel_.grid.end());
  }

  // ---- lines ----

  i64 grid_tile() const { return has_loops_ ? kWindowTile : kPointwiseTile; }

  bool can_be_lines() const {
    const auto is_kept = [](const KernelBuffer& b) { return b.kept; };
    return kernel_.grid.size() > 1 &&
           std::none_of(kernel_.buffers.begin(), kernel_.buffers.end(), is_kept);
  }

  /// The longest tile of which a fifth at most is past the end of the line; 0 where there is none.
  i64 line_tile(sym::Expr extent) const {
    const std::optional<i64> length = syms_.as_const(extent);
    if (!length || *length > INT32_MAX) return 0;
    for (i64 tile = grid_tile(); tile >= kTransposeTile; tile /= 2) {
      const i64 padded = (*length + tile - 1) / tile * tile;
      if (4 * padded <= 5 * *length) return tile;
    }
    return 0;
  }

  /// A tile of a part of a line, and of several lines where that is short: places in the line need
  /// no division.
  void lines(i64 tile) {
    const std::size_t lane = best_grid_axis();
    rotate_to_end(lane);
    const Axis line = kernel_.grid.back();
    std::vector<Axis> outer(kernel_.grid.begin(), kernel_.grid.end() - 1);
    if (outer.size() > 1) {
      const Axis joined = join_axes(outer, "p");
      for (Stage& s : kernel_.stages) substitute(s, places_on(joined, outer));
      outer = {joined};
    }
    kernel_.grid = {outer[0], line};
    const i64 lines = std::min(syms_.range(outer[0].extent).hi, kPointwiseTile);
    const i64 across = std::min(grid_tile() / tile, power_of_two(lines));
    mapping().tile = {{line.var, tile}, {outer[0].var, across}};
    mapping().chunk = tile;
    mapping().units = syms_.mul(syms_.ceildiv(line.extent, syms_.constant(tile)),
                                syms_.ceildiv(outer[0].extent, syms_.constant(across)));
    because(str("a tile of {} x {}: accesses are contiguous along {} alone",
                syms_.text(outer[0].var), syms_.text(line.var), syms_.text(line.var)));
  }

  Kernel& kernel_;
  sym::Arena& syms_;
  bool has_loops_ = false;
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

TileKind tile_kind(const Kernel& kernel) {
  const std::vector<TileDim>& tile = kernel.mapping.tile;
  const auto in_grid = [&](const TileDim& t) {
    return std::any_of(kernel.grid.begin(), kernel.grid.end(),
                       [&](const Axis& a) { return a.var == t.axis; });
  };
  if (tile.empty()) return TileKind::None;
  if (!in_grid(tile[0])) return TileKind::Rows;
  return tile.size() == 1 || in_grid(tile[1]) ? TileKind::Grid : TileKind::Columns;
}

int gpu_warps(const Kernel& kernel) {
  const std::vector<TileDim>& tile = kernel.mapping.tile;
  i64 elements = 1, longest = 1, each = 0;
  for (const TileDim& t : tile) {
    elements *= t.extent;
    longest = std::max(longest, t.extent);
  }
  switch (tile_kind(kernel)) {
    case TileKind::None: return 1;
    case TileKind::Grid: {
      const bool loops = std::any_of(kernel.stages.begin(), kernel.stages.end(),
                                     [](const Stage& s) { return !s.loop.empty(); });
      each = loops ? kWindowOfThread : kPointwiseOfThread;
      break;
    }
    case TileKind::Rows:
      elements = longest;
      each = kReducedOfThread;
      break;
    case TileKind::Columns: {
      i64 rows = 1;
      for (std::size_t d = 1; d < tile.size(); ++d) rows = std::max(rows, tile[d].extent);
      elements = tile[0].extent * rows;
      each = kReducedOfThread;
      break;
    }
  }
  return static_cast<int>(std::clamp<i64>(elements / (32 * each), 1, kMostWarps));
}

Status map_to_gpu(Kernel& kernel) { return GpuMapper(kernel).run(); }
std::optional<sym::Expr> map_to_lines(Kernel& kernel) { return GpuMapper(kernel).run_as_lines(); }

Status map_rows(Kernel& kernel) {
  kernel.mapping = Mapping{};
  return GpuMapper(kernel).rows();
}
Status map_columns(Kernel& kernel, const Axis& lanes) {
  kernel.mapping = Mapping{};
  return GpuMapper(kernel).columns(lanes);
}

}  // namespace coil
