// The text form of level 3: printing.

#include "base/text.h"
#include "kernel/kernel.h"
#include "loop/text_marks.h"
#include "loop/text_region.h"

namespace coil {
namespace {

class KernelTextPrinter {
 public:
  explicit KernelTextPrinter(const Kernel& kernel) : kernel_(kernel), syms_(*kernel.syms) {}

  std::string run() {
    for (const std::string& f : kernel_.from) out_.line("# {}", f);
    head();
    out_.indent();
    for (sym::Expr s : kernel_.symbols) symbol(s);
    if (!kernel_.grid.empty()) out_.line("grid {}", axes(kernel_.grid));
    for (const Stage& s : kernel_.stages) stage(s);
    mapping();
    out_.dedent();
    out_.raw_line("}");
    return out_.text();
  }

 private:
  std::string expr(sym::Expr e) const { return syms_.text(e); }
  std::string list(std::span<const sym::Expr> items) const {
    return "[" + join(items, ", ", [&](sym::Expr e) { return expr(e); }) + "]";
  }
  static std::string val(Val v) { return str("v{}", v.index); }
  static std::string vals(std::span<const Val> items) { return join(items, ", ", val); }
  std::string axes(const std::vector<Axis>& items) const {
    return join(items, ", ",
                [&](const Axis& a) { return str("{} < {}", expr(a.var), expr(a.extent)); });
  }

  void head() {
    out_.line("kernel {} (", kernel_.name);
    out_.indent();
    out_.indent();
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const KernelBuffer& b = kernel_.buffers[i];
      std::string text = str("%{}: {}{}", b.name, name(b.dtype), list(b.shape));
      text += layout(b);
      if (b.layout.offset.valid() && !syms_.is_const(b.layout.offset, 0))
        text += " offset " + expr(b.layout.offset);
      if (b.written) text += " written";
      if (b.kept) text += " kept";
      out_.raw_line(text + (i + 1 < kernel_.buffers.size() ? "," : ") {"));
    }
    if (kernel_.buffers.empty()) out_.raw_line(") {");
    out_.dedent();
    out_.dedent();
  }

  std::string layout(const KernelBuffer& b) const {
    if (!loop_text::is_strided(b.layout, b.shape.size())) {
      const auto entry = [&](const LayoutEntry& e) {
        const std::string factor = e.factor == 1 ? "" : str(" // {}", e.factor);
        return str("d{}{}: {}", e.dim, factor, expr(e.stride));
      };
      return " layout [" + join(b.layout.entries, ", ", entry) + "]";
    }
    std::vector<sym::Expr> strides;
    for (const LayoutEntry& e : b.layout.entries) strides.push_back(e.stride);
    return strides == contiguous_strides(syms_, b.shape) ? "" : " strides " + list(strides);
  }

  void symbol(sym::Expr s) {
    const sym::Variable& v = syms_.var(s);
    const char* role = v.role == sym::Role::Value  ? "value"
                       : v.role == sym::Role::Step ? "step"
                                                   : "size";
    const std::string lo = v.range.lo == sym::kMinInt ? "" : str("{}", v.range.lo);
    const std::string hi = v.range.hi == sym::kMaxInt ? "" : str("{}", v.range.hi);
    out_.line("{} {} in {}..{}", role, v.name, lo, hi);
  }

  void stage(const Stage& s) {
    // A loop goes `over` what it reduces and `along` what it scans.
    const bool reduces = !s.loop.empty() && syms_.var(s.loop[0].var).role == sym::Role::Reduce;
    const std::string head = s.closing ? "closing stage" : "stage";
    out_.raw_line(s.loop.empty()
                      ? head + " {"
                      : str("{} {} {} {{", head, reduces ? "over" : "along", axes(s.loop)));
    out_.indent();
    for (const KernelInst& i : s.insts) inst(i);
    out_.dedent();
    out_.raw_line("}");
  }

