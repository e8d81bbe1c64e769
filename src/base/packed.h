#pragma once
// Numbers and texts as few bytes: how plans are stored.

#include <string>
#include <string_view>

#include "base/ids.h"

namespace coil {

class PackedWriter {
 public:
  /// Seven bits a byte, the lowest first; numbers near zero of either sign are short.
  void number(i64 value);
  /// Its length, then its bytes.
  void text(std::string_view text);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a PackedWriter wrote, from bytes that may be damaged: after the first thing that
/// cannot be, every read gives 0 or "".
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : rest_(bytes) {}
  i64 number();
  std::string text();
  /// A number of items that follow, of at least one byte each.
  std::size_t count();
  void fail() { failed_ = true, rest_ = {}; }
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace coil
