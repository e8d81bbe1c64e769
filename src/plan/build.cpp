#include "plan/build.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kernel/launches_cpu.h"
#include "plan/symbols.h"
#include "schedule/memory.h"

namespace coil {
namespace {

using runtime::Where;

class PlanBuilder {
 public:
  PlanBuilder(const LoopProgram& program, const Schedule& schedule, const PlanServices& services,
              SlotTable& symbols)
      : program_(program),
        schedule_(schedule),
        services_(services),
        symbols_(symbols),
        syms_(*program.syms),
        exprs_(syms_, symbols, out_) {}

  Result<runtime::Plan> run() {
    out_.name = program_.name;
    out_.scalars = program_.scalars;
    add_inputs();
    for (const Check& c : program_.checks)
      if (data_sizes(c.condition).empty()) out_.checks.push_back(check_of(c));
    for (BufferId b : program_.buffers.ids()) add_buffer(b);
    for (const Slot& s : schedule_.slots) out_.slots.push_back(exprs_.add(s.bytes));
    for (std::size_t i = 0; i < program_.subprograms.size(); ++i)
      out_.subplans.push_back(COIL_TRY(
          PlanBuilder(program_.subprograms[i], schedule_.subschedules[i], services_, symbols_)
              .run()));
    // A size from a buffer that is there before the call begins is read first of all.
    for (const ProgramSize& size : program_.sizes) {
      if (!size.from.valid()) continue;
      const Place place = schedule_.buffers.get(size.from).place;
      if (place == Place::External || place == Place::Derived) read(size);
    }
    for (const ScheduleStep& step : schedule_.order) COIL_TRY(add_step(step));
    for (const Check& c : program_.checks)  // sizes of sub-programs have their values by now
      if (!std::ranges::includes(known_, data_sizes(c.condition))) out_.run.push_back(check_of(c));
    for (sym::Expr bytes : scratch_bytes_) out_.slots.push_back(exprs_.add(bytes));
    for (const ProgramOutput& o : program_.outputs) add_output(o);
    for (const ProgramState& s : program_.states)
      out_.states.push_back({s.state.index, s.updated.index});
    return std::move(out_);
  }

 private:
  /// The sizes that it names and data gives.
  std::set<sym::Expr> data_sizes(sym::Expr e) const {
    std::vector<sym::Expr> vars;
    syms_.variables(e, vars);
    std::set<sym::Expr> sizes(vars.begin(), vars.end());
    std::erase_if(sizes, [&](sym::Expr v) { return syms_.var(v).role != sym::Role::Value; });
    return sizes;
  }

  runtime::PlanCheck check_of(const Check& check) {
    return {exprs_.add(check.condition), check.text};
  }

  void add_inputs() {
    for (const ProgramInput& input : program_.inputs) {
      runtime::PlanInput p;
      p.name = input.name;
      if (input.buffer.valid()) {
        const Buffer& b = program_.buffers[input.buffer];
        std::vector<sym::Expr> shape = b.shape, strides = strides_of(b);
        p.dtype = b.dtype;
        if (input.is_complex) {
          p.dtype = complex_of(b.dtype);
          shape.pop_back();
          strides.pop_back();
          for (sym::Expr& s : strides) s = syms_.floordiv(s, syms_.constant(2));
        }
        p.shape = exprs_.add(shape);
        p.strides = exprs_.add(strides);
      } else if (input.is_fixed) {
        p.kind = runtime::PlanInput::Kind::Fixed;
        p.fixed = constant(input.fixed);
      } else if (input.is_float) {
        p.kind = runtime::PlanInput::Kind::Float;
        p.scalar = input.scalar;
      } else {
        p.kind = runtime::PlanInput::Kind::Int;
        p.value = exprs_.add(input.size);
      }
      out_.inputs.push_back(std::move(p));
    }
  }

