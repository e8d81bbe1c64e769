#pragma once
// What is said of a matrix that a factorisation could not take apart.

#include <string>
#include <string_view>

namespace coil {

/// The text of the check that `info`, a result of the op behind the function `api_name`
/// ("linalg.inv") or of an op (linalg_inv_ex), is 0 everywhere.
std::string info_error(std::string_view api_name);

}  // namespace coil
