// coil check: every target against the interpreter in double.

#include <algorithm>

#include "arrays.h"
#include "check_bisect.h"
#include "check_calls.h"
#include "check_judge.h"
#include "check_undecided.h"
#include "cli.h"

namespace coil::cli {
namespace {

using runtime::Tensor;
using runtime::Value;

struct Target {
  std::string name;
  Options options;
};

bool gives(const Common& common, std::string_view key) {
  return std::any_of(common.options.begin(), common.options.end(),
                     [&](const std::string& o) { return o.starts_with(std::string(key) + "="); });
}

/// What is at hand, but for what the arguments fix: each instruction set fused, the native one
/// unfused too.
Result<std::vector<Target>> targets_of(const Common& common) {
  const Options given = COIL_TRY(make_options(common));
  const auto with =
      [&](std::string name,
          std::initializer_list<std::pair<const char*, const char*>> set) -> Result<Target> {
    Target t{std::move(name), given};
    for (const auto& [key, value] : set) COIL_TRY(t.options.set(key, value));
    return t;
  };
  if (given.text("target") == "interp") return std::vector<Target>{COIL_TRY(with("interp", {}))};
  const bool fuse = gives(common, "fuse"), isa = gives(common, "isa");
  const std::string set = given.text("isa");
  std::vector<Target> out;
  if (fuse) {
    out.push_back(
        COIL_TRY(with(str("cpp {} {}", set, given.flag("fuse") ? "fused" : "unfused"), {})));
  } else {
    out.push_back(COIL_TRY(with(str("cpp {} fused", set), {{"fuse", "on"}})));
    out.push_back(COIL_TRY(with(str("cpp {} unfused", set), {{"fuse", "off"}})));
  }
  if (!isa)
    out.push_back(COIL_TRY(
        with(str("cpp plain {}", given.flag("fuse") ? "fused" : "unfused"), {{"isa", "plain"}})));
  return out;
}

struct Tally {
  int outputs = 0;    // rows of all calls
  int undecided = 0;  // of those
  int wrong = 0;      // on any target
};

class Checker {
 public:
  explicit Checker(const CheckArguments& arguments) : common_(arguments.common), terminal_(1) {}

  Result<int> run() {
    const std::vector<Target> targets = COIL_TRY(targets_of(common_));
    model_ = COIL_TRY(load(common_));
    environment_ = read_environment();
    interp_ = COIL_TRY(make_options(common_));
    COIL_TRY(interp_.set("target", "interp"));
    base_ = COIL_TRY(prepare_with(model_, interp_)).compilation;
    COIL_TRY(read_calls());
    COIL_TRY(ask_oracle());
    for (const Target& target : targets) COIL_TRY(check_target(target));
    return conclude(targets.size());
  }

 private:
  Result<ReadyModel> prepare_with(const LoadedModel& model, const Options& options) const {
    Environment environment = environment_;
    if (const std::string& folder = options.text("cache_dir"); !folder.empty())
      environment.cache_dir = folder;
    return make_ready(model, options, environment);
  }

  LoadedModel decomposed() const {
    LoadedModel out;
    out.program = base_->graph;
    return out;
  }

  /// A model with state is called twice, so that the state is seen.
  Status read_calls() {
    if (!common_.inputs.empty()) {
      inputs_ = COIL_TRY(read_inputs(common_.inputs, base_->program));
      return Ok{};
    }
    const u64 calls = base_->program.states.empty() ? 1 : 2;
    for (u64 k = 0; k < calls; ++k)
      inputs_.push_back(COIL_TRY(random_inputs(base_->program, common_.seed + k)));
    return Ok{};
  }

  Status ask_oracle() {
    const Progress progress("interpreting " + common_.model);
    labels_ = row_labels(base_->program);
    if (base_->from_graph) decisions_ = std::make_unique<Decisions>(base_->graph);
    const std::size_t extra = decisions_ ? decisions_->observed().size() : 0;
    std::shared_ptr<Compilation> observed = base_;
    if (extra > 0) {
      const LoadedModel watched = with_outputs(decomposed(), decisions_->observed());
      observed = COIL_TRY(prepare_with(watched, interp_)).compilation;
    }
    oracle_ = COIL_TRY(run_oracle(observed->program, inputs_));
    const std::size_t first = static_cast<std::size_t>(
        std::count_if(base_->program.outputs.begin(), base_->program.outputs.end(),
                      [](const ProgramOutput& o) { return o.kind != OutputKind::MutatedInput; }));
    if (decisions_) decisions_->settle(oracle_, first);
    for (Rows* rows : {&oracle_.plain, &oracle_.wide})
      for (Values& row : *rows)
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(first),
                  row.begin() + static_cast<std::ptrdiff_t>(first + extra));
    find_undecided();
    return Ok{};
  }

