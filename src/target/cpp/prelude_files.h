#pragma once
// The files of src/target/cpp/prelude/, embedded in the library so that the command is one file.

#include <span>
#include <string_view>

namespace coil::cpp {

struct PreludeFile {
  std::string_view name;  // "10_vector.h"
  std::string_view text;
};

/// All files in name order, which is the order in which generated code includes them.
std::span<const PreludeFile> prelude_files();

}  // namespace coil::cpp
