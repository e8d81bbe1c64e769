// The verifier of level 3: each error names the stage and the instruction.

#include <algorithm>
#include <optional>
#include <set>

#include "kernel/kernel.h"
#include "loop/verifier.h"

namespace coil {
namespace {

constexpr std::ptrdiff_t kMaxTileRank = 3;  // on the grid
constexpr i64 kMostKeptBytes = 262144;

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel) : kernel_(kernel), syms_(*kernel.syms) {}

  Status run() {
    for (sym::Expr s : kernel_.symbols) {
      if (!is_variable(s)) return error("a symbol is no variable");
      if (!scope_.insert(s).second) return error("symbol {} is listed twice", syms_.var(s).name);
    }
    for (const KernelBuffer& b : kernel_.buffers)
      if (const Status s = buffer(b); !s.ok()) return in_context("buffer %" + b.name, s.error());
    if (const Status s = axes(kernel_.grid); !s.ok()) return in_context("grid", s.error());
    stored_.resize(kernel_.buffers.size(), false);
    accumulated_in_.resize(kernel_.num_accumulators, kNowhere);
    finished_.resize(kernel_.num_accumulators, false);
    if (kernel_.stages.empty()) return error("there is no stage");
    for (stage_ = 0; stage_ < kernel_.stages.size(); ++stage_)
      COIL_TRY(stage(kernel_.stages[stage_]));
    COIL_TRY(whole());
    if (const Status s = mapping(); !s.ok()) return in_context("mapping", s.error());
    return Ok{};
  }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  bool is_variable(sym::Expr e) const {
    return e.valid() && e.index < syms_.size() && syms_.kind(e) == sym::Kind::Var;
  }

  /// The expression uses symbols, axes and indices that are in scope.
  Status expr(sym::Expr e) const {
    if (!e.valid() || e.index >= syms_.size()) return error("an expression is missing");
    std::vector<sym::Expr> used;
    syms_.variables(e, used);
    for (sym::Expr v : used)
      if (!scope_.contains(v))
        return error("{} uses {}, which is not in scope", syms_.text(e), syms_.var(v).name);
    return Ok{};
  }

  Status buffer(const KernelBuffer& b) {
    if (is_complex(b.dtype))
      return error("complex elements are pairs of {} in a kernel", name(real_of(b.dtype)));
    for (sym::Expr e : b.shape) COIL_TRY(expr(e));
    std::set<std::pair<u32, i64>> entries;
    for (const LayoutEntry& e : b.layout.entries) {
      if (e.dim >= b.shape.size())
        return error("its layout names dim {} of {}", e.dim, b.shape.size());
      if (e.factor < 1 || !entries.insert({e.dim, e.factor}).second)
        return error("its layout has factor {} of dim {} twice or wrong", e.factor, e.dim);
      COIL_TRY(expr(e.stride));
    }
    for (u32 d = 0; d < b.shape.size(); ++d)
      if (!entries.contains({d, 1})) return error("its layout leaves out dim {}", d);
    if (b.layout.offset.valid()) COIL_TRY(expr(b.layout.offset));
    return b.kept ? kept(b) : Ok{};
  }

  /// Scratch lies on the stack: of constant shape, and small.
  Status kept(const KernelBuffer& b) {
    i64 bytes = size_of(b.dtype);
    for (std::size_t d = b.shape.size(); d-- > 0;) {
      const std::optional<i64> extent = syms_.as_const(b.shape[d]);
      if (!extent || *extent < 0 || *extent > kMostKeptBytes)
        return error("a kept row has a small constant shape");
      if (b.layout.entries.size() != b.shape.size() || b.layout.offset.valid() ||
          !syms_.is_const(b.layout.entries[d].stride, bytes / size_of(b.dtype)) ||
          b.layout.entries[d].dim != d)
        return error("a kept row is contiguous");
      bytes *= *extent;
      if (bytes > kMostKeptBytes) return error("a kept row has at most {} bytes", kMostKeptBytes);
    }
    kept_bytes_ += bytes;
    return kept_bytes_ <= kMostKeptBytes
               ? Status(Ok{})
               : error("kept rows have at most {} bytes in all", kMostKeptBytes);
  }

  Status axes(const std::vector<Axis>& items) {
    for (const Axis& a : items) COIL_TRY(expr(a.extent));  // extents know symbols only
    for (const Axis& a : items) {
      if (!is_variable(a.var)) return error("an axis is no variable");
      if (!scope_.insert(a.var).second)
        return error("axis {} is there twice", syms_.var(a.var).name);
      axes_.insert(a.var);
    }
    return Ok{};
  }

