#pragma once
// A shared library opened at run time.

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil::external {

class Library {
 public:
  /// `setting` is "auto", which tries the sonames in order, or the path of a file. It stays loaded
  /// for the rest of the process: thread runtimes below it do not survive being unloaded.
  static Result<Library> open(const std::string& setting, const std::vector<std::string>& sonames);

  /// The symbol of that name, here or in a library that it needs; null where there is none.
  template <class Function>
  void find(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(symbol(name));
  }
  /// The same, and an Error where there is none.
  template <class Function>
  Status need(const char* name, Function*& out) const {
    find(name, out);
    if (!out) return error("it has no function {}", name);
    return Ok{};
  }

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;
};

/// The time that a library has to show, in a child process, that it works: a few milliseconds'
/// work.
inline constexpr int kProofLimitMs = 10'000;

/// Numbers of a proof: whole and small, so that every order of summation gives the exact sum.
inline float proof_number(i64 i) { return static_cast<float>(i * 7 % 11 - 5); }

}  // namespace coil::external