  runtime::Value constant(const Arg& arg) const {
    if (const auto* i = std::get_if<sym::Expr>(&arg)) return syms_.as_const(*i).value_or(0);
    if (const auto* f = std::get_if<double>(&arg)) return *f;
    if (const auto* b = std::get_if<bool>(&arg)) return *b;
    if (const auto* s = std::get_if<std::string>(&arg)) return *s;
    return std::monostate{};
  }

  /// One stride for each dim: plans hold plain strided buffers.
  std::vector<sym::Expr> strides_of(const Buffer& b) {
    std::vector<sym::Expr> out(b.shape.size(), syms_.constant(0));
    for (const LayoutEntry& e : b.layout.entries) {
      COIL_CHECK(e.factor == 1, "%{} has a blocked layout", b.name);
      out[e.dim] = e.stride;
    }
    return out;
  }

  void add_buffer(BufferId id) {
    const Buffer& b = program_.buffers[id];
    const BufferPlan& plan = schedule_.buffers.get(id);
    runtime::PlanBuffer p;
    p.name = b.name;
    p.dtype = b.dtype;
    p.source = b.source;
    p.bytes = exprs_.add(bytes_of(syms_, b));
    p.shape = exprs_.add(b.shape);
    p.strides = exprs_.add(strides_of(b));
    switch (plan.place) {
      case Place::External:
        p.where = b.kind == BufferKind::Input   ? Where::Input
                  : b.kind == BufferKind::State ? Where::State
                                                : Where::Constant;
        break;
      case Place::Arena:
      case Place::Within:
        p.where = Where::Arena;
        p.source = plan.slot;
        break;
      case Place::Output: p.where = Where::Output; break;
      case Place::Derived: p.where = Where::Derived; break;
      case Place::Heap: p.where = Where::Heap; break;
      case Place::Kept:
      case Place::Gone: p.where = Where::Nowhere; break;
    }
    out_.buffers.push_back(std::move(p));
  }

  runtime::ReadSize read_size(const ProgramSize& size) {
    const sym::Range r = syms_.var(size.var).range;
    return {symbols_.slot(size.var), size.from.index, r.lo, r.hi};
  }

  /// A size that data gives, then what it decides: nothing that may rely on that has run.
  void read(const ProgramSize& size) {
    out_.run.push_back(read_size(size));
    if (!known_.insert(size.var).second) return;
    for (const Check& c : program_.checks) {
      const std::set<sym::Expr> sizes = data_sizes(c.condition);
      if (sizes.contains(size.var) && std::ranges::includes(known_, sizes))
        out_.run.push_back(check_of(c));
    }
  }

  Status add_step(const ScheduleStep& step) {
    const StepBuffers used = buffers_of(program_, schedule_, step);
    bool init = false;
    if (const auto* group = std::get_if<GroupId>(&step)) init = schedule_.groups[*group].init;
    if (const auto* node = std::get_if<StructuredId>(&step)) init = program_.structured[*node].init;
    std::vector<runtime::PlanStep>& steps = init ? out_.init : out_.run;
    for (BufferId b : used.writes)
      if (program_.buffers[b].starts.valid() && schedule_.buffers.get(b).place != Place::Within)
        steps.push_back(runtime::CopyStep{program_.buffers[b].starts.index, b.index});
    if (const auto* group = std::get_if<GroupId>(&step)) {
      const Group& g = schedule_.groups[*group];
      COIL_TRY(check_trees(g));
      if (g.node.valid()) {
        runtime::Call made = COIL_TRY(call(program_.structured[g.node]));
        made.epilogue = epilogue(*group);
        steps.push_back(std::move(made));
      } else {
        launch(*group, steps);
      }
    } else if (const auto* node = std::get_if<StructuredId>(&step)) {
      steps.push_back(COIL_TRY(call(program_.structured[*node])));
    } else {
      steps.push_back(control(program_.controls[std::get<ControlId>(step)]));
    }
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid() &&
          std::find(used.writes.begin(), used.writes.end(), s.from) != used.writes.end()) {
        if (init)
          steps.push_back(read_size(s));
        else
          read(s);
      }
    return Ok{};
  }

