#include "kernel_eval.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "ops/scalar.h"
#include "target/interp/combine_code.h"
#include "target/interp/index_code.h"

namespace coil::kernel_eval {
namespace {

using interp::CombineCode;
using interp::IndexCode;

constexpr i64 kLanes = 16;
constexpr std::size_t kValueBytes = kLanes * 8;

/// One value of all lanes, in the memory form of its dtype.
struct alignas(64) LaneValue {
  std::byte bytes[kValueBytes];
};

/// An instruction with what a run needs of it.
struct Code {
  const KernelInst* k = nullptr;
  std::vector<IndexCode> index;      // Load, Store: one for each dim
  std::optional<IndexCode> address;  // Load, Store
  std::optional<IndexCode> value;    // Value
  std::vector<i64> shape;            // Load, Store: of the buffer
  i64 extent = 0;                    // Index
  std::size_t column = 0;            // Index: the column that it fills
  std::optional<CombineCode> combine;
  std::vector<std::vector<LaneValue>> slots;  // Accumulate, Scan: by slot, by partial value
  std::vector<LaneValue> total;               // Accumulate: of the blocks so far
  bool has_total = false;
};

struct StageCode {
  const Stage* stage = nullptr;
  std::vector<Code> codes;
  std::vector<IndexCode> extent_codes;  // of the loop's axes: they may differ along the grid
  std::vector<i64> extents;             // at the present point
  std::optional<IndexCode> position;    // row-major over the loop
  bool lanes_in_loop = false;
};

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, const Launch& launch)
      : kernel_(kernel), syms_(*kernel.syms), launch_(launch) {}

  Status run(std::mt19937_64& order) {
    COIL_TRY(prepare());
    std::vector<i64> units(
        static_cast<std::size_t>(std::max<i64>(0, env_.at(kernel_.mapping.units))));
    std::iota(units.begin(), units.end(), i64{0});
    if (!kernel_.mapping.serial) std::shuffle(units.begin(), units.end(), order);
    for (i64 u : units) COIL_TRY(unit(u));
    return Ok{};
  }

 private:
  // ---- once ----

