#pragma once
// Mutations of coil's text forms by tokens and by lines, so that most of what comes out still
// parses.

#include <algorithm>
#include <cctype>

#include "mutate.h"

namespace coil::fuzz {

enum class Unit : std::uint8_t { Token, Line };

inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '.';
}

/// The text cut into tokens (words, or single other characters) or into lines; nothing is left out.
inline std::vector<std::string> cut(std::string_view text, Unit unit) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t end = 1;
    if (unit == Unit::Line) end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (unit == Unit::Token && is_word(text[0]))
      while (end < text.size() && is_word(text[end])) ++end;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

/// A part of the same sort: a %name for a %name, a number for a number, a word for a word.
inline std::string similar(const std::vector<std::string>& parts, const std::string& part,
                           Random& random) {
  const auto sort_of = [](const std::string& p) {
    return p[0] == '%'                                      ? 0
           : std::isdigit(static_cast<unsigned char>(p[0])) ? 1
           : is_word(p[0])                                  ? 2
                                                            : 3;
  };
  std::vector<const std::string*> fitting;
  for (const std::string& p : parts)
    if (sort_of(p) == sort_of(part) && p != part) fitting.push_back(&p);
  return fitting.empty() ? part : *fitting[below(random, fitting.size())];
}

inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += p;
  return text;
}

inline std::string mutate_tokens(std::string_view text, Random& random,
                                 const std::vector<std::string>& words) {
  std::vector<std::string> parts = cut(text, Unit::Token);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!std::isspace(static_cast<unsigned char>(parts[i][0]))) places.push_back(i);
  if (places.empty()) return std::string(text);
  std::string& part = parts[places[below(random, places.size())]];
  switch (below(random, 8)) {
    case 0: part = std::to_string(edge_number(random)); break;
    case 1: part = any_op(random); break;
    case 2: part = words[below(random, words.size())]; break;
    case 3: part.clear(); break;
    case 4: part += " " + similar(parts, part, random); break;
    default: part = similar(parts, part, random);
  }
  return joined(parts);
}

inline std::string mutate_lines(std::string_view text, Random& random) {
  std::vector<std::string> lines = cut(text, Unit::Line);
  if (lines.empty()) return std::string(text);
  const std::size_t a = below(random, lines.size()), b = below(random, lines.size());
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(a);
  switch (below(random, 4)) {
    case 0: lines.erase(at); break;
    case 1: std::swap(lines[a], lines[b]); break;
    case 2: {
      const std::string copy = lines[b];
      lines.insert(at, copy);
      break;
    }
    default: lines[a] = lines[b];
  }
  return joined(lines);
}

/// What the texts of levels 1 and 3 are made of.
inline const std::vector<std::string> kLoopWords = {"kernel",
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
                                                    "rsqrt",
                                                    "program",
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
                                                    "starts",
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
                                                    "seed",
                                                    "at",
                                                    "reduce.sum",
                                                    "reduce.welford",
                                                    "reduce.argmax"};

/// The custom mutator of a text target. `words`: its keywords.
inline std::size_t mutate_text(std::uint8_t* data, std::size_t size, std::size_t max_size,
                               unsigned seed, const std::vector<std::string>& words) {
  Random random(seed + 1);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t way = below(random, 10);
  if (way < 2) return LLVMFuzzerMutate(data, size, max_size);
  std::string out = way < 4 ? mutate_lines(text, random) : mutate_tokens(text, random, words);
  while (below(random, 3) == 0) out = mutate_tokens(out, random, words);
  return put(out, data, max_size);
}

}  // namespace coil::fuzz
