#include "runtime/factor/kind.h"

#include "base/check.h"

namespace coil {
namespace {

struct Row {
  std::string_view name, signature;
};

constexpr Row kRows[] = {
#define FACTOR(kind, signature) {#kind, signature},
#include "runtime/factor/kind.def"
#undef FACTOR
};

}  // namespace

std::string_view name(FactorKind kind) { return kRows[static_cast<std::size_t>(kind)].name; }

std::optional<FactorKind> find_factor(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].name == name) return static_cast<FactorKind>(i);
  return std::nullopt;
}

u8 flags_of(FactorKind kind) {
  if (kind == FactorKind::triangular) return kFactorUpper | kFactorUnit;
  if (kind == FactorKind::eigh) return kFactorUpper;
  if (kind == FactorKind::lu_solve) return kFactorTransposed | kFactorConjugated;
  if (kind == FactorKind::ldl || kind == FactorKind::ldl_solve) return kFactorHermitian;
  return 0;
}

FactorSignature signature_of(FactorKind kind) {
  std::string_view text = kRows[static_cast<std::size_t>(kind)].signature;
  FactorSignature out;
  bool is_optional = false;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word == ">") {
      out.inputs = out.most;
    } else if (word == "|") {
      is_optional = true;
    } else {
      COIL_CHECK(out.most < std::size(out.operands), "signature of {}", name(kind));
      out.operands[out.most++] = {word[0], word.substr(2)};
      if (!is_optional) out.least = out.most;
    }
  }
  return out;
}

}  // namespace coil