  Status stage(const Stage& s) {
    const std::string where = str("stage {}", stage_);
    ended_.resize(next_, false);
    if (s.closing) {
      if (!closing_) {
        ended_.assign(next_, true);
        for (const Axis& a : kernel_.grid) scope_.erase(a.var);
      }
      closing_ = true;
    } else if (closing_) {
      return error("{} comes after a closing one", where);
    }
    const std::set<sym::Expr> outer = scope_;
    if (const Status st = axes(s.loop); !st.ok()) return in_context(where, st.error());
    std::optional<bool> takes_partials;
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate) continue;
      if (takes_partials && *takes_partials != (i.inst.tree.accs == 0))
        return error("{} takes elements and partial values", where);
      takes_partials = i.inst.tree.accs == 0;
    }
    for (std::size_t i = 0; i < s.insts.size(); ++i)
      if (const Status st = inst(s.insts[i]); !st.ok())
        return in_context(str("{}, instruction {} ({})", where, i, describe(s.insts[i])),
                          st.error());
    if (s.loop.empty()) return Ok{};
    // What a loop left lives on in its accumulators only.
    scope_ = outer;
    ended_.resize(next_, true);
    return Ok{};
  }

  std::string describe(const KernelInst& k) const {
    const std::string results =
        join(k.inst.results, ", ", [](Val v) { return str("v{}", v.index); });
    const std::string left = results.empty() ? "" : results + " = ";
    const std::string at =
        k.buffer < kernel_.buffers.size() ? " %" + kernel_.buffers[k.buffer].name : "";
    switch (k.kind) {
      case KernelOp::Load: return left + "load" + at;
      case KernelOp::Store: return "store" + at;
      case KernelOp::Const: return left + "const";
      case KernelOp::Value: return left + "value";
      case KernelOp::Scalar: return left + "scalar";
      case KernelOp::Index: return "index";
      case KernelOp::Op: return left + std::string(ops::info(k.inst.op).name);
      case KernelOp::Accumulate: return str("a{} = accumulate", k.accumulator);
      case KernelOp::Finish: return left + str("finish a{}", k.accumulator);
      case KernelOp::Scan: return left + "scan";
    }
    COIL_UNREACHABLE();
  }

  Status use(Val v) const {
    if (!v.valid() || v.index >= next_) return error("uses a value that is not defined yet");
    if (v.index < ended_.size() && ended_[v.index])
      return error("uses v{}, which lives in an earlier loop only", v.index);
    return Ok{};
  }
  DType dtype(Val v) const { return kernel_.val_dtypes[v.index]; }

  Status inst(const KernelInst& k) {
    const Inst& i = k.inst;
    for (Val v : i.operands) COIL_TRY(use(v));
    if (i.mask.valid()) {
      COIL_TRY(use(i.mask));
      if (dtype(i.mask) != DType::b8) return error("the mask is {}", name(dtype(i.mask)));
    }
    switch (k.kind) {
      case KernelOp::Load: {
        COIL_TRY(element(k));
        if (i.mask.valid() && i.other.dtype != i.dtype)
          return error("the masked-off value is {}", name(i.other.dtype));
        return define(i, {i.dtype});
      }
      case KernelOp::Store: return store(k);
      case KernelOp::Const:
        if (i.constant.dtype != i.dtype)
          return error("a constant of {} for {}", name(i.constant.dtype), name(i.dtype));
        return define(i, {i.dtype});
      case KernelOp::Value: COIL_TRY(expr(i.expr)); return define(i, {DType::i64});
      case KernelOp::Scalar:
        if (std::ranges::find(kernel_.scalars, i.scalar) == kernel_.scalars.end())
          return error("scalar {} is no argument", i.scalar);
        return define(i, {i.dtype});
      case KernelOp::Index: return index(i);
      case KernelOp::Op: {
        std::vector<DType> dtypes;
        for (Val v : i.operands) dtypes.push_back(dtype(v));
        COIL_TRY(loop_verify::check_op(i.op, dtypes, i.dtype));
        return define(i, {i.dtype});
      }
      case KernelOp::Accumulate: return accumulate(k);
      case KernelOp::Finish: return finish(k);
      case KernelOp::Scan:
        COIL_TRY(combining(i));
        if (kernel_.stages[stage_].loop.empty()) return error("there is no loop to go along");
        return define(i, kernel_.combines[i.combine].values);
    }
    COIL_UNREACHABLE();
  }

  Status define(const Inst& i, const std::vector<DType>& dtypes) {
    if (i.results.size() != dtypes.size())
      return error("{} results, expected {}", i.results.size(), dtypes.size());
    for (std::size_t r = 0; r < dtypes.size(); ++r) {
      if (i.results[r].index != next_ || next_ >= kernel_.val_dtypes.size())
        return error("v{} is not the next value", i.results[r].index);
      if (kernel_.val_dtypes[next_] != dtypes[r])
        return error("v{} is listed as {}, not {}", next_, name(kernel_.val_dtypes[next_]),
                     name(dtypes[r]));
      ++next_;
    }
    return Ok{};
  }

  Status element(const KernelInst& k) const {
    if (k.buffer >= kernel_.buffers.size()) return error("there is no buffer {}", k.buffer);
    const KernelBuffer& b = kernel_.buffers[k.buffer];
    if (k.inst.dtype != b.dtype)
      return error("dtype {} of a buffer of {}", name(k.inst.dtype), name(b.dtype));
    if (k.inst.index.size() != b.shape.size())
      return error("{} indices for {} dims", k.inst.index.size(), b.shape.size());
    for (sym::Expr e : k.inst.index) COIL_TRY(expr(e));
    return b.kept ? place_in_row(k.inst.index) : Ok{};
  }

  /// Lanes along the grid have a row each, and reach the same place of it.
  Status place_in_row(const std::vector<sym::Expr>& index) const {
    std::vector<sym::Expr> used;
    for (sym::Expr e : index) syms_.variables(e, used);
    for (sym::Expr v : used)
      if (syms_.var(v).role == sym::Role::Value ||
          std::any_of(kernel_.grid.begin(), kernel_.grid.end(),
                      [&](const Axis& a) { return a.var == v; }))
        return error("a place in a kept row depends on {}", syms_.var(v).name);
    return Ok{};
  }

  Status store(const KernelInst& k) {
    COIL_TRY(element(k));
    const KernelBuffer& b = kernel_.buffers[k.buffer];
    if (k.inst.operands.size() != 1) return error("stores {} values", k.inst.operands.size());
    if (dtype(k.inst.operands[0]) != b.dtype)
      return error("stores {} in a buffer of {}", name(dtype(k.inst.operands[0])), name(b.dtype));
    if (!b.written) return error("the buffer is not marked as written");
    stored_[k.buffer] = true;
    return define(k.inst, {});
  }

  Status index(const Inst& i) {
    if (i.operands.size() != 1 || dtype(i.operands[0]) != DType::i64)
      return error("an index is made from one i64");
    COIL_TRY(expr(i.extent));
    if (!is_variable(i.expr) || syms_.var(i.expr).role != sym::Role::Value)
      return error("an index defines a variable of role value");
    if (!scope_.insert(i.expr).second)
      return error("index {} is defined twice", syms_.var(i.expr).name);
    return define(i, {});
  }

  /// A named combine lifts one element; a region takes its values as they are.
  Status combining(const Inst& i) const {
    if (i.combine >= kernel_.combines.size()) return error("there is no combine {}", i.combine);
    const ops::Combine& c = kernel_.combines[i.combine];
    COIL_TRY(loop_verify::check_combine(c));
    const std::size_t elements = c.name.empty() ? c.values.size() : 1;
    if (i.operands.size() != elements)
      return error("{} operands, expected {}", i.operands.size(), elements);
    for (std::size_t e = 0; e < elements; ++e)
      if (dtype(i.operands[e]) != c.values[e])
        return error("takes {} as {}", name(dtype(i.operands[e])), name(c.values[e]));
    const u32 lanes = i.tree.lanes;
    if (lanes == 0 || (lanes & (lanes - 1)) != 0)
      return error("a tree of {}x{}: lanes are a power of two", lanes, i.tree.accs);
    if (i.tree.accs > 0 && i.tree.block % (lanes * i.tree.accs) != 0)
      return error("a block of {} is no whole number of rounds of {}x{}", i.tree.block, lanes,
                   i.tree.accs);
    if (i.tree.accs == 0 && (lanes != 1 || i.tree.block != 0 || c.values.size() != elements))
      return error("a tree of {}x0: it takes partial values one by one", lanes);
    return Ok{};
  }

  Status accumulate(const KernelInst& k) {
    COIL_TRY(combining(k.inst));
    if (k.accumulator >= kernel_.num_accumulators)
      return error("there is no accumulator {}", k.accumulator);
    if (kernel_.stages[stage_].loop.empty()) return error("there is no loop to go over");
    if (accumulated_in_[k.accumulator] != kNowhere)
      return error("a{} is accumulated twice", k.accumulator);
    accumulated_in_[k.accumulator] = stage_;
    return define(k.inst, {});
  }

  Status finish(const KernelInst& k) {
    if (k.accumulator >= kernel_.num_accumulators)
      return error("there is no accumulator {}", k.accumulator);
    const std::size_t from = accumulated_in_[k.accumulator];
    if (from == kNowhere || from == stage_)
      return error("a{} is finished before its loop has ended", k.accumulator);
    if (finished_[k.accumulator]) return error("a{} is finished twice", k.accumulator);
    if (!kernel_.stages[stage_].loop.empty())
      return error("a{} is finished inside of a loop", k.accumulator);
    if (k.inst.combine >= kernel_.combines.size())
      return error("there is no combine {}", k.inst.combine);
    finished_[k.accumulator] = true;
    return define(k.inst, kernel_.combines[k.inst.combine].values);
  }

  Status whole() const {
    if (next_ != kernel_.val_dtypes.size())
      return error("{} values are defined, {} are listed", next_, kernel_.val_dtypes.size());
    for (u32 a = 0; a < kernel_.num_accumulators; ++a)
      if (!finished_[a]) return error("a{} is never finished", a);
    for (std::size_t b = 0; b < stored_.size(); ++b)
      if (kernel_.buffers[b].written && !stored_[b])
        return error("buffer %{} is marked as written, and nothing stores to it",
                     kernel_.buffers[b].name);
    return Ok{};
  }

  Status mapping() const {
    const Mapping& m = kernel_.mapping;
    if (!m.units.valid()) return Ok{};  // not mapped yet
    const auto rank = std::count_if(kernel_.grid.begin(), kernel_.grid.end(),
                                    [&](const Axis& a) { return kernel_.has_lanes(a.var); });
    if (rank > kMaxTileRank)
      return error("a tile over {} axes of the grid; {} is the most", rank, kMaxTileRank);
    if (kernel_.closes()) return error("closing stages are a launch of their own");
    std::set<sym::Expr> tiled;
    for (const TileDim& t : m.tile) {
      if (!axes_.contains(t.axis)) return error("a tile dim is no axis of the kernel");
      if (!tiled.insert(t.axis).second)
        return error("axis {} is tiled twice", syms_.var(t.axis).name);
      if (t.extent < 1) return error("a tile of {} along {}", t.extent, syms_.var(t.axis).name);
    }
    for (u32 stage : m.rolled)
      if (stage >= kernel_.stages.size() || kernel_.stages[stage].loop.empty())
        return error("stage {} has no loop to be rolled", stage);
    if (m.grain < 1 || m.chunk < 0) return error("grain {} and chunk {}", m.grain, m.chunk);
    COIL_TRY(abreast(rank));
    return expr(m.units);
  }

  /// Tiles abreast share the variables that are no values: loaded indices and kept rows.
  /// `rank`: of the tile, along the grid.
  Status abreast(i64 rank) const {
    const Mapping& m = kernel_.mapping;
    if (m.abreast < 1 || m.abreast > 16) return error("{} tiles abreast", m.abreast);
    if (m.abreast == 1) return Ok{};
    if (m.tile.size() != 1 || rank != 1)
      return error("tiles abreast need lanes along one axis, of the grid");
    if (m.chunk % (m.abreast * m.tile[0].extent) != 0)
      return error("{} tiles abreast in a chunk of {}", m.abreast, m.chunk);
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& k : s.insts)
        if (k.kind == KernelOp::Index) return error("tiles abreast load no indices");
    if (std::ranges::any_of(kernel_.buffers, &KernelBuffer::kept))
      return error("tiles abreast keep no rows");
    return Ok{};
  }

  const Kernel& kernel_;
  const sym::Arena& syms_;
  std::set<sym::Expr> scope_;  // symbols, the grid's axes, and those of the present stage
  std::set<sym::Expr> axes_;   // of grid and all stages
  std::vector<bool> stored_;   // by buffer
  std::vector<std::size_t> accumulated_in_;  // by accumulator: the stage
  std::vector<bool> finished_;
  std::size_t stage_ = 0;
  std::size_t next_ = 0;     // values defined so far
  std::vector<bool> ended_;  // by value, of earlier stages: it lived in a loop only
  i64 kept_bytes_ = 0;
  bool closing_ = false;  // stages are closing ones by now
};

}  // namespace

Status verify(const Kernel& kernel) { return KernelVerifier(kernel).run(); }

}  // namespace coil
