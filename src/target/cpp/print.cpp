// The skeleton of a kernel's function: arguments, units of work, lanes and their tail, loops of stages.

#include "target/cpp/print.h"

#include <algorithm>
#include <functional>

#include "target/cpp/print_inst.h"
#include "target/cpp/spelling.h"

namespace coil::cpp {
namespace {

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::string function)
      : kernel_(kernel), syms_(*kernel.syms), function_(std::move(function)), index_(syms_),
        insts_(kernel, index_, out_) {}

  std::string run() {
    out_.line("extern \"C\" void {}(void* const* buffers, const i64* symbols, const f64* scalars, i64 lo, "
              "i64 hi, Fault* fault) {{", function_);
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
        out_.line("alignas(64) {} buf{}[{}];", type, i, elements_of(b));
      } else {
        out_.line("{0}{1}* const buf{2} = ({0}{1}*)buffers[{3}];", b.written ? "" : "const ", type, i, argument++);
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
    sym::Expr lane_extent;
    if (!kernel_.grid.empty()) out_.raw_line("i64 rest = unit;");
    std::string chunk = "unit";
    for (std::size_t a = 0; a < kernel_.grid.size(); ++a) {
      index_.name(kernel_.grid[a].var, str("p{}", a));
      if (kernel_.grid[a].var == kernel_.lane_axis()) lane_extent = kernel_.grid[a].extent;
    }
    if (lanes) {
      out_.line("const i64 chunks = ({} + {}) / {};", index_.scalar(lane_extent), kernel_.mapping.chunk - 1,
                kernel_.mapping.chunk);
      out_.raw_line("const i64 chunk = rest % chunks;");
      out_.raw_line("rest /= chunks;");
    }
    for (std::size_t a = kernel_.grid.size(); a-- > 0;) {
      if (kernel_.grid[a].var == kernel_.lane_axis()) continue;
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
    out_.line("const i64 end = min({} + i64({}), i64({}));", p, kernel_.mapping.chunk, index_.scalar(extent));
    out_.line("for (; {0} + 16 <= end; {0} += 16) {{", p);
    out_.indent();
    stages();
    out_.dedent();
    out_.raw_line("}");
    out_.line("if ({} < end) {{", p);
    out_.indent();
    out_.line("const i64 count = end - {};", p);
    insts_.set_tail("count");
    stages();
    insts_.set_tail("");
    out_.dedent();
    out_.raw_line("}");
    index_.set_lanes(axis, false);
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
    if (s.loop.empty()) {
      for (const KernelInst& i : s.insts) insts_.print(i);
      return;
    }
    ++loops_;
    for (std::size_t a = 0; a < s.loop.size(); ++a) index_.name(s.loop[a].var, loop_variable(a));
    const bool lanes_in_loop = s.loop.back().var == kernel_.lane_axis();
    insts_.set_lanes_in_loop(lanes_in_loop);
    if (lanes_in_loop) index_.set_lanes(s.loop.back().var, true);
    std::vector<Axis> axes = kernel_.grid;
    axes.insert(axes.end(), s.loop.begin(), s.loop.end());
    insts_.set_positions(row_major(s.loop), row_major(axes));
    declare_carried(s);
    for (std::size_t a = 0; a + 1 < s.loop.size(); ++a) {
      out_.line("for (i64 {0} = 0; {0} < {1}; ++{0}) {{", loop_variable(a), index_.scalar(s.loop[a].extent));
      out_.indent();
    }
    innermost(s, lanes_in_loop);
    for (std::size_t a = 0; a + 1 < s.loop.size(); ++a) {
      out_.dedent();
      out_.raw_line("}");
    }
    fold(s, lanes_in_loop);
    insts_.set_lanes_in_loop(false);
    insts_.set_positions(sym::Expr(), row_major(kernel_.grid));
  }

  /// `r0`, and `r0_2` in the second loop: all loops of a kernel share one scope.
  std::string loop_variable(std::size_t axis) const {
    return loops_ == 1 ? str("r{}", axis) : str("r{}_{}", axis, loops_);
  }

  u32 slots_of(const Stage& s) const {
    u32 slots = 1;
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Accumulate) slots = std::max<u32>(slots, i.inst.tree.accs);
    return slots;
  }

