// Level 1 text: parsing never crashes; what verifies prints, and the print reads back as itself.

#include "loop/program.h"
#include "mutate_text.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return coil::fuzz::mutate_text(data, size, max_size, seed, coil::fuzz::kLoopWords);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coil;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<LoopProgram> program = parse_program(text, "fuzz");
  if (!program.ok() || !verify(*program).ok()) return 0;
  const std::string printed = to_text(*program);
  const Result<LoopProgram> again = parse_program(printed, "printed");
  COIL_CHECK(again.ok(), "{}\n{}", again.error().message, printed);
  COIL_CHECK(to_text(*again) == printed, "prints differently:\n{}", printed);
  return 0;
}
