#include "graph/einsum.h"

#include <algorithm>
#include <map>
#include <optional>

namespace coil {
namespace {

/// A letter, or below 0 a dim of the ellipsis, -1 the last one. Where no result is given its dims
/// are in this order.
using Label = i64;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 52;  // of a text, before it is spread

std::optional<Label> label_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  return std::nullopt;
}

/// "ab...c": labels of one operand or of the result.
Result<Labels> parse_labels(std::string_view text) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i).starts_with("...")) {
      labels.push_back(kEllipsis);
      i += 2;
    } else if (const std::optional<Label> label = label_of(text[i])) {
      labels.push_back(*label);
    } else {
      return error("'{}' is no part of an einsum equation", text[i]);
    }
  }
  if (std::ranges::count(labels, kEllipsis) > 1) return error("two ellipses in one operand");
  return labels;
}

/// With a label for each of the `dims` that the ellipsis stands for.
Labels spread(Labels labels, i64 dims) {
  const auto at = std::ranges::find(labels, kEllipsis);
  if (at == labels.end()) return labels;
  Labels own;
  for (i64 label = -dims; label < 0; ++label) own.push_back(label);
  labels.insert(labels.erase(at), own.begin(), own.end());
  return labels;
}

Result<std::vector<Labels>> parse_operands(std::string_view text,
                                           std::span<const std::size_t> ranks) {
  std::vector<Labels> operands;
  while (true) {
    const std::size_t comma = text.find(',');
    operands.push_back(COIL_TRY(parse_labels(text.substr(0, comma))));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  if (operands.size() != ranks.size())
    return error("the equation has {} operands, but {} are given", operands.size(), ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const i64 ellipses = std::ranges::count(operands[i], kEllipsis);
    const i64 letters = static_cast<i64>(operands[i].size()) - ellipses;
    const i64 rest = static_cast<i64>(ranks[i]) - letters;
    if (rest < 0 || (rest > 0 && ellipses == 0))
      return error("operand {} has {} dims, but {} labels", i, ranks[i], letters);
    operands[i] = spread(std::move(operands[i]), rest);
  }
  return operands;
}

/// In how many places of the operands each label occurs.
using Uses = std::map<Label, int>;

/// The labels of the result: those after ->, or those of the ellipsis and all letters that occur
/// once.
Result<Labels> result_labels(std::optional<std::string_view> text, const Uses& uses) {
  Labels labels;
  if (!text) {
    for (const auto& [label, count] : uses)
      if (label < 0 || count == 1) labels.push_back(label);
    return labels;
  }
  const i64 ellipsis = uses.empty() ? 0 : std::max<i64>(0, -uses.begin()->first);
  for (Label label : spread(COIL_TRY(parse_labels(*text)), ellipsis)) {
    if (std::ranges::count(labels, label) > 0) return error("a label occurs twice in the result");
    if (!uses.contains(label)) return error("a label of the result occurs in no operand");
    labels.push_back(label);
  }
  return labels;
}

EinsumOperand placed(Labels own, const Labels& all) {
  EinsumOperand out;
  for (std::size_t i = 0; i < own.size();) {
    const Label label = own[i];
    const auto again = std::find(own.begin() + static_cast<i64>(i) + 1, own.end(), label);
    if (again == own.end()) {
      ++i;
      continue;
    }
    out.diagonals.emplace_back(i, again - own.begin());
    own.erase(again);
    own.erase(own.begin() + static_cast<i64>(i));
    own.push_back(label);
  }
  for (Label label : all) {
    const auto at = std::ranges::find(own, label);
    out.order.push_back(at == own.end() ? -1 : at - own.begin());
  }
  return out;
}

}  // namespace

Result<Einsum> parse_einsum(std::string_view equation, std::span<const std::size_t> ranks) {
  std::optional<std::string_view> result;
  const std::size_t arrow = equation.find("->");
  if (arrow != equation.npos) result = equation.substr(arrow + 2);
  const std::vector<Labels> operands = COIL_TRY(parse_operands(equation.substr(0, arrow), ranks));
  Uses uses;
  for (const Labels& labels : operands)
    for (Label label : labels) ++uses[label];
  Labels all = COIL_TRY(result_labels(result, uses));
  Einsum out;
  out.result_dims = static_cast<i64>(all.size());
  for (const auto& [label, count] : uses)
    if (std::ranges::count(all, label) == 0) all.push_back(label);
  out.dims = static_cast<i64>(all.size());
  for (const Labels& labels : operands) out.operands.push_back(placed(labels, all));
  return out;
}

}  // namespace coil
