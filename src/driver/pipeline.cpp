#include "driver/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "driver/calls.h"
#include "driver/program_cache.h"
#include "extern/rows/rows.h"
#include "graph/data.h"
#include "graph/verify.h"
#include "lower/lower.h"
#include "passes/passes.h"
#include "plan/build.h"
#include "runtime/plan_format.h"
#include "target/cpp/print.h"
#include "target/cpp/toolchain.h"

namespace coil {
namespace {

bool has_graph(const Compilation& c) { return c.from_graph; }
bool for_cpp(const Compilation& c) { return c.options.text("target") == "cpp"; }
/// Who stops half way or verifies wants the passes to run.
/// Programs with libraries are not kept: what a library does depends on more than a key can say.
bool use_programs(const Compilation& c) {
  const bool no_libraries =
      c.options.text("onednn") == "off" && c.options.text("openblas") == "off";
  return no_libraries && has_graph(c) && for_cpp(c) && c.options.flag("cache") &&
         !c.options.flag("verify") && c.options.text("stop_after").empty() &&
         !c.environment.cache_dir.empty();
}
bool is_new_program(const Compilation& c) { return !c.from_cache && !c.program_key.empty(); }

Status run_decompose(Compilation& c) {
  c.graph = COIL_TRY(decompose(c.graph));
  return Ok{};
}

Status run_simplify(Compilation& c) {
  simplify(c.graph);
  return Ok{};
}

Status run_attention(Compilation& c) {
  recognize_attention(c.graph);
  return Ok{};
}

Status run_dead_code(Compilation& c) {
  remove_dead_code(c.graph);
  return Ok{};
}

Status run_lower(Compilation& c) {
  c.program = COIL_TRY(lower(c.graph, c.options));
  return Ok{};
}

Status run_schedule(Compilation& c) {
  c.schedule = schedule(c.program, c.options);
  return Ok{};
}

/// Equal launches print equal text; the first one stands for all.
u32 add_launch(Compilation& c, const Kernel& kernel) {
  const std::string text = cpp::print_kernel(kernel, "KERNEL");
  auto at = std::find(c.sources.begin(), c.sources.end(), text);
  const u32 index = static_cast<u32>(at - c.sources.begin());
  if (at == c.sources.end()) {
    c.sources.push_back(text);
    c.kernels.push_back(kernel);
  }
  return index;
}

std::vector<u32> add_kernel(Compilation& c, const Launches& kernel) {
  std::vector<u32> launches;
  for (const Kernel& k : kernel.launches) launches.push_back(add_launch(c, k));
  const auto is_equal = [&](const WholeKernel& w) { return w.launches == launches; };
  if (std::none_of(c.whole_kernels.begin(), c.whole_kernels.end(), is_equal))
    c.whole_kernels.push_back({kernel.whole, launches});
  return launches;
}

/// The candidates for structured nodes on this machine.
Result<Candidates> candidates_for(const Compilation& c) {
  Candidates out = COIL_TRY(Candidates::create(c.options.text("prefer")));
  const Machine machine = c.machine;
  out.add("template", [machine](const LoopProgram& program, const Structured& node) {
    return implement_on_cpu(program, node, machine);
  });
  add_library_candidates(out, c.options);
  return out;
}

Status run_plan(Compilation& c) {
  const Candidates candidates = COIL_TRY(candidates_for(c));
  PlanServices services;
  services.machine = c.machine;
  services.add_kernel = [&](const Launches& k) { return add_kernel(c, k); };
  services.implement = [&](const LoopProgram& program,
                           const Structured& node) -> Result<Implementation> {
    c.choices.push_back(COIL_TRY(candidates.choose(program, node)));
    return c.choices.back().implementation;
  };
  c.model = std::make_shared<runtime::Model>();
  c.model->plan = COIL_TRY(build_plan(c.program, c.schedule, services));
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    const std::size_t at = c.sources[i].find("KERNEL");
    c.sources[i].replace(at, std::string_view("KERNEL").size(), str("k{}", i));
    c.model->kernel_names.push_back(c.kernels[i].name);
  }
  return Ok{};
}

Status run_compile(Compilation& c) {
  if (c.sources.empty()) return Ok{};
  const cpp::Toolchain toolchain =
      COIL_TRY(cpp::find_toolchain(c.options, c.environment.search_path));
  const std::string cache = c.options.flag("cache") ? c.environment.cache_dir : std::string();
  cpp::LoadedKernels loaded =
      COIL_TRY(cpp::compile_kernels(c.sources, toolchain, c.machine.isa, cache, c.machine.cores));
  c.model->kernels = std::move(loaded.functions);
  c.model->code = loaded.libraries;
  c.units = std::move(loaded.units);
  c.units_compiled = loaded.compiled;
  c.units_cached = loaded.cached;
  return Ok{};
}

constexpr i64 kMostElements = i64{1} << 48;  // of a constant: products with sizes cannot overflow

/// Constants by index, each with the bytes from its first element on. Kernels do not check what
/// they read, so every constant must hold what its buffer needs.
Result<std::vector<runtime::ModelConstant>> model_constants(const LoopProgram& program) {
  std::vector<runtime::ModelConstant> out(program.constants.size());
  for (const Buffer& b : program.buffers) {
    if (b.kind != BufferKind::Constant && b.kind != BufferKind::State) continue;
    const Constant& constant = program.constants[b.source];
    Storage s = program.storages[constant.storage];
    const std::string name = constant.fqn.empty() ? "%" + b.name : constant.fqn;
    const std::optional<i64> need = program.syms->as_const(bytes_of(*program.syms, b));
    if (!need || constant.offset < 0 || constant.offset > kMostElements || *need > kMostElements)
      return error("constant {} has no sound size", name);
    const i64 start = constant.offset * size_of(b.dtype) * (constant.is_complex ? 2 : 1);
    if (!s.data && s.source == StorageSource::Seed)
      s = seeded_storage(b.dtype, s.seed, (start + *need) / size_of(b.dtype));
    if (!s.data && *need > 0)
      return error("the file has no data for {}: it was exported with fake weights", name);
    if (start > s.bytes || *need > s.bytes - start)
      return error("constant {} needs {} bytes, its data has {}", name, *need, s.bytes - start);
    out[b.source] = {constant.fqn, s.data + start, s.bytes - start, s.owner};
  }
  return out;
}

Status run_init(Compilation& c) {
  runtime::Model& model = *c.model;
  const i64 threads = c.options.integer("threads");
  model.pool = c.environment.pool;
  if (!model.pool)
    model.pool =
        runtime::ThreadPool::create(threads > 0 ? static_cast<int>(threads) : c.machine.cores);
  model.constants = COIL_TRY(model_constants(c.program));
  const Status done = init_model(model);
  if (done.ok() || !c.from_cache || !runtime::has_marks(done.error().message)) return done;
  return Error{runtime::with_names(done.error().message, present_names(c))};
}

constexpr std::array<Pass, 11> kPasses = {{
    {"program_cache", Level::Graph, Level::Code, find_program, use_programs, true},
    {"decompose", Level::Graph, Level::Graph, run_decompose, has_graph, false},
    {"simplify", Level::Graph, Level::Graph, run_simplify, has_graph, true},
    {"attention", Level::Graph, Level::Graph, run_attention, has_graph, true},
    {"dead_code", Level::Graph, Level::Graph, run_dead_code, has_graph, true},
    {"lower", Level::Graph, Level::Loops, run_lower, has_graph, false},
    {"schedule", Level::Loops, Level::Schedule, run_schedule, for_cpp, false},
    {"plan", Level::Schedule, Level::Plan, run_plan, for_cpp, false},
    {"compile", Level::Plan, Level::Code, run_compile, for_cpp, false},
    {"keep_program", Level::Code, Level::Code, keep_program, is_new_program, true},
    {"init", Level::Code, Level::Code, run_init, for_cpp, false},
}};

bool is_listed(const std::string& list, std::string_view word) {
  return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

Status verify_level(const Compilation& c, Level level) {
  switch (level) {
    case Level::Graph: return verify(c.graph);
    case Level::Loops: return verify(c.program);
    case Level::Schedule:
    case Level::Plan: {
      for (const WholeKernel& w : c.whole_kernels) COIL_TRY(verify(w.kernel));
      for (const Kernel& k : c.kernels) COIL_TRY(verify(k));
      return Ok{};
    }
    case Level::Code: return Ok{};
  }
  COIL_UNREACHABLE();
}

}  // namespace

std::string_view name(Level level) {
  switch (level) {
    case Level::Graph: return "graph";
    case Level::Loops: return "loops";
    case Level::Schedule: return "schedule";
    case Level::Plan: return "plan";
    case Level::Code: return "code";
  }
  COIL_UNREACHABLE();
}

std::span<const Pass> pass_table() { return kPasses; }

Status run_pipeline(Compilation& c) {
  for (const std::string_view key : {"disable", "stop_after"}) {
    const std::string& given = c.options.text(key);
    for (std::size_t at = 0; at < given.size();) {
      const std::size_t end = std::min(given.find(',', at), given.size());
      const std::string word = given.substr(at, end - at);
      const auto pass = std::find_if(kPasses.begin(), kPasses.end(),
                                     [&](const Pass& p) { return p.name == word; });
      if (pass == kPasses.end() || (key == "disable" && !pass->optional))
        return error("option {}: there is no {}pass '{}'; there are: {}", key,
                     key == "disable" ? "optional " : "", word,
                     join(kPasses, ", ", [](const Pass& p) { return std::string(p.name); }));
      at = end + 1;
    }
  }
  for (const Pass& pass : kPasses) {
    if (c.from_cache && pass.in != Level::Code) continue;
    if (!pass.applies(c) || is_listed(c.options.text("disable"), pass.name)) continue;
    const auto start = std::chrono::steady_clock::now();
    COIL_TRY(pass.run(c));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    c.times.push_back({std::string(pass.name), took.count()});
    if (c.options.flag("verify"))
      if (const Status sound = verify_level(c, pass.out); !sound.ok())
        COIL_CHECK(false, "after pass {}: {}", pass.name, sound.error().message);
    if (c.options.text("stop_after") == pass.name) break;
  }
  return Ok{};
}

namespace {

Result<std::shared_ptr<Compilation>> run(std::shared_ptr<Compilation> c, const Options& options,
                                         const Environment& environment) {
  c->options = options;
  c->environment = environment;
  c->machine = COIL_TRY(Machine::with_isa(options.text("isa")));
  COIL_TRY(run_pipeline(*c));
  return c;
}

}  // namespace

Result<std::shared_ptr<Compilation>> compile(Graph graph, const Options& options,
                                             const Environment& environment) {
  auto c = std::make_shared<Compilation>();
  c->from_graph = true;
  c->graph = std::move(graph);
  return run(std::move(c), options, environment);
}

Result<std::shared_ptr<Compilation>> compile(LoopProgram program, const Options& options,
                                             const Environment& environment) {
  auto c = std::make_shared<Compilation>();
  c->program = std::move(program);
  return run(std::move(c), options, environment);
}

}  // namespace coil
