#include "kernel/split_gpu.h"

#include <algorithm>
#include <set>

#include "kernel/launch_builder.h"
#include "kernel/mapping_gpu.h"
#include "kernel/merge_axes.h"

namespace coil {
namespace {

// The figures are an H200's: 132 multiprocessors, and two programs of 128 threads or more for each
// keep its memory busy. They change results by rounding alone, and only where the tree is another.
constexpr i64 kBusyPrograms = 264;
constexpr i64 kChunksOfPiece = 2;  // chunks of a tile's length, at least
constexpr i64 kRowPieces = 512;    // of a row at most: one tile folds them
constexpr i64 kColumnPieces = 256;
constexpr i64 kLongRow = 16384;  // a shorter one is not split
constexpr i64 kLongColumn = 256;

/// Why the launches would not do the same; "" where they would.
std::string why_whole(const Kernel& k) {
  std::set<u32> loaded, stored, straight;
  const Axis* row = nullptr;
  for (const Stage& s : k.stages) {
    if (!s.loop.empty() && row && row->var != s.loop[0].var)
      return "not split over programs: the loops go over different rows";
    if (!s.loop.empty()) row = &s.loop[0];
    std::set<u32> scanned;
    for (const KernelInst& i : s.insts) {
      if (i.kind == KernelOp::Index)
        return "not split over programs: an index is checked, and reports its place in the row";
      if (i.inst.store_combine != StoreCombine::None)
        return "not split over programs: stores are combined";
      if (i.kind == KernelOp::Load) loaded.insert(i.buffer);
      if (i.kind == KernelOp::Store) stored.insert(i.buffer);
      const bool in_memory = i.kind == KernelOp::Load || i.kind == KernelOp::Store;
      if (in_memory && s.loop.empty()) straight.insert(i.buffer);
      const bool after = std::any_of(i.inst.operands.begin(), i.inst.operands.end(),
                                     [&](Val v) { return scanned.contains(v.index); }) ||
                         (i.inst.mask.valid() && scanned.contains(i.inst.mask.index));
      const bool gathers = i.kind == KernelOp::Accumulate || i.kind == KernelOp::Scan;
      if (after && gathers) return "not split over programs: a scan is reduced in the same loop";
      if (after || i.kind == KernelOp::Scan)
        for (Val v : i.inst.results) scanned.insert(v.index);
    }
  }
  // Straight code runs again in later launches, and beside other pieces' loops.
  for (u32 b : straight)
    if (loaded.contains(b) && stored.contains(b))
      return "not split over programs: a buffer is read and written outside of the loops";
  for (const KernelBuffer& b : k.buffers)
    if (b.kept) return "not split over programs: a row is kept";
  return row ? "" : "not split over programs: there is no loop";
}

class Splitter : LaunchBuilder {
 public:
  Splitter(const Kernel& whole, const Split& split, Launches& out) : LaunchBuilder(whole, out) {
    columns_ = tile_kind(whole) == TileKind::Columns;
    for (const Stage& s : whole.stages)
      if (!s.loop.empty()) row_ = s.loop[0];
    const i64 most = split.most_pieces;
    const sym::Expr length = size("piece", split.piece, syms_.range(split.piece).hi);
    pieces_of_row_ = size("pieces", syms_.ceildiv(row_.extent, split.piece), most);
    piece_ = axis("q", sym::Role::Loop, pieces_of_row_);
    partial_ = axis("u", sym::Role::Reduce, pieces_of_row_);
    earlier_ = axis("w", sym::Role::Reduce, piece_.var);
    const sym::Role role = syms_.var(row_.var).role;
    const sym::Expr before = syms_.mul(piece_.var, length);
    const sym::Expr extent = syms_.min(length, syms_.sub(row_.extent, before));
    in_piece_ = axis(syms_.var(row_.var).name, role, extent);
    to_row_ = {{row_.var, syms_.add(before, in_piece_.var)}};
  }

  Result<std::vector<Kernel>> run() {
    for (const Stage& s : whole_.stages) {
      if (s.loop.empty()) {
        replayed_.push_back({&s, {}, false});
      } else {
        COIL_TRY(loop(s));
      }
    }
    const auto waits = [](const Replayed& r) {
      return r.straight && !r.stored && stores(*r.straight);
    };
    if (std::any_of(replayed_.begin(), replayed_.end(), waits)) {
      begin(With::Rows);
      replay();
      COIL_TRY(end());
    }
    return std::move(launches_);
  }

 private:
  enum class With { Pieces, Rows };
  /// What a later launch begins with: straight code, or the fold of partials.
  struct Replayed {
    const Stage* straight = nullptr;
    std::vector<Partials> partials;
    bool stored = false;
  };

  static bool stores(const Stage& s) {
    return std::any_of(s.insts.begin(), s.insts.end(),
                       [](const KernelInst& i) { return i.kind == KernelOp::Store; });
  }
  static bool has(const Stage& s, KernelOp kind) {
    return std::any_of(s.insts.begin(), s.insts.end(),
                       [&](const KernelInst& i) { return i.kind == kind; });
  }

