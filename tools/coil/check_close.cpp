#include "check_close.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check_judge.h"
#include "compare.h"
#include "ops/schema.h"

namespace coil::cli {
namespace {

enum class Cut : u8 {
  None,
  Between,
  AtZero,
  AtIntegers,
  AtNonzeroIntegers,
  AtHalves,
  OfQuotient,
  AtBound
};

struct CutRow {
  std::string_view base;  // of the op's name
  Cut cut;
  bool gives_float;
};
constexpr CutRow kCuts[] = {
    {"eq", Cut::Between, false},
    {"ne", Cut::Between, false},
    {"lt", Cut::Between, false},
    {"le", Cut::Between, false},
    {"gt", Cut::Between, false},
    {"ge", Cut::Between, false},
    {"sign", Cut::AtZero, true},
    {"sgn", Cut::AtZero, true},
    {"heaviside", Cut::AtZero, true},
    {"floor", Cut::AtIntegers, true},
    {"ceil", Cut::AtIntegers, true},
    {"trunc", Cut::AtNonzeroIntegers, true},
    {"frac", Cut::AtNonzeroIntegers, true},
    {"round", Cut::AtHalves, true},
    {"floor_divide", Cut::OfQuotient, true},
    {"remainder", Cut::OfQuotient, true},
    {"fmod", Cut::OfQuotient, true},
    {"hardshrink", Cut::AtBound, true},
    {"threshold", Cut::AtBound, true},
    {"nonzero", Cut::AtZero, false},
    {"logical_not", Cut::AtZero, false},
    {"logical_and", Cut::AtZero, false},
    {"logical_or", Cut::AtZero, false},
    {"logical_xor", Cut::AtZero, false},
    {"any", Cut::AtZero, false},
    {"all", Cut::AtZero, false},
    {"signbit", Cut::AtZero, false},
};

Cut cut_of(const Graph& graph, const Node& node) {
  for (const CutRow& row : kCuts)
    if (row.base == base_name(node.op)) return row.cut;
  if (node.op == "div.Tensor_mode" || node.op == "div.Scalar_mode") return Cut::OfQuotient;
  if (node.op != "_to_copy") return Cut::None;
  const DType to = graph.type(node.outs[0]).dtype;
  if (is_float(to) || is_complex(to)) return Cut::None;
  return is_bool(to) ? Cut::AtZero : Cut::AtNonzeroIntegers;
}

std::vector<bool> close_to(const Operand& x, const std::function<double(double)>& distance) {
  std::vector<bool> out;
  for (std::size_t i = 0; i < x.values.size(); ++i)
    out.push_back(x.slack[i] > 0 && distance(x.values[i]) <= x.slack[i]);
  return out;
}

double from_integer(double v) { return std::fabs(v - std::nearbyint(v)); }

/// f(a, b, slack of a, slack of b) by element of the broadcast, where there is slack at all.
template <class F>
std::vector<bool> pairs(const Operand& a, const Operand& b, F f) {
  const std::vector<i64> shape = broadcast_shape(a.shape, b.shape);
  const std::vector<double> x = broadcast(a.values, a.shape, shape),
                            y = broadcast(b.values, b.shape, shape);
  const std::vector<double> s = broadcast(a.slack, a.shape, shape),
                            t = broadcast(b.slack, b.shape, shape);
  std::vector<bool> out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back(s[i] + t[i] > 0 && f(x[i], y[i], s[i], t[i]));
  return out;
}

const Arg* argument(const Node& node, std::string_view name) {
  const std::optional<ops::Schema> schema = ops::find_schema(node.op);
  const int at = schema ? schema->arg_index(name) : -1;
  return at >= 0 && static_cast<std::size_t>(at) < node.args.size()
             ? &node.args[static_cast<std::size_t>(at)]
             : nullptr;
}

std::optional<i64> integer_argument(const Graph& graph, const Node& node, std::string_view name) {
  const Arg* arg = argument(node, name);
  const auto* e = arg ? std::get_if<sym::Expr>(arg) : nullptr;
  return e ? graph.syms->as_const(*e) : std::nullopt;
}

}  // namespace

bool is_jump(std::string_view op) {
  if (op == "div.Tensor_mode" || op == "div.Scalar_mode") return true;
  return std::any_of(std::begin(kCuts), std::end(kCuts), [&](const CutRow& row) {
    return row.gives_float && row.base == base_name(op);
  });
}

Operand operand_of(const runtime::Tensor& plain, const runtime::Tensor& wide, Rounding rounding) {
  Operand out{wide.shape, as_doubles(wide), {}, 0};
  out.slack.resize(out.values.size(), 0);
  if (rounding == Rounding::None || !is_inexact(plain)) return out;
  // Whole numbers that both runs agree on are exact, such as sums of a 0/1 mask.
  const std::vector<double> p = as_doubles(plain);
  bool exact = identical(plain, wide);
  for (double v : out.values) exact &= !std::isfinite(v) || v == std::nearbyint(v);
  if (exact) return out;
  out.most = tolerance_of(plain, wide);
  for (std::size_t i = 0; i < out.slack.size(); ++i)
    if (rounding == Rounding::Many || p[i] != out.values[i]) out.slack[i] = out.most;
  return out;
}

Operand operand_of(double number) { return {{}, {number}, {0}, 0}; }

std::vector<i64> broadcast_shape(const std::vector<i64>& a, const std::vector<i64>& b) {
  std::vector<i64> out(std::max(a.size(), b.size()), 1);
  for (const std::vector<i64>* s : {&a, &b})
    for (std::size_t d = 0; d < s->size(); ++d) {
      i64& extent = out[out.size() - s->size() + d];
      if ((*s)[d] != 1) extent = (*s)[d];
    }
  return out;
}

std::vector<double> broadcast(const std::vector<double>& items, const std::vector<i64>& from,
                              const std::vector<i64>& shape) {
  i64 count = 1;
  for (i64 e : shape) count *= e;
  const std::size_t missing = shape.size() - from.size();
  std::vector<double> out;
  for (i64 n = 0; n < count; ++n) {
    i64 rest = n, at = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > missing;) {
      const i64 index = rest % shape[d], extent = from[d - missing];
      rest /= shape[d];
      if (extent != 1) at += index * stride;
      stride *= extent;
    }
    out.push_back(items.at(static_cast<std::size_t>(at)));
  }
  return out;
}

