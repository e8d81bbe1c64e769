#include "import/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace coil {
namespace {

/// Whether brackets nest deeper than `limit`, outside of strings.
bool is_deeper(std::string_view text, int limit) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > limit) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& what, int max_depth) {
  if (is_deeper(text, max_depth)) fail("{} is nested more than {} levels deep", what, max_depth);
  try {
    return Json::parse(text);
  } catch (const Json::exception& problem) {
    // The library's text begins with its own name for the error, in brackets.
    const std::string_view text_of_problem = problem.what();
    const std::size_t end = text_of_problem.find("] ");
    fail("{} is not valid JSON: {}", what,
         text_of_problem.substr(end == text_of_problem.npos ? 0 : end + 2));
  }
}

const Json* find_field(const Json& object, const char* name) {
  if (!object.is_object())
    fail("the program is damaged: an object with the field '{}' is missing", name);
  const auto at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

const Json& field(const Json& object, const char* name) {
  const Json* found = find_field(object, name);
  if (found == nullptr) fail("the program is damaged: a field '{}' is missing", name);
  return *found;
}

std::string text_of(const Json& value) {
  if (!value.is_string()) fail("the program is damaged: a text is missing");
  return value.get<std::string>();
}

std::string text_field(const Json& object, const char* name) {
  return text_of(field(object, name));
}

i64 integer_of(const Json& value) {
  // u64 fills above the range of i64 keep their bits.
  if (value.is_number_unsigned()) return static_cast<i64>(value.get<u64>());
  if (!value.is_number_integer())
    fail("the program is damaged: an integer is missing or too large");
  return value.get<i64>();
}

i64 integer_field(const Json& object, const char* name) { return integer_of(field(object, name)); }

bool bool_of(const Json& value) {
  if (!value.is_boolean()) fail("the program is damaged: a bool is missing");
  return value.get<bool>();
}

double real_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = text_of(value);
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  fail("the program is damaged: '{}' is not a float", text);
}

const Json& array_of(const Json& value) {
  if (!value.is_array()) fail("the program is damaged: a list is missing");
  return value;
}

const Json& object_of(const Json& value) {
  if (!value.is_object()) fail("the program is damaged: an object is missing");
  return value;
}

std::pair<std::string_view, const Json&> arm_of(const Json& value) {
  if (!value.is_object() || value.size() != 1)
    fail("the program is damaged: a choice must have exactly one field");
  return {value.begin().key(), value.begin().value()};
}

}  // namespace coil
