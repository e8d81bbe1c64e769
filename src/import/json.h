#pragma once
// Checked access to parsed JSON, for the readers of this folder. Wrong content throws BuildError,
// which import_pt2 turns into its Error.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "graph/builder.h"

namespace coil {

using Json = nlohmann::json;

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw BuildError{error(text, std::forward<Args>(args)...)};
}

/// Parses a document whose nesting is at most `max_depth`, so that recursion over it is safe.
/// `what` names it in messages.
Json parse_json(std::string_view text, const std::string& what, int max_depth);

/// A field of an object; null if it is absent or null.
const Json* find_field(const Json& object, const char* name);
const Json& field(const Json& object, const char* name);
std::string text_of(const Json& value);
std::string text_field(const Json& object, const char* name);
i64 integer_of(const Json& value);
i64 integer_field(const Json& object, const char* name);
bool bool_of(const Json& value);
/// A number, or "Infinity", "-Infinity", "NaN".
double real_of(const Json& value);
const Json& array_of(const Json& value);
const Json& object_of(const Json& value);
/// The one arm of a union: {"as_int": 3} gives "as_int" and 3.
std::pair<std::string_view, const Json&> arm_of(const Json& value);

}  // namespace coil
