#include "base/packed.h"

namespace coil {

void PackedWriter::number(i64 value) {
  // The sign goes to the lowest bit.
  u64 rest = static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
  bytes_ += static_cast<char>(rest);
}

void PackedWriter::text(std::string_view text) {
  number(static_cast<i64>(text.size()));
  bytes_ += text;
}

i64 PackedReader::number() {
  u64 value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const u64 byte = static_cast<u8>(rest_[0]);
    rest_.remove_prefix(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return static_cast<i64>(value >> 1 ^ (0 - (value & 1)));
  }
  fail();
  return 0;
}

std::string PackedReader::text() {
  const std::size_t size = count();
  std::string out(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return out;
}

std::size_t PackedReader::count() {
  const i64 count = number();
  if (count < 0 || static_cast<u64>(count) > rest_.size()) fail();
  return failed_ ? 0 : static_cast<std::size_t>(count);
}

}  // namespace coil
