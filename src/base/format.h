#pragma once
// Text formatting: fmt's light core header; its bodies are compiled once, in format.cpp.

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace coil {

std::string format_args_text(std::string_view text, fmt::format_args args);

/// fmt::format under a name with which no std::format competes.
template <class... Args>
std::string str(fmt::format_string<Args...> text, Args&&... args) {
  const fmt::string_view view = text;
  return format_args_text({view.data(), view.size()}, fmt::make_format_args(args...));
}

/// Joins `text(item)` of each item with `separator`.
template <class Items, class Text>
std::string join(const Items& items, std::string_view separator, Text text) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    first = false;
    out += text(item);
  }
  return out;
}

}  // namespace coil
