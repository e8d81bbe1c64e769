// einsum as permutes, sums and bmm, in the order and with the layouts of eager.

#include <algorithm>
#include <array>
#include <numeric>

#include "passes/composite.h"

namespace coil {
namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = kLetters;

int label_of(char letter) { return letter <= 'Z' ? letter - 'A' : letter - 'a' + 26; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

using Labels = std::vector<int>;

/// "ab...c": labels of one operand or of the result.
Labels parse_labels(const Composite& c, std::string_view text) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i).starts_with("...")) {
      labels.push_back(kEllipsis);
      i += 2;
    } else if (is_letter(text[i])) {
      labels.push_back(label_of(text[i]));
    } else {
      c.fail("'{}' is no part of an einsum equation", text[i]);
    }
  }
  if (std::ranges::count(labels, kEllipsis) > 1) c.fail("two ellipses in one operand");
  return labels;
}

struct Equation {
  std::vector<Labels> operands;
  i64 ellipsis_dims = 0;
  /// Position of each label among the permuted dims; -1 if it does not occur. Dims of the result
  /// come first, then those that are summed over.
  std::array<i64, kLetters + 1> position;
  i64 result_dims = 0;
  i64 dims = 0;
};

void place(Equation& e, int label) {
  e.position[static_cast<std::size_t>(label)] = e.dims;
  e.dims += label == kEllipsis ? e.ellipsis_dims : 1;
}

/// Places the result's labels: those after ->, or the ellipsis and all letters that occur once.
void place_result(const Composite& c, Equation& e, std::optional<std::string_view> result,
                  const std::array<int, kLetters + 1>& uses) {
  if (result) {
    for (int label : parse_labels(c, *result)) {
      if (e.position[static_cast<std::size_t>(label)] >= 0)
        c.fail("a label occurs twice in the result");
      if (uses[static_cast<std::size_t>(label)] == 0 && label != kEllipsis)
        c.fail("a label of the result occurs in no operand");
      place(e, label);
    }
  } else {
    place(e, kEllipsis);
    for (int label = 0; label < kLetters; ++label)
      if (uses[static_cast<std::size_t>(label)] == 1) place(e, label);
  }
  e.result_dims = e.dims;
}

Equation parse_equation(const Composite& c, std::string_view text, const Values& operands) {
  Equation e;
  e.position.fill(-1);
  std::optional<std::string_view> result;
  std::string_view inputs = text;
  if (const std::size_t arrow = text.find("->"); arrow != text.npos) {
    inputs = text.substr(0, arrow);
    result = text.substr(arrow + 2);
  }
  while (true) {
    const std::size_t comma = inputs.find(',');
    e.operands.push_back(parse_labels(c, inputs.substr(0, comma)));
    if (comma == inputs.npos) break;
    inputs.remove_prefix(comma + 1);
  }
  if (e.operands.size() != operands.size())
    c.fail("the equation has {} operands, but {} are given", e.operands.size(), operands.size());
  std::array<int, kLetters + 1> uses{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Labels& labels = e.operands[i];
    const bool has_ellipsis = std::ranges::count(labels, kEllipsis) > 0;
    const i64 covered = static_cast<i64>(labels.size()) - (has_ellipsis ? 1 : 0);
    const i64 rest = c.ndim(operands[i]) - covered;
    if (rest < 0 || (rest > 0 && !has_ellipsis))
      c.fail("operand {} has {} dims, but {} labels", i, c.ndim(operands[i]), covered);
    if (has_ellipsis) e.ellipsis_dims = std::max(e.ellipsis_dims, rest);
    for (int label : labels) ++uses[static_cast<std::size_t>(label)];
  }
  place_result(c, e, result, uses);
  for (int label = 0; label < kLetters; ++label)
    if (uses[static_cast<std::size_t>(label)] > 0 &&
        e.position[static_cast<std::size_t>(label)] < 0)
      place(e, label);
  return e;
}

/// The operand with one dim for each position of the equation, 1 where it has no such label.
ValueId permuted(Composite& c, const Equation& e, const Labels& labels, ValueId operand) {
  Dims order(static_cast<std::size_t>(e.dims), -1);
  std::array<i64, kLetters> seen;
  seen.fill(-1);
  i64 at = 0;
  for (int label : labels) {
    const std::size_t l = static_cast<std::size_t>(label);
    if (label == kEllipsis) {
      const i64 dims = c.ndim(operand) - (static_cast<i64>(labels.size()) - 1);
      if (e.position[l] < 0 && dims > 0) c.fail("the ellipsis is missing in the result");
      for (i64 k = e.ellipsis_dims - dims; k < e.ellipsis_dims; ++k)
        order[static_cast<std::size_t>(e.position[l] + k)] = at++;
    } else if (seen[l] >= 0) {
      const i64 first = seen[l];
      operand = c.call("diagonal", {operand, c.n(0), c.n(first), c.n(at)});
      Dims back(static_cast<std::size_t>(c.ndim(operand)) - 1);
      std::iota(back.begin(), back.end(), i64{0});
      back.insert(back.begin() + first, c.ndim(operand) - 1);
      operand = c.permute(operand, back);
    } else {
      seen[l] = at;
      order[static_cast<std::size_t>(e.position[l])] = at++;
    }
  }
  for (i64& d : order) {
    if (d >= 0) continue;
    operand = c.unsqueeze(operand, c.ndim(operand));
    d = at++;
  }
  return c.permute(operand, order);
}

