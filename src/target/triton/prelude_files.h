#pragma once
// The files of src/target/triton/prelude/, embedded in the library so that the command is one file.

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace coil::triton {

struct PreludeFile {
  std::string_view name;  // "functions.py"
  std::string_view text;
};
std::span<const PreludeFile> prelude_files();

/// The functions of the prelude that `text` calls, with those that they call, in the prelude's
/// order.
std::string prelude_for(std::string_view text);

}  // namespace coil::triton
