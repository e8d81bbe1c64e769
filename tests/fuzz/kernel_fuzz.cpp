// Level 3 text: parsing never crashes; what verifies prints, the print reads back as itself and
// verifies again.

#include "kernel/kernel.h"
#include "mutate_text.h"

namespace {

const std::vector<std::string> kWords = {"kernel",
                                         "size",
                                         "step",
                                         "value",
                                         "scalar",
                                         "written",
                                         "grid",
                                         "stage",
                                         "over",
                                         "mapping",
                                         "tile",
                                         "chunk",
                                         "units",
                                         "serial",
                                         "grain",
                                         "load",
                                         "store",
                                         "const",
                                         "index",
                                         "wrap",
                                         "assert",
                                         "clamp",
                                         "cast",
                                         "if",
                                         "else",
                                         "keep",
                                         "accumulate.sum",
                                         "accumulate.welford",
                                         "accumulate.argmax",
                                         "scan.sum",
                                         "finish",
                                         "tree",
                                         "a0",
                                         "a1",
                                         "v0",
                                         "v1",
                                         "v2",
                                         "n0",
                                         "i0",
                                         "i1",
                                         "r0",
                                         "s0",
                                         "f32",
                                         "f64",
                                         "bf16",
                                         "f16",
                                         "i64",
                                         "i32",
                                         "u8",
                                         "bool",
                                         "x",
                                         "16",
                                         "layout",
                                         "strides",
                                         "offset",
                                         "d0",
                                         "//",
                                         "%",
                                         "min",
                                         "max",
                                         "-1",
                                         "0",
                                         "1.5",
                                         "inf",
                                         "nan",
                                         "add",
                                         "mul",
                                         "where",
                                         "lt",
                                         "exp",
                                         "rsqrt"};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return coil::fuzz::mutate_text(data, size, max_size, seed, kWords);
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
  return 0;
}
