#pragma once
// The rows of rules.def, as text and as patterns.

#include <span>
#include <vector>

#include "sym/tree.h"

namespace coil::sym {

struct RuleText {
  const char* name;
  const char* pattern;
  const char* replacement;
  const char* condition;  // "" for none
};
std::span<const RuleText> rule_texts();

/// A Tree whose names are slots.
struct Pattern {
  enum class Accepts : u8 { Anything, Constants, Booleans };

  Kind kind = Kind::Const;
  i64 value = 0;  // Const
  u32 slot = 0;   // Var
  Accepts accepts = Accepts::Anything;
  std::vector<Pattern> children;
};

inline constexpr std::size_t kMaxSlots = 6;

struct Rule {
  const char* name;
  Pattern pattern;
  Pattern replacement;
  std::optional<Pattern> condition;
};

/// Indexed by Kind, in the order of rules.def. Read once per process.
const std::vector<Rule>& rules_for(Kind kind);

}  // namespace coil::sym
