#pragma once
// How the user calls the program: names and places of its flat inputs, from the pytree text.

#include <string>
#include <vector>

#include "import/json.h"

namespace coil {

struct InputName {
  std::string name;                // the user's own: "x", or "pair.0" inside of a tuple
  std::vector<std::string> paths;  // texts by which guards call it: "L['x']", "L['pair'][0]"
};

/// One row a user input, in order. Where the file's description does not fit, the names of the
/// placeholders are used.
std::vector<InputName> input_names(const Json& graph_module,
                                   const std::vector<std::string>& placeholders);

}  // namespace coil
