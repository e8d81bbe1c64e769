// The text form of level 1: printing.

#include <algorithm>

#include "base/text.h"
#include "graph/text_names.h"
#include "loop/text_marks.h"
#include "loop/text_region.h"
#include "ops/scalar.h"

namespace coil {
namespace {

using namespace loop_text;

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

class Printer {
 public:
  Printer(const LoopProgram& program, TextWriter& out)
      : program_(program), syms_(*program.syms), out_(out), open_(open_by_default(program)) {}

  void print() {
    out_.line("program {} {{", program_.name);
    out_.indent();
    print_content();
    out_.dedent();
    out_.line("}}");
  }

 private:
  void print_content();
  void print_sizes();
  void print_inputs();
  void print_buffers();
  std::string buffer_type(BufferId id, bool marked) const;
  std::string constant_source(const Buffer& buffer) const;
  void print_outputs();
  std::string output_window(const ProgramOutput& output) const;
  void print_output(const ProgramOutput& output);
  std::string constant_text(const Arg& arg) const;
  void print_body(const Body& body);
  void print_inst(const Body& body, const Inst& inst);
  void print_combining(const Body& body, const Inst& inst);
  void print_structured(const Structured& node);
  std::string structured_attrs(const Structured& node) const;
  void print_access(std::string_view word, const Access& access);
  void print_control(const Control& control);

  std::string expr(sym::Expr e) const { return syms_.text(e); }
  std::string list(std::span<const sym::Expr> items) const {
    return "[" + join(items, ", ", [&](sym::Expr e) { return expr(e); }) + "]";
  }
  std::string buffer(BufferId id) const { return "%" + program_.buffers[id].name; }
  std::string buffers(std::span<const BufferId> ids) const {
    return join(ids, ", ", [&](BufferId id) { return buffer(id); });
  }
  /// Facts about variables of one body have no place in a declaration.
  bool uses_only_sizes(sym::Expr e) const {
    std::vector<sym::Expr> variables;
    syms_.variables(e, variables);
    return std::ranges::all_of(variables, [&](sym::Expr v) {
      return std::ranges::find(program_.sizes, v, &ProgramSize::var) != program_.sizes.end();
    });
  }
  static std::string val(Val v) { return str("v{}", v.index); }
  static std::string vals(std::span<const Val> items) { return join(items, ", ", val); }
  std::string element(const Inst& inst) const { return buffer(inst.buffer) + list(inst.index); }
  /// " from %a, %b @ model.py:12 in encoder".
  std::string origin(std::span<const ValueId> from, std::span<const LocId> locs) const;

