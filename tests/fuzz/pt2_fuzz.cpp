// Any bytes as a .pt2: an Error or a program, never a crash.

#include <cstdint>
#include <cstring>
#include <memory>

#include "import/pt2.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::shared_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  const coil::Bytes file{copy.get(), static_cast<coil::i64>(size), copy};
  const auto program = coil::import_pt2(file, "fuzz.pt2", nullptr);
  if (!program.ok() && program.error().message.empty()) __builtin_trap();
  return 0;
}
