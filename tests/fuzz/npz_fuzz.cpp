// Any bytes as an .npz or .npy: an Error or arrays whose every byte can be read, never a crash.

#include <cstdint>
#include <cstring>
#include <memory>

#include "import/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::shared_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  const coil::Bytes file{copy.get(), static_cast<coil::i64>(size), copy};
  const auto arrays = coil::read_npz(file, "fuzz.npz");
  if (!arrays.ok()) return 0;
  unsigned sum = 0;
  for (const coil::NpyArray& array : *arrays)
    for (coil::i64 i = 0; i < array.bytes; ++i) sum += static_cast<unsigned>(array.data[i]);
  return sum == ~0u ? -1 : 0;  // the sum is used, so that every byte is read
}
