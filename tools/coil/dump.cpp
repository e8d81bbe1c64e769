// coil dump: each level as text.

#include <algorithm>

#include "base/file.h"
#include "cli.h"
#include "graph/text.h"
#include "target/cpp/toolchain.h"

namespace coil::cli {
namespace {

struct StageText {
  std::string_view name;
  std::string_view file;  // for -o
  std::string (*print)(const Compilation&);
};

std::string print_graph(const Compilation& c) {
  return c.from_graph ? to_text(c.graph) : std::string();
}
std::string print_loops(const Compilation& c) { return to_text(c.program); }
std::string print_schedule(const Compilation& c) { return to_text(c.program, c.schedule); }
std::string print_kernels(const Compilation& c) {
  return join(c.kernels, "\n", [](const Kernel& k) { return to_text(k); });
}
std::string print_plan(const Compilation& c) {
  return c.model ? to_text(c.model->plan) : std::string();
}
/// The kernels' functions, each under the names that the source itself leaves out.
std::string print_code(const Compilation& c) {
  std::string out;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    out += str("{}// kernel {}\n", i == 0 ? "" : "\n", c.kernels[i].name);
    for (const std::string& f : c.kernels[i].from) out += str("//   {}\n", f);
    for (std::size_t b = 0; b < c.kernels[i].buffers.size(); ++b)
      out += str("{}b{} = %{}", b == 0 ? "//   " : ", ", b, c.kernels[i].buffers[b].name);
    out += (c.kernels[i].buffers.empty() ? "" : "\n") + c.sources[i];
  }
  return out;
}

constexpr StageText kStages[] = {
    {"graph", "graph.graph", print_graph},
    {"loops", "loops.loops", print_loops},
    {"schedule", "schedule.txt", print_schedule},
    {"kernels", "kernels.kernels", print_kernels},
    {"plan", "plan.txt", print_plan},
    {"code", "code.cpp", print_code},
};

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
  const std::shared_ptr<Compilation> c = COIL_TRY(
      prepare_until(arguments.common, arguments.common.target == "interp" ? "lower" : "plan"));
  if (!arguments.folder.empty()) COIL_TRY(make_folders(arguments.folder));
  for (const StageText* s : wanted) {
    const std::string text = s->print(*c);
    if (!arguments.folder.empty()) {
      COIL_TRY(write_file(str("{}/{}", arguments.folder, s->file), text));
    } else {
      print(wanted.size() == 1
                ? text
                : str("{}# ---- {} ----\n{}", s == wanted.front() ? "" : "\n", s->name, text));
    }
  }
  return kRight;
}

}  // namespace coil::cli
