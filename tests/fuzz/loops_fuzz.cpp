// Level 1 text: parsing never crashes; what verifies prints, and the print reads back as itself.

#include "loop/program.h"
#include "mutate_text.h"

namespace {

const std::vector<std::string> kWords = {"program",
                                         "size",
                                         "scalar",
                                         "fact",
                                         "check",
                                         "input",
                                         "output",
                                         "buffer",
                                         "body",
                                         "from",
                                         "dims",
                                         "reduce",
                                         "scan",
                                         "load",
                                         "store",
                                         "value",
                                         "index",
                                         "wrap",
                                         "assert",
                                         "clamp",
                                         "const",
                                         "cast",
                                         "if",
                                         "else",
                                         "starts",
                                         "layout",
                                         "strides",
                                         "offset",
                                         "state",
                                         "init",
                                         "gemm",
                                         "conv",
                                         "attention",
                                         "sort",
                                         "topk",
                                         "cond",
                                         "while",
                                         "for",
                                         "carry",
                                         "tree",
                                         "over",
                                         "seed",
                                         "at",
                                         "add",
                                         "i0",
                                         "i1",
                                         "r0",
                                         "s0",
                                         "v0",
                                         "v1",
                                         "n0",
                                         "f32",
                                         "f64",
                                         "bf16",
                                         "f16",
                                         "i64",
                                         "i32",
                                         "u8",
                                         "bool",
                                         "//",
                                         "%",
                                         "min",
                                         "max",
                                         "-1",
                                         "0",
                                         "1.5",
                                         "inf",
                                         "nan",
                                         "mul",
                                         "where",
                                         "lt",
                                         "reduce.sum",
                                         "reduce.welford",
                                         "reduce.argmax",
                                         "scan.sum"};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return coil::fuzz::mutate_text(data, size, max_size, seed, kWords);
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
