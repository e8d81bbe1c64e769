#include "import/pt2_inputs.h"

#include <nlohmann/json.hpp>

namespace coil {
namespace {

constexpr int kMaxSpecDepth = 60;

/// Keys of the children of a spec with keys, else nothing.
std::vector<std::string> keys_of(const Json& spec) {
  std::vector<std::string> keys;
  const Json* context = find_field(spec, "context");
  if (context == nullptr || !context->is_string()) return keys;
  const Json document =
      parse_json(context->get<std::string>(), "the call's description", kMaxSpecDepth);
  const Json* list = &document;
  if (document.is_object()) list = find_field(document, "dict_context");  // of a defaultdict
  if (list == nullptr || !list->is_array()) return keys;
  for (const Json& key : *list) {
    if (!key.is_string()) return {};
    keys.push_back(key.get<std::string>());
  }
  return keys;
}

void add_leaves(const Json& spec, const std::string& name, const std::string& path,
                std::vector<InputName>& out) {
  const Json* type = find_field(spec, "type");
  if (type == nullptr) {
    out.push_back({name, {path}});
    return;
  }
  const Json& children = array_of(field(spec, "children_spec"));
  const std::vector<std::string> keys = keys_of(spec);
  const bool has_keys = keys.size() == children.size() && !keys.empty();
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string key = has_keys ? keys[i] : str("{}", i);
    add_leaves(children[i], name + "." + key,
               path + (has_keys ? "['" + key + "']" : "[" + key + "]"), out);
  }
}

/// The leaves of the pair (args, kwargs).
std::vector<InputName> leaves_of(const Json& signature) {
  const Json document =
      parse_json(text_field(signature, "in_spec"), "the call's description", kMaxSpecDepth);
  if (array_of(document).size() != 2) return {};
  const Json& pair = array_of(field(document[1], "children_spec"));
  if (pair.size() != 2) return {};
  std::vector<std::string> names;
  if (const Json* given = find_field(signature, "forward_arg_names"))
    for (const Json& name : array_of(*given)) names.push_back(text_of(name));
  std::vector<InputName> leaves;
  const Json& args = array_of(field(pair[0], "children_spec"));
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = i < names.size() ? names[i] : str("arg{}", i);
    add_leaves(args[i], name, "L['" + name + "']", leaves);
  }
  const Json& kwargs = array_of(field(pair[1], "children_spec"));
  const std::vector<std::string> keys = keys_of(pair[1]);
  if (keys.size() != kwargs.size()) return {};
  for (std::size_t i = 0; i < kwargs.size(); ++i)
    add_leaves(kwargs[i], keys[i], "L['" + keys[i] + "']", leaves);
  return leaves;
}

}  // namespace

std::vector<InputName> input_names(const Json& graph_module,
                                   const std::vector<std::string>& placeholders) {
  std::vector<InputName> names;
  for (const Json& entry : array_of(field(graph_module, "module_call_graph"))) {
    const Json* signature = find_field(entry, "signature");
    if (text_field(entry, "fqn").empty() && signature != nullptr) {
      names = leaves_of(*signature);
      break;
    }
  }
  if (names.size() != placeholders.size()) {
    names.clear();
    for (const std::string& name : placeholders) names.push_back({name, {"L['" + name + "']"}});
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i].paths.push_back(str("L['flat_args'][{}]", i));  // what strict export writes
  return names;
}

}  // namespace coil
