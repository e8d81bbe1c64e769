// coil explain: what became of each op, and why.

#include "cli.h"

namespace coil::cli {
namespace {

using runtime::Plan;

/// How often each kernel is launched in a plan and its subplans.
void count_launches(const Plan& plan, std::vector<int>& launches) {
  for (const auto* steps : {&plan.init, &plan.run})
    for (const runtime::PlanStep& s : *steps)
      if (const auto* l = std::get_if<runtime::Launch>(&s)) ++launches[l->kernel];
  for (const Plan& p : plan.subplans) count_launches(p, launches);
}

class Explainer {
 public:
  explicit Explainer(const Compilation& c) : c_(c), terminal_(1) {}

  void run() {
    const Plan& plan = c_.model->plan;
    print(terminal_.bold("Kernels\n"));
    std::vector<int> launches(c_.kernels.size(), 0);
    count_launches(plan, launches);
    for (std::size_t i = 0; i < c_.kernels.size(); ++i) kernel(i, launches[i]);
    print(terminal_.bold("\nCalls of prebuilt templates\n"));
    calls(plan);
    print(terminal_.bold("\nDecisions\n"));
    decisions(c_.program, c_.schedule);
    print(terminal_.bold("\nMemory\n"));
    memory();
    print(terminal_.bold("\nChecks at each call\n"));
    checks(plan);
  }

 private:
  void kernel(std::size_t i, int launches) {
    const Kernel& k = c_.kernels[i];
    print(str("  k{} {}{}\n", i, terminal_.green(k.name), launches == 1 ? std::string() : str("  launched {} times", launches)));
    for (const std::string& f : k.from) print(str("      holds {}\n", f));
    for (const std::string& r : k.mapping.reasons) print(terminal_.dim(str("      {}\n", r)));
    if (k.mapping.units.valid())
      print(terminal_.dim(str("      {} units of work for the threads\n", k.syms->text(k.mapping.units))));
  }

  void calls(const Plan& plan) {
    for (const auto* steps : {&plan.init, &plan.run})
      for (const runtime::PlanStep& s : *steps)
        if (const auto* call = std::get_if<runtime::Call>(&s)) {
          const std::string operands = join(call->operands, ", ", [&](const runtime::PlanOperand& o) {
            return str("%{} [{}]", plan.buffers[o.buffer].name,
                       join(o.shape, ", ", [&](runtime::ExprRef e) { return runtime::to_text(plan.exprs[e], c_.model->plan.symbols); }));
          });
          print(str("  {}  {}{}\n", terminal_.green(call->name), operands, steps == &plan.init ? "  (at init)" : ""));
        }
    for (const Plan& p : plan.subplans) calls(p);
  }

  void decisions(const LoopProgram& program, const Schedule& schedule) {
    for (const Decision& d : schedule.decisions)
      print(str("  {} {} -> {}: {}\n", d.yes ? terminal_.green("yes") : terminal_.yellow("no "), d.from, d.to, d.reason));
    for (std::size_t i = 0; i < schedule.subschedules.size(); ++i)
      decisions(program.subprograms[i], schedule.subschedules[i]);
  }

  void memory() {
    const sym::Arena& syms = *c_.program.syms;
    for (std::size_t s = 0; s < c_.schedule.slots.size(); ++s) {
      std::vector<std::string> names;
      for (BufferId b : c_.program.buffers.ids()) {
        const BufferPlan& p = c_.schedule.buffers.get(b);
        if ((p.place == Place::Arena || p.place == Place::Within) && p.slot == s)
          names.push_back(str("%{} (steps {}..{})", c_.program.buffers[b].name, p.first, p.last));
      }
      print(str("  slot {}: {} bytes: {}\n", s, syms.text(c_.schedule.slots[s].bytes),
                join(names, ", ", [](const std::string& n) { return n; })));
    }
    for (BufferId b : c_.program.buffers.ids()) {
      const BufferPlan& p = c_.schedule.buffers.get(b);
      const std::string& name = c_.program.buffers[b].name;
      if (p.place == Place::Gone) print(str("  %{} stays in registers\n", name));
      if (p.place == Place::Output) print(str("  %{} is handed to the caller\n", name));
      if (p.place == Place::Derived) print(str("  %{} is made once, at init\n", name));
    }
  }

  void checks(const Plan& plan) {
    for (const runtime::PlanInput& i : plan.inputs) {
      if (i.kind != runtime::PlanInput::Kind::Tensor) continue;
      const auto list = [&](const std::vector<runtime::ExprRef>& exprs) {
        return join(exprs, ", ", [&](runtime::ExprRef e) { return runtime::to_text(plan.exprs[e], plan.symbols); });
      };
      print(str("  input {}: {}[{}], copied first where its strides are not [{}]\n", i.name, name(i.dtype),
                list(i.shape), list(i.strides)));
    }
    for (const runtime::SymbolRange& r : plan.ranges)
      print(str("  {} in {}..{}\n", plan.symbols[r.symbol], r.lo, r.hi == INT64_MAX ? "" : std::to_string(r.hi)));
    for (const runtime::PlanCheck& check : plan.checks) print(str("  {}\n", check.text));
  }

  const Compilation& c_;
  Terminal terminal_;
};

}  // namespace

Result<int> explain(const Common& arguments) {
  Common common = arguments;
  common.target = "cpp";
  common.options.push_back("stop_after=plan");
  const Options options = COIL_TRY(make_options(common));
  const LoadedModel model = COIL_TRY(load(common));
  const Environment environment = read_environment();
  const std::shared_ptr<Compilation> c =
      std::holds_alternative<Graph>(model.program)
          ? COIL_TRY(compile(std::get<Graph>(model.program), options, environment))
          : COIL_TRY(compile(std::get<LoopProgram>(model.program), options, environment));
  Explainer(*c).run();
  return kRight;
}

}  // namespace coil::cli