  Status check_trees(const Group& group) const {
    Status sound = Ok{};
    for_each_instance(group, [&](const Instance& instance) {
      for (const Inst& i : program_.bodies[instance.body].insts)
        if (i.kind == InstKind::Reduce && i.tree.lanes != 1 && i.tree.lanes != 16)
          sound = error(
              "body {}: compiled kernels take reduction trees of 1 or 16 lanes, found {}x{}; "
              "--target interp takes all",
              program_.bodies[instance.body].name, i.tree.lanes, i.tree.accs);
    });
    return sound;
  }

  /// The launches of a kernel, in order, and its scratch.
  void launch(GroupId group, std::vector<runtime::PlanStep>& steps) {
    const BuiltKernel built = build_kernel(program_, schedule_, group);
    if (built.kernel.stages.empty()) return;  // nothing reads what it would store
    const Launches all = launches_on_cpu(built.kernel, services_.machine);
    const std::vector<u32> kernels = services_.add_kernel(all);
    std::map<std::string, u32, std::less<>> buffers;  // of the plan, by name in the kernel
    for (std::size_t i = 0; i < built.arguments.size(); ++i)
      buffers[built.kernel.buffers[i].name] = built.arguments[i].index;
    for (u32 i = 0; i < all.scratch.size(); ++i)
      buffers[all.scratch[i].name] = scratch(all.scratch[i], i, schedule_.groups[group].init);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const Kernel& k = all.launches[i];
      runtime::Launch out = arguments(k, kernels[i]);
      for (const KernelBuffer& b : k.buffers)
        if (!b.kept) out.buffers.push_back(buffers.at(b.name));
      for (sym::Expr v : k.symbols) out.symbols.push_back(symbols_.slot(v));
      out.units = exprs_.add(k.mapping.units);
      out.follows = i > 0;
      for (u32 site = 0; site < checked_indices(k); ++site)
        out.index_names.push_back(all.whole.index_from.at(all.sites_before[i] + site));
      steps.push_back(std::move(out));
    }
  }

  runtime::Launch epilogue(GroupId group) {
    BuiltKernel built = build_kernel(program_, schedule_, group);
    Kernel& k = built.kernel;
    map_epilogue_to_cpu(k);
    runtime::Launch out = arguments(k, services_.add_kernel({k, {}, {}, {k}, {0}})[0]);
    for (std::size_t i = 0; i < built.arguments.size(); ++i)
      if (!k.buffers[i].kept) out.buffers.push_back(built.arguments[i].index);  // the block's is ~0
    for (sym::Expr v : k.symbols) {
      const std::optional<u32> of_block = block_value(built.block, v);
      out.symbols.push_back(of_block ? *of_block : symbols_.slot(v));
    }
    out.index_names = k.index_from;
    return out;
  }

  static runtime::Launch arguments(const Kernel& k, u32 index) {
    runtime::Launch out;
    out.kernel = index;
    out.scalars = k.scalars;
    out.grain = k.mapping.grain;
    out.serial = k.mapping.serial;
    return out;
  }

  /// Memory that the launches of one kernel pass on. The n-th of each kernel shares a slot of the
  /// arena with those of all others; init, and sizes that data gives, have no arena.
  u32 scratch(const KernelBuffer& scratch, u32 number, bool init) {
    Buffer b;
    b.name = scratch.name;
    b.dtype = scratch.dtype;
    b.shape = scratch.shape;
    b.layout = scratch.layout;
    const sym::Expr bytes = bytes_of(syms_, b);
    runtime::PlanBuffer p;
    p.name = b.name;
    p.dtype = b.dtype;
    p.bytes = exprs_.add(bytes);
    p.shape = exprs_.add(b.shape);
    p.strides = exprs_.add(strides_of(b));
    p.where = Where::Heap;
    if (!init && data_sizes(bytes).empty()) {
      p.where = Where::Arena;
      p.source = static_cast<u32>(schedule_.slots.size()) + number;
      if (number >= scratch_bytes_.size()) scratch_bytes_.resize(number + 1, syms_.constant(0));
      scratch_bytes_[number] = syms_.max(scratch_bytes_[number], bytes);
    }
    out_.buffers.push_back(std::move(p));
    return static_cast<u32>(out_.buffers.size() - 1);
  }

