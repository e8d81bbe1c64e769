#pragma once
// Mutations of a JSON document by its tree: what comes out is JSON again, so that the readers
// behind the JSON parser are what is tested.

#include <nlohmann/json.hpp>

#include "mutate.h"

namespace coil::fuzz {

using Json = nlohmann::json;

inline void collect(Json& value, std::vector<Json*>& into) {
  into.push_back(&value);
  if (value.is_structured())
    for (Json& item : value) collect(item, into);
}

inline Json any_value(Random& random) {
  switch (below(random, 9)) {
    case 0: return nullptr;
    case 1: return true;
    case 2: return false;
    case 3: return Json::array();
    case 4: return Json::object();
    case 5: return "";
    case 6: return 1.5;
    case 7: return 1e300;
    default: return edge_number(random);
  }
}

/// Another node of the document of the same type.
inline Json similar(const std::vector<Json*>& all, const Json& value, Random& random) {
  std::vector<const Json*> fitting;
  for (const Json* other : all)
    if (other->type() == value.type() && *other != value) fitting.push_back(other);
  return fitting.empty() ? value : *fitting[below(random, fitting.size())];
}

inline void mutate_string(Json& value, const std::vector<Json*>& all, Random& random) {
  std::string text = value.get<std::string>();
  if (text.starts_with("torch.ops.aten.") && below(random, 2) == 0) {
    const std::string op = any_op(random);
    value = "torch.ops.aten." + op + (op.find('.') == std::string::npos ? ".default" : "");
  } else if (below(random, 4) == 0) {
    value = mutate_bytes(text, text.size() + 16);
  } else {
    value = similar(all, value, random);
  }
}

inline void mutate_array(Json& value, Random& random) {
  const std::size_t a = below(random, value.size()), b = below(random, value.size());
  const auto at = value.begin() + static_cast<std::ptrdiff_t>(a);
  switch (below(random, 4)) {
    case 0: value.erase(at); break;
    case 1: std::swap(value[a], value[b]); break;
    case 2: value.push_back(Json(value[a])); break;
    default: value[a] = Json(value[b]);
  }
}

/// Drops a field, or gives its content to another key, which may be new.
inline void mutate_object(Json& value, const std::vector<Json*>& all, Random& random) {
  auto at = value.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(below(random, value.size())));
  const Json content = *at;
  const Json donor = similar(all, Json::object(), random);  // `all` does not outlive a change
  value.erase(at);
  if (below(random, 2) == 0) return;
  constexpr const char* kArms[] = {"as_int",      "as_ints",      "as_float",
                                   "as_bool",     "as_string",    "as_none",
                                   "as_expr",     "as_name",      "as_tensor",
                                   "as_tensors",  "as_sym_int",   "as_sym_ints",
                                   "as_sym_bool", "as_sym_float", "as_scalar_type",
                                   "as_floats",   "as_bools",     "as_optional_tensors",
                                   "as_graph",    "as_complex",   "as_memory_format",
                                   "as_device"};
  if (below(random, 2) == 0 || donor.empty()) {
    value[kArms[below(random, std::size(kArms))]] = content;
  } else {
    auto key = donor.begin();
    std::advance(key, static_cast<std::ptrdiff_t>(below(random, donor.size())));
    value[key.key()] = content;
  }
}

inline void mutate_tree(Json& document, Random& random) {
  std::vector<Json*> all;
  collect(document, all);
  Json& value = *all[below(random, all.size())];
  const std::size_t way = below(random, 10);
  if (way == 0) {
    value = any_value(random);
  } else if (way < 3) {
    value = Json(similar(all, value, random));
  } else if (value.is_string()) {
    mutate_string(value, all, random);
  } else if (value.is_number()) {
    value = edge_number(random);
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_array() && !value.empty()) {
    mutate_array(value, random);
  } else if (value.is_object() && !value.empty()) {
    mutate_object(value, all, random);
  } else {
    value = any_value(random);
  }
}

/// A mutated document, or "" where `text` is not JSON.
inline std::string mutate_json(std::string_view text, Random& random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return "";
  do mutate_tree(document, random);
  while (below(random, 2) == 0);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace coil::fuzz
