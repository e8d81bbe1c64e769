// coil dump: each level as text.

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "cli.h"
#include "graph/text.h"
#include "kernel/launches_cpu.h"
#include "kernel/launches_gpu.h"
#include "target/cpp/print.h"
#include "target/cpp/toolchain.h"
#include "target/triton/print.h"

namespace coil::cli {
namespace {

struct StageText {
  std::string_view name;
  std::string_view file;  // for -o
  Result<std::string> (*print)(const Compilation&);
};

Result<std::string> print_graph(const Compilation& c) {
  return c.from_graph ? to_text(c.graph) : std::string();
}
Result<std::string> print_loops(const Compilation& c) { return to_text(c.program); }
Result<std::string> print_schedule(const Compilation& c) { return to_text(c.program, c.schedule); }
Result<std::string> print_kernels(const Compilation& c) {
  return join(c.kernels, "\n", [](const Kernel& k) { return to_text(k); });
}
Result<std::string> print_plan(const Compilation& c) {
  return c.model ? to_text(c.model->plan) : std::string();
}
/// The names that a kernel's source leaves out, as comments.
std::string names_of(const Kernel& kernel) {
  std::string out = str("// kernel {}\n", kernel.name);
  for (const std::string& f : kernel.from) out += str("//   {}\n", f);
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b)
    out += str("{}buf{} = %{}", b == 0 ? "//   " : ", ", b, kernel.buffers[b].name);
  return out + (kernel.buffers.empty() ? "" : "\n");
}

Result<std::string> print_code(const Compilation& c) {
  std::string out;
  for (std::size_t i = 0; i < c.sources.size(); ++i)
    out += (i == 0 ? "" : "\n") + names_of(c.kernels[i]) + c.sources[i];
  return out;
}

Result<std::string> triton_of(const std::vector<Kernel>& kernels) {
  std::vector<Launches> all;
  for (const Kernel& k : kernels) {
    Result<Launches> launches = launches_on_gpu(k);
    if (!launches.ok()) return in_context("kernel " + k.name, launches.error());
    all.push_back(std::move(*launches));
  }
  return triton::print_module(all);
}

/// The kernels for a GPU. Structured nodes are no kernels.
Result<std::string> print_triton(const Compilation& c) {
  std::string skipped;
  for (const ScheduleStep& step : c.schedule.order) {
    const auto* group = std::get_if<GroupId>(&step);
    const auto* alone = std::get_if<StructuredId>(&step);
    const StructuredId node = alone   ? *alone
                              : group ? c.schedule.groups[*group].node
                                      : StructuredId();
    if (node.valid())
      skipped += str("# skipped: {}, a structured node\n", c.program.structured[node].name);
  }
  std::vector<Kernel> kernels;
  for (const WholeKernel& w : c.whole_kernels) kernels.push_back(w.kernel);
  return skipped + COIL_TRY(triton_of(kernels));
}

constexpr StageText kStages[] = {
    {"graph", "graph.graph", print_graph},
    {"loops", "loops.loops", print_loops},
    {"schedule", "schedule.txt", print_schedule},
    {"kernels", "kernels.kernels", print_kernels},
    {"plan", "plan.txt", print_plan},
    {"code", "code.cpp", print_code},
    {"triton", "triton.py", print_triton},
};

/// Stages of a text of kernels alone, as each target maps and prints them.
Result<std::string> print_kernel_file(const std::vector<Kernel>& kernels, std::string_view stage) {
  if (stage == "triton") return triton_of(kernels);
  const auto print_launch = [&](const Kernel& k) {
    return stage == "kernels" ? to_text(k) : names_of(k) + cpp::print_kernel(k, "KERNEL");
  };
  std::string out;
  for (const Kernel& k : kernels) {
    std::vector<Kernel> launches = {k};
    if (!k.mapping.units.valid()) launches = launches_on_cpu(k, Machine{}).launches;
    for (const Kernel& launch : launches) out += (out.empty() ? "" : "\n") + print_launch(launch);
  }
  return out;
}

/// Writes each stage's text, to a folder or to the terminal.
Result<int> write_stages(const std::vector<const StageText*>& wanted, const std::string& folder,
                         const std::function<Result<std::string>(const StageText&)>& print_stage) {
  if (!folder.empty()) COIL_TRY(make_folders(folder));
  for (const StageText* s : wanted) {
    const std::string text = COIL_TRY(print_stage(*s));
    if (!folder.empty()) {
      COIL_TRY(write_file(str("{}/{}", folder, s->file), text));
    } else {
      print(wanted.size() == 1
                ? text
                : str("{}# ---- {} ----\n{}", s == wanted.front() ? "" : "\n", s->name, text));
    }
  }
  return kRight;
}

Result<int> dump_kernel_file(const DumpArguments& arguments,
                             const std::vector<const StageText*>& wanted) {
  const std::string& path = arguments.common.model;
  for (const StageText* s : wanted)
    if (s->name != "kernels" && s->name != "code" && s->name != "triton")
      return error("{} is a text of kernels: it has the stages kernels, code and triton, not {}",
                   path, s->name);
  const std::vector<Kernel> kernels = COIL_TRY(parse_kernels(COIL_TRY(read_file(path)), path));
  for (const Kernel& k : kernels)
    if (const Status s = verify(k); !s.ok())
      return in_context(str("{}: kernel {}", path, k.name), s.error());
  return write_stages(wanted, arguments.folder,
                      [&](const StageText& s) { return print_kernel_file(kernels, s.name); });
}

}  // namespace

Result<int> dump(const DumpArguments& arguments) {
  std::vector<const StageText*> wanted;
  for (std::size_t at = 0; at <= arguments.stages.size();) {
    const std::size_t end = std::min(arguments.stages.find(',', at), arguments.stages.size());
    const std::string word = arguments.stages.substr(at, end - at);
    const auto* stage = std::find_if(std::begin(kStages), std::end(kStages),
                                     [&](const StageText& s) { return s.name == word; });
    if (stage == std::end(kStages))
      return error("there is no stage '{}'; there are: {}", word,
                   join(kStages, ", ", [](const StageText& s) { return std::string(s.name); }));
    wanted.push_back(stage);
    at = end + 1;
  }
  if (arguments.common.model.ends_with(".kernels")) return dump_kernel_file(arguments, wanted);
  const std::shared_ptr<Compilation> c = COIL_TRY(
      prepare_until(arguments.common, arguments.common.target == "interp" ? "lower" : "plan"));
  return write_stages(wanted, arguments.folder, [&](const StageText& s) { return s.print(*c); });
}

}  // namespace coil::cli
