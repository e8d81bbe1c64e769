// conv1d ... conv_transpose3d as `convolution`.

#include "passes/composite.h"

namespace coil {
namespace {

struct Window {
  Exprs stride, padding, dilation, output_padding;
};

/// `input` with or without a batch dim.
ValueId convolve(Composite& c, ValueId input, const Window& window, bool transposed) {
  const i64 dims = c.ndim(c.tensor("weight"));
  const bool has_batch = c.ndim(input) == dims;
  if (!has_batch) {
    if (c.ndim(input) != dims - 1) c.fail("the input must have {} or {} dims", dims - 1, dims);
    input = c.unsqueeze(input, 0);
  }
  const ValueId out = c.call(
      "convolution", {input, c.tensor("weight"), c.arg("bias"), window.stride, window.padding,
                      window.dilation, transposed, window.output_padding, c.integer("groups")});
  return has_batch ? out : c.squeeze(out, {0});
}

Values conv(Composite& c) {
  Window window{c.integers("stride"), c.integers("padding"), c.integers("dilation"), {}};
  window.output_padding.assign(window.stride.size(), c.n(0));
  return {convolve(c, c.tensor("input"), window, false)};
}

Values conv_transpose(Composite& c) {
  const Window window{c.integers("stride"), c.integers("padding"), c.integers("dilation"),
                      c.integers("output_padding")};
  return {convolve(c, c.tensor("input"), window, true)};
}

/// Padding by name. "same" pads the right side by one more where the total is odd.
Values conv_named_padding(Composite& c) {
  Window window{c.integers("stride"), {}, c.integers("dilation"), {}};
  const std::size_t n = window.stride.size();
  window.padding.assign(n, c.n(0));
  window.output_padding.assign(n, c.n(0));
  ValueId input = c.tensor("input");
  const std::string& name = c.word("padding");
  if (name == "same") {
    const ValueId weight = c.tensor("weight");
    Exprs extra(2 * n, c.n(0));
    bool is_even = true;
    for (std::size_t i = 0; i < n; ++i) {
      const sym::Expr reach = c.syms.sub(c.size(weight, static_cast<i64>(i) + 2), c.n(1));
      const sym::Expr total = c.syms.mul(window.dilation[i], reach);
      window.padding[i] = c.syms.floordiv(total, c.n(2));
      const sym::Expr odd = c.syms.mod(total, c.n(2));
      extra[2 * (n - 1 - i) + 1] = odd;
      is_even = is_even && c.is(odd, 0);
    }
    if (!is_even) input = c.call("constant_pad_nd", {input, extra, c.n(0)});
  } else if (name != "valid") {
    c.fail("the padding is '{}', but must be 'same' or 'valid'", name);
  }
  return {convolve(c, input, window, false)};
}

/// _convolution: the arguments of convolution, and switches of back ends after them.
Values general(Composite& c) {
  std::vector<Arg> args(c.args().begin(), c.args().begin() + 9);
  return {c.call("convolution", std::move(args))};
}

/// (time, batch, channels) with a weight (width, in, out).
Values conv_tbc(Composite& c) {
  const ValueId input = c.permute(c.self(), {1, 2, 0});
  const ValueId weight = c.permute(c.tensor("weight"), {2, 1, 0});
  const ValueId out =
      c.call("convolution", {input, weight, c.arg("bias"), Exprs{c.n(1)}, Exprs{c.integer("pad")},
                             Exprs{c.n(1)}, false, Exprs{c.n(0)}, c.n(1)});
  return {c.contiguous(c.permute(out, {2, 0, 1}))};
}

constexpr DecompositionRow kRows[] = {
    {"conv1d", conv},
    {"conv2d", conv},
    {"conv3d", conv},
    {"conv1d.padding", conv_named_padding},
    {"conv2d.padding", conv_named_padding},
    {"conv3d.padding", conv_named_padding},
    {"conv_transpose1d", conv_transpose},
    {"conv_transpose2d.input", conv_transpose},
    {"conv_transpose3d.input", conv_transpose},
    {"_convolution", general},
    {"conv_tbc", conv_tbc},
};

}  // namespace

std::span<const DecompositionRow> conv_decompositions() { return kRows; }

}  // namespace coil
