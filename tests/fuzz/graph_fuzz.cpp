// Level 0 text: parsing never crashes; what it takes is sound, prints, reads back as itself, and goes
// down to level 1 or is refused with an Error.

#include "levels.h"
#include "mutate_text.h"

namespace {

const std::vector<std::string> kWords = {
    "graph", "size", "data",  "fact",    "check",  "const",  "state", "in",     "hint",  "file",   "seed",
    "of",    "at",   "offset", "strides", "absent", "mutates", "updates", "return", "alias", "input", "output",
    "None",  "int",  "bool",  "float",   "f32",    "f64",    "f16",   "bf16",   "i64",   "i32",    "u8",
    "c64",   "c128", "f8e4m3", "true",    "false",  "inf",    "nan",   "update", "cond",  "while_loop", "scan",
    "[]",    "[1]",  "[2, 3]", "s0",      "u0",     "//",     "min",   "max",    "-1",    "0",      "1.5"};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return coil::fuzz::mutate_text(data, size, max_size, seed, kWords);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coil;
  GraphTextOptions options;
  options.composites = &composite_rules();
  options.max_data_bytes = 1 << 20;
  const Result<Graph> graph = parse_graph({reinterpret_cast<const char*>(data), size}, "fuzz", options);
  if (!fuzz::is_taken(graph)) return 0;
  fuzz::require(verify(*graph), "after parsing");
  const std::string printed = to_text(*graph);
  const Result<Graph> again = parse_graph(printed, "printed", options);
  COIL_CHECK(again.ok(), "{}\n{}", again.error().message, printed);
  COIL_CHECK(to_text(*again) == printed, "prints differently:\n{}\n{}", printed, to_text(*again));
  fuzz::take_down(*graph);
  return 0;
}