  /// By call and row: why it cannot be judged, or "".
  void find_undecided() {
    std::vector<std::string> by_row, written;
    if (decisions_)
      for (const Output& o : base_->graph.outputs)
        (o.kind == OutputKind::MutatedInput ? written : by_row).push_back(output_reason(o));
    by_row.insert(by_row.end(), written.begin(), written.end());
    by_row.resize(labels_.size());
    for (std::size_t call = 0; call < inputs_.size(); ++call) {
      std::vector<std::string> reasons = by_row;
      for (std::size_t row = 0; row < labels_.size(); ++row) {
        ++tally_.outputs;
        const Value &p = oracle_.plain[call].at(row), &w = oracle_.wide[call].at(row);
        if (reasons[row].empty() && !is_inexact(p) && !identical(p, w))
          reasons[row] = "the interpreter gives another one in double";
        if (!reasons[row].empty()) ++tally_.undecided;
      }
      undecided_.push_back(std::move(reasons));
    }
  }

  std::string output_reason(const Output& o) const {
    if (!o.value.valid()) return "";
    const Type& type = base_->graph.type(o.value);
    if (!type.is_tensor() && type.expr.valid()) {
      std::vector<sym::Expr> variables;
      base_->graph.syms->variables(type.expr, variables);
      for (ValueId v : base_->graph.values.ids()) {
        const Type& t = base_->graph.type(v);
        if (!t.is_tensor() &&
            std::find(variables.begin(), variables.end(), t.expr) != variables.end() &&
            !decisions_->reason(v).empty())
          return decisions_->reason(v);
      }
    }
    return decisions_->reason(o.value);
  }

  Status check_target(const Target& target) {
    ReadyModel ready;
    {
      const Progress progress(str("compiling for {}", target.name));
      ready = COIL_TRY(prepare_with(model_, target.options));
    }
    const Result<Rows> found = run_calls(*ready.runner, ready.compilation->program, inputs_);
    if (!found.ok()) {
      ++tally_.wrong;
      print(str("  {:18} {}\n", target.name,
                terminal_.red("mismatch: the interpreter runs and it does not: " +
                              found.error().message)));
      return Ok{};
    }
    bool wrong = false;
    for (std::size_t call = 0; call < found->size(); ++call)
      wrong |= check_call(target, call, (*found)[call]);
    if (!wrong) return Ok{};
    const Progress progress(str("bisecting on {}", target.name));
    Suspects suspects;
    suspects.model = base_->from_graph ? decomposed() : model_;
    suspects.decisions = decisions_.get();
    suspects.inputs = &inputs_;
    suspects.prepare = [&](const LoadedModel& m, bool on_target) {
      return prepare_with(m, on_target ? target.options : interp_);
    };
    const Result<std::string> culprit = bisect(suspects);
    print(str("  {:18} {}\n", target.name,
              culprit.ok() ? terminal_.bold(*culprit)
                           : terminal_.yellow("bisecting failed: " + culprit.error().message)));
    return Ok{};
  }

  bool check_call(const Target& target, std::size_t call, const Values& found) {
    bool wrong = false;
    if (found.size() != labels_.size()) {
      ++tally_.wrong;
      print(str(
          "  {:18} {}\n", target.name,
          terminal_.red(str("mismatch: {} outputs, expected {}", found.size(), labels_.size()))));
      return false;
    }
    for (std::size_t row = 0; row < found.size(); ++row) {
      const Value &p = oracle_.plain[call][row], &w = oracle_.wide[call][row];
      const std::string label = labels_[row] + (call == 0 ? "" : str("_call{}", call + 1));
      const std::optional<Tensor> shape = as_tensor(found[row]);
      const std::string head =
          str("  {:18} {:14} {:18}", target.name, label, shape ? describe(*shape) : "-");
      if (const std::string& reason = undecided_[call][row]; !reason.empty()) {
        print(str("{} {}\n", head, terminal_.yellow("undecided: " + reason)));
        continue;
      }
      const Verdict v = judge(found[row], p, w);
      const std::string error =
          is_inexact(p) ? str("error {:.3g} of the tolerance", v.error) : std::string("exact");
      print(str("{} {:30} {}\n", head, v.ok || is_inexact(p) ? error : "",
                v.ok ? terminal_.green("ok") : terminal_.red("mismatch " + v.mismatch)));
      wrong |= !v.ok;
      tally_.wrong += !v.ok;
    }
    return wrong;
  }

  int conclude(std::size_t targets) const {
    const std::string on = str("{} target{}", targets, targets == 1 ? "" : "s");
    if (tally_.wrong == 0) {
      print(str("{}: {} output{} checked on {}, {} undecided\n", terminal_.green("ok"),
                tally_.outputs, tally_.outputs == 1 ? "" : "s", on, tally_.undecided));
      return kRight;
    }
    print(str("{}: {} wrong among {} output{} on {}, {} undecided\n", terminal_.red("mismatch"),
              tally_.wrong, tally_.outputs, tally_.outputs == 1 ? "" : "s", on, tally_.undecided));
    return kMismatch;
  }

  const Common& common_;
  const Terminal terminal_;
  LoadedModel model_;
  Environment environment_;
  Options interp_;
  std::shared_ptr<Compilation> base_;
  std::vector<Values> inputs_;
  std::vector<std::string> labels_;  // of rows
  std::unique_ptr<Decisions> decisions_;
  Oracle oracle_;
  std::vector<std::vector<std::string>> undecided_;  // by call and row
  Tally tally_;
};

}  // namespace

Result<int> check(const CheckArguments& arguments) { return Checker(arguments).run(); }

}  // namespace coil::cli