  void declare_carried(const Stage& s) {
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate && i.kind != KernelOp::Scan) continue;
      const ops::Combine& c = kernel_.combines[i.inst.combine];
      const u32 slots = i.kind == KernelOp::Scan ? 1 : i.inst.tree.accs;
      for (u32 slot = 0; slot < slots; ++slot)
        for (std::size_t v = 0; v < c.values.size(); ++v) {
          const std::string name = i.kind == KernelOp::Scan ? InstPrinter::scan_name(i.inst, v)
                                                            : InstPrinter::slot_name(i.accumulator, slot, v);
          const bool lanes = index_.lanes_on();
          out_.line("{} {} = {};", insts_.type(c.values[v], lanes), name, insts_.constant(c.identity[v], lanes));
        }
    }
  }

  /// The last axis of a loop: whole rounds over all slots, then what is left, slot by slot.
  void innermost(const Stage& s, bool lanes_in_loop) {
    const std::string r = loop_variable(s.loop.size() - 1);
    const std::string extent = index_.scalar(s.loop.back().extent);
    const u32 slots = slots_of(s);
    const i64 step = lanes_in_loop ? 16 : 1;
    out_.line("i64 {} = 0;", r);
    if (slots > 1 || step > 1) {
      out_.line("for (; {} + {} <= {};) {{", r, step * slots, extent);
      out_.indent();
      for (u32 slot = 0; slot < slots; ++slot) block(s, slot, r, step);
      out_.dedent();
      out_.raw_line("}");
    } else {
      out_.line("for (; {} < {};) {{", r, extent);
      out_.indent();
      block(s, 0, r, step);
      out_.dedent();
      out_.raw_line("}");
      return;
    }
    const u32 left = lanes_in_loop ? slots : slots - 1;
    for (u32 slot = 0; slot < left; ++slot) {
      out_.line("if ({} < {}) {{", r, extent);
      out_.indent();
      if (lanes_in_loop) {
        out_.line("const i64 count = min(i64({} - {}), i64(16));", extent, r);
        insts_.set_tail("count");
      }
      block(s, slot, r, step);
      if (lanes_in_loop) insts_.set_tail("");
      out_.dedent();
      out_.raw_line("}");
    }
  }

  void block(const Stage& s, u32 slot, const std::string& r, i64 step) {
    insts_.set_slot(slot);
    out_.raw_line("{");
    out_.indent();
    for (const KernelInst& i : s.insts) insts_.print(i);
    out_.dedent();
    out_.raw_line("}");
    out_.line("{} += {};", r, step);
  }

  /// Slots in order, then lanes by halves; the results get the names of the reduction's values.
  void fold(const Stage& s, bool lanes_in_loop) {
    std::vector<std::pair<Val, std::string>> results_of_all;
    for (const KernelInst& i : s.insts) {
      if (i.kind != KernelOp::Accumulate) continue;
      const ops::Combine& c = kernel_.combines[i.inst.combine];
      const auto names = [&](u32 slot) {
        std::vector<std::string> out;
        for (std::size_t v = 0; v < c.values.size(); ++v)
          out.push_back(InstPrinter::slot_name(i.accumulator, slot, v));
        return out;
      };
      for (u32 slot = 1; slot < i.inst.tree.accs; ++slot) insts_.combine(c, names(0), names(slot), index_.lanes_on());
      std::vector<std::string> folded = names(0);
      if (lanes_in_loop) folded = fold_lanes(c, i);
      const std::vector<Val>& results = finish_of(i.accumulator).results;
      for (std::size_t v = 0; v < results.size(); ++v) results_of_all.push_back({results[v], folded[v]});
    }
    if (lanes_in_loop) index_.set_lanes(s.loop.back().var, false);
    for (const auto& [value, text] : results_of_all) insts_.define(value, text);
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
      out_.line("to_array({}, {});", InstPrinter::slot_name(i.accumulator, 0, v), array);
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
};

}  // namespace

std::string print_kernel(const Kernel& kernel, const std::string& function_name) {
  return KernelPrinter(kernel, function_name).run();
}

}  // namespace coil::cpp
