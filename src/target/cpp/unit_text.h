#pragma once
// The text of a translation unit: the part of the prelude that its kernels name, then the kernels.

#include <string>
#include <vector>

namespace coil::cpp {

/// What a compiler is given for these kernels. Files of the prelude
/// whose names neither a kernel nor a file that is kept uses are left out: reading all of it is a
/// quarter of the time that a small kernel takes to compile.
std::string translation_unit(const std::vector<std::string>& kernels);

}  // namespace coil::cpp