  /// A symbol of the launches, where the value is no constant.
  sym::Expr size(const std::string& name, sym::Expr value, i64 most) {
    if (syms_.as_const(value)) return value;
    sym::Variable v;
    v.name = out_.sizes.size() < 2 ? name : str("{}{}", name, out_.sizes.size() / 2);
    v.role = sym::Role::Size;
    v.range = {1, most};
    out_.sizes.push_back({syms_.variable(std::move(v)), value});
    symbols_.push_back(out_.sizes.back().symbol);
    return symbols_.back();
  }

  // ---- a launch ----

  void begin(With with) {
    pieces_ = with == With::Pieces;
    std::vector<Axis> grid = whole_.grid;
    if (pieces_) grid.insert(columns_ ? grid.begin() : grid.end(), piece_);
    LaunchBuilder::begin(std::move(grid));
    now_.symbols.insert(now_.symbols.end(), symbols_.begin(), symbols_.end());
    accumulators_.assign(whole_.num_accumulators, 0);
    accumulated_with_.assign(whole_.num_accumulators, 0);
  }

  Status end() {
    keep_what_is_used(now_);
    COIL_TRY(columns_ ? map_columns(now_, whole_.grid[0]) : map_rows(now_));
    name_apart(now_);
    launches_.push_back(std::move(now_));
    return Ok{};
  }

  // ---- partials in scratch ----

  std::vector<sym::Expr> place_of(sym::Expr piece) const {
    std::vector<sym::Expr> at;
    for (const Axis& a : whole_.grid) at.push_back(a.var);
    at.insert(columns_ ? at.begin() : at.end(), piece);
    return at;
  }

  Partials new_partials(u32 accumulator, u32 combine) {
    Partials p{accumulator, combine, {}};
    std::vector<sym::Expr> shape;
    for (const Axis& a : whole_.grid) shape.push_back(a.extent);
    shape.insert(columns_ ? shape.begin() : shape.end(), pieces_of_row_);
    for (DType dtype : whole_.combines[combine].values)
      p.buffers.push_back(scratch("partial", dtype, shape));
    return p;
  }

  void leave(const Partials& p, const std::vector<Val>& values) {
    for (std::size_t v = 0; v < values.size(); ++v)
      store(p.buffers[v], place_of(piece_.var), values[v]);
  }

  /// A loop over partials of a row: all, or those of the pieces before this one. The accumulators.
  std::vector<u32> fold(const std::vector<Partials>& all, const Axis& over) {
    open({over});
    std::vector<u32> out;
    for (const Partials& p : all) {
      std::vector<Val> operands;
      for (u32 b : p.buffers) operands.push_back(load(b, place_of(over.var)));
      out.push_back(accumulate(p.combine, std::move(operands), ops::Tree()));
    }
    return out;
  }

  // ---- stages ----

  void replay() {
    for (Replayed& r : replayed_) {
      if (r.straight) {
        straight(*r.straight, r.stored);
        r.stored = true;
        continue;
      }
      const std::vector<u32> folded = fold(r.partials, partial_);
      for (std::size_t p = 0; p < folded.size(); ++p) {
        accumulators_[r.partials[p].accumulator] = folded[p];
        accumulated_with_[r.partials[p].accumulator] = on_partials(r.partials[p].combine);
      }
    }
  }

  /// Its stores are the first piece's.
  void straight(const Stage& s, bool stored) {
    open({});
    for (const KernelInst& k : s.insts) {
      if (k.kind == KernelOp::Store && stored) continue;
      copy(k, {});
      Inst& inst = insts().back().inst;
      if (k.kind == KernelOp::Finish) {
        insts().back().accumulator = accumulators_[k.accumulator];
        inst.combine = accumulated_with_[k.accumulator];
      }
      if (k.kind != KernelOp::Store || !pieces_) continue;
      KernelInst store = std::move(insts().back());
      insts().pop_back();
      const Val first = op(ops::ScalarOp::eq, DType::b8,
                           {value(piece_.var), constant(ops::Scalar::of_int(DType::i64, 0))});
      store.inst.mask = store.inst.mask.valid()
                            ? op(ops::ScalarOp::bits_and, DType::b8, {store.inst.mask, first})
                            : first;
      insts().push_back(std::move(store));
    }
  }

