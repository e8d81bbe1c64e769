// The skeleton of a kernel's function: arguments, units of work, lanes and their tail, loops of
// stages.

#include "target/cpp/print.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "target/cpp/print_inst.h"
#include "target/cpp/spelling.h"

namespace coil::cpp {
namespace {

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::string function)
      : kernel_(kernel),
        syms_(*kernel.syms),
        function_(std::move(function)),
        index_(syms_),
        insts_(kernel, index_, out_) {}

  std::string run() {
    out_.line(
        "extern \"C\" void {}(void* const* buffers, const i64* symbols, const f64* scalars, i64 "
        "lo, "
        "i64 hi, Fault* fault) {{",
        function_);
    out_.indent();
    arguments();
    out_.raw_line("for (i64 unit = lo; unit < hi; ++unit) {");
    out_.indent();
    unit();
    out_.dedent();
    out_.raw_line("}");
    out_.dedent();
    out_.raw_line("}");
    return out_.text();
  }

 private:
  void arguments() {
    out_.raw_line("(void)buffers, (void)symbols, (void)scalars, (void)fault;");
    std::size_t argument = 0;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const KernelBuffer& b = kernel_.buffers[i];
      const std::string type = memory_type(b.dtype);
      if (b.kept) {
        out_.line("alignas(64) {} buf{}[{}];", type, i,
                  elements_of(b) * (lanes_on_grid() ? 16 : 1));
      } else {
        out_.line("{0}{1}* const buf{2} = ({0}{1}*)buffers[{3}];", b.written ? "" : "const ", type,
                  i, argument++);
      }
    }
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) {
      index_.name(kernel_.symbols[i], str("s{}", i));
      out_.line("const i64 s{0} = symbols[{0}];", i);
    }
    for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
      out_.line("const f64 num{0} = scalars[{0}];", i);
  }

  i64 elements_of(const KernelBuffer& b) const {
    i64 elements = 1;
    for (sym::Expr e : b.shape) elements *= *syms_.as_const(e);
    return std::max<i64>(1, elements);
  }

  bool lanes_on_grid() const {
    return std::any_of(kernel_.grid.begin(), kernel_.grid.end(),
                       [&](const Axis& a) { return a.var == kernel_.lane_axis(); });
  }

  /// Splits `unit` into grid coordinates, then runs the stages at each point or over the lanes.
  void unit() {
    const bool lanes = lanes_on_grid();
    sym::Expr lane_extent, across, across_extent;
    if (lanes && kernel_.mapping.tile.size() == 2) across = kernel_.mapping.tile[1].axis;
    if (!kernel_.grid.empty()) out_.raw_line("i64 rest = unit;");
    for (std::size_t a = 0; a < kernel_.grid.size(); ++a) {
      index_.name(kernel_.grid[a].var, str("p{}", a));
      if (kernel_.grid[a].var == kernel_.lane_axis()) lane_extent = kernel_.grid[a].extent;
      if (kernel_.grid[a].var == across) across_extent = kernel_.grid[a].extent;
    }
    if (across.valid()) {
      out_.line("const i64 tiles = ({} + 15) / 16;", index_.scalar(across_extent));
      out_.raw_line("const i64 tile = rest % tiles;");
      out_.raw_line("rest /= tiles;");
      out_.line("const i64 points = min({} - tile * 16, i64(16));", index_.scalar(across_extent));
    }
    if (lanes) {
      out_.line("const i64 chunks = ({} + {}) / {};", index_.scalar(lane_extent),
                kernel_.mapping.chunk - 1, kernel_.mapping.chunk);
      out_.raw_line("const i64 chunk = rest % chunks;");
      out_.raw_line("rest /= chunks;");
    }
    for (std::size_t a = kernel_.grid.size(); a-- > 0;) {
      if (kernel_.grid[a].var == kernel_.lane_axis() || kernel_.grid[a].var == across) continue;
      const std::string extent = index_.scalar(kernel_.grid[a].extent);
      out_.line("const i64 p{} = rest % {};", a, extent);
      out_.line("rest /= {};", extent);
    }
    insts_.set_positions(sym::Expr(), row_major(kernel_.grid));
    if (!lanes) return stages();
    lanes_of_unit(lane_extent);
  }

  void lanes_of_unit(sym::Expr extent) {
    const sym::Expr axis = kernel_.lane_axis();
    const std::string p = index_.scalar(axis);
    index_.set_lanes(axis, true);
    out_.line("i64 {} = chunk * {};", p, kernel_.mapping.chunk);
    out_.line("const i64 end = min({} + i64({}), i64({}));", p, kernel_.mapping.chunk,
              index_.scalar(extent));
    const i64 abreast = kernel_.mapping.abreast, left = left_of(extent, 16 * abreast);
    if (abreast > 1) lanes_of_tiles(abreast);
    if (abreast == 1 || left < 0 || left >= 16) lanes_of_tiles(1);
    if (left_of(extent, 16) != 0) {
      out_.line("if ({} < end) {{", p);
      out_.indent();
      out_.line("const i64 count = end - {};", p);
      insts_.set_tail("count");
      points_of_lanes();
      insts_.set_tail("");
      out_.dedent();
      out_.raw_line("}");
    }
    index_.set_lanes(axis, false);
  }

  /// Full tiles, so many of them in every step of the stages' loops.
  void lanes_of_tiles(i64 abreast) {
    const std::string p = index_.scalar(kernel_.lane_axis());
    out_.line("for (; {0} + {1} <= end; {0} += {1}) {{", p, 16 * abreast);
    out_.indent();
    abreast_ = abreast;
    points_of_lanes();
    abreast_ = 1;
    out_.dedent();
    out_.raw_line("}");
  }

  /// Prints what is said of one tile for each of those abreast, with names of its own.
  template <class Print>
  void each_tile(const Print& print) {
    if (abreast_ == 1) return print();
    const std::string p = index_.scalar(kernel_.lane_axis());
    for (i64 tile = 0; tile < abreast_; ++tile) {
      if (tile > 0) index_.name(kernel_.lane_axis(), str("({} + {})", p, 16 * tile));
      insts_.set_of_tile(str("_t{}", tile));
      print();
    }
    index_.name(kernel_.lane_axis(), p);
    insts_.set_of_tile("");
  }

  /// The stages at one point of each lane, or over a tile whose turned accesses move as a whole.
  void points_of_lanes() {
    if (kernel_.mapping.tile.size() < 2) return stages();
    const sym::Expr across = kernel_.mapping.tile[1].axis;
    const std::string p = index_.scalar(across);
    std::vector<const KernelInst*> turned;
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts)
        if (is_turned(kernel_, i)) turned.push_back(&i);
    index_.name(across, "(tile * 16)");
    for (u32 t = 0; t < turned.size(); ++t) insts_.open_tile(*turned[t], t);
    index_.name(across, p);
    out_.raw_line("for (i64 point = 0; point < points; ++point) {");
    out_.indent();
    out_.line("const i64 {} = tile * 16 + point;", p);
    insts_.set_in_tile(true);
    stages();
    insts_.set_in_tile(false);
    out_.dedent();
    out_.raw_line("}");
    index_.name(across, "(tile * 16)");
    for (const KernelInst* i : turned)
      if (i->kind == KernelOp::Store) insts_.close_tile(*i);
    index_.name(across, p);
  }

  void stages() {
    loops_ = 0;
    for (const Stage& s : kernel_.stages) stage(s);
  }

  sym::Expr row_major(const std::vector<Axis>& axes) {
    sym::Expr at = syms_.constant(0);
    for (const Axis& a : axes) at = syms_.add(syms_.mul(at, a.extent), a.var);
    return at;
  }

  void stage(const Stage& s) {
    std::vector<Axis> axes = kernel_.grid;
    insts_.set_positions(sym::Expr(), row_major(axes));
    if (s.loop.empty()) {
      return each_tile([&] {
        for (const KernelInst& i : s.insts) insts_.print(i);
      });
    }
    ++loops_;
    for (std::size_t a = 0; a < s.loop.size(); ++a) index_.name(s.loop[a].var, loop_variable(a));
    insts_.set_lanes_in_loop(lanes_in_loop(s));
    if (lanes_in_loop(s)) index_.set_lanes(s.loop.back().var, true);
    axes.insert(axes.end(), s.loop.begin(), s.loop.end());
    insts_.set_positions(row_major(s.loop), row_major(axes));
    insts_.set_slots_in_array(is_rolled(s));
    insts_.set_started(started());
    each_tile([&] { declare_carried(s); });
    if (has_totals(s)) out_.line("bool {} = false;", started());
    for (std::size_t a = 0; a + 1 < s.loop.size(); ++a) {
      out_.line("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", loop_variable(a),
                index_.scalar(s.loop[a].extent));
      out_.indent();
    }
    innermost(s);
    for (std::size_t a = 0; a + 1 < s.loop.size(); ++a) {
      out_.dedent();
      out_.raw_line("}");
    }
    if (block_of(s) != 0 && !surely_runs(s)) {  // a row without elements
      out_.line("if (!{}) {{", started());
      out_.indent();
      fold_block(s);
      out_.dedent();
      out_.raw_line("}");
    }
    each_tile([&] { finish(s); });
    insts_.set_slots_in_array(false);
    insts_.set_lanes_in_loop(false);
  }

  /// `r0`, and `r0_2` in the second loop: all loops of a kernel share one scope.
  std::string loop_variable(std::size_t axis) const {
    return loops_ == 1 ? str("r{}", axis) : str("r{}_{}", axis, loops_);
  }

  /// Steps in a round, after which the slots of all trees begin anew.
  u32 slots_of(const Stage& s) const {
    u32 slots = 1;
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Accumulate)
        slots = std::lcm(slots, std::max(u32{i.inst.tree.accs}, u32{1}));
    return slots;
  }

  /// Whether the loop folds partial values, without slots.
  static bool takes_partials(const Stage& s) {
    return std::any_of(s.insts.begin(), s.insts.end(), [](const KernelInst& i) {
      return i.kind == KernelOp::Accumulate && i.inst.tree.accs == 0;
    });
  }
  /// Whether what the loop leaves is in totals.
  static bool has_totals(const Stage& s) { return block_of(s) != 0 || takes_partials(s); }

  /// In steps of the innermost axis that all slots of all accumulators share; 0: they last the
  /// whole loop.
  static u32 block_of(const Stage& s) {
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Accumulate) return i.inst.tree.block;
    return 0;
  }

  void declare_carried(const Stage& s) {
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate && i.kind != KernelOp::Scan) continue;
      const ops::Combine& c = kernel_.combines[i.inst.combine];
      const bool lanes = index_.lanes_on();
      for (std::size_t v = 0; v < c.values.size(); ++v) {
        const std::string type = insts_.type(c.values[v], lanes);
        const std::string identity = insts_.constant(c.identity[v], lanes);
        if (i.kind == KernelOp::Scan) {
          out_.line("{} {} = {};", type, insts_.scan_name(i.inst, v), identity);
          continue;
        }
        if (is_rolled(s))
          out_.line("{} {}[{}];", type, insts_.slot_array(i.accumulator, v), i.inst.tree.accs);
        for (u32 slot = 0; slot < i.inst.tree.accs; ++slot)
          out_.line("{}{} = {};", is_rolled(s) ? "" : type + " ",
                    insts_.slot_name(i.accumulator, slot, v), identity);
      }
      if (i.kind != KernelOp::Accumulate || !has_totals(s)) continue;
      const bool folded_lanes = lanes && !lanes_in_loop(s);
      for (std::size_t v = 0; v < c.values.size(); ++v)
        out_.line("{} {} = {};", insts_.type(c.values[v], folded_lanes),
                  insts_.total_name(i.accumulator, v),
                  insts_.constant(c.identity[v], folded_lanes));
    }
  }

  std::string started() const { return str("started{}", loops_); }

  bool lanes_in_loop(const Stage& s) const { return kernel_.has_lanes(s.loop.back().var); }

  /// The last axis of a loop, block by block; each block's slots are folded into the totals.
  void innermost(const Stage& s) {
    const std::string r = loop_variable(s.loop.size() - 1);
    const std::string extent = index_.scalar(s.loop.back().extent);
    const u32 block = block_of(s);
    out_.line("i64 {} = 0;", r);
    if (block == 0) return steps(s, r, extent);
    out_.line("while ({} < {}) {{", r, extent);
    out_.indent();
    out_.line("const i64 stop = min({} + i64({}), i64({}));", r, block, extent);
    steps(s, r, "stop");
    fold_block(s);
    out_.dedent();
    out_.raw_line("}");
  }

  bool is_rolled(const Stage& s) const {
    const std::vector<u32>& rolled = kernel_.mapping.rolled;
    const auto index = static_cast<u32>(&s - kernel_.stages.data());
    return std::find(rolled.begin(), rolled.end(), index) != rolled.end();
  }

  /// The steps of one block. Unrolled: whole rounds over all slots, then what is left, with the
  /// slots in arrays. Rolled: one step after the other.
  void steps(const Stage& s, const std::string& r, const std::string& extent) {
    const u32 slots = slots_of(s);
    const i64 step = lanes_in_loop(s) ? 16 : 1;
    if (is_rolled(s)) {
      out_.raw_line("{");
      out_.indent();
      out_.raw_line("u64 slot = 0;");
      out_.line("for (; {} + {} <= {}; ++slot) {{", r, step, extent);
      body(s, 0, r, step);
      out_.raw_line("}");
      if (step > 1 && left_of(s, step) != 0) left_steps(s, 0, r, extent, "if");
      out_.dedent();
      out_.raw_line("}");
      return;
    }
    if (may_have_round(s, step * slots)) {
      out_.line("for (; {} + {} <= {};) {{", r, step * slots, extent);
      for (u32 slot = 0; slot < slots; ++slot) body(s, slot, r, step);
      out_.raw_line("}");
    }
    const i64 left = left_of(s, step * slots);
    if (left == 0) return;
    if (slots == 1) return left_steps(s, 0, r, extent, "if");
    out_.line("if ({} < {}) {{", r, extent);
    out_.indent();
    if (left > 0) {
      for (u32 slot = 0; slot < left / step; ++slot) body(s, slot, r, step);
      if (left % step > 0) left_steps(s, static_cast<u32>(left / step), r, extent, "if");
      out_.dedent();
      return out_.raw_line("}");
    }
    each_tile([&] { copy_slots(s, true); });
    insts_.set_slots_in_array(true);
    out_.raw_line("u64 slot = 0;");
    left_steps(s, 0, r, extent, "while");
    insts_.set_slots_in_array(false);
    each_tile([&] { copy_slots(s, false); });
    out_.dedent();
    out_.raw_line("}");
  }

  bool may_have_round(const Stage& s, i64 round) const {
    const std::optional<i64> known = syms_.as_const(s.loop.back().extent);
    return !known || *known >= round;
  }

  /// Elements of the innermost axis behind whole rounds of so many; -1: known at run time.
  i64 left_of(const Stage& s, i64 round) const {
    return block_of(s) % round == 0 ? left_of(s.loop.back().extent, round) : -1;
  }
  i64 left_of(sym::Expr extent, i64 round) const {
    if (round == 1) return 0;
    const std::optional<i64> known = syms_.as_const(extent);
    return known ? *known % round : -1;
  }

  /// One step of at most 16 lanes, or all; `slot` counts these.
  void left_steps(const Stage& s, u32 slot, const std::string& r, const std::string& extent,
                  const char* repeat) {
    const bool lanes = lanes_in_loop(s);
    out_.line("{} ({} < {}) {{", repeat, r, extent);
    out_.indent();
    if (lanes) {
      out_.line("const i64 count = min(i64({} - {}), i64(16));", extent, r);
      insts_.set_tail("count");
    }
    body(s, slot, r, lanes ? 16 : 1);
    if (lanes) insts_.set_tail("");
    if (std::string_view(repeat) == "while") out_.raw_line("++slot;");
    out_.dedent();
    out_.raw_line("}");
  }

  /// Between the variables of slots and arrays of them.
  void copy_slots(const Stage& s, bool to_array) {
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate) continue;
      const ops::Combine& c = kernel_.combines[i.inst.combine];
      for (std::size_t v = 0; v < c.values.size(); ++v) {
        const std::string array = insts_.slot_array(i.accumulator, v);
        std::vector<std::string> names;
        for (u32 slot = 0; slot < i.inst.tree.accs; ++slot)
          names.push_back(insts_.slot_name(i.accumulator, slot, v));
        if (to_array) {
          out_.line("{} {}[{}] = {{{}}};", insts_.type(c.values[v], index_.lanes_on()), array,
                    names.size(), join(names, ", ", [](const std::string& n) { return n; }));
        } else {
          for (std::size_t slot = 0; slot < names.size(); ++slot)
            out_.line("{} = {}[{}];", names[slot], array, slot);
        }
      }
    }
  }

  void body(const Stage& s, u32 slot, const std::string& r, i64 step) {
    insts_.set_slot(slot);
    out_.indent();
    each_tile([&] {
      out_.raw_line("{");
      out_.indent();
      for (const KernelInst& i : s.insts) insts_.print(i);
      out_.dedent();
      out_.raw_line("}");
    });
    if (takes_partials(s)) out_.line("{} = true;", started());
    out_.line("{} += {};", r, step);
    out_.dedent();
  }

  /// The results of a loop's accumulators get the names of the reduction's values.
  void finish(const Stage& s) {
    std::vector<std::pair<Val, std::string>> results;
    const bool is_total = has_totals(s);
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate) continue;
      const std::vector<std::string> folded = is_total ? std::vector<std::string>() : fold(s, i);
      const std::vector<Val>& values = finish_of(i.accumulator).results;
      for (std::size_t v = 0; v < values.size(); ++v)
        results.push_back({values[v], is_total ? insts_.total_name(i.accumulator, v) : folded[v]});
    }
    if (lanes_in_loop(s)) index_.set_lanes(s.loop.back().var, false);
    for (const auto& [value, text] : results) insts_.define(value, text);
  }

  bool surely_runs(const Stage& s) const {
    return std::all_of(s.loop.begin(), s.loop.end(),
                       [&](const Axis& a) { return syms_.range(a.extent).lo > 0; });
  }

  void fold_block(const Stage& s) {
    each_tile([&] { fold_slots(s); });
    out_.line("{} = true;", started());
  }

  /// Folds the slots into the totals; the slots start anew.
  void fold_slots(const Stage& s) {
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate) continue;
      const ops::Combine& c = kernel_.combines[i.inst.combine];
      std::vector<std::string> totals;
      for (std::size_t v = 0; v < c.values.size(); ++v)
        totals.push_back(insts_.total_name(i.accumulator, v));
      out_.raw_line("{");
      out_.indent();
      const std::vector<std::string> folded = fold(s, i);
      out_.line("if ({}) {{", started());
      out_.indent();
      insts_.combine(c, totals, folded, index_.lanes_on() && !lanes_in_loop(s));
      out_.dedent();
      out_.raw_line("} else {");
      out_.indent();
      for (std::size_t v = 0; v < totals.size(); ++v) out_.line("{} = {};", totals[v], folded[v]);
      out_.dedent();
      out_.raw_line("}");
      for (u32 slot = 0; slot < i.inst.tree.accs; ++slot)
        for (std::size_t v = 0; v < c.values.size(); ++v)
          out_.line("{} = {};", insts_.slot_name(i.accumulator, slot, v),
                    insts_.constant(c.identity[v], index_.lanes_on()));
      out_.dedent();
      out_.raw_line("}");
    }
  }

  /// Slots in order, then lanes by halves; gives the names of what is left.
  std::vector<std::string> fold(const Stage& s, const KernelInst& i) {
    const ops::Combine& c = kernel_.combines[i.inst.combine];
    const auto names = [&](u32 slot) {
      std::vector<std::string> out;
      for (std::size_t v = 0; v < c.values.size(); ++v)
        out.push_back(insts_.slot_name(i.accumulator, slot, v));
      return out;
    };
    for (u32 slot = 1; slot < i.inst.tree.accs; ++slot)
      insts_.combine(c, names(0), names(slot), index_.lanes_on());
    return lanes_in_loop(s) ? fold_lanes(c, i) : names(0);
  }

  const Inst& finish_of(u32 accumulator) const {
    for (const Stage& s : kernel_.stages)
      for (const KernelInst& i : s.insts)
        if (i.kind == KernelOp::Finish && i.accumulator == accumulator) return i.inst;
    COIL_UNREACHABLE();
  }

  std::vector<std::string> fold_lanes(const ops::Combine& c, const KernelInst& i) {
    std::vector<std::string> left, right, result;
    for (std::size_t v = 0; v < c.values.size(); ++v) {
      const std::string array = str("l{}_{}", i.accumulator, v);
      out_.line("{} {}[16];", value_type(c.values[v]), array);
      out_.line("to_array({}, {});", insts_.slot_name(i.accumulator, 0, v), array);
      left.push_back(array + "[l]");
      right.push_back(array + "[l + half]");
      result.push_back(array + "[0]");
    }
    out_.raw_line("for (int half = 8; half > 0; half /= 2) {");
    out_.indent();
    out_.raw_line("for (int l = 0; l < half; ++l) {");
    out_.indent();
    insts_.combine(c, left, right, false);
    out_.dedent();
    out_.raw_line("}");
    out_.dedent();
    out_.raw_line("}");
    return result;
  }

  const Kernel& kernel_;
  sym::Arena& syms_;
  std::string function_;
  TextWriter out_;
  IndexPrinter index_;
  InstPrinter insts_;
  u32 loops_ = 0;  // stages with a loop so far
  i64 abreast_ = 1;
};

}  // namespace

std::string print_kernel(const Kernel& kernel, const std::string& function_name) {
  return KernelPrinter(kernel, function_name).run();
}

}  // namespace coil::cpp
