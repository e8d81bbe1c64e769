// Level 3 text: parsing never crashes; what verifies prints, the print reads back as itself and
// verifies again. It maps to a GPU or is refused; what is mapped verifies, and prints or is
// refused.

#include "mutate_text.h"
#include "target/triton/print.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return coil::fuzz::mutate_text(data, size, max_size, seed, coil::fuzz::kLoopWords);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coil;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Kernel> kernel = parse_kernel(text, "fuzz");
  if (!kernel.ok() || !verify(*kernel).ok()) return 0;
  const std::string printed = to_text(*kernel);
  const Result<Kernel> again = parse_kernel(printed, "printed");
  COIL_CHECK(again.ok(), "{}\n{}", again.error().message, printed);
  COIL_CHECK(to_text(*again) == printed, "prints differently:\n{}\n{}", printed, to_text(*again));
  const Status sound = verify(*again);
  COIL_CHECK(sound.ok(), "{}\n{}", sound.error().message, printed);
  const Result<Launches> mapped = launches_on_gpu(*again);
  if (!mapped.ok()) return 0;
  for (const Kernel& launch : mapped->launches) {
    const Status still_sound = verify(launch);
    COIL_CHECK(still_sound.ok(), "{}\n{}\n{}", still_sound.error().message, to_text(launch),
               printed);
  }
  (void)triton::print_module({&*mapped, 1});
  return 0;
}
