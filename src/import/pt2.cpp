#include "import/pt2.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "import/pt2_program.h"

namespace coil {
namespace {

/// Deeper than any export; recursion over the document is safe below it.
constexpr int kMaxJsonDepth = 200;
constexpr i64 kSchemaMajor = 8;

Error needs_newer(const std::string& path, const std::string& found) {
  return error(
      "{} was written by {}, which keeps weights as Python pickles; coil reads exports of "
      "torch 2.9 and newer: load it in Python and export it again with such a version",
      path, found);
}

/// The folder that holds everything: "model/" before "model/models/model.json".
std::optional<std::string> root_of(const Archive& archive) {
  std::optional<std::string> root;
  for (const ArchiveEntry& entry : archive.entries()) {
    const std::size_t at = entry.name.find("models/");
    const bool is_folder = at == 0 || (at != std::string::npos && entry.name[at - 1] == '/');
    if (!is_folder || !entry.name.ends_with(".json")) continue;
    const std::string candidate = entry.name.substr(0, at);
    if (!root || candidate.size() < root->size()) root = candidate;
  }
  return root;
}

std::vector<std::string> models_of(const Archive& archive, const std::string& root) {
  const std::string folder = root + "models/";
  constexpr std::string_view kSuffix = ".json";
  std::vector<std::string> models;
  for (const ArchiveEntry& entry : archive.entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(kSuffix)) continue;
    const std::size_t length = entry.name.size() - folder.size() - kSuffix.size();
    models.push_back(entry.name.substr(folder.size(), length));
  }
  return models;
}

std::string list_text(const std::vector<std::string>& names) {
  return join(names, ", ", [](const std::string& name) { return name; });
}

Result<std::string> choose_model(const Archive& archive, const std::string& root,
                                 const std::string& wanted) {
  const std::vector<std::string> models = models_of(archive, root);
  if (wanted.empty() && models.size() == 1) return models[0];
  if (std::ranges::find(models, wanted) != models.end()) return wanted;
  if (wanted.empty())
    return error("{} holds {} models ({}), coil reads files of one; save each to a file of its own",
                 archive.path(), models.size(), list_text(models));
  return error("{} holds no model '{}'; it has: {}", archive.path(), wanted, list_text(models));
}

Status check_layout(const Archive& archive, const std::string& root, const std::string& model) {
  if (const ArchiveEntry* order = archive.find(root + "byteorder")) {
    const Bytes bytes = COIL_TRY(archive.read(*order, Checksum::Verify));
    if (bytes.text() == "big") return error("{} holds weights in big-endian order", archive.path());
  }
  const bool has_config =
      archive.find(root + "data/weights/" + model + "_weights_config.json") != nullptr;
  const bool has_pickle = archive.find(root + "data/weights/" + model + ".pt") != nullptr;
  if (!has_config && has_pickle) return needs_newer(archive.path(), "torch 2.8");
  if (!has_config)
    return error("{} has no record of its weights; the file is incomplete", archive.path());
  return Ok{};
}

void check_schema(const Json& document, const std::string& path) {
  const Json& version = field(document, "schema_version");
  const i64 major = integer_field(version, "major"), minor = integer_field(version, "minor");
  if (major == kSchemaMajor) return;
  const Json* writer = find_field(document, "torch_version");
  fail(
      "{} has schema version {}.{} (written by torch {}), coil reads {}.x; export it with a torch "
      "between 2.9 and 2.15",
      path, major, minor, writer != nullptr ? text_of(*writer) : "unknown", kSchemaMajor);
}

Result<Pt2Program> read_program(const Archive& archive, const std::string& wanted,
                                const CompositeRules* composites) {
  const std::optional<std::string> root = root_of(archive);
  if (!root) {
    for (const ArchiveEntry& entry : archive.entries())
      if (entry.name.ends_with("serialized_exported_program.json"))
        return needs_newer(archive.path(), "torch 2.7 or older");
    return error(
        "{} is a zip archive, but holds no exported program (no models/*.json); "
        "torch.export.save writes one",
        archive.path());
  }
  const std::string model = COIL_TRY(choose_model(archive, *root, wanted));
  COIL_TRY(check_layout(archive, *root, model));
  const std::string name = *root + "models/" + model + ".json";
  const Bytes bytes = COIL_TRY(archive.read(*archive.find(name), Checksum::Verify));
  const Json document = parse_json(bytes.text(), archive.path() + ": " + name, kMaxJsonDepth);
  check_schema(document, archive.path());

  const Json* writer = find_field(document, "torch_version");
  const Pt2Place place{archive, *root, model, writer != nullptr ? text_of(*writer) : "unknown"};
  // A write to one of several tensors in one record must show in the others. Which records that
  // concerns is known only after a first reading.
  std::set<std::string> shared;
  for (;;) {
    Pt2ProgramReader reader(place, document, composites, shared);
    reader.read();
    const std::set<std::string> more = reader.written_shared_records();
    if (std::ranges::includes(shared, more)) return reader.finish();
    shared.insert(more.begin(), more.end());
  }
}

}  // namespace

Result<Pt2Program> import_pt2(Bytes file, const std::string& path, const CompositeRules* composites,
                              const std::string& model) {
  const Archive archive = COIL_TRY(Archive::open(std::move(file), path));
  try {
    return read_program(archive, model, composites);
  } catch (const BuildError& problem) {
    const bool has_path = problem.error.message.starts_with(path);
    return has_path ? problem.error : in_context(path, problem.error);
  } catch (const Json::exception& problem) {
    return error("{}: the program is damaged: {}", path, problem.what());
  }
}

Result<Pt2Program> import_pt2(const std::string& path, const CompositeRules* composites,
                              const std::string& model) {
  return import_pt2(COIL_TRY(map_file(path)), path, composites, model);
}

}  // namespace coil
