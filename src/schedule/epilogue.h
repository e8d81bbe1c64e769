#pragma once
// The hole of a structured node's template: which bodies may run on the blocks of its result.

#include <optional>

#include "schedule/schedule.h"

namespace coil {

/// A block of a node's result as its template hands it over: `rows` x `cols` elements of the
/// accumulator's dtype, `ld` elements from row to row, in place (batch, row0.., col0..) of the
/// result. Of a matrix product rows and columns are its last two dims; of a convolution rows are
/// output channels and columns the positions of an image, in row-major order.
struct Block {
  sym::Expr batch, row0, rows, col0, cols, ld;  // variables
  Axis row, col;                                // 0 <= row < rows, 0 <= col < cols
  DType dtype = DType::f32;
  std::vector<std::pair<sym::Expr, sym::Expr>>
      dims;  // the node's output dims at an element of the block
};

/// Why a node's template has no hole; empty if it has one.
std::string no_hole(const LoopProgram& program, const Structured& node);
/// The block of a node whose template has a hole.
Block block_of(const LoopProgram& program, const Structured& node);
/// How many of the node's output dims, from the last, columns run over.
std::size_t column_dims(const Structured& node);

}  // namespace coil
