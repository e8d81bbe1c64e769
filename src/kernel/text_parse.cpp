// The text form of level 3: parsing.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "kernel/kernel.h"
#include "loop/text_marks.h"
#include "loop/text_region.h"

namespace coil {
namespace {

using loop_text::parse_scalar;
using loop_text::result_dtype;

class KernelParser {
 public:
  KernelParser(std::string_view text, const std::string& file) : in_(text, file) {
    kernel_.syms = std::make_shared<sym::Arena>();
  }

  Result<Kernel> parse() {
    COIL_TRY(in_.expect("kernel"));
    kernel_.name = COIL_TRY(in_.word());
    COIL_TRY(parse_buffers());
    while (in_.at("size") || in_.at("value") || in_.at("step")) COIL_TRY(parse_symbol());
    COIL_TRY(resolve_buffers());
    if (in_.accept("grid")) COIL_TRY(parse_axes(kernel_.grid, sym::Role::Loop));
    while (in_.at("stage") || in_.at("closing")) COIL_TRY(parse_stage());
    if (in_.accept("mapping")) COIL_TRY(parse_mapping());
    COIL_TRY(in_.expect("}"));
    if (!in_.at_end()) return in_.error_here(str("expected the end, found {}", in_.found()));
    return std::move(kernel_);
  }

 private:
  sym::Arena& syms() { return *kernel_.syms; }

  Result<sym::Expr> parse_expr() {
    return syms().parse(in_, [&](std::string_view name) -> std::optional<sym::Expr> {
      if (const auto at = scope_.find(name); at != scope_.end()) return at->second;
      if (before_symbols_) return forward_symbol(name);
      return std::nullopt;
    });
  }
  Result<std::vector<sym::Expr>> parse_exprs() {
    std::vector<sym::Expr> items;
    COIL_TRY(in_.expect("["));
    while (!in_.accept("]")) {
      if (!items.empty()) COIL_TRY(in_.expect(","));
      items.push_back(COIL_TRY(parse_expr()));
    }
    return items;
  }
  Result<DType> parse_dtype() {
    const Error unknown = in_.error_here(str("expected a dtype, found {}", in_.found()));
    const std::optional<DType> dtype = dtype_from_name(COIL_TRY(in_.word()));
    if (!dtype) return unknown;
    return *dtype;
  }
  Result<Val> parse_val() {
    const Error unknown = in_.error_here(str("unknown value {}", in_.found()));
    const auto at = vals_.find(COIL_TRY(in_.word()));
    if (at == vals_.end()) return unknown;
    return at->second;
  }
  Result<std::vector<Val>> parse_vals() {
    std::vector<Val> items;
    do {
      items.push_back(COIL_TRY(parse_val()));
    } while (in_.accept(","));
    return items;
  }
  std::vector<DType> dtypes_of(std::span<const Val> vals) const {
    std::vector<DType> out;
    for (Val v : vals) out.push_back(kernel_.val_dtypes[v.index]);
    return out;
  }

  // ---- declarations ----

  /// Buffers come before the symbols that their shapes name: such a name stands for a variable of
  /// its own until its declaration is read.
  sym::Expr forward_symbol(std::string_view name) {
    const sym::Expr v = syms().variable({std::string(name), sym::Role::Size, {}, {}});
    scope_.emplace(std::string(name), v);
    return v;
  }

  Status parse_buffers() {
    COIL_TRY(in_.expect("("));
    while (!in_.accept(")")) {
      if (!kernel_.buffers.empty()) COIL_TRY(in_.expect(","));
      COIL_TRY(parse_buffer());
    }
    return in_.expect("{");
  }

  Status parse_buffer() {
    KernelBuffer b;
    b.name = COIL_TRY(in_.name());
    COIL_TRY(in_.expect(":"));
    b.dtype = COIL_TRY(parse_dtype());
    b.shape = COIL_TRY(parse_exprs());
    if (in_.accept("layout")) {
      COIL_TRY(parse_layout(b.layout));
    } else {
      std::vector<sym::Expr> strides;
      if (in_.accept("strides")) strides = COIL_TRY(parse_exprs());
      is_contiguous_.push_back(strides.empty());
      b.layout = strided_layout(strides, sym::Expr());
    }
    is_contiguous_.resize(kernel_.buffers.size() + 1, false);
    if (in_.accept("offset")) b.layout.offset = COIL_TRY(parse_expr());
    b.written = in_.accept("written");
    b.kept = in_.accept("kept");
    if (!buffers_.emplace(b.name, static_cast<u32>(kernel_.buffers.size())).second)
      return in_.error_here(str("buffer %{} is declared twice", b.name));
    kernel_.buffers.push_back(std::move(b));
    return Ok{};
  }