  const LoopProgram& program_;
  sym::Arena& syms_;
  TextWriter& out_;
  Side<BufferId, bool> open_;  // by default
};

std::string Printer::origin(std::span<const ValueId> from, std::span<const LocId> locs) const {
  std::string text;
  for (ValueId v : from) {
    const std::string& name = program_.value_names.get(v);
    text += (text.empty() ? " from %" : ", %") + (is_name(name) ? name : str("_{}", v.index));
  }
  for (LocId id : locs) {
    const Loc& loc = program_.locs[id];
    text += " @ " + (is_place(loc.frame) ? loc.frame : quoted(loc.frame));
    if (!loc.module.empty())
      text += " in " + (is_word(loc.module) ? loc.module : quoted(loc.module));
  }
  return text;
}

void Printer::print_content() {
  print_sizes();
  print_inputs();
  print_buffers();
  for (const Step& step : program_.order) {
    if (const auto* body = std::get_if<BodyId>(&step)) print_body(program_.bodies[*body]);
    if (const auto* node = std::get_if<StructuredId>(&step))
      print_structured(program_.structured[*node]);
    if (const auto* control = std::get_if<ControlId>(&step))
      print_control(program_.controls[*control]);
  }
  print_outputs();
  for (const ProgramState& state : program_.states)
    out_.line("commit {} = {}", buffer(state.state), buffer(state.updated));
}

void Printer::print_sizes() {
  for (const ProgramSize& size : program_.sizes) {
    const sym::Variable& var = syms_.var(size.var);
    std::string text = "size " + var.name;
    if (var.range != sym::Range{}) {
      const std::string lo = var.range.lo == sym::kMinInt ? "" : str("{}", var.range.lo);
      const std::string hi = var.range.hi == sym::kMaxInt ? "" : str("{}", var.range.hi);
      text += str(" in {}..{}", lo, hi);
    }
    if (size.hint) text += str(" hint {}", *size.hint);
    if (size.from.valid()) text += " from " + buffer(size.from);
    out_.raw_line(text);
  }
  for (const std::string& name : program_.scalars) out_.line("scalar %{}", name);
  for (sym::Expr fact : program_.facts.conditions())
    if (uses_only_sizes(fact)) out_.line("fact {}", expr(fact));
  for (const Check& check : program_.checks)
    out_.line("check {} {}", expr(check.condition), quoted(check.text));
}

void Printer::print_inputs() {
  if (inputs_are_plain(program_)) return;
  for (const ProgramInput& input : program_.inputs) {
    if (input.buffer.valid()) {
      out_.line("input {} {}{}", quoted(input.name), buffer(input.buffer),
                input.is_complex ? " complex" : "");
    } else if (input.is_fixed) {
      out_.line("input {} fixed {}", quoted(input.name), constant_text(input.fixed));
    } else if (input.is_float) {
      out_.line("input {} scalar %{}", quoted(input.name), program_.scalars.at(input.scalar));
    } else {
      out_.line("input {} int {}", quoted(input.name), expr(input.size));
    }
  }
}

void Printer::print_buffers() {
  const bool marked_outputs = outputs_are_marked(program_);
  Side<BufferId, bool> marked;
  if (marked_outputs)
    for (const ProgramOutput& output : program_.outputs) marked[output.buffer] = true;
  std::string names;
  std::string pending;
  const auto flush = [&] {
    if (!names.empty()) out_.line("buffer {} : {}", names, pending);
    names.clear();
  };
  for (BufferId id : program_.buffers.ids()) {
    const std::string type = buffer_type(id, marked.get(id));
    if (type != pending || type.find(" = ") != type.npos) flush();
    names += (names.empty() ? "%" : ", %") + program_.buffers[id].name;
    pending = type;
  }
  flush();
}

std::string Printer::buffer_type(BufferId id, bool marked) const {
  const Buffer& b = program_.buffers[id];
  std::string text = std::string(name(b.dtype)) + list(b.shape);
  if (!is_contiguous(syms_, b)) {
    if (is_strided(b.layout, b.shape.size())) {
      text += " strides [" +
              join(b.layout.entries, ", ", [&](const LayoutEntry& e) { return expr(e.stride); }) +
              "]";
    } else {
      const auto entry = [&](const LayoutEntry& e) {
        const std::string factor = e.factor == 1 ? "" : str(" // {}", e.factor);
        return str("d{}{}: {}", e.dim, factor, expr(e.stride));
      };
      text += " layout [" + join(b.layout.entries, ", ", entry) + "]";
    }
    if (b.layout.offset.valid() && !syms_.is_const(b.layout.offset, 0))
      text += " offset " + expr(b.layout.offset);
  }
  if (b.layout.open != open_.get(id)) text += b.layout.open ? " open" : " fixed";
  if (b.starts.valid()) text += " starts " + buffer(b.starts);
  switch (b.kind) {
    case BufferKind::Input: return text + " input";
    case BufferKind::Constant: return text + " const" + constant_source(b);
    case BufferKind::State: return text + " state" + constant_source(b);
    case BufferKind::Temp: return text + (marked ? " output" : "");
  }
  COIL_UNREACHABLE();
}

std::string Printer::constant_source(const Buffer& b) const {
  if (b.source >= program_.constants.size()) return "";
  const Constant& constant = program_.constants[b.source];
  const Storage& storage = program_.storages.at(constant.storage);
  std::string text = constant.fqn.empty() ? "" : " " + quoted(constant.fqn);
  const std::string at = constant.offset == 0 ? "" : str(" at {}", constant.offset);
  switch (storage.source) {
    case StorageSource::Absent: return text;
    case StorageSource::Seed: return text + str(" = seed {}", static_cast<i64>(storage.seed)) + at;
    case StorageSource::File:
      return text + " = file " + quoted(storage.file) + " " + quoted(storage.key) + at;
    case StorageSource::Inline: break;
  }
  const i64 count = storage.bytes / size_of(b.dtype);
  text += " = {";
  for (i64 i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + scalar_text(ops::read_element(b.dtype, storage.data, i));
  return text + "}" + at;
}

void Printer::print_outputs() {
  if (outputs_are_marked(program_)) return;
  for (const ProgramOutput& output : program_.outputs) print_output(output);
}

std::string Printer::output_window(const ProgramOutput& output) const {
  std::string text =
      str("{} : {}{}", buffer(output.buffer), name(output.dtype), list(output.shape));
  if (output.strides != contiguous_strides(syms_, output.shape))
    text += " strides " + list(output.strides);
  if (output.offset.valid() && !syms_.is_const(output.offset, 0))
    text += " offset " + expr(output.offset);
  return text;
}

void Printer::print_output(const ProgramOutput& output) {
  switch (output.kind) {
    case OutputKind::Value: return out_.line("output {}", output_window(output));
    case OutputKind::AliasOfInput:
      return out_.line("output alias of input {} {}", output.target, output_window(output));
    case OutputKind::AliasOfOutput:
      return out_.line("output alias of output {} {}", output.target, output_window(output));
    case OutputKind::MutatedInput:
      return out_.line("output into input {} {}", output.target, output_window(output));
    case OutputKind::None: return out_.line("output none");
    case OutputKind::Int:
      if (output.expr.valid()) return out_.line("output value {}", expr(output.expr));
      return out_.line("output value {}", buffer(output.buffer));
    case OutputKind::Constant: break;
  }
  out_.line("output constant {}", constant_text(output.constant));
}

/// "int 3", "float 0.5", "bool true", "string \"x\"" or "none".
std::string Printer::constant_text(const Arg& arg) const {
  return std::visit(Overloaded{[&](sym::Expr e) { return "int " + expr(e); },
                               [&](double v) { return "float " + float_text(v); },
                               [&](bool v) { return std::string(v ? "bool true" : "bool false"); },
                               [&](const std::string& v) { return "string " + quoted(v); },
                               [&](const auto&) { return std::string("none"); }},
                    arg);
}

void Printer::print_body(const Body& body) {
  out_.line("body {}{}{} {{", body.name, body.init ? " init" : "", origin(body.from, body.locs));
  out_.indent();
  std::string dims;
  DimKind last = DimKind::Parallel;
  for (const Dim& dim : body.dims) {
    const bool same = !dims.empty() && dim.kind == last;
    if (dim.kind != DimKind::Parallel && !same) {
      dims += dim.kind == DimKind::Reduce ? " | reduce " : " | scan ";
    } else {
      dims += same ? ", " : dim.kind == DimKind::Parallel && !dims.empty() ? " | parallel " : " ";
    }
    last = dim.kind;
    dims += syms_.var(dim.var).name + " < " + expr(dim.extent);
  }
  if (!dims.empty()) out_.line("dims{}", dims);
  for (const Inst& inst : body.insts) print_inst(body, inst);
  out_.dedent();
  out_.line("}}");
}

void Printer::print_inst(const Body& body, const Inst& inst) {
  const std::string result = inst.results.empty() ? "" : vals(inst.results) + " = ";
  const std::string mask = inst.mask.valid() ? " if " + val(inst.mask) : "";
  switch (inst.kind) {
    case InstKind::Load: {
      const std::string other = inst.mask.valid() ? " else " + scalar_text(inst.other) : "";
      return out_.line("{}load {} {}{}{}", result, name(inst.dtype), element(inst), mask, other);
    }
    case InstKind::Store: {
      const std::string_view combine = combine_name(inst.store_combine);
      return out_.line("store{}{} {}, {}{}", combine.empty() ? "" : ".", combine, element(inst),
                       vals(inst.operands), mask);
    }
    case InstKind::Const:
      return out_.line("{}const {} {}", result, name(inst.dtype), scalar_text(inst.constant));
    case InstKind::Value: return out_.line("{}value {}", result, expr(inst.expr));
    case InstKind::Scalar:
      return out_.line("{}scalar {} %{}", result, name(inst.dtype),
                       program_.scalars.at(inst.scalar));
    case InstKind::Index:
      return out_.line("{} = index {} in 0..{} {}", syms_.var(inst.expr).name, vals(inst.operands),
                       expr(syms_.sub(inst.extent, syms_.constant(1))), policy_name(inst.policy));
    case InstKind::Op: {
      const ops::ScalarInfo& row = ops::info(inst.op);
      const std::string given =
          row.result == ops::ResultRule::Given ? " " + std::string(name(inst.dtype)) : "";
      return out_.line("{}{}{} {}", result, row.name, given, vals(inst.operands));
    }
    case InstKind::Reduce:
    case InstKind::Scan: return print_combining(body, inst);
  }
}

void Printer::print_combining(const Body& body, const Inst& inst) {
  const bool is_reduce = inst.kind == InstKind::Reduce;
  const ops::Combine& combine = body.combines.at(inst.combine);
  std::string over;
  for (const Dim& dim : body.dims)
    if (dim.kind == (is_reduce ? DimKind::Reduce : DimKind::Scan))
      over += (over.empty() ? " over " : ", ") + syms_.var(dim.var).name;
  std::string tree;
  if (is_reduce) tree = str(" tree {}x{}", inst.tree.lanes, inst.tree.accs);
  if (is_reduce && inst.tree.block != 0) tree += str(" block {}", inst.tree.block);
  const std::string head =
      str("{} = {}{}{} {}{}{}", vals(inst.results), is_reduce ? "reduce" : "scan",
          combine.name.empty() ? "" : ".", combine.name, vals(inst.operands), over, tree);
  if (!combine.name.empty()) return out_.raw_line(head);
  print_region(out_, head, combine);
}

std::string Printer::structured_attrs(const Structured& node) const {
  const auto ints = [](const std::vector<i64>& v) {
    return "[" + join(v, ", ", [](i64 i) { return str("{}", i); }) + "]";
  };
  const auto conv = [&](const Conv& c) {
    std::string text =
        str(" stride {} padding {} dilation {}", ints(c.stride), ints(c.padding), ints(c.dilation));
    if (c.transposed) text += " transposed output_padding " + ints(c.output_padding);
    if (c.groups != 1) text += str(" groups {}", c.groups);
    return "conv " + node.name + text;
  };
  const auto attention = [&](const Attention& a) {
    return str("attention {} scale {}{}{}{}", node.name, float_text(a.scale),
               a.causal ? " causal" : "", a.has_mask ? " mask" : "", a.nan_rows ? " nan_rows" : "");
  };
  const auto sort = [&](const Sort& s) {
    return str("{} {}{}", s.is_topk ? "topk" : "sort", node.name,
               s.descending ? " descending" : "");
  };
  const auto factor = [&](const Factor& f) {
    std::string text = str("factor {} {}", node.name, name(f.kind));
    for (const FactorFlagName& row : kFactorFlags)
      if (f.flags & row.flag) text += " " + std::string(row.name);
    return text;
  };
  const auto fft = [&](const Fft& f) {
    constexpr std::string_view kKinds[] = {"c2c", "r2c", "c2r"};
    constexpr std::string_view kScales[] = {"", " by_root_n", " by_n"};
    return str("fft {} {} dim {} {}{}", node.name, kKinds[static_cast<std::size_t>(f.kind)], f.dim,
               f.forward ? "forward" : "backward", kScales[static_cast<std::size_t>(f.scale)]);
  };
  return std::visit(Overloaded{[&](const Gemm&) { return "gemm " + node.name; }, conv, attention,
                               sort, factor, fft},
                    node.attrs);
}

void Printer::print_structured(const Structured& node) {
  out_.line("{}{}{} {{", structured_attrs(node), node.init ? " init" : "",
            origin(node.from, node.locs));
  out_.indent();
  for (const Access& access : node.inputs) print_access("in", access);
  for (const Access& access : node.outputs) print_access("out", access);
  out_.dedent();
  out_.line("}}");
}

void Printer::print_access(std::string_view word, const Access& access) {
  std::string over;
  for (std::size_t d = 0; d < access.vars.size(); ++d)
    over += (over.empty() ? " over " : ", ") + syms_.var(access.vars[d]).name + " < " +
            expr(access.extents[d]);
  out_.line("{} {}{} at {}", word, buffer(access.buffer), over, list(access.index));
}

void Printer::print_control(const Control& control) {
  const auto clause = [&](std::string_view word, std::span<const BufferId> ids) {
    return ids.empty() ? std::string() : str(" {} {}", word, buffers(ids));
  };
  const auto head = [&](const auto& kind) {
    using K = std::decay_t<decltype(kind)>;
    if constexpr (std::is_same_v<K, If>) {
      return str("if {} on {}", control.name,
                 kind.condition.valid() ? expr(kind.condition) : buffer(kind.predicate));
    } else if constexpr (std::is_same_v<K, For>) {
      return str("for {} {} < {}", control.name, syms_.var(kind.step).name, expr(kind.extent));
    } else {
      return "while " + control.name;
    }
  };
  out_.line("{}{}{}{}{} {{", std::visit(head, control.kind), clause("carry", control.carried),
            clause("with", control.operands), clause("gives", control.results),
            origin(control.from, control.locs));
  out_.indent();
  for (u32 i : control.programs) Printer(program_.subprograms.at(i), out_).print();
  out_.dedent();
  out_.line("}}");
}

}  // namespace

std::string to_text(const LoopProgram& program) {
  TextWriter out;
  Printer(program, out).print();
  return out.text();
}

}  // namespace coil