  /// Which of a block's values a symbol of an epilogue is.
  static std::optional<u32> block_value(const Block& block, sym::Expr v) {
    const sym::Expr values[] = {block.batch, block.row0, block.rows,
                                block.col0,  block.cols, block.ld};
    for (u32 i = 0; i < std::size(values); ++i)
      if (values[i] == v) return runtime::kBlockBatch + i;
    return std::nullopt;
  }

  runtime::PlanOperand operand(const Access& a) {
    const Buffer& b = program_.buffers[a.buffer];
    sym::Expr at = address(syms_, b.layout, a.index);
    runtime::PlanOperand out;
    out.buffer = a.buffer.index;
    out.shape = exprs_.add(a.extents);
    std::vector<std::pair<sym::Expr, sym::Expr>> origin;
    for (sym::Expr v : a.vars) {
      const std::optional<sym::Expr> stride = syms_.stride(at, v);
      COIL_CHECK(stride, "%{} is not linear in {}", b.name, syms_.text(v));
      out.strides.push_back(exprs_.add(*stride));
      origin.push_back({v, syms_.constant(0)});
    }
    out.offset = exprs_.add(syms_.substitute(at, origin));
    return out;
  }

  Result<runtime::Call> call(const Structured& node) {
    const Implementation chosen = COIL_TRY(services_.implement(program_, node));
    runtime::Call out;
    out.name = chosen.name;
    out.attributes = chosen.attributes;
    COIL_TRY(chosen.bind(out));
    for (const Access& a : node.inputs) out.operands.push_back(operand(a));
    for (const Access& a : node.outputs) out.operands.push_back(operand(a));
    if (chosen.packed_bytes) out.packed = COIL_TRY(packed_weight(node, chosen, out));
    return out;
  }

