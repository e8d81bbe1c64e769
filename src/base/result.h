#pragma once
// Result<T>: a value, or the Error that input or environment caused.

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace coil {

/// What went wrong with the user's input or environment. The message says which node and source
/// line, what was found, what was expected, and what to do; lower case, no final period.
struct Error {
  std::string message;
};

/// Makes an Error from a format string.
template <class... Args>
Error error(fmt::format_string<Args...> text, Args&&... args) {
  return Error{str(text, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit, so `return value;` works
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }
  T& value() {
    COIL_CHECK(value_.has_value(), "{}", error_.message);
    return *value_;
  }
  const T& value() const {
    COIL_CHECK(value_.has_value(), "{}", error_.message);
    return *value_;
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

/// A Result without a value: `return Ok{};` or an Error.
struct Ok {};
using Status = Result<Ok>;

/// The same error with a prefix that says where: "node relu_3 (model.py:12): ...".
inline Error in_context(const std::string& where, const Error& e) {
  return Error{where + ": " + e.message};
}

}  // namespace coil

/// `auto x = COIL_TRY(f());` is x = the value, or leaves the function with the Error.
#define COIL_TRY(expression)                                          \
  ({                                                                  \
    auto coil_result = (expression);                                  \
    if (!coil_result.ok()) return ::coil::Error(coil_result.error()); \
    std::move(*coil_result);                                          \
  })