  Status parse_layout(Layout& layout) {
    COIL_TRY(in_.expect("["));
    while (!in_.accept("]")) {
      if (!layout.entries.empty()) COIL_TRY(in_.expect(","));
      const Error wrong = in_.error_here(str("expected a dim like d0, found {}", in_.found()));
      const std::string dim = COIL_TRY(in_.word());
      if (dim.size() < 2 || dim.size() > 3 || dim[0] != 'd' ||
          dim.find_first_not_of("0123456789", 1) != dim.npos)
        return wrong;
      LayoutEntry entry;
      entry.dim = static_cast<u32>(std::stoul(dim.substr(1)));
      if (in_.accept("/")) {
        COIL_TRY(in_.expect("/"));
        entry.factor = COIL_TRY(in_.integer());
      }
      COIL_TRY(in_.expect(":"));
      entry.stride = COIL_TRY(parse_expr());
      layout.entries.push_back(entry);
    }
    return Ok{};
  }

  Status parse_symbol() {
    const std::string word = COIL_TRY(in_.word());
    sym::Variable v;
    v.role = word == "value"  ? sym::Role::Value
             : word == "step" ? sym::Role::Step
                              : sym::Role::Size;
    v.name = COIL_TRY(in_.word());
    if (std::ranges::any_of(kernel_.symbols,
                            [&](sym::Expr s) { return syms().var(s).name == v.name; }))
      return in_.error_here(str("{} {} is declared twice", word, v.name));
    COIL_TRY(in_.expect("in"));
    if (!in_.at(".")) v.range.lo = COIL_TRY(in_.integer());
    COIL_TRY(in_.expect("."));
    COIL_TRY(in_.expect("."));
    if (in_.peek().kind == TokenKind::Integer || in_.at("-")) v.range.hi = COIL_TRY(in_.integer());
    if (v.range.lo > v.range.hi) return in_.error_here(str("the range of {} is empty", v.name));
    const sym::Expr declared = syms().variable(v);
    if (const auto at = scope_.find(v.name); at != scope_.end())
      forward_.push_back({at->second, declared});
    scope_[v.name] = declared;
    kernel_.symbols.push_back(declared);
    return Ok{};
  }

  /// Puts declared symbols where forward ones stand; what is left has no declaration.
  Status resolve_buffers() {
    before_symbols_ = false;
    for (const auto& [name, v] : scope_)
      if (std::ranges::find(kernel_.symbols, v) == kernel_.symbols.end())
        return in_.error_here(str("{} is used by a buffer and not declared", name));
    const auto resolve = [&](sym::Expr& e) { e = syms().substitute(e, forward_); };
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      KernelBuffer& b = kernel_.buffers[i];
      for (sym::Expr& e : b.shape) resolve(e);
      if (b.layout.offset.valid()) resolve(b.layout.offset);
      if (is_contiguous_[i]) {
        const sym::Expr offset = b.layout.offset;
        b.layout = strided_layout(contiguous_strides(syms(), b.shape), offset);
      }
      for (LayoutEntry& e : b.layout.entries) resolve(e.stride);
    }
    return Ok{};
  }

  Status parse_axes(std::vector<Axis>& axes, sym::Role role) {
    do {
      sym::Variable v;
      v.name = COIL_TRY(in_.word());
      v.role = role;
      COIL_TRY(in_.expect("<"));
      v.extent = COIL_TRY(parse_expr());
      const sym::Range extent = syms().range(v.extent);
      v.range = {0, extent.hi == sym::kMaxInt ? sym::kMaxInt : std::max<i64>(extent.hi, 1) - 1};
      const sym::Expr extent_expr = v.extent;
      const sym::Expr var = syms().variable(v);
      scope_[v.name] = var;
      axes.push_back({var, extent_expr});
    } while (in_.accept(","));
    return Ok{};
  }

  /// Stages that go over axes of the same names and extents go over the same axes.
  void share_axes(std::vector<Axis>& loop) {
    for (Axis& a : loop) {
      const auto [known, is_new] =
          stage_axes_.try_emplace({syms().var(a.var).name, a.extent}, a.var);
      a.var = known->second;
      scope_[syms().var(a.var).name] = a.var;
    }
  }

