#include "driver/load.h"

#include <map>

#include "base/file.h"
#include "graph/data.h"
#include "graph/text.h"
#include "import/functionalize.h"
#include "import/npz.h"
#include "import/pt2.h"
#include "passes/passes.h"

namespace coil {
namespace {

std::string beside(const std::string& path, const std::string& file) {
  if (file.starts_with("/")) return file;
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? file : path.substr(0, slash + 1) + file;
}

/// Fills in the storages that a text takes from .npz files.
Status load_storages(std::vector<Storage>& storages, const std::string& path) {
  std::map<std::string, std::vector<NpyArray>> files;
  for (Storage& s : storages) {
    if (s.source != StorageSource::File || s.data) continue;
    const std::string file = beside(path, s.file);
    auto at = files.find(file);
    if (at == files.end()) at = files.emplace(file, COIL_TRY(read_npz(file))).first;
    const NpyArray* found = nullptr;
    for (const NpyArray& a : at->second)
      if (a.name == s.key) found = &a;
    if (!found) return error("{}: there is no array '{}'", file, s.key);
    s.data = found->data;
    s.bytes = found->bytes;
    s.owner = found->owner;
  }
  return Ok{};
}

/// The first word that is neither a comment nor white space.
std::string_view first_word(std::string_view text) {
  while (true) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == text.npos) return {};
    text.remove_prefix(start);
    if (text[0] != '#') break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return text.substr(0, text.find_first_of(" \t\r\n(<{"));
}

/// Weights that were saved without their data (models of fake or meta tensors) cannot be run.
Status check_absent(const Graph& graph, const std::string& path) {
  for (const Constant& c : graph.constants)
    if (graph.storages[c.storage].source == StorageSource::Absent)
      return error(
          "{}: the file holds no data for the weight '{}'; export the model with real weights",
          path, c.fqn.empty() ? graph.values[c.value].name : c.fqn);
  return Ok{};
}

}  // namespace

Result<LoadedModel> load_model(const std::string& path) {
  LoadedModel out;
  Bytes bytes = COIL_TRY(map_file(path));
  const std::string_view view(reinterpret_cast<const char*>(bytes.data),
                              static_cast<std::size_t>(bytes.size));
  const std::string_view word = first_word(view.substr(0, 1 << 16));
  if (word == "graph") {
    Graph graph = COIL_TRY(parse_graph(view, path, {.composites = &composite_rules()}));
    COIL_TRY(load_storages(graph.storages, path));
    COIL_TRY(check_absent(graph, path));
    out.program = std::move(graph);
  } else if (word == "program") {
    LoopProgram program = COIL_TRY(parse_program(view, path));
    COIL_TRY(load_storages(program.storages, path));
    if (const Status sound = verify(program); !sound.ok())
      return error("{}: {}", path, sound.error().message);
    out.program = std::move(program);
  } else if (view.starts_with("PK")) {
    Pt2Program program = COIL_TRY(import_pt2(bytes, path, &composite_rules()));
    out.warnings = std::move(program.warnings);
    out.type_differences = std::move(program.type_differences);
    for (const FixedInput& f : program.fixed_inputs) program.graph.inputs[f.input].fixed = f.value;
    COIL_TRY(check_absent(program.graph, path));
    out.program = std::move(program.graph);
  } else {
    return error(
        "{} is neither a .pt2 file nor coil's text (which begins with 'graph' or 'program')", path);
  }
  return out;
}

void set_random_seed(LoadedModel& model, u64 seed) {
  Graph* graph = std::get_if<Graph>(&model.program);
  if (graph == nullptr) return;
  for (const Constant& constant : graph->constants) {
    if (constant.fqn != kRandomState || !constant.is_state) continue;
    const i64 start[] = {static_cast<i64>(seed), 0};
    graph->storages[constant.storage] = inline_storage(std::as_bytes(std::span(start)));
  }
}

}  // namespace coil