  Status prepare() {
    env_.syms = kernel_.syms.get();
    if (launch_.symbols.size() != kernel_.symbols.size() ||
        launch_.scalars.size() != kernel_.scalars.size())
      return error("{} symbols and {} scalars are given", launch_.symbols.size(),
                   launch_.scalars.size());
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i)
      env_.values[kernel_.symbols[i]] = launch_.symbols[i];
    if (!kernel_.mapping.units.valid()) return error("the kernel is not mapped");
    if (kernel_.closes()) return error("closing stages are a launch of their own");
    for (const Axis& a : kernel_.grid) add_column(a.var);
    for (const Stage& s : kernel_.stages) {
      for (const Axis& a : s.loop) add_column(a.var);
      for (const KernelInst& i : s.insts)
        if (i.kind == KernelOp::Index) add_column(i.inst.expr);
    }
    columns_.assign(variables_.size(), std::vector<i64>(kLanes));
    for (const std::vector<i64>& c : columns_) column_data_.push_back(c.data());
    COIL_TRY(prepare_buffers());
    values_.resize(kernel_.val_dtypes.size());
    for (const Axis& a : kernel_.grid) grid_extents_.push_back(env_.at(a.extent));
    for (const Stage& s : kernel_.stages) COIL_TRY(prepare_stage(s));
    return Ok{};
  }

  void add_column(sym::Expr var) {
    if (std::ranges::find(variables_, var) == variables_.end()) variables_.push_back(var);
  }
  std::size_t column_of(sym::Expr var) const {
    return static_cast<std::size_t>(std::ranges::find(variables_, var) - variables_.begin());
  }

  Status prepare_buffers() {
    std::size_t next = 0;
    kept_.resize(kernel_.buffers.size());
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
      if (kernel_.buffers[b].kept) {
        i64 elements = 1;
        for (sym::Expr e : kernel_.buffers[b].shape) elements *= env_.at(e);
        if (lanes_on_grid()) elements *= kLanes;  // a row for each lane, interleaved
        kept_[b].resize(static_cast<std::size_t>(elements * size_of(kernel_.buffers[b].dtype)));
        memory_.push_back({kept_[b].data(), elements});
      } else {
        if (next == launch_.buffers.size()) return error("{} buffers are given", next);
        memory_.push_back(launch_.buffers[next++]);
      }
    }
    return next == launch_.buffers.size() ? Status(Ok{})
                                          : error("{} buffers are given", launch_.buffers.size());
  }

  sym::Expr row_major(const std::vector<Axis>& axes) {
    sym::Expr at = syms_.constant(0);
    for (const Axis& a : axes) at = syms_.add(syms_.mul(at, a.extent), a.var);
    return at;
  }

  Status prepare_stage(const Stage& s) {
    StageCode out;
    out.stage = &s;
    for (const Axis& a : s.loop) out.extent_codes.emplace_back(a.extent, variables_, env_);
    if (!s.loop.empty()) {
      out.position.emplace(row_major(s.loop), variables_, env_);
      out.lanes_in_loop = kernel_.has_lanes(s.loop.back().var);
    }
    for (const KernelInst& k : s.insts) {
      Code code;
      code.k = &k;
      if (k.kind == KernelOp::Load || k.kind == KernelOp::Store) {
        const KernelBuffer& b = kernel_.buffers[k.buffer];
        for (sym::Expr e : k.inst.index) code.index.emplace_back(e, variables_, env_);
        for (sym::Expr e : b.shape) code.shape.push_back(env_.at(e));
        code.address.emplace(address(syms_, b.layout, k.inst.index), variables_, env_);
      }
      if (k.kind == KernelOp::Value) code.value.emplace(k.inst.expr, variables_, env_);
      if (k.kind == KernelOp::Index) {
        code.extent = env_.at(k.inst.extent);
        code.column = column_of(k.inst.expr);
      }
      if (k.kind == KernelOp::Accumulate || k.kind == KernelOp::Scan)
        COIL_TRY(prepare_carried(out, code));
      out.codes.push_back(std::move(code));
    }
    stages_.push_back(std::move(out));
    return Ok{};
  }

  Status prepare_carried(const StageCode& stage, Code& code) const {
    const Inst& inst = code.k->inst;
    if (code.k->kind == KernelOp::Scan && stage.lanes_in_loop)
      return error("a scan runs along the axis of the lanes");
    if (code.k->kind == KernelOp::Accumulate &&
        inst.tree.lanes != (stage.lanes_in_loop ? kLanes : 1))
      return error("a tree of {} lanes, and the lanes are {}on its row", inst.tree.lanes,
                   stage.lanes_in_loop ? "" : "not ");
    code.combine.emplace(kernel_.combines[inst.combine], false);
    // Where there are no slots the one that is here stays the identity, which an empty loop gives.
    code.slots.assign(code.k->kind == KernelOp::Scan ? 1 : std::max<u16>(inst.tree.accs, 1),
                      std::vector<LaneValue>(code.combine->count()));
    return Ok{};
  }

  // ---- units of work ----

  Status unit(i64 number) {
    i64 rest = number;
    std::optional<std::size_t> lane = grid_axis(kernel_.lane_axis()), across;
    i64 first = 0, end = 0, first_across = 0, end_across = 1;
    if (lane && kernel_.mapping.tile.size() == 2) {
      const TileDim& tile = kernel_.mapping.tile[1];
      across = grid_axis(tile.axis);
      if (!across) return error("the second axis of the tile is none of the grid");
      const i64 extent = grid_extents_[*across], tiles = (extent + tile.extent - 1) / tile.extent;
      first_across = rest % tiles * tile.extent;
      end_across = std::min(first_across + tile.extent, extent);
      rest /= tiles;
    }
    if (lane) {
      const i64 chunk = kernel_.mapping.chunk, extent = grid_extents_[*lane];
      const i64 chunks = (extent + chunk - 1) / chunk;
      first = rest % chunks * chunk;
      end = std::min(first + chunk, extent);
      rest /= chunks;
    }
    for (std::size_t a = kernel_.grid.size(); a-- > 0;) {
      if (lane == a || across == a) continue;
      set_column(column_of(kernel_.grid[a].var), rest % grid_extents_[a]);
      rest /= grid_extents_[a];
    }
    if (rest != 0) return error("unit {} lies outside of the grid", number);
    if (!lane) return stages(1);
    for (; first < end; first += kLanes) {
      std::vector<i64>& column = columns_[column_of(kernel_.lane_axis())];
      std::iota(column.begin(), column.end(), first);
      for (i64 p = first_across; p < end_across; ++p) {
        if (across) set_column(column_of(kernel_.grid[*across].var), p);
        COIL_TRY(stages(std::min(kLanes, end - first)));
      }
    }
    return Ok{};
  }

  bool lanes_on_grid() const { return grid_axis(kernel_.lane_axis()).has_value(); }

  std::optional<std::size_t> grid_axis(sym::Expr var) const {
    for (std::size_t a = 0; a < kernel_.grid.size(); ++a)
      if (kernel_.grid[a].var == var) return a;
    return std::nullopt;
  }

  void set_column(std::size_t column, i64 value) { std::ranges::fill(columns_[column], value); }

  /// All stages at `points` neighbours of the grid.
  Status stages(i64 points) {
    for (std::vector<std::byte>& k : kept_) std::ranges::fill(k, std::byte{0xff});
    for (StageCode& s : stages_) {
      points_ = points;
      if (s.stage->loop.empty()) {
        for (Code& c : s.codes) COIL_TRY(inst(c, s));
      } else {
        COIL_TRY(loop(s));
      }
    }
    return Ok{};
  }

  Status find_extents(StageCode& s) {
    s.extents.clear();
    for (IndexCode& code : s.extent_codes) {
      i64 extents[kLanes];
      code.evaluate(points_, column_data_, extents);
      for (i64 l = 1; l < points_; ++l)
        if (extents[l] != extents[0]) return error("lanes run through loops of different lengths");
      s.extents.push_back(extents[0]);
    }
    return Ok{};
  }

  Status loop(StageCode& s) {
    COIL_TRY(find_extents(s));
    for (Code& c : s.codes) {
      start(c);
      c.has_total = false;
    }
    i64 rounds = 1;
    for (std::size_t a = 0; a + 1 < s.extents.size(); ++a) rounds *= s.extents[a];
    for (i64 round = 0; round < rounds; ++round) {
      i64 rest = round;
      for (std::size_t a = s.extents.size() - 1; a-- > 0;) {
        set_column(column_of(s.stage->loop[a].var), rest % s.extents[a]);
        rest /= s.extents[a];
      }
      COIL_TRY(innermost(s));
    }
    return fold(s);
  }

  /// The slots begin at the identity.
  static void start(Code& c) {
    for (std::vector<LaneValue>& slot : c.slots)
      for (std::size_t v = 0; v < slot.size(); ++v)
        c.combine->fill_identity(v, kLanes, slot[v].bytes);
  }

  static i64 block_of(const StageCode& s) {
    for (const Code& c : s.codes)
      if (c.k->kind == KernelOp::Accumulate) return c.k->inst.tree.block;
    return 0;
  }

  Status innermost(StageCode& s) {
    const i64 extent = s.extents.back(), step = s.lanes_in_loop ? kLanes : 1, block = block_of(s);
    std::vector<i64>& column = columns_[column_of(s.stage->loop.back().var)];
    turn_ = 0;
    for (i64 r = 0; r < extent; r += step) {
      if (s.lanes_in_loop) {
        std::iota(column.begin(), column.end(), r);
        points_ = std::min(kLanes, extent - r);
      } else {
        std::ranges::fill(column, r);
      }
      for (Code& c : s.codes) COIL_TRY(inst(c, s));
      ++turn_;
      const i64 end = std::min(r + step, extent);
      if (block > 0 && (end % block == 0 || end == extent)) fold_block(s);
    }
    if (s.lanes_in_loop) points_ = 1;
    return Ok{};
  }

  /// Slots in order, then lanes by halves, then into the total; the slots begin anew.
  void fold_block(StageCode& s) {
    const i64 points = s.lanes_in_loop ? 1 : points_;
    for (Code& c : s.codes) {
      if (c.k->kind != KernelOp::Accumulate) continue;
      std::vector<LaneValue>& first = c.slots[0];
      for (std::size_t slot = 1; slot < c.slots.size(); ++slot)
        combine(c, s.lanes_in_loop ? kLanes : points, first, c.slots[slot], 0);
      for (i64 half = kLanes / 2; s.lanes_in_loop && half > 0; half /= 2)
        combine(c, half, first, first, half);
      add_to_total(c, points, first);
      start(c);
    }
    turn_ = 0;
  }

  void add_to_total(Code& c, i64 points, std::vector<LaneValue>& values) {
    if (c.has_total)
      combine(c, points, c.total, values, 0);
    else
      c.total = values;
    c.has_total = true;
  }

  /// The results become the values of each Finish.
  Status fold(StageCode& s) {
    const bool is_folded = std::ranges::any_of(s.codes, [](const Code& c) { return c.has_total; });
    if (!is_folded) fold_block(s);
    for (Code& c : s.codes) {
      if (c.k->kind != KernelOp::Accumulate) continue;
      const std::vector<Val>& results = finish_of(c.k->accumulator).results;
      for (std::size_t v = 0; v < results.size(); ++v) {
        values_[results[v].index] = c.total[v];
        if (s.lanes_in_loop) splat(results[v]);
      }
    }
    return Ok{};
  }

  const Inst& finish_of(u32 accumulator) const {
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts)
        if (i.kind == KernelOp::Finish && i.accumulator == accumulator) return i.inst;
    COIL_UNREACHABLE();
  }

  /// left = left (+) right, `n` lanes; those of `right` begin at `from`.
  void combine(Code& c, i64 n, std::vector<LaneValue>& left, std::vector<LaneValue>& right,
               i64 from) {
    std::vector<std::byte*> lefts;
    std::vector<const std::byte*> rights;
    for (std::size_t v = 0; v < left.size(); ++v) {
      lefts.push_back(left[v].bytes);
      rights.push_back(right[v].bytes + from * c.combine->element_size(v));
    }
    c.combine->apply(n, lefts, rights);
  }

  // ---- instructions ----

  std::byte* bytes_of(Val v) { return values_[v.index].bytes; }

  /// A value of one point serves all lanes of a later loop.
  void splat(Val v) {
    const std::size_t size = static_cast<std::size_t>(size_of(kernel_.val_dtypes[v.index]));
    for (i64 l = 1; l < kLanes; ++l)
      std::memcpy(bytes_of(v) + static_cast<std::size_t>(l) * size, bytes_of(v), size);
  }

  Status inst(Code& c, StageCode& s) {
    const Inst& i = c.k->inst;
    switch (c.k->kind) {
      case KernelOp::Load: COIL_TRY(load(c)); break;
      case KernelOp::Store: return store(c);
      case KernelOp::Const:
        interp::fill(i.constant, false, kLanes, bytes_of(i.results[0]));
        return Ok{};
      case KernelOp::Value:
        c.value->evaluate(points_, column_data_, reinterpret_cast<i64*>(bytes_of(i.results[0])));
        break;
      case KernelOp::Scalar: {
        const auto at = std::ranges::find(kernel_.scalars, i.scalar) - kernel_.scalars.begin();
        interp::fill(ops::Scalar::of_float(i.dtype, launch_.scalars[static_cast<std::size_t>(at)]),
                     false, kLanes, bytes_of(i.results[0]));
        return Ok{};
      }
      case KernelOp::Index: return index(c);
      case KernelOp::Op: op(i); break;
      case KernelOp::Accumulate:
        if (i.tree.accs > 0)
          accumulate(c, s, c.slots[static_cast<std::size_t>(turn_ % i.tree.accs)]);
        else
          accumulate_partials(c);
        return Ok{};
      case KernelOp::Finish: return Ok{};  // the loop's end has made the values
      case KernelOp::Scan:
        accumulate(c, s, c.slots[0]);
        for (std::size_t v = 0; v < i.results.size(); ++v)
          values_[i.results[v].index] = c.slots[0][v];
        break;
    }
    if (points_ == 1)
      for (Val v : i.results) splat(v);
    return Ok{};
  }

  void op(const Inst& i) {
    const std::byte* operands[3] = {};
    DType dtypes[3] = {};
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      operands[o] = bytes_of(i.operands[o]);
      dtypes[o] = kernel_.val_dtypes[i.operands[o].index];
    }
    const std::size_t count = i.operands.size();
    interp::evaluate_op({i.op, std::span(dtypes).first(count), i.dtype, false}, points_,
                        std::span(operands).first(count), bytes_of(i.results[0]));
  }

  void accumulate(Code& c, StageCode& s, std::vector<LaneValue>& slot) {
    i64 positions[kLanes];
    s.position->evaluate(points_, column_data_, positions);
    std::vector<const std::byte*> operands, lifted;
    for (Val v : c.k->inst.operands) operands.push_back(bytes_of(v));
    lifted = c.combine->lift(points_, operands, positions);
    std::vector<std::byte*> left;
    for (LaneValue& v : slot) left.push_back(v.bytes);
    c.combine->apply(points_, left, lifted);
  }

  void accumulate_partials(Code& c) {
    std::vector<LaneValue> values;
    for (Val v : c.k->inst.operands) values.push_back(values_[v.index]);
    add_to_total(c, points_, values);
  }

  bool active(Val mask, i64 lane) { return !mask.valid() || bytes_of(mask)[lane] != std::byte{0}; }

  /// Addresses of the active lanes, each within the buffer's shape and memory.
  Status addresses(Code& c, i64* out) {
    const KernelBuffer& b = kernel_.buffers[c.k->buffer];
    i64 at[kLanes];
    for (std::size_t d = 0; d < c.index.size(); ++d) {
      c.index[d].evaluate(points_, column_data_, at);
      for (i64 l = 0; l < points_; ++l)
        if (active(c.k->inst.mask, l) && (at[l] < 0 || at[l] >= c.shape[d]))
          return error("index {} of %{} is {}, outside 0..{}", d, b.name, at[l], c.shape[d] - 1);
    }
    c.address->evaluate(points_, column_data_, out);
    if (b.kept && lanes_on_grid())
      for (i64 l = 0; l < points_; ++l) out[l] = out[l] * kLanes + l;
    for (i64 l = 0; l < points_; ++l)
      if (active(c.k->inst.mask, l) && (out[l] < 0 || out[l] >= memory_[c.k->buffer].elements))
        return error("address {} of %{} is outside of its {} elements", out[l], b.name,
                     memory_[c.k->buffer].elements);
    return Ok{};
  }

  Status load(Code& c) {
    i64 at[kLanes];
    COIL_TRY(addresses(c, at));
    const Inst& i = c.k->inst;
    std::byte* out = bytes_of(i.results[0]);
    if (i.mask.valid()) interp::fill(i.other, false, kLanes, out);
    const i64 size = size_of(i.dtype);
    for (i64 l = 0; l < points_; ++l)
      if (active(i.mask, l))
        std::memcpy(out + l * size, memory_[c.k->buffer].data + at[l] * size,
                    static_cast<std::size_t>(size));
    return Ok{};
  }

  Status store(Code& c) {
    i64 at[kLanes];
    COIL_TRY(addresses(c, at));
    const Inst& i = c.k->inst;
    const std::byte* in = bytes_of(i.operands[0]);
    std::byte* data = memory_[c.k->buffer].data;
    const i64 size = size_of(i.dtype);
    for (i64 l = 0; l < points_; ++l) {
      if (!active(i.mask, l)) continue;
      if (i.store_combine == StoreCombine::None)
        std::memcpy(data + at[l] * size, in + l * size, static_cast<std::size_t>(size));
      else
        ops::write_element(i.dtype, data, at[l],
                           together(i, ops::read_element(i.dtype, data, at[l]),
                                    ops::read_element(i.dtype, in, l)));
    }
    return Ok{};
  }

  /// Narrow floats combine in f32 and round each time; sums and products of bools are logical.
  static ops::Scalar together(const Inst& i, ops::Scalar old, ops::Scalar added) {
    const DType compute = compute_dtype(i.dtype);
    old.dtype = added.dtype = compute;
    const ops::Scalar both[2] = {old, added};
    switch (i.store_combine) {
      case StoreCombine::None: break;
      case StoreCombine::Sum:
        return evaluate(is_bool(i.dtype) ? ops::ScalarOp::bits_or : ops::ScalarOp::add, compute,
                        both);
      case StoreCombine::Prod:
        return evaluate(is_bool(i.dtype) ? ops::ScalarOp::bits_and : ops::ScalarOp::mul, compute,
                        both);
      case StoreCombine::Min: return evaluate(ops::ScalarOp::min, compute, both);
      case StoreCombine::Max: return evaluate(ops::ScalarOp::max, compute, both);
    }
    COIL_UNREACHABLE();
  }

  /// An index that its mask switches off is 0, unchecked.
  Status index(Code& c) {
    const Inst& i = c.k->inst;
    const i64* given = reinterpret_cast<const i64*>(bytes_of(i.operands[0]));
    std::vector<i64>& column = columns_[c.column];
    for (i64 l = 0; l < kLanes; ++l) {
      i64 x = given[std::min(l, points_ - 1)];
      if (i.policy == IndexPolicy::Wrap && x < 0) x += c.extent;
      if (i.policy == IndexPolicy::Clamp) x = std::max<i64>(0, std::min(x, c.extent - 1));
      const bool bad = x < 0 || x >= c.extent;
      if (bad && active(i.mask, std::min(l, points_ - 1)))
        return error("index {} is outside 0..{}", x, c.extent - 1);
      column[static_cast<std::size_t>(l)] = bad ? 0 : x;
    }
    return Ok{};
  }

  const Kernel& kernel_;
  sym::Arena& syms_;
  const Launch& launch_;
  interp::Env env_;
  std::vector<sym::Expr> variables_;  // axes and indices: one column each
  std::vector<std::vector<i64>> columns_;
  std::vector<const i64*> column_data_;
  std::vector<Argument> memory_;  // by buffer
  std::vector<std::vector<std::byte>> kept_;
  std::vector<LaneValue> values_;
  std::vector<i64> grid_extents_;
  std::vector<StageCode> stages_;
  i64 points_ = 1;  // lanes at work
  i64 turn_ = 0;    // blocks of the innermost axis so far
};

}  // namespace

Status run(const Kernel& kernel, const Launch& launch, std::mt19937_64& order) {
  return Evaluator(kernel, launch).run(order);
}

}  // namespace coil::kernel_eval
