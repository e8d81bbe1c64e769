#pragma once
// COIL_CHECK states what holds whatever the input is; when it fails, coil itself is wrong.

#include <stdexcept>
#include <string>

#include "base/format.h"

namespace coil {

/// A defect of coil. Thrown by COIL_CHECK; caught only at the command line and the C ABI.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

}  // namespace coil

#define COIL_CHECK(condition, ...)                                                     \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::coil::fail_check(__FILE__, __LINE__, #condition, ::coil::str("" __VA_ARGS__)); \
  } while (false)

/// For the end of a switch over one of our enums, where control cannot arrive.
#define COIL_UNREACHABLE() ::coil::fail_check(__FILE__, __LINE__, "unreachable", "")
