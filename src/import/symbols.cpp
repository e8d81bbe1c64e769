#include "import/symbols.h"

#include <algorithm>
#include <cctype>

namespace coil {
namespace {

/// The exporter states a minimum of 0, 1 or 2 for sizes that it merely took not to be 0 or 1.
constexpr i64 kLargestAssumedMin = 2;

}  // namespace

void SymbolTable::set_range(const std::string& name, std::optional<i64> min,
                            std::optional<i64> max) {
  sym::Range& range = ranges_[name];
  const bool is_unbacked = name.starts_with('u');
  if (min && (is_unbacked || *min > kLargestAssumedMin)) range.lo = *min;
  if (max) range.hi = *max;
  if (min) stated_min_[name] = *min;
}

Result<sym::Expr> SymbolTable::get(const std::string& name, Sign sign) {
  if (auto at = variables_.find(name); at != variables_.end()) return at->second;
  if (name.starts_with('z'))
    return error(
        "the program computes with a float argument or a float read from a tensor ({}), "
        "which coil does not support",
        name);
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (name.size() < 2 || (name[0] != 's' && name[0] != 'u') || !std::ranges::all_of(name, is_part))
    return error("unknown kind of symbol '{}'", name);
  sym::Range range;
  if (auto stated = ranges_.find(name); stated != ranges_.end()) range = stated->second;
  if (sign == Sign::Size) range.lo = std::max<i64>(range.lo, 0);
  if (range.lo > range.hi) return error("the range of symbol {} is empty", name);
  const bool is_unbacked = name[0] == 'u';
  const sym::Expr var =
      syms_.variable({name, is_unbacked ? sym::Role::Value : sym::Role::Size, range, {}});
  variables_[name] = var;
  if (const auto min = stated_min_.find(name); min != stated_min_.end() && min->second > range.lo) {
    const sym::Range taken{min->second, std::max(range.hi, min->second)};
    assumed_.emplace_back(var, syms_.variable({name, sym::Role::Size, taken, {}}));
  }
  if (!is_unbacked) sizes_.push_back({var, std::nullopt});
  return var;
}

std::optional<sym::Expr> SymbolTable::find(const std::string& name) const {
  const auto at = variables_.find(name);
  return at == variables_.end() ? std::nullopt : std::optional<sym::Expr>(at->second);
}

void SymbolTable::set_hint(sym::Expr var, i64 hint) {
  for (SizeVar& size : sizes_)
    if (size.var == var && !size.hint) size.hint = hint;
}

}  // namespace coil
