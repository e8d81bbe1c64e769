#pragma once
// Whether a decision on floats is closer than the floats are known.

#include <functional>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "runtime/tensor.h"

namespace coil::cli {

/// How much arithmetic stands behind a value.
enum class Rounding : u8 {
  None,  // the bits of inputs and constants
  Once,  // one op that IEEE 754 rounds correctly, on such: exact where both runs agree on an
         // element
  Many,
};

/// An operand as double has it, and how far each element may be off on a target.
struct Operand {
  std::vector<i64> shape;
  std::vector<double> values;
  std::vector<double> slack;  // by element
  double most = 0;            // the largest slack
};
Operand operand_of(const runtime::Tensor& plain, const runtime::Tensor& wide, Rounding rounding);
Operand operand_of(double number);
std::vector<i64> broadcast_shape(const std::vector<i64>& a, const std::vector<i64>& b);
/// Elements of `items`, which have the shape `from`, over a larger shape.
std::vector<double> broadcast(const std::vector<double>& items, const std::vector<i64>& from,
                              const std::vector<i64>& shape);

using Operands = std::function<std::optional<Operand>(std::string_view argument)>;

/// By element of the broadcast operands: whether a target may decide otherwise. Nothing for
/// ops that do not decide element by element.
std::optional<std::vector<bool>> close_elements(const Graph& graph, const Node& node,
                                                const Operands& operand);
/// Whether an op that orders a row (argmax, sort, topk, ...) has neighbours that are too close.
bool has_close_order(const Graph& graph, const Node& node, const Operands& operand);
/// Ops that give floats and jump: floor, sign, remainder, ...
bool is_jump(std::string_view op);

}  // namespace coil::cli
