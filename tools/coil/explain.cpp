// coil explain: what became of each op, and why. Every line is made from the levels of the
// compilation (program, schedule, kernels, plan); nothing is decided here.

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "cli.h"
#include "schedule/memory.h"

namespace coil::cli {
namespace {

using runtime::Plan;

std::string list(const std::vector<std::string>& items) {
  return join(items, ", ", [](const std::string& item) { return item; });
}

std::string plural(std::size_t n, const std::string& noun) {
  return str("{} {}{}", n, noun, n == 1 ? "" : "s");
}

void add_once(std::vector<std::string>& items, const std::string& item) {
  if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
}

/// The ops of level 0 by the names of their results, of a graph and all its subgraphs.
void collect_ops(const Graph& graph, std::map<std::string, std::string>& ops) {
  for (NodeId n : graph.nodes.ids())
    for (ValueId v : graph.nodes[n].outs) ops.emplace(graph.values[v].name, graph.nodes[n].op);
  for (const Graph& sub : graph.subgraphs) collect_ops(sub, ops);
}

/// One level of the program: the whole, or a branch or loop body within it.
struct Scope {
  const LoopProgram& program;
  const Schedule& schedule;
  const Plan& plan;
};

std::string describe(const Scope& s, BufferId b) {
  const Buffer& buffer = s.program.buffers[b];
  const std::string shape =
      join(buffer.shape, ", ", [&](sym::Expr e) { return s.program.syms->text(e); });
  return str("%{} {}[{}]", buffer.name, name(buffer.dtype), shape);
}

/// The steps of one plan, as the run time takes them.
class StepPrinter {
 public:
  StepPrinter(const Compilation& c, const Terminal& terminal) : c_(c), terminal_(terminal) {
    collect_ops(c.graph, ops_);
  }

  void print_call(const Scope& s, const std::string& indent) {
    steps(s, s.plan.run, When::Call, indent);
  }
  void print_init(const Scope& s, const std::string& indent) {
    steps(s, s.plan.init, When::Init, indent);
  }

 private:
  enum class When { Init, Call };

  static When when(const Scope& s, const ScheduleStep& step) {
    bool init = false;
    if (const auto* g = std::get_if<GroupId>(&step)) init = s.schedule.groups[*g].init;
    if (const auto* n = std::get_if<StructuredId>(&step)) init = s.program.structured[*n].init;
    return init ? When::Init : When::Call;
  }

  /// The plan has one step more than the schedule for each copy, each weight that is packed and
  /// each size that is read; they stand around the step that they serve.
  void steps(const Scope& s, const std::vector<runtime::PlanStep>& plan, When part,
             const std::string& indent) {
    auto next = plan.begin();
    for (std::size_t i = 0; i < s.schedule.order.size(); ++i) {
      if (when(s, s.schedule.order[i]) != part) continue;
      for (; next != plan.end() && is_auxiliary(*next); ++next) auxiliary(s, *next, indent);
      COIL_CHECK(next != plan.end(), "the plan is shorter than the schedule");
      const auto first = next++;
      while (next != plan.end() && follows(*next)) ++next;
      step(s, i, {first, next}, indent);
    }
    for (; next != plan.end(); ++next) auxiliary(s, *next, indent);
  }

  static bool is_auxiliary(const runtime::PlanStep& step) {
    return std::holds_alternative<runtime::CopyStep>(step) ||
           std::holds_alternative<runtime::ReadSize>(step) ||
           std::holds_alternative<runtime::PlanCheck>(step) || packing(step) != nullptr;
  }

  static bool follows(const runtime::PlanStep& step) {
    const auto* launch = std::get_if<runtime::Launch>(&step);
    return launch && launch->follows;
  }

  /// The operand that a step packs, or null.
  static const runtime::PlanOperand* packing(const runtime::PlanStep& step) {
    const auto* call = std::get_if<runtime::Call>(&step);
    if (!call || !call->name.starts_with("pack.")) return nullptr;
    for (const runtime::PlanOperand& o : call->operands)
      if (o.buffer != runtime::kNoBuffer) return &o;
    return nullptr;
  }