  Status loop(const Stage& s) {
    std::vector<Partials> before;
    if (has(s, KernelOp::Scan)) COIL_TRY(totals_of_scans(s, before));
    begin(With::Pieces);
    replay();
    std::vector<std::vector<Val>> carries;
    if (!before.empty()) {
      const std::vector<u32> folded = fold(before, earlier_);
      open({});
      for (std::size_t p = 0; p < folded.size(); ++p)
        carries.push_back(finish(folded[p], before[p].combine));
    }
    open({in_piece_});
    std::vector<std::pair<u32, Partials>> left;  // accumulators here, and where their results go
    for (const KernelInst& k : s.insts) {
      if (k.kind == KernelOp::Accumulate) {
        const u32 a = accumulate(k.inst.combine, lifted(k.inst, to_row_[0].second), ops::Tree());
        left.push_back({a, new_partials(k.accumulator, k.inst.combine)});
      } else if (k.kind == KernelOp::Scan) {
        scan(k.inst, carries.front());
        carries.erase(carries.begin());
      } else {
        copy(k, to_row_);
      }
    }
    if (!left.empty()) {
      open({});
      replayed_.push_back({});
      for (auto& [accumulator, partials] : left) {
        leave(partials, finish(accumulator, partials.combine));
        replayed_.back().partials.push_back(partials);
      }
    }
    return end();
  }

  /// The launch before that of a loop with scans: what each piece adds up to.
  Status totals_of_scans(const Stage& s, std::vector<Partials>& totals) {
    begin(With::Pieces);
    replay();
    open({in_piece_});
    std::vector<u32> accumulators;
    for (const KernelInst& k : s.insts) {
      if (k.kind == KernelOp::Scan) {
        accumulators.push_back(
            accumulate(k.inst.combine, lifted(k.inst, to_row_[0].second), ops::Tree()));
        totals.push_back(new_partials(0, k.inst.combine));
      } else if (k.kind != KernelOp::Store && k.kind != KernelOp::Accumulate) {
        copy(k, to_row_);
      }
    }
    open({});
    for (std::size_t p = 0; p < totals.size(); ++p)
      leave(totals[p], finish(accumulators[p], totals[p].combine));
    return end();
  }

  void scan(const Inst& inst, const std::vector<Val>& carry) {
    KernelInst k;
    k.kind = KernelOp::Scan;
    k.inst.operands = lifted(inst, to_row_[0].second);
    k.inst.combine = on_partials(inst.combine);
    k.inst.dtype = inst.dtype;
    for (DType d : whole_.combines[inst.combine].values) k.inst.results.push_back(fresh(d));
    const std::vector<Val> in_piece = k.inst.results;
    insts().push_back(std::move(k));
    const std::vector<Val> results = combined(inst.combine, carry, in_piece);
    for (std::size_t v = 0; v < results.size(); ++v) values_[inst.results[v].index] = results[v];
  }

  bool columns_ = false;
  Axis row_, piece_, in_piece_, partial_, earlier_;
  Places to_row_;  // the row's axis in terms of the piece's
  sym::Expr pieces_of_row_;
  std::vector<sym::Expr> symbols_;
  std::vector<Replayed> replayed_;
  // of the launch that is being built
  bool pieces_ = false;
  std::vector<u32> accumulators_;      // by accumulator of the whole kernel
  std::vector<u32> accumulated_with_;  // its combine
};

}  // namespace

Split decide_split(const Kernel& mapped) {
  const TileKind kind = tile_kind(mapped);
  if (kind != TileKind::Rows && kind != TileKind::Columns) return {};
  Split out;
  if (out.reason = why_whole(mapped); !out.reason.empty()) return out;
  sym::Arena& syms = *mapped.syms;
  const bool columns = kind == TileKind::Columns;
  sym::Expr row;
  for (const Stage& s : mapped.stages)
    if (!s.loop.empty()) row = s.loop[0].extent;
  const i64 longest = columns ? kLongColumn : kLongRow;
  const sym::Range programs = syms.range(mapped.mapping.units), length = syms.range(row);
  if (length.hi <= longest) return out;
  if (programs.lo >= kBusyPrograms) {
    out.reason = str("not split over programs: there are {} at least", programs.lo);
    return out;
  }
  sym::Expr taken = syms.constant(1);
  if (programs.hi >= kBusyPrograms)
    taken = syms.lt(mapped.mapping.units, syms.constant(kBusyPrograms));
  if (length.lo <= longest) taken = syms.logical_and(taken, syms.lt(syms.constant(longest), row));
  out.taken = taken;
  const i64 chunk = mapped.mapping.tile[columns ? 1 : 0].extent;
  out.most_pieces = columns ? kColumnPieces : kRowPieces;
  const sym::Expr rounds = syms.ceildiv(row, syms.constant(chunk * out.most_pieces));
  out.piece = syms.mul(syms.max(rounds, syms.constant(kChunksOfPiece)), syms.constant(chunk));
  out.reason =
      str("rows are split over programs, {} points at least each: fewer than {} programs "
          "would leave the chip idle",
          kChunksOfPiece * chunk, kBusyPrograms);
  return out;
}

Result<std::vector<Kernel>> split_kernel(const Kernel& mapped, const Split& split, Launches& out) {
  return Splitter(mapped, split, out).run();
}

}  // namespace coil
