#include "driver/program_cache.h"

#include <algorithm>
#include <map>

#include "base/build_id.h"
#include "base/disk_cache.h"
#include "base/packed.h"
#include "base/sha256.h"
#include "driver/calls.h"
#include "graph/canonical.h"
#include "lower/lower.h"
#include "runtime/plan_format.h"
#include "target/cpp/toolchain.h"

namespace coil {
namespace {

/// All that an entry depends on; "" where that cannot be said.
std::string program_key(const Compilation& c) {
  const std::string build = build_id();
  const Result<cpp::Toolchain> toolchain =
      cpp::find_toolchain(c.options, c.environment.search_path);
  if (build.empty() || !toolchain.ok()) return "";  // the pass compile says what is wrong
  return sha256_hex(str("{}\n{}\n{} {} {}\n{}\n{}", build, c.options.code_key(),
                        name(c.machine.isa), c.machine.l1d_bytes, c.machine.l2_bytes,
                        cpp::code_identity(*toolchain, c.machine.isa), canonical_bytes(c.graph)));
}

/// An entry, as it stands in the file.
struct Entry {
  std::string key;  // against files that were renamed
  std::size_t kernels = 0;
  std::vector<cpp::KernelUnit> units;
  std::vector<u32> constants;  // by index of the plan: position among those of the given graph
  std::string plan;
};

std::string pack(const Entry& e) {
  PackedWriter out;
  const auto numbers = [&](const std::vector<u32>& list) {
    out.number(static_cast<i64>(list.size()));
    for (u32 n : list) out.number(n);
  };
  out.text(e.key);
  out.number(static_cast<i64>(e.kernels));
  out.number(static_cast<i64>(e.units.size()));
  for (const cpp::KernelUnit& unit : e.units) {
    out.text(unit.key);
    numbers(unit.kernels);
  }
  numbers(e.constants);
  out.text(e.plan);
  return out.take();
}

bool is_key(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::optional<Entry> unpack(std::string_view bytes) {
  PackedReader in(bytes);
  const auto numbers = [&] {
    std::vector<u32> list(in.count());
    for (u32& n : list) n = static_cast<u32>(in.number());
    return list;
  };
  Entry e;
  e.key = in.text();
  e.kernels = static_cast<std::size_t>(in.number());
  e.units.resize(in.count());
  std::size_t kernels = 0;
  for (cpp::KernelUnit& unit : e.units) {
    unit.key = in.text();
    unit.kernels = numbers();
    kernels += unit.kernels.size();
    if (!is_key(unit.key)) in.fail();
  }
  e.constants = numbers();
  e.plan = in.text();
  if (in.failed() || !in.at_end() || e.kernels != kernels) return std::nullopt;
  return e;
}

/// Fills in the Compilation from an entry; false, with nothing changed, if it does not fit.
bool use_entry(const Entry& e, Compilation& c) {
  std::vector<Constant> constants;
  for (u32 position : e.constants) {
    if (position >= c.graph.constants.size()) return false;
    constants.push_back(c.graph.constants[position]);
  }
  Result<runtime::Plan> plan =
      runtime::unpack(e.plan, {e.kernels, constants.size(), bind_cpu_call});
  if (!plan.ok() || plan->inputs.size() != c.graph.inputs.size()) return false;
  std::optional<cpp::LoadedKernels> kernels =
      cpp::load_kernels(e.units, e.kernels, c.environment.cache_dir);
  if (!kernels) return false;
  // Most messages name an input alone: these names are there at once.
  for (std::size_t i = 0; i < plan->inputs.size(); ++i)
    plan->inputs[i].name = c.graph.inputs[i].name;
  c.program = lower_interface(c.graph, std::move(constants));
  c.model = std::make_shared<runtime::Model>();
  c.model->plan = std::move(*plan);
  c.model->kernels = std::move(kernels->functions);
  c.model->code = std::move(kernels->libraries);
  for (std::size_t i = 0; i < e.kernels; ++i) c.model->kernel_names.push_back(str("k{}", i));
  c.units_cached = kernels->cached;
  c.from_cache = true;
  return true;
}

}  // namespace

Status find_program(Compilation& c) {
  c.program_key = program_key(c);
  if (c.program_key.empty()) return Ok{};
  const DiskCache cache(c.environment.cache_dir, kPrograms);
  if (const std::optional<std::string> content = cache.find(c.program_key))
    if (const std::optional<Entry> e = unpack(*content); e && e->key == c.program_key)
      if (use_entry(*e, c)) return Ok{};
  for (const Constant& constant : c.graph.constants)
    c.constant_names.push_back(c.graph.values[constant.value].name);
  return Ok{};
}

Status keep_program(Compilation& c) {
  std::map<std::string, u32> positions;
  for (u32 i = 0; i < c.constant_names.size(); ++i) positions[c.constant_names[i]] = i;
  Entry e;
  e.key = c.program_key;
  e.kernels = c.model->kernels.size();
  e.units = c.units;
  for (const Constant& constant : c.program.constants) {
    const auto at = positions.find(c.program.value_names.get(constant.value));
    if (at == positions.end()) return Ok{};  // a pass made it: only the passes know its content
    e.constants.push_back(at->second);
  }
  e.plan = runtime::pack(c.model->plan);
  (void)DiskCache(c.environment.cache_dir, kPrograms).store(e.key, pack(e));
  return Ok{};
}

std::vector<std::string> present_names(const Compilation& c) {
  Options options = c.options;
  COIL_CHECK(options.set("stop_after", "plan").ok());
  const Result<std::shared_ptr<Compilation>> whole = compile(c.graph, options, c.environment);
  COIL_CHECK(whole.ok(), "{}", whole.error().message);
  return runtime::names_of((*whole)->model->plan);
}

}  // namespace coil