  // ---- stages ----

  Status parse_stage() {
    Stage& stage = kernel_.stages.emplace_back();
    stage.closing = in_.accept("closing");
    COIL_TRY(in_.expect("stage"));
    if (in_.accept("over"))
      COIL_TRY(parse_axes(stage.loop, sym::Role::Reduce));
    else if (in_.accept("along"))
      COIL_TRY(parse_axes(stage.loop, sym::Role::Loop));
    share_axes(stage.loop);
    COIL_TRY(in_.expect("{"));
    while (!in_.accept("}")) COIL_TRY(parse_inst(stage));
    return Ok{};
  }

  Status parse_inst(Stage& stage) {
    if (in_.at("store") || in_.at("store.sum") || in_.at("store.prod") || in_.at("store.min") ||
        in_.at("store.max"))
      return parse_store(stage);
    std::vector<std::string> targets;
    do {
      targets.push_back(COIL_TRY(in_.word()));
    } while (in_.accept(","));
    COIL_TRY(in_.expect("="));
    const Error unknown = in_.error_here(str("expected an instruction, found {}", in_.found()));
    const std::string word = COIL_TRY(in_.word());
    KernelInst k;
    k.inst.kind = InstKind::Op;
    if (word == "index") return parse_index(stage, targets[0]);
    if (word.starts_with("accumulate")) return parse_accumulate(stage, word, targets[0]);
    std::vector<DType> dtypes;
    if (word == "finish") {
      COIL_TRY(parse_finish(k));
      dtypes = kernel_.combines[k.inst.combine].values;
    } else if (word == "scan" || word.starts_with("scan.")) {
      COIL_TRY(parse_combining(k.inst, word));
      k.kind = KernelOp::Scan;
      k.inst.kind = InstKind::Scan;
      dtypes = kernel_.combines[k.inst.combine].values;
    } else {
      if (!COIL_TRY(parse_simple(k, word))) return unknown;
      dtypes = {k.inst.dtype};
    }
    return define(stage, std::move(k), targets, dtypes);
  }

  Status define(Stage& stage, KernelInst k, const std::vector<std::string>& targets,
                const std::vector<DType>& dtypes) {
    if (targets.size() != dtypes.size())
      return in_.error_here(str("{} results for {} names", dtypes.size(), targets.size()));
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Val v(kernel_.val_dtypes.size());
      kernel_.val_dtypes.push_back(dtypes[i]);
      k.inst.results.push_back(v);
      if (!vals_.emplace(targets[i], v).second)
        return in_.error_here(str("value {} is defined twice", targets[i]));
    }
    stage.insts.push_back(std::move(k));
    return Ok{};
  }

  /// load, const, value, scalar or an op; false for any other word.
  Result<bool> parse_simple(KernelInst& k, const std::string& word) {
    Inst& inst = k.inst;
    if (word == "load") {
      k.kind = KernelOp::Load;
      inst.kind = InstKind::Load;
      inst.dtype = COIL_TRY(parse_dtype());
      COIL_TRY(parse_element(k));
      if (!inst.mask.valid()) return true;
      COIL_TRY(in_.expect("else"));
      inst.other = COIL_TRY(parse_scalar(in_, inst.dtype));
    } else if (word == "const") {
      k.kind = KernelOp::Const;
      inst.kind = InstKind::Const;
      inst.dtype = COIL_TRY(parse_dtype());
      inst.constant = COIL_TRY(parse_scalar(in_, inst.dtype));
    } else if (word == "value") {
      k.kind = KernelOp::Value;
      inst.kind = InstKind::Value;
      inst.dtype = DType::i64;
      inst.expr = COIL_TRY(parse_expr());
    } else if (word == "scalar") {
      k.kind = KernelOp::Scalar;
      inst.kind = InstKind::Scalar;
      inst.dtype = COIL_TRY(parse_dtype());
      inst.scalar = static_cast<u32>(COIL_TRY(in_.integer()));
      if (std::ranges::find(kernel_.scalars, inst.scalar) == kernel_.scalars.end())
        kernel_.scalars.push_back(inst.scalar);
    } else {
      const std::optional<ops::ScalarOp> op = ops::scalar_from_name(word);
      if (!op) return false;
      k.kind = KernelOp::Op;
      inst.op = *op;
      if (ops::info(*op).result == ops::ResultRule::Given) inst.dtype = COIL_TRY(parse_dtype());
      inst.operands = COIL_TRY(parse_vals());
      inst.dtype = result_dtype(*op, dtypes_of(inst.operands), inst.dtype);
    }
    return true;
  }

