#pragma once
// Places in the user's source, from a node's metadata.

#include <string>

#include "graph/graph.h"
#include "import/json.h"

namespace coil {

/// "model.py:12" of the innermost frame of a stack trace that is the user's own; "" if there is
/// none.
std::string frame_of(const std::string& stack_trace);
/// "encoder.layer.0" of "L__self__,,Model;L__self__encoder,encoder,Encoder;...": the innermost
/// module.
std::string module_of(const std::string& nn_module_stack);
Loc loc_of_metadata(const Json& node);

}  // namespace coil
