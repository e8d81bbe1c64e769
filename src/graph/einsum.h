#pragma once
// The equations of einsum.

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// How an operand becomes a tensor with one dim for each label of its equation.
struct EinsumOperand {
  /// Pairs of dims with the same label. Their diagonal takes the last place, as the op's does.
  std::vector<std::pair<i64, i64>> diagonals;
  /// Then: the dim of each label, or -1 where the operand does not have the label.
  std::vector<i64> order;
};

/// The labels of the result come first; over the others, the sum is taken.
struct Einsum {
  std::vector<EinsumOperand> operands;
  i64 result_dims = 0;
  i64 dims = 0;
};

/// `ranks`: how many dims each operand has. Each dim that an ellipsis stands for is a label.
Result<Einsum> parse_einsum(std::string_view equation, std::span<const std::size_t> ranks);

}  // namespace coil
