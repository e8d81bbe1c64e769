#pragma once
// The options table: every knob of a compilation is one row of options.def.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// Values of all options. Keys that were never set hold their default.
class Options {
 public:
  /// Sets one option from text, `-O key=value`. An unknown key or a value that is not allowed is an
  /// Error that names the nearest key or the allowed words.
  Status set(std::string_view key, std::string_view value);
  const std::string& text(std::string_view key) const;
  i64 integer(std::string_view key) const;
  bool flag(std::string_view key) const;
  /// "key=value" of each option that changes generated code, in table order: part of cache keys.
  std::string code_key() const;
  /// The table as help text, one option a line.
  static std::string help();

 private:
  std::map<std::string, std::string, std::less<>> set_;
};

/// The candidate with the smallest edit distance to `word`, or "" if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace coil