std::optional<std::vector<bool>> close_elements(const Graph& graph, const Node& node,
                                                const Operands& operand) {
  const Cut cut = cut_of(graph, node);
  if (cut == Cut::None) return std::nullopt;
  const std::optional<Operand> x = operand("self");
  if (!x) return std::nullopt;
  switch (cut) {
    case Cut::None: break;
    case Cut::AtZero: {
      const std::optional<Operand> y = operand("other");
      if (!y) return close_to(*x, [](double v) { return std::fabs(v); });
      return pairs(*x, *y, [](double a, double b, double s, double t) {
        return (s > 0 && std::fabs(a) <= s) || (t > 0 && std::fabs(b) <= t);
      });
    }
    case Cut::AtIntegers: return close_to(*x, from_integer);
    case Cut::AtNonzeroIntegers:
      return close_to(*x,
                      [](double v) { return std::nearbyint(v) == 0 ? INFINITY : from_integer(v); });
    case Cut::AtHalves:
      return close_to(*x, [](double v) { return std::fabs(v - (std::floor(v) + 0.5)); });
    case Cut::AtBound: {
      const std::optional<Operand> bound =
          operand(base_name(node.op) == "threshold" ? "threshold" : "lambd");
      if (!bound) return std::nullopt;
      const bool both = base_name(node.op) != "threshold";
      return close_to(
          *x, [&](double v) { return std::fabs((both ? std::fabs(v) : v) - bound->values[0]); });
    }
    case Cut::Between:
    case Cut::OfQuotient: {
      const std::optional<Operand> y = operand("other");
      if (!y) return std::nullopt;
      if (cut == Cut::Between)
        return pairs(*x, *y, [](double a, double b, double s, double t) {
          return std::fabs(a - b) <= s + t;
        });
      return pairs(*x, *y, [](double a, double b, double s, double t) {
        return from_integer(a / b) <= (s + std::fabs(a / b) * t) / std::fabs(b);
      });
    }
  }
  return std::nullopt;
}

bool has_close_order(const Graph& graph, const Node& node, const Operands& operand) {
  const std::string_view base = base_name(node.op);
  const bool whole_row = base == "sort" || base == "argsort";
  const bool best_only = base == "argmax" || base == "argmin" || base == "max" || base == "min";
  if (!whole_row && !best_only && base != "topk") return false;
  const std::optional<Operand> x = operand("self");
  if (!x || x->most == 0 || x->values.empty()) return false;
  std::vector<i64> shape = x->shape;
  std::optional<i64> dim = integer_argument(graph, node, "dim");
  if (!dim || shape.empty()) {
    shape = {static_cast<i64>(x->values.size())};
    dim = 0;
  }
  const std::size_t d =
      static_cast<std::size_t>(*dim < 0 ? *dim + static_cast<i64>(shape.size()) : *dim);
  const i64 extent = shape.at(d);
  const i64 inner = std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, shape.end(),
                                    i64{1}, std::multiplies<>());
  const Arg* largest = argument(node, "largest");
  const bool smallest_first =
      base == "argmin" || base == "min" ||
      (largest && std::holds_alternative<bool>(*largest) && !std::get<bool>(*largest));
  const i64 ranks = whole_row ? extent
                    : best_only
                        ? 2
                        : std::min(extent, integer_argument(graph, node, "k").value_or(extent) + 1);
  const i64 rows = extent == 0 ? 0 : static_cast<i64>(x->values.size()) / extent;
  for (i64 row = 0; row < rows; ++row) {
    std::vector<double> values;
    for (i64 i = 0; i < extent; ++i)
      values.push_back(
          x->values[static_cast<std::size_t>((row / inner * extent + i) * inner + row % inner)]);
    // NaN has an order of its own, and so has no part in this.
    std::erase_if(values, [](double v) { return std::isnan(v); });
    std::sort(values.begin(), values.end());
    const bool from_back = !smallest_first && !whole_row;
    if (from_back) std::reverse(values.begin(), values.end());
    for (std::size_t i = 1; i < values.size() && static_cast<i64>(i) < ranks; ++i)
      if (std::fabs(values[i] - values[i - 1]) <= 2 * x->most) return true;
  }
  return false;
}

}  // namespace coil::cli