  Status parse_store(Stage& stage) {
    const std::string word = COIL_TRY(in_.word());
    KernelInst k;
    k.kind = KernelOp::Store;
    k.inst.kind = InstKind::Store;
    if (word != "store") k.inst.store_combine = *loop_text::combine_from_name(word.substr(6));
    COIL_TRY(parse_place(k));
    k.inst.dtype = kernel_.buffers[k.buffer].dtype;
    COIL_TRY(in_.expect(","));
    k.inst.operands.push_back(COIL_TRY(parse_val()));
    COIL_TRY(parse_guard(k.inst));
    stage.insts.push_back(std::move(k));
    return Ok{};
  }

  Status parse_place(KernelInst& k) {
    const Error unknown = in_.error_here(str("unknown buffer {}", in_.found()));
    const auto at = buffers_.find(COIL_TRY(in_.name()));
    if (at == buffers_.end()) return unknown;
    k.buffer = at->second;
    k.inst.index = COIL_TRY(parse_exprs());
    return Ok{};
  }

  Status parse_element(KernelInst& k) {
    COIL_TRY(parse_place(k));
    return parse_guard(k.inst);
  }

  Status parse_guard(Inst& inst) {
    if (in_.accept("if")) inst.mask = COIL_TRY(parse_val());
    return Ok{};
  }

  /// A later index of the same name hides an earlier one: bodies that share a kernel may both have
  /// n0.
  Status parse_index(Stage& stage, const std::string& variable) {
    KernelInst k;
    k.kind = KernelOp::Index;
    k.inst.kind = InstKind::Index;
    k.inst.dtype = DType::i64;
    k.inst.operands.push_back(COIL_TRY(parse_val()));
    COIL_TRY(in_.expect("in"));
    if (COIL_TRY(in_.integer()) != 0) return in_.error_here("an index starts at 0");
    COIL_TRY(in_.expect("."));
    COIL_TRY(in_.expect("."));
    k.inst.extent = syms().add(COIL_TRY(parse_expr()), syms().constant(1));
    const Error unknown =
        in_.error_here(str("expected assert, wrap or clamp, found {}", in_.found()));
    const std::optional<IndexPolicy> policy = loop_text::policy_from_name(COIL_TRY(in_.word()));
    if (!policy) return unknown;
    k.inst.policy = *policy;
    COIL_TRY(parse_guard(k.inst));
    const sym::Range extent = syms().range(k.inst.extent);
    const i64 last = extent.hi == sym::kMaxInt ? sym::kMaxInt : std::max<i64>(extent.hi, 1) - 1;
    k.inst.expr = syms().variable({variable, sym::Role::Value, {0, last}, {}});
    scope_[variable] = k.inst.expr;
    stage.insts.push_back(std::move(k));
    return Ok{};
  }

  /// `.sum v0`, or without a name: `v0 ... from f32 0 { region }`; between them `tree 16x4`.
  Status parse_combining(Inst& inst, const std::string& word) {
    const Error unknown = in_.error_here(str("no combine '{}' for this dtype", word));
    inst.operands = COIL_TRY(parse_vals());
    if (in_.accept("tree")) COIL_TRY(parse_tree(inst.tree));
    ops::Combine combine;
    if (const std::size_t dot = word.find('.'); dot != word.npos) {
      auto named =
          ops::named_combine(word.substr(dot + 1), kernel_.val_dtypes[inst.operands[0].index]);
      if (!named) return unknown;
      combine = std::move(*named);
    } else {
      combine = COIL_TRY(loop_text::parse_region(in_));
    }
    inst.dtype = combine.values.at(0);
    inst.combine = static_cast<u32>(kernel_.combines.size());
    kernel_.combines.push_back(std::move(combine));
    return Ok{};
  }

  /// `16x4 block 1024`: the integer 16 and the word x4. 1x0 takes partial values.
  Status parse_tree(ops::Tree& tree) {
    const Error wrong = in_.error_here("expected a tree like 16x4, each from 1 to 4096");
    const i64 lanes = COIL_TRY(in_.integer());
    const std::string accs = COIL_TRY(in_.word());
    if (accs.size() < 2 || accs.size() > 5 || accs[0] != 'x' ||
        accs.find_first_not_of("0123456789", 1) != accs.npos)
      return wrong;
    const int count = std::stoi(accs.substr(1));
    if (lanes < 1 || lanes > 4096 || count > 4096 || (count == 0 && lanes > 1)) return wrong;
    tree.lanes = static_cast<u16>(lanes);
    tree.accs = static_cast<u16>(count);
    if (!in_.accept("block")) return Ok{};
    const i64 block = COIL_TRY(in_.integer());
    if (block < 1 || block > INT32_MAX) return in_.error_here("a block is from 1 to 2147483647");
    tree.block = static_cast<u32>(block);
    return Ok{};
  }

