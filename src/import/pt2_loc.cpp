#include "import/pt2_loc.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace coil {
namespace {

/// Frames of torch itself and of code that has no file.
bool is_foreign(std::string_view path) {
  if (path.empty() || path[0] == '<') return true;
  for (std::string_view part : {"/site-packages/torch/", "/dist-packages/torch/", "/torch/nn/",
                                "/torch/fx/", "/torch/_dynamo/", "/torch/export/"})
    if (path.find(part) != std::string_view::npos) return true;
  // insert_deferred_runtime_asserts adds nodes that no line of the user's asked for.
  return path == "runtime_assert.py";
}

/// Splits at `separator` outside of brackets.
std::vector<std::string_view> split_outside(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (text[i] != separator || depth > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string metadata(const Json& node, const char* key) {
  const Json* all = find_field(node, "metadata");
  const Json* value = all != nullptr ? find_field(*all, key) : nullptr;
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

std::string frame_of(const std::string& stack_trace) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  const std::string_view trace = stack_trace;
  for (std::size_t at = trace.rfind(kFile); at != trace.npos;
       at = at == 0 ? trace.npos : trace.rfind(kFile, at - 1)) {
    const std::string_view rest = trace.substr(at + kFile.size());
    const std::size_t end = rest.find(kLine);
    if (end == rest.npos || rest.substr(0, end).find('\n') != rest.npos) continue;
    const std::string_view path = rest.substr(0, end);
    if (is_foreign(path)) continue;
    const std::string_view digits = rest.substr(end + kLine.size());
    const std::size_t length = std::min(digits.find_first_not_of("0123456789"), digits.size());
    const std::size_t slash = path.find_last_of("/\\");
    const std::string_view file = slash == path.npos ? path : path.substr(slash + 1);
    return str("{}:{}", file, digits.substr(0, length));
  }
  return "";
}

std::string module_of(const std::string& nn_module_stack) {
  const std::vector<std::string_view> modules = split_outside(nn_module_stack, ';');
  const std::vector<std::string_view> fields = split_outside(modules.back(), ',');
  if (fields.size() < 2 || fields[1].starts_with("_empty_nn_module_stack")) return "";
  std::string_view path = fields[1];
  constexpr std::string_view kSelf = "L['self'].";
  if (path.starts_with(kSelf)) path.remove_prefix(kSelf.size());
  return std::string(path);
}

Loc loc_of_metadata(const Json& node) {
  return Loc{frame_of(metadata(node, "stack_trace")), module_of(metadata(node, "nn_module_stack"))};
}

}  // namespace coil