  std::string element(const KernelInst& k) const {
    return str("%{}{}", kernel_.buffers[k.buffer].name, list(k.inst.index));
  }
  std::string guard(const Inst& i) const {
    return i.mask.valid() ? str(" if {}", val(i.mask)) : std::string();
  }
  /// `v1, v2 = scan.argmax v0`; a combine without a name brings its region.
  void combining(const std::string& left, std::string_view word, const Inst& i,
                 const std::string& tree) {
    const ops::Combine& c = kernel_.combines[i.combine];
    const std::string dot = c.name.empty() ? "" : "." + c.name;
    const std::string head = str("{} = {}{} {}{}", left, word, dot, vals(i.operands), tree);
    if (c.name.empty()) return loop_text::print_region(out_, head, c);
    out_.raw_line(head);
  }
  static std::string tree(const ops::Tree& t) {
    return str(" tree {}x{}{}", t.lanes, t.accs,
               t.block > 0 ? str(" block {}", t.block) : std::string());
  }

  void inst(const KernelInst& k) {
    const Inst& i = k.inst;
    switch (k.kind) {
      case KernelOp::Load: {
        const std::string other =
            i.mask.valid() ? " else " + loop_text::scalar_text(i.other) : std::string();
        return out_.line("{} = load {} {}{}{}", val(i.results[0]), name(i.dtype), element(k),
                         guard(i), other);
      }
      case KernelOp::Store: {
        const std::string how(loop_text::combine_name(i.store_combine));
        return out_.line("store{}{} {}, {}{}", how.empty() ? "" : ".", how, element(k),
                         val(i.operands[0]), guard(i));
      }
      case KernelOp::Const:
        return out_.line("{} = const {} {}", val(i.results[0]), name(i.dtype),
                         loop_text::scalar_text(i.constant));
      case KernelOp::Value: return out_.line("{} = value {}", val(i.results[0]), expr(i.expr));
      case KernelOp::Scalar:
        return out_.line("{} = scalar {} {}", val(i.results[0]), name(i.dtype), i.scalar);
      case KernelOp::Index:
        return out_.line("{} = index {} in 0..{} {}{}", expr(i.expr), val(i.operands[0]),
                         expr(syms_.sub(i.extent, syms_.constant(1))),
                         loop_text::policy_name(i.policy), guard(i));
      case KernelOp::Op: {
        const bool given = ops::info(i.op).result == ops::ResultRule::Given;
        return out_.line("{} = {}{} {}", val(i.results[0]), ops::info(i.op).name,
                         given ? " " + std::string(name(i.dtype)) : std::string(),
                         vals(i.operands));
      }
      case KernelOp::Accumulate:
        return combining(str("a{}", k.accumulator), "accumulate", i, tree(i.tree));
      case KernelOp::Finish: return out_.line("{} = finish a{}", vals(i.results), k.accumulator);
      case KernelOp::Scan: return combining(vals(i.results), "scan", i, "");
    }
  }

  void mapping() {
    const Mapping& m = kernel_.mapping;
    if (!m.units.valid()) return;
    std::string text = "mapping";
    for (const TileDim& t : m.tile) text += str(" tile {} x {}", expr(t.axis), t.extent);
    if (m.abreast > 1) text += str(" abreast {}", m.abreast);
    if (m.chunk > 0) text += str(" chunk {}", m.chunk);
    text += str(" units {} grain {}", expr(m.units), m.grain);
    if (m.serial) text += " serial";
    for (u32 stage : m.rolled) text += str(" rolled {}", stage);
    out_.raw_line(text);
    for (const std::string& r : m.reasons) out_.line("  # {}", r);
  }

  const Kernel& kernel_;
  sym::Arena& syms_;
  TextWriter out_;
};

}  // namespace

std::string to_text(const Kernel& kernel) { return KernelTextPrinter(kernel).run(); }

}  // namespace coil