  Status parse_accumulate(Stage& stage, const std::string& word, const std::string& target) {
    KernelInst k;
    k.kind = KernelOp::Accumulate;
    k.inst.kind = InstKind::Reduce;
    k.accumulator = kernel_.num_accumulators;
    if (target != str("a{}", k.accumulator))
      return in_.error_here(
          str("accumulators are numbered in order: a{} comes here", k.accumulator));
    if (word != "accumulate" && !word.starts_with("accumulate."))
      return in_.error_here(str("expected an instruction, found '{}'", word));
    COIL_TRY(parse_combining(k.inst, word));
    ++kernel_.num_accumulators;
    accumulates_.push_back(k.inst);
    stage.insts.push_back(std::move(k));
    return Ok{};
  }

  Status parse_finish(KernelInst& k) {
    const Error unknown = in_.error_here(str("unknown accumulator {}", in_.found()));
    const std::string word = COIL_TRY(in_.word());
    for (u32 a = 0; a < accumulates_.size(); ++a) {
      if (word != str("a{}", a)) continue;
      k.kind = KernelOp::Finish;
      k.accumulator = a;
      k.inst = accumulates_[a];
      k.inst.operands.clear();
      return Ok{};
    }
    return unknown;
  }

  Status parse_mapping() {
    Mapping& m = kernel_.mapping;
    while (in_.accept("tile")) {
      TileDim t;
      t.axis = COIL_TRY(parse_expr());
      COIL_TRY(in_.expect("x"));
      t.extent = COIL_TRY(in_.integer());
      m.tile.push_back(t);
    }
    if (in_.accept("abreast")) m.abreast = COIL_TRY(in_.integer());
    if (in_.accept("chunk")) m.chunk = COIL_TRY(in_.integer());
    COIL_TRY(in_.expect("units"));
    m.units = COIL_TRY(parse_expr());
    COIL_TRY(in_.expect("grain"));
    m.grain = COIL_TRY(in_.integer());
    m.serial = in_.accept("serial");
    while (in_.accept("rolled")) {
      const i64 stage = COIL_TRY(in_.integer());
      if (stage < 0 || stage >= i64(kernel_.stages.size()))
        return in_.error_here(str("there is no stage {}", stage));
      m.rolled.push_back(static_cast<u32>(stage));
    }
    return Ok{};
  }

  TextReader in_;
  Kernel kernel_;
  std::map<std::string, sym::Expr, std::less<>> scope_;
  std::map<std::string, u32, std::less<>> buffers_;
  std::map<std::string, Val, std::less<>> vals_;
  std::map<std::pair<std::string, sym::Expr>, sym::Expr> stage_axes_;
  std::vector<Inst> accumulates_;
  bool before_symbols_ = true;
  std::vector<bool> is_contiguous_;  // by buffer: its strides follow from its shape
  std::vector<std::pair<sym::Expr, sym::Expr>> forward_;  // as buffers name a symbol -> as declared
};

}  // namespace

Result<Kernel> parse_kernel(std::string_view text, const std::string& file) {
  return KernelParser(text, file).parse();
}

Result<std::vector<Kernel>> parse_kernels(std::string_view text, const std::string& file) {
  constexpr std::string_view kStart = "kernel ";
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size();
       at = std::min(text.find('\n', at), text.size() - 1) + 1)
    if (text.substr(at).starts_with(kStart)) starts.push_back(at);
  if (starts.empty()) return error("{} has no kernel", file);
  starts[0] = 0;  // whatever stands before the first one is its own
  starts.push_back(text.size());
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    // Blank lines in place of the kernels before it keep line numbers right.
    std::string own(static_cast<std::size_t>(std::ranges::count(text.substr(0, starts[i]), '\n')),
                    '\n');
    own += text.substr(starts[i], starts[i + 1] - starts[i]);
    kernels.push_back(COIL_TRY(parse_kernel(own, file)));
  }
  return kernels;
}

}  // namespace coil
