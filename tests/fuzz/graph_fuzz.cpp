// Level 0 text: parsing never crashes; what it takes is sound, prints, reads back as itself, and
// goes down to level 1 or is refused with an Error.

#include "levels.h"
#include "mutate_text.h"

namespace {

const std::vector<std::string> kWords = {
    "graph",   "size",    "data",       "fact",   "check", "const",  "state",   "in",
    "hint",    "file",    "seed",       "of",     "at",    "offset", "strides", "absent",
    "mutates", "updates", "return",     "alias",  "input", "output", "None",    "int",
    "bool",    "float",   "f32",        "f64",    "f16",   "bf16",   "i64",     "i32",
    "u8",      "c64",     "c128",       "f8e4m3", "true",  "false",  "inf",     "nan",
    "update",  "cond",    "while_loop", "scan",   "[]",    "[1]",    "[2, 3]",  "s0",
    "u0",      "//",      "min",        "max",    "-1",    "0",      "1.5"};

using coil::fuzz::below;
using coil::fuzz::Random;

std::string small_number(Random& random) {
  return std::to_string(below(random, 8) == 0 ? coil::fuzz::edge_number(random)
                                              : static_cast<std::int64_t>(below(random, 7)) - 2);
}

/// An argument that fits the schema, mostly.
std::string argument(const coil::ops::SchemaArg& arg, const std::vector<std::string>& tensors,
                     Random& random) {
  using coil::ops::ArgType;
  if (arg.optional && below(random, 3) == 0) return "None";
  const auto item = [&]() -> std::string {
    constexpr const char* kDTypes[] = {"f32", "f64", "bf16", "i64", "i32", "u8", "bool", "c64"};
    constexpr const char* kWords[] = {"\"none\"",  "\"mean\"", "\"same\"",
                                      "\"floor\"", "\"sum\"",  "\"ij,jk->ik\""};
    switch (arg.type) {
      case ArgType::Tensor:
        return tensors.empty() ? "None" : tensors[below(random, tensors.size())];
      case ArgType::Scalar: return below(random, 2) == 0 ? small_number(random) : "0.5";
      case ArgType::Int:
      case ArgType::SymInt: return below(random, 12) == 0 ? "s0" : small_number(random);
      case ArgType::Float: return "0.5";
      case ArgType::Bool: return below(random, 2) == 0 ? "true" : "false";
      case ArgType::String: return kWords[below(random, std::size(kWords))];
      case ArgType::DType: return kDTypes[below(random, std::size(kDTypes))];
      case ArgType::MemoryFormat: return "contiguous_format";
      case ArgType::Layout:
      case ArgType::Device:
      case ArgType::Generator:
      case ArgType::Other: return "None";
    }
    return "None";
  };
  if (!arg.list) return item();
  std::string out = "[";
  for (std::size_t count = below(random, 4); count > 0; --count)
    out += item() + (count > 1 ? ", " : "");
  return out + "]";
}

/// The text with a call of any op, on values that it has, before its last return.
std::string with_call(std::string text, Random& random) {
  const std::size_t end = text.rfind("return");
  const auto lines = coil::ops::schema_lines();
  const auto schema = coil::ops::parse_schema(lines[below(random, lines.size())]);
  if (end == text.npos || !schema || schema->results.empty()) return text;
  std::vector<std::string> tensors;
  for (const std::string& part : coil::fuzz::cut(text.substr(0, end), coil::fuzz::Unit::Token))
    if (part[0] == '%' && part.size() > 1) tensors.push_back(part);
  std::string results, args;
  for (std::size_t i = 0; i < schema->results.size(); ++i)
    results += (i > 0 ? ", %n" : "%n") + std::to_string(random() % 100000);
  for (const coil::ops::SchemaArg& arg : schema->args) {
    if (!args.empty()) args += ", ";
    args += (arg.keyword_only ? arg.name + "=" : "") + argument(arg, tensors, random);
  }
  text.insert(end, results + " = " + schema->full_name() + "(" + args + ")\n  ");
  const std::size_t comma = results.find(',');
  return text.insert(text.rfind("return") + 6, " " + results.substr(0, comma) + ",");
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  Random random(seed + 7);
  if (below(random, 3) == 0) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    return coil::fuzz::put(with_call(text, random), data, max_size);
  }
  return coil::fuzz::mutate_text(data, size, max_size, seed, kWords);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coil;
  GraphTextOptions options;
  options.composites = &composite_rules();
  options.max_data_bytes = 1 << 20;
  const Result<Graph> graph =
      parse_graph({reinterpret_cast<const char*>(data), size}, "fuzz", options);
  if (!fuzz::is_taken(graph)) return 0;
  fuzz::require(verify(*graph), "after parsing");
  const std::string printed = to_text(*graph);
  const Result<Graph> again = parse_graph(printed, "printed", options);
  COIL_CHECK(again.ok(), "{}\n{}", again.error().message, printed);
  COIL_CHECK(to_text(*again) == printed, "prints differently:\n{}\n{}", printed, to_text(*again));
  fuzz::take_down(*graph);
  return 0;
}