  /// A weight that is there before the first call is packed once; nothing if it is not.
  Result<std::optional<u32>> packed_weight(const Structured& node, const Implementation& chosen,
                                           const runtime::Call& call) {
    const BufferId weight = node.inputs[chosen.weight].buffer;
    const bool derived = schedule_.buffers.get(weight).place == Place::Derived;
    if (node.init || (program_.buffers[weight].kind != BufferKind::Constant && !derived))
      return std::optional<u32>();
    const PackingKey key = {chosen.name, chosen.layout, weight_key(call, chosen.weight)};
    if (const auto known = packed_.find(key); known != packed_.end())
      return std::optional(known->second);
    std::vector<runtime::CallOperand> shapes;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) shapes.push_back(shape_of(node.inputs[i]));
    runtime::PlanBuffer p;
    p.name = program_.buffers[weight].name + ".packed";
    p.dtype = DType::u8;
    p.where = Where::Derived;
    const sym::Expr bytes = syms_.constant(chosen.packed_bytes(shapes));
    p.bytes = exprs_.add(bytes);
    p.shape = exprs_.add(std::vector<sym::Expr>{bytes});
    p.strides = exprs_.add(std::vector<sym::Expr>{syms_.constant(1)});
    const u32 buffer = static_cast<u32>(out_.buffers.size());
    out_.buffers.push_back(std::move(p));
    packed_[key] = buffer;
    runtime::Call pack = call;
    pack.name = "pack." + chosen.name;
    COIL_TRY(chosen.bind(pack));
    pack.operands.resize(node.inputs.size());
    for (std::size_t i = 0; i < pack.operands.size(); ++i)
      if (i != chosen.weight) pack.operands[i].buffer = runtime::kNoBuffer;
    pack.packed = buffer;
    out_.init.push_back(std::move(pack));
    return std::optional(buffer);
  }

  static std::vector<i64> weight_key(const runtime::Call& call, u32 weight) {
    const runtime::PlanOperand& o = call.operands[weight];
    std::vector<i64> key = {o.buffer, o.offset};
    key.insert(key.end(), o.shape.begin(), o.shape.end());
    key.insert(key.end(), o.strides.begin(), o.strides.end());
    return key;
  }

  /// As far as it is known before a call; dims that are not are 1.
  runtime::CallOperand shape_of(const Access& a) const {
    runtime::CallOperand out;
    out.dtype = program_.buffers[a.buffer].dtype;
    for (sym::Expr e : a.extents) out.shape.push_back(syms_.as_const(e).value_or(1));
    out.strides.assign(out.shape.size(), 0);
    return out;
  }

  runtime::ControlStep control(const Control& c) {
    runtime::ControlStep out;
    out.name = c.name;
    out.plans = c.programs;
    for (BufferId b : c.carried) out.carried.push_back(b.index);
    for (BufferId b : c.operands) out.operands.push_back(b.index);
    for (BufferId b : c.results) out.results.push_back(b.index);
    if (const auto* branch = std::get_if<If>(&c.kind)) {
      out.kind = runtime::ControlStep::Kind::If;
      if (branch->predicate.valid())
        out.predicate = static_cast<i32>(branch->predicate.index);
      else
        out.condition = exprs_.add(branch->condition);
    } else if (std::holds_alternative<While>(c.kind)) {
      out.kind = runtime::ControlStep::Kind::While;
    } else {
      const For& loop = std::get<For>(c.kind);
      out.kind = runtime::ControlStep::Kind::For;
      out.step = symbols_.slot(loop.step);
      out.extent = exprs_.add(loop.extent);
    }
    return out;
  }

  void add_output(const ProgramOutput& o) {
    using Kind = runtime::PlanOutput::Kind;
    runtime::PlanOutput p;
    p.dtype = o.dtype;
    p.target = o.target;
    if (o.buffer.valid()) {
      p.buffer = o.buffer.index;
      p.shape = exprs_.add(o.shape);
      p.strides = exprs_.add(o.strides);
      p.offset = exprs_.add(o.offset.valid() ? o.offset : syms_.constant(0));
    }
    switch (o.kind) {
      case OutputKind::Value:
      case OutputKind::AliasOfOutput: p.kind = Kind::Tensor; break;
      case OutputKind::AliasOfInput: p.kind = Kind::AliasOfInput; break;
      case OutputKind::MutatedInput: p.kind = Kind::MutatedInput; break;
      case OutputKind::Int:
        p.kind = Kind::Int;
        p.value = exprs_.add(o.expr);
        break;
      case OutputKind::None: p.kind = Kind::None; break;
      case OutputKind::Constant:
        p.kind = Kind::Constant;
        p.constant = constant(o.constant);
        break;
    }
    out_.outputs.push_back(std::move(p));
  }

  const LoopProgram& program_;
  const Schedule& schedule_;
  const PlanServices& services_;
  SlotTable& symbols_;
  sym::Arena& syms_;
  runtime::Plan out_;
  /// Implementation, its layout, the operand.
  using PackingKey = std::tuple<std::string, std::string, std::vector<i64>>;
  std::map<PackingKey, u32> packed_;
  std::set<sym::Expr> known_;             // sizes from data that the steps so far have read
  std::vector<sym::Expr> scratch_bytes_;  // by slot behind those of the schedule
  ExprTable exprs_;
};

}  // namespace

Result<runtime::Plan> build_plan(const LoopProgram& program, const Schedule& schedule,
                                 const PlanServices& services) {
  SlotTable symbols(*program.syms);
  runtime::Plan plan = COIL_TRY(PlanBuilder(program, schedule, services, symbols).run());
  COIL_TRY(bind_sizes(program, symbols, plan));
  plan.symbols = symbols.names();
  return plan;
}

}  // namespace coil
