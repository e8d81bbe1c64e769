// Any bytes as a .pt2, taken down to level 1: an Error or a sound program, never a crash.
//
// An input that is a JSON object with the fields "model", "weights" and "constants" stands for the
// archive with these three documents, whose weights all have "bytes" bytes. The mutator works on
// the tree of such an object. Any other input is the file itself.

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "import/pt2.h"
#include "levels.h"
#include "mutate_json.h"

namespace {

using coil::fuzz::Json;

/// A zip archive without compression. Checksums are left out, which says that they are not known.
class ZipWriter {
 public:
  void add(const std::string& name, const std::string& content) {
    const std::size_t offset = file_.size();
    const std::string common = number(20, 2) + number(0, 12) + number(content.size(), 4) +
                               number(content.size(), 4) + number(name.size(), 2) + number(0, 2);
    file_ += "PK\3\4" + common + name + content;
    directory_ += "PK\1\2" + number(20, 2) + common + number(0, 10) + number(offset, 4) + name;
    ++count_;
  }
  std::string finish() {
    return file_ + directory_ + "PK\5\6" + number(0, 4) + number(count_, 2) + number(count_, 2) +
           number(directory_.size(), 4) + number(file_.size(), 4) + number(0, 2);
  }

 private:
  static std::string number(std::size_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i, value = i < 8 ? value >> 8 : 0)
      out += static_cast<char>(value & 255);
    return out;
  }
  std::string file_, directory_;
  std::size_t count_ = 0;
};

void name_records(const Json& config, const std::string& folder, std::set<std::string>& records) {
  const auto weights = config.is_object() ? config.find("config") : config.end();
  if (!config.is_object() || weights == config.end() || !weights->is_object()) return;
  for (const Json& weight : *weights) {
    if (!weight.is_object() || !weight.contains("path_name") || !weight["path_name"].is_string())
      continue;
    const std::string name = weight["path_name"].get<std::string>();
    if (!name.empty() && name.size() < 100) records.insert("m/data/" + folder + "/" + name);
  }
}

std::string archive_of(const Json& input) {
  const auto text = [&](const char* key) {
    return input[key].dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::set<std::string> records;
  name_records(input["weights"], "weights", records);
  name_records(input["constants"], "constants", records);
  std::size_t bytes = 0;
  if (const auto size = input.find("bytes"); size != input.end() && size->is_number_unsigned())
    bytes = std::min<std::size_t>(size->get<std::size_t>(), 1 << 16);
  ZipWriter zip;
  zip.add("m/models/model.json", text("model"));
  zip.add("m/data/weights/model_weights_config.json", text("weights"));
  zip.add("m/data/constants/model_constants_config.json", text("constants"));
  for (const std::string& record : records) zip.add(record, std::string(bytes, '\0'));
  return zip.finish();
}

bool is_wrapped(const Json& input) {
  return input.is_object() && input.contains("model") && input.contains("weights") &&
         input.contains("constants");
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace coil::fuzz;
  Random random(seed + 1);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string mutated = text.starts_with("{") ? mutate_json(text, random) : "";
  if (mutated.empty() || mutated.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  return put(mutated, data, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (file.starts_with("{")) {
    const Json input = Json::parse(file, nullptr, false);
    if (is_wrapped(input)) file = archive_of(input);
  }
  // A copy of exactly this size, so that the sanitizer sees any step over its end.
  const std::shared_ptr<std::byte[]> copy(new std::byte[file.size()]);
  if (!file.empty()) std::memcpy(copy.get(), file.data(), file.size());
  const coil::Bytes bytes{copy.get(), static_cast<coil::i64>(file.size()), copy};
  const auto program = coil::import_pt2(bytes, "fuzz.pt2", &coil::composite_rules());
  if (!coil::fuzz::is_taken(program)) return 0;
  coil::fuzz::require(verify(program->graph), "after import");
  (void)to_text(program->graph);
  coil::fuzz::take_down(program->graph);
  return 0;
}
