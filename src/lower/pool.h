#pragma once
// What pooling and its gradients share: window arguments and how many elements a window counts.

#include <vector>

#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {

struct PoolShape {
  std::vector<i64> kernel, stride, padding, dilation;
};
/// The window arguments of the present op for `n` spatial dims.
PoolShape pool_shape(const Args& args, std::size_t n);

/// 0 <= position < extent, leaving out what is known.
Expr within(Lowering& l, Expr position, Expr extent);

/// How many elements a window of avg_pool counts that begins at `begin` of the spatial dims
/// `extents`: its real ones, or with count_include_pad those within the padded plane.
Expr window_size(Lowering& l, const Args& args, std::span<const Expr> extents,
                 std::span<const Expr> begin, const PoolShape& p);

/// A sum over what a window counts; of integers rounded towards 0.
Val quotient(BodyBuilder& b, Val sum, Val divisor);

/// Window o of an adaptive pool of `size` elements into `outputs` is floor(o*I/O) ..
/// ceil((o+1)*I/O).
Expr adaptive_begin(sym::Arena& syms, Expr o, Expr size, Expr outputs);
Expr adaptive_end(sym::Arena& syms, Expr o, Expr size, Expr outputs);

/// The place in a window, digit by digit, of the row-major position that a reduction over `element`
/// has found.
std::vector<Val> window_digits(BodyBuilder& b, Val position, std::span<const Expr> element);

/// How many spatial dims the digit in the op's name says: avg_pool2d has 2.
std::size_t spatial_dims(std::string_view op);

/// A buffer of the type of `out`, but in the dtype that sums are computed in, that begins as zeros:
/// a gradient is added up in it, and `finish_sums` makes it the value of `out`.
BufferId begin_sums(Lowering& l, ValueId out);
void finish_sums(Lowering& l, ValueId out, BufferId sums);

}  // namespace coil::lowering
