// coil bench: what compiling and running cost.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arrays.h"
#include "cli.h"
#include "statistics.h"

namespace coil::cli {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Compiled {
  ReadyModel model;
  double total_ms = 0;
};

Result<Compiled> timed_prepare(const Common& common) {
  const Clock::time_point start = Clock::now();
  Compiled out{COIL_TRY(prepare(common)), 0};
  out.total_ms = since(start);
  return out;
}

/// Run times in milliseconds: at least 10 runs and 0.3 s, at most 1000 runs.
Result<std::vector<double>> run_times(Runner& runner, const std::vector<runtime::Value>& inputs) {
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  COIL_TRY(runner.call(inputs));
  while (times.size() < 1000 && (times.size() < 10 || since(start) < 300)) {
    const Clock::time_point one = Clock::now();
    COIL_TRY(runner.call(inputs));
    times.push_back(since(one));
    if (since(start) > 20000) break;
  }
  std::sort(times.begin(), times.end());
  return times;
}

nlohmann::ordered_json stages(const Compilation& c) {
  nlohmann::ordered_json out;
  for (const StageTime& t : c.times) out[t.name] = t.ms;
  return out;
}

/// What a call does, without compiling it.
Result<int> print_counts(const BenchArguments& arguments) {
  const std::shared_ptr<Compilation> c = COIL_TRY(prepare_until(arguments.common, "plan"));
  if (!c->model) return error("the target interp has no plan whose steps could be counted");
  const std::vector<runtime::Value> inputs =
      COIL_TRY(input_calls(arguments.common.inputs, arguments.common.seed, c->program)).front();
  const PlanStatistics s = statistics(*c, inputs);
  print(str("{} kernels, {} template calls, {} bytes moved, {} operations recomputed\n", s.kernels,
            s.calls, s.bytes_moved, s.recomputed));
  return kRight;
}

}  // namespace

Result<int> bench(const BenchArguments& arguments) {
  if (arguments.counts) return print_counts(arguments);
  Common cold = arguments.common;
  cold.options.push_back("cache=off");
  const Compiled first = COIL_TRY(timed_prepare(cold));
  COIL_TRY(timed_prepare(arguments.common));  // fills the cache
  const Compiled cached = COIL_TRY(timed_prepare(arguments.common));
  // The cold one has run all passes; the cached one may be from the program cache.
  const LoopProgram& program = first.model.compilation->program;
  const std::vector<runtime::Value> inputs =
      COIL_TRY(input_calls(arguments.common.inputs, arguments.common.seed, program)).front();
  const std::vector<double> times = COIL_TRY(run_times(*cached.model.runner, inputs));

  nlohmann::ordered_json out;
  out["model"] = arguments.common.model;
  out["target"] = cached.model.compilation->options.text("target");
  out["isa"] = std::string(name(cached.model.compilation->machine.isa));
  out["compile_cold_ms"] = first.total_ms;
  out["compile_cold_stages_ms"] = stages(*first.model.compilation);
  out["compile_cached_ms"] = cached.total_ms;
  out["compile_cached_stages_ms"] = stages(*cached.model.compilation);
  out["run_ms"] = {{"median", times[times.size() / 2]},
                   {"min", times.front()},
                   {"max", times.back()},
                   {"runs", times.size()}};
  if (cached.model.compilation->model) {
    const PlanStatistics s = statistics(*first.model.compilation, inputs);
    out["kernels"] = s.kernels;
    out["unique_kernels"] = first.model.compilation->whole_kernels.size();
    out["calls"] = s.calls;
    out["arena_bytes"] = s.arena_bytes;
    out["bytes_moved"] = s.bytes_moved;
    out["recomputed_operations"] = s.recomputed;
  }
  if (arguments.json) {
    print(out.dump(2) + "\n");
    return kRight;
  }
  const auto stage_text = [](const Compilation& c) {
    return join(c.times, ", ",
                [](const StageTime& t) { return str("{} {}", t.name, milliseconds(t.ms)); });
  };
  print(str("{} on {} ({})\n", arguments.common.model, out["target"].get<std::string>(),
            out["isa"].get<std::string>()));
  print(str("  compile, cold    {:>10}   {}\n", milliseconds(first.total_ms),
            stage_text(*first.model.compilation)));
  print(str("  compile, cached  {:>10}   {}\n", milliseconds(cached.total_ms),
            stage_text(*cached.model.compilation)));
  print(str("  run              {:>10}   median of {}; min {}, max {}\n",
            milliseconds(times[times.size() / 2]), times.size(), milliseconds(times.front()),
            milliseconds(times.back())));
  if (cached.model.compilation->model)
    print(
        str("  per call         {} kernels ({} different), {} template calls, arena {}, {} moved, "
            "{} operations recomputed\n",
            out["kernels"].get<i64>(), out["unique_kernels"].get<i64>(), out["calls"].get<i64>(),
            byte_count(out["arena_bytes"].get<i64>()), byte_count(out["bytes_moved"].get<i64>()),
            out["recomputed_operations"].get<i64>()));
  return kRight;
}

}  // namespace coil::cli