  void auxiliary(const Scope& s, const runtime::PlanStep& step, const std::string& indent) const {
    if (const auto* copy = std::get_if<runtime::CopyStep>(&step))
      print(str("{}    copy %{} to %{}, which begins with its content\n", indent,
                s.plan.buffers[copy->from].name, s.plan.buffers[copy->to].name));
    if (const runtime::PlanOperand* weight = packing(step)) {
      const runtime::Call& call = std::get<runtime::Call>(step);
      print(str("{}    {} of %{}: {} reads it in that layout\n", indent, terminal_.green("pack"),
                s.plan.buffers[weight->buffer].name, call.name.substr(5)));
    }
    if (const auto* size = std::get_if<runtime::ReadSize>(&step))
      print(str("{}    read the size {} from %{}\n", indent, s.plan.symbols[size->symbol],
                s.plan.buffers[size->buffer].name));
    if (const auto* check = std::get_if<runtime::PlanCheck>(&step))
      print(str("{}    check that {}\n", indent, check->text));
  }

  void step(const Scope& s, std::size_t index, std::span<const runtime::PlanStep> plan,
            const std::string& indent) {
    const ScheduleStep& what = s.schedule.order[index];
    const std::string number = str("{}{}{}  ", indent, index < 10 ? " " : "", index);
    if (const auto* g = std::get_if<GroupId>(&what)) {
      const Group& group = s.schedule.groups[*g];
      if (const auto* call = std::get_if<runtime::Call>(&plan[0])) {
        print(str("{}{} {}\n", number,
                  terminal_.green(str("{} with epilogue k{}", who(*call), call->epilogue->kernel)),
                  terminal_.bold(group.name)));
        const Structured& node = s.program.structured[group.node];
        source(s, node.name, node.from, node.locs, indent);
      } else {
        const std::string kernels = join(plan, ", ", [](const runtime::PlanStep& launch) {
          return str("k{}", std::get<runtime::Launch>(launch).kernel);
        });
        print(str("{}{} {}\n", number,
                  terminal_.green(str("kernel{} {}", plan.size() > 1 ? "s" : "", kernels)),
                  terminal_.bold(group.name)));
      }
      for_each_instance(group,
                        [&](const Instance& i) { bodies(s, s.program.bodies[i.body], indent); });
    } else if (const auto* n = std::get_if<StructuredId>(&what)) {
      const Structured& node = s.program.structured[*n];
      print(str("{}{} {}\n", number, terminal_.green(who(std::get<runtime::Call>(plan[0]))),
                terminal_.bold(node.name)));
      source(s, node.name, node.from, node.locs, indent);
    } else {
      const Control& control = s.program.controls[std::get<ControlId>(what)];
      print(str("{}{} {}\n", number, terminal_.green("control"), terminal_.bold(control.name)));
      source(s, control.name, control.from, control.locs, indent);
    }
    traffic(s, what, indent);
    if (const auto* control = std::get_if<ControlId>(&what))
      branches(s, s.program.controls[*control], indent);
  }

  /// The function of a call, and whose it is.
  std::string who(const runtime::Call& call) const {
    for (const Choice& c : c_.choices)
      if (c.implementation.name == call.name && c.candidate != "template")
        return "library " + call.name;
    return "template " + call.name;
  }

  /// A body, after those that it computes again.
  void bodies(const Scope& s, const Body& body, const std::string& indent) const {
    for (const Inst& i : body.insts)
      if (i.kind == InstKind::Load && s.schedule.recomputed.get(i.buffer).valid())
        bodies(s, s.program.bodies[s.schedule.recomputed.get(i.buffer)], indent);
    source(s, body.name, body.from, body.locs, indent);
  }

  /// Which ops of level 0 a body or node computes, and whose code that is.
  void source(const Scope& s, const std::string& part, const std::vector<ValueId>& from,
              const std::vector<LocId>& locs, const std::string& indent) const {
    std::vector<std::string> ops, places;
    bool is_whole = false;
    for (ValueId v : from) {
      const std::string& value = s.program.value_names.get(v);
      const auto op = ops_.find(value);
      is_whole |= value == part;
      add_once(ops, op == ops_.end() ? "%" + value : str("%{} = {}", value, op->second));
    }
    for (LocId l : locs) {
      const Loc& loc = s.program.locs[l];
      if (!loc.frame.empty())
        add_once(places, loc.module.empty() ? loc.frame : str("{} in {}", loc.frame, loc.module));
    }
    const std::string what = ops.empty() ? part
                             : is_whole  ? list(ops)
                                         : str("{}, a part of {}", part, list(ops));
    print(
        str("{}      computes {}{}\n", indent, what, places.empty() ? "" : "  @ " + list(places)));
  }

