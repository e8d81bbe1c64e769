#pragma once
// A convolution by oneDNN, cut into images and blocks of channels for coil's thread pool.

#include "extern/kernels/onednn.h"

namespace coil::external {

/// All that is known of a convolution before a call. Strides are in elements: batch and channels
/// (of w its two leading dims), then the spatial ones. Not transposed; f32.
struct ConvShape {
  i64 n = 1, groups = 1, ic = 1, oc = 1;
  std::vector<i64> input, kernel, output, stride, padding, dilation;  // spatial
  std::vector<i64> x_strides, w_strides, y_strides;
  bool has_bias = false;  // of stride 1
};

class OneDnnConv {
 public:
  /// An Error is the reason why the library does not take it: a reference path among them.
  static Result<std::shared_ptr<const OneDnnConv>> create(std::shared_ptr<const OneDnn> library,
                                                          const ConvShape& shape);

  /// The library's name of the implementation that it chose.
  const std::string& implementation() const { return conv_.implementation; }
  i64 packed_bytes() const { return blocks_ * weights_bytes_; }
  Status pack(const std::byte* w, std::byte* packed) const;
  /// Operands x, w, perhaps a bias, y.
  Status run(std::span<const runtime::CallOperand> operands, const runtime::CallTools& tools) const;

 private:
  /// A copy between layouts, or nothing where they are equal.
  using Copy = std::optional<DnnlPrimitive>;
  struct Call;

  OneDnnConv() = default;
  Status choose_layouts();
  Result<Copy> copy(const DnnlHandle& from, const DnnlHandle& to) const;
  i64 bytes(const DnnlHandle& layout) const;
  Result<Call> begin(std::span<const runtime::CallOperand> o,
                     const runtime::CallTools& tools) const;
  bool bring_source(const Call& call, i64 slice, int worker) const;
  bool compute(const Call& call, i64 block, int worker) const;

  std::shared_ptr<const OneDnn> library_;
  ConvShape shape_;
  // An image is `slices_` pieces of x and `blocks_` of y: blocks of channels where there is one
  // group, which all read the one slice; else blocks of groups, each with its slice.
  i64 blocks_ = 1, slices_ = 1;
  i64 in_channels_ = 1, out_channels_ = 1;  // of a slice, of a block
  i64 source_bytes_ = 0, weights_bytes_ = 0, result_bytes_ = 0, block_bytes_ = 0;
  i64 scratch_bytes_ = 0;                // the largest of the primitives'
  DnnlHandle x_, w_, y_, bias_, block_;  // layouts of coil's own: of one slice or block
  DnnlPrimitive conv_;
  Copy x_to_source_, w_to_weights_, result_to_block_, result_to_y_, block_to_y_;
};

/// The functions of a plan's call; attributes are a OneDnnConv.
Status run_onednn_conv(const void* attributes, std::span<const runtime::CallOperand> operands,
                       const runtime::CallTools& tools);
Status pack_onednn_conv(const void* attributes, std::span<const runtime::CallOperand> operands,
                        const runtime::CallTools& tools);

/// Compares a small convolution of whole numbers with the exact one; in a child process.
Status prove_conv(const std::shared_ptr<const OneDnn>& library);

}  // namespace coil::external
