// coil run: compiles, runs every call, writes or compares the outputs.

#include "arrays.h"
#include "base/text.h"
#include "cli.h"
#include "compare.h"

namespace coil::cli {
namespace {

using runtime::Tensor;
using runtime::Value;
using Calls = std::vector<std::vector<Value>>;

std::string shown(const Value& v) {
  if (const auto* t = std::get_if<Tensor>(&v)) return describe(*t);
  if (const auto* i = std::get_if<i64>(&v)) return str("int {}", *i);
  if (const auto* f = std::get_if<double>(&v)) return str("float {}", *f);
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "bool True" : "bool False";
  if (const auto* s = std::get_if<std::string>(&v)) return coil::quoted(*s);
  return "None";
}

/// Compares one call; returns how many arrays were compared and whether all were right.
struct Tally {
  int compared = 0;
  bool ok = true;
};

void compare_call(const std::vector<Value>& found, const std::vector<Value>& expected,
                  const std::string& suffix, const RunArguments& arguments, Tally& tally) {
  const Terminal terminal(1);
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    const std::optional<Tensor> x = i < found.size() ? as_tensor(found[i]) : std::nullopt;
    const std::optional<Tensor> y = i < expected.size() ? as_tensor(expected[i]) : std::nullopt;
    const std::string label = str("out{}{}", i, suffix);
    if (!x && !y) continue;
    if (!x || !y) {
      tally.ok = false;
      print(str("  {:12} {}\n", label,
                terminal.red(x ? "mismatch: the file has no such array"
                               : "mismatch: the model has no such output")));
      continue;
    }
    Tolerance tolerance = default_tolerance(y->dtype);
    if (arguments.rtol >= 0) tolerance.rtol = arguments.rtol;
    if (arguments.atol >= 0) tolerance.atol = arguments.atol;
    const Comparison c = compare(*x, *y, tolerance);
    ++tally.compared;
    tally.ok &= c.ok;
    if (c.count == 0 && !c.ok) {
      print(str("  {:12} {}\n", label, terminal.red("mismatch: " + c.mismatch)));
      continue;
    }
    const std::string verdict =
        c.ok ? terminal.green("ok")
             : terminal.red(str("mismatch ({} of {}) {}", c.bad, c.count, c.mismatch));
    print(str("  {:12} {:20} max abs {:<10.3g} max rel {:<10.3g} {}\n", label, describe(*x),
              c.largest_abs, c.largest_rel, verdict));
  }
}

int report(const Calls& found, const RunArguments& arguments, const Calls& expected) {
  const Terminal terminal(1);
  Tally tally;
  for (std::size_t k = 0; k < std::max(found.size(), expected.size()); ++k) {
    const std::string suffix = k == 0 ? std::string() : str("_call{}", k + 1);
    if (k >= found.size() || k >= expected.size()) {
      tally.ok = false;
      print(str("  {}\n", terminal.red(str("mismatch: {} calls ran, expected {}", found.size(),
                                           expected.size()))));
      break;
    }
    compare_call(found[k], expected[k], suffix, arguments, tally);
  }
  print(str("{}: {} array{} compared in {} call{}\n",
            tally.ok ? terminal.green("ok") : terminal.red("mismatch"), tally.compared,
            tally.compared == 1 ? "" : "s", found.size(), found.size() == 1 ? "" : "s"));
  return tally.ok ? kRight : kMismatch;
}

}  // namespace

Result<int> run(const RunArguments& arguments) {
  ReadyModel model = COIL_TRY(prepare(arguments.common));
  const LoopProgram& program = model.compilation->program;
  const Calls inputs =
      COIL_TRY(input_calls(arguments.common.inputs, arguments.common.seed, program));
  Calls outputs;
  {
    const Progress progress("running " + arguments.common.model);
    for (const std::vector<Value>& call : inputs) {
      std::vector<Value> results = COIL_TRY(model.runner->call(call));
      // A later call may write what an output of this one aliases (an input, a state).
      for (Value& v : results)
        if (auto* t = std::get_if<Tensor>(&v)) {
          Tensor copy = COIL_TRY(Tensor::allocate(t->dtype, t->shape));
          copy_elements(*t, copy);
          *t = copy;
        }
      outputs.push_back(std::move(results));
    }
  }
  if (!arguments.outputs.empty()) COIL_TRY(write_outputs(arguments.outputs, outputs));
  if (!arguments.expect.empty())
    return report(outputs, arguments, COIL_TRY(read_outputs(arguments.expect)));
  for (std::size_t k = 0; k < outputs.size(); ++k)
    for (std::size_t i = 0; i < outputs[k].size(); ++i)
      print(str("  out{}{:12} {}\n", i, k == 0 ? std::string() : str("_call{}", k + 1),
                shown(outputs[k][i])));
  return kRight;
}

}  // namespace coil::cli