  void traffic(const Scope& s, const ScheduleStep& step, const std::string& indent) const {
    const StepBuffers used = buffers_of(s.program, s.schedule, step);
    const auto names = [&](const std::vector<BufferId>& buffers) {
      std::vector<std::string> all;
      for (BufferId b : buffers)
        if (const Place p = s.schedule.buffers.get(b).place; p != Place::Gone && p != Place::Kept)
          add_once(all, describe(s, b));
      return all.empty() ? std::string("nothing") : list(all);
    };
    print(terminal_.dim(str("{}      reads    {}\n", indent, names(used.reads))));
    print(terminal_.dim(str("{}      writes   {}\n", indent, names(used.writes))));
  }

  void branches(const Scope& s, const Control& control, const std::string& indent) {
    for (std::size_t k = 0; k < control.programs.size(); ++k) {
      const u32 sub = control.programs[k];
      print(str("{}      part {} of {}:\n", indent, k + 1, control.name));
      print_call({s.program.subprograms[sub], s.schedule.subschedules[sub], s.plan.subplans[sub]},
                 indent + "      ");
    }
  }

  const Compilation& c_;
  const Terminal& terminal_;
  std::map<std::string, std::string> ops_;
};

void count_launches(const Plan& plan, std::vector<int>& launches) {
  for (const auto* steps : {&plan.init, &plan.run})
    for (const runtime::PlanStep& s : *steps)
      if (const auto* l = std::get_if<runtime::Launch>(&s)) ++launches[l->kernel];
  for (const Plan& p : plan.subplans) count_launches(p, launches);
}

void print_kernels(const Compilation& c, const Terminal& terminal) {
  std::vector<int> launches(c.kernels.size(), 0);
  count_launches(c.model->plan, launches);
  for (std::size_t i = 0; i < c.kernels.size(); ++i) {
    const Kernel& k = c.kernels[i];
    const std::string grid = join(k.grid, ", ", [&](const Axis& a) {
      return str("{} < {}", k.syms->text(a.var), k.syms->text(a.extent));
    });
    print(str("  k{} {}  grid {}", i, terminal.bold(k.name), grid.empty() ? "of one point" : grid));
    if (k.mapping.units.valid()) {
      const std::string units = k.syms->text(k.mapping.units);
      print(str(", {} of work for the threads", units == "1" ? "1 unit" : units + " units"));
    }
    if (launches[i] > 1) print(str(", used by {} steps", launches[i]));
    print("\n");
    for (const std::string& reason : k.mapping.reasons)
      print(terminal.dim(str("      {}\n", reason)));
  }
}

/// Question, whether the answer is no, and the reason; and the pairs that got it.
using Answers = std::map<std::tuple<Question, bool, std::string>, std::vector<std::string>>;

void collect_decisions(const Schedule& schedule, Answers& answers) {
  for (const Decision& d : schedule.decisions)
    add_once(answers[{d.question, !d.yes, d.reason}], str("{} -> {}", d.from, d.to));
  for (const Schedule& sub : schedule.subschedules) collect_decisions(sub, answers);
}

void print_decisions(const Schedule& schedule, const Terminal& terminal) {
  Answers answers;
  collect_decisions(schedule, answers);
  if (answers.empty()) print("  no step reads what another writes\n");
  const auto heading = [&](Question question, bool no) {
    switch (question) {
      case Question::Share: return no ? terminal.yellow("apart:   ") : terminal.green("together:");
      case Question::Recompute:
        return no ? terminal.yellow("made once:") : terminal.green("made where it is read:");
    }
    COIL_UNREACHABLE();
  };
  for (const auto& [answer, pairs] : answers) {
    print(str("  {} {}\n", heading(std::get<0>(answer), std::get<1>(answer)), std::get<2>(answer)));
    for (const std::string& pair : pairs) print(terminal.dim(str("      {}\n", pair)));
  }
}

/// Who computes the structured nodes, and who of those asked before does not; equal answers are
/// one.
void print_choices(const Compilation& c, const Terminal& terminal) {
  std::map<std::string, std::vector<std::string>> chosen, refused;
  for (const Choice& choice : c.choices) {
    chosen[str("{} {}", terminal.green(choice.implementation.name + ":"), choice.reason)].push_back(
        choice.node);
    for (const Choice::Refusal& r : choice.refused)
      refused[str("{} {}", terminal.yellow(str("not {}:", r.candidate)), r.reason)].push_back(
          choice.node);
  }
  for (const auto* answers : {&chosen, &refused})
    for (const auto& [answer, nodes] : *answers)
      print(str("  {}\n{}", answer, terminal.dim(str("      {}\n", list(nodes)))));
}

std::string place_text(const BufferPlan& p, bool is_recomputed) {
  switch (p.place) {
    case Place::External: return "the caller's or the model file's";
    case Place::Arena: return str("arena slot {}", p.slot);
    case Place::Within: return str("arena slot {}, over what it begins as", p.slot);
    case Place::Output: return "handed to the caller";
    case Place::Derived: return "made once, kept with the model";
    case Place::Heap: return "allocated during the call";
    case Place::Gone:
      return is_recomputed ? "never stored: made where it is read"
                           : "never stored: stays in registers";
    case Place::Kept: return "never stored: a row in its kernel's scratch";
  }
  COIL_UNREACHABLE();
}

void print_memory(const Scope& s) {
  sym::Arena& syms = *s.program.syms;
  std::size_t width = 0;
  std::vector<sym::Expr> wanted, slots;
  for (BufferId b : s.program.buffers.ids()) {
    const BufferPlan& p = s.schedule.buffers.get(b);
    if (p.place == Place::External) continue;
    width = std::max(width, s.program.buffers[b].name.size());
    if (p.place == Place::Arena || p.place == Place::Within)
      wanted.push_back(bytes_of(syms, s.program.buffers[b]));
  }
  for (BufferId b : s.program.buffers.ids()) {
    const Buffer& buffer = s.program.buffers[b];
    const BufferPlan& p = s.schedule.buffers.get(b);
    if (p.place == Place::External) continue;
    const bool shared = p.place == Place::Arena || p.place == Place::Within;
    print(str("  %{:<{}}  {:>12} bytes  {}{}\n", buffer.name, width,
              syms.text(bytes_of(syms, buffer)),
              place_text(p, s.schedule.recomputed.get(b).valid()),
              shared ? str(", steps {} to {}", p.first, p.last) : ""));
  }
  for (const Slot& slot : s.schedule.slots) slots.push_back(slot.bytes);
  print(str("  arena: {} bytes in {}; without sharing it would be {}\n", syms.text(syms.sum(slots)),
            plural(slots.size(), "slot"), syms.text(syms.sum(wanted))));
  std::vector<std::string> scratch;
  for (std::size_t i = s.schedule.slots.size(); i < s.plan.slots.size(); ++i)
    scratch.push_back(runtime::to_text(s.plan.exprs[s.plan.slots[i]], s.plan.symbols));
  if (!scratch.empty())
    print(str("  scratch that launches of a kernel pass on: {} bytes\n", list(scratch)));
}

void print_checks(const Plan& plan) {
  for (const runtime::PlanInput& i : plan.inputs) {
    if (i.kind != runtime::PlanInput::Kind::Tensor) continue;
    const auto texts = [&](const std::vector<runtime::ExprRef>& exprs) {
      return join(exprs, ", ", [&](runtime::ExprRef e) {
        return runtime::to_text(plan.exprs[e], plan.symbols);
      });
    };
    print(str("  input {}: {}[{}]; copied first where its strides are not [{}]\n", i.name,
              name(i.dtype), texts(i.shape), texts(i.strides)));
  }
  for (const runtime::SymbolRange& r : plan.ranges)
    print(str("  {} in {}..{}\n", plan.symbols[r.symbol], r.lo,
              r.hi == INT64_MAX ? "" : std::to_string(r.hi)));
  for (const runtime::PlanCheck& check : plan.checks) print(str("  {}\n", check.text));
}

void print_all(const Compilation& c) {
  const Terminal terminal(1);
  const Scope whole{c.program, c.schedule, c.model->plan};
  StepPrinter printer(c, terminal);
  if (!whole.plan.init.empty()) {
    print(terminal.bold("Steps when the model is opened\n"));
    printer.print_init(whole, "");
    print("\n");
  }
  print(terminal.bold("Steps of a call, in order\n"));
  printer.print_call(whole, "");
  print(terminal.bold("\nKernels that were generated; equal ones are one\n"));
  print_kernels(c, terminal);
  print(terminal.bold("\nWhich steps share a kernel, and why\n"));
  print_decisions(c.schedule, terminal);
  if (!c.choices.empty()) {
    print(terminal.bold("\nWho computes the structured nodes, and why\n"));
    print_choices(c, terminal);
  }
  print(terminal.bold("\nMemory of a call\n"));
  print_memory(whole);
  print(terminal.bold("\nChecks at each call\n"));
  print_checks(whole.plan);
}

}  // namespace

Result<int> explain(const Common& arguments) {
  Common common = arguments;
  common.target = "cpp";
  print_all(*COIL_TRY(prepare_until(std::move(common), "plan")));
  return kRight;
}

}  // namespace coil::cli
