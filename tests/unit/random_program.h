#pragma once
// Random programs of level 1, as text, for the test of the scheduler.

#include <map>
#include <string>

#include "base/ids.h"

namespace coil::random_program {

struct Text {
  std::string program;
  std::map<std::string, i64> sizes;  // a value for each size of the program
};

/// The same text for the same seed. 3 to 30 bodies and nodes; every buffer is read later or is an
/// output.
Text make(u64 seed);

}  // namespace coil::random_program
