#pragma once
// Whether a decision on floats is closer than the floats are known.

#include <functional>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "runtime/tensor.h"

namespace coil::cli {

/// An operand as both runs of the interpreter have it: f64 elements and how far they may be off.
struct Operand {
  std::vector<i64> shape;
  std::vector<double> values;
  double tolerance = 0;
};
Operand operand_of(const runtime::Tensor& plain, const runtime::Tensor& wide, bool rounded);
Operand operand_of(double number);
/// Element by element over a larger shape.
std::vector<double> broadcast(const Operand& operand, const std::vector<i64>& shape);

using Operands = std::function<std::optional<Operand>(std::string_view argument)>;

/// By element of the broadcast operands: whether a target may decide otherwise; empty where none may
/// for want of rounding. Nothing for ops that do not decide element by element.
std::optional<std::vector<bool>> close_elements(const Graph& graph, const Node& node, const Operands& operand);
/// Whether an op that orders a row (argmax, sort, topk, ...) has neighbours that are too close.
bool has_close_order(const Graph& graph, const Node& node, const Operands& operand);
/// Ops that give floats and jump: floor, sign, remainder, ...
bool is_jump(std::string_view op);

}  // namespace coil::cli