/// The product of two operands of equal rank, summed over `summed` (kept as dims of size 1): one
/// bmm.
ValueId pair_product(Composite& c, ValueId left, ValueId right, const Dims& summed) {
  if (summed.empty()) return c.mul(left, right);
  Dims both, left_only, right_only;
  for (i64 d = 0; d < c.ndim(left); ++d) {
    const bool in_left = !c.is(c.size(left, d), 1), in_right = !c.is(c.size(right, d), 1);
    if (std::ranges::find(summed, d) != summed.end()) {
      if (in_left && !in_right) left = c.sum(left, {d}, KeepDim::Yes);
      if (in_right && !in_left) right = c.sum(right, {d}, KeepDim::Yes);
    } else if (in_left && in_right) {
      both.push_back(d);
    } else {
      (in_left ? left_only : right_only).push_back(d);
    }
  }
  const auto sizes = [&](ValueId v, const Dims& dims) {
    Exprs out;
    for (i64 d : dims) out.push_back(c.size(v, d));
    return out;
  };
  const auto merged = [&](ValueId v, const Dims& dims) { return c.syms.product(sizes(v, dims)); };
  const auto joined = [](std::initializer_list<const Dims*> parts) {
    Dims out;
    for (const Dims* part : parts) out.insert(out.end(), part->begin(), part->end());
    return out;
  };
  Exprs shape = sizes(left, both);
  for (sym::Expr size : sizes(left, left_only)) shape.push_back(size);
  shape.insert(shape.end(), summed.size(), c.n(1));
  for (sym::Expr size : sizes(right, right_only)) shape.push_back(size);
  const sym::Expr batch = merged(left, both), inner = merged(left, summed);
  const ValueId a = c.reshape(c.permute(left, joined({&both, &left_only, &summed, &right_only})),
                              {batch, merged(left, left_only), inner});
  const ValueId b = c.reshape(c.permute(right, joined({&both, &summed, &right_only, &left_only})),
                              {batch, inner, merged(right, right_only)});
  const Dims order = joined({&both, &left_only, &summed, &right_only});
  Dims back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<i64>(i);
  return c.permute(c.view(c.call("bmm", {a, b}), shape), back);
}

/// Contracts operands `i` and `j`; `counts` says in how many operands each dim is not 1.
ValueId contract(Composite& c, const Equation& e, ValueId a, ValueId b, std::vector<int>& counts) {
  Dims summed, a_sums, b_sums;
  for (i64 d = e.result_dims; d < e.dims; ++d) {
    int& count = counts[static_cast<std::size_t>(d)];
    const bool in_a = !c.is(c.size(a, d), 1), in_b = !c.is(c.size(b, d), 1);
    if (in_a && in_b) {
      if (--count != 1) continue;
      summed.push_back(d);
      count = 0;
    } else if (count == 1 && (in_a || in_b)) {
      (in_a ? a_sums : b_sums).push_back(d);
      count = 0;
    }
  }
  if (!a_sums.empty()) a = c.sum(a, a_sums, KeepDim::Yes);
  if (!b_sums.empty()) b = c.sum(b, b_sums, KeepDim::Yes);
  return pair_product(c, a, b, summed);
}

Values einsum_row(Composite& c) {
  Values operands = c.tensors("tensors");
  const std::size_t given = operands.size();
  const Equation e = parse_equation(c, c.word("equation"), operands);
  std::vector<int> counts(static_cast<std::size_t>(e.dims), 0);
  for (std::size_t i = 0; i < given; ++i) {
    operands[i] = permuted(c, e, e.operands[i], operands[i]);
    for (i64 d = 0; d < e.dims; ++d)
      if (!c.is(c.size(operands[i], d), 1)) ++counts[static_cast<std::size_t>(d)];
  }
  const Dims path = c.has("path") ? c.all_fixed("path") : Dims();
  for (std::size_t step = 0; operands.size() > 1; ++step) {
    std::size_t i = 0, j = 1;
    if (c.has("path")) {
      if (2 * step + 1 >= path.size()) c.fail("the path is too short");
      i = static_cast<std::size_t>(std::min(path[2 * step], path[2 * step + 1]));
      j = static_cast<std::size_t>(std::max(path[2 * step], path[2 * step + 1]));
      if (i == j || j >= operands.size()) c.fail("the path does not fit the operands");
    }
    const ValueId a = operands[i], b = operands[j];
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    operands.insert(c.has("path") ? operands.end() : operands.begin(),
                    contract(c, e, a, b, counts));
  }
  if (e.dims == e.result_dims) return {operands[0]};
  Dims rest;
  for (i64 d = e.result_dims; d < e.dims; ++d) rest.push_back(d);
  if (given == 1) return {c.sum(operands[0], rest, KeepDim::No)};
  return {c.squeeze(operands[0], rest)};
}

constexpr DecompositionRow kRows[] = {{"einsum", einsum_row}};

}  // namespace

std::span<const DecompositionRow> einsum_decompositions() { return kRows; }

}  // namespace coil
