#pragma once
// Which build of coil this is, for cache keys.

#include <string>

namespace coil {

/// The build id that the linker gave the program or library that holds this function, as hex
/// digits; "" where there is none.
std::string build_id();

}  // namespace coil
