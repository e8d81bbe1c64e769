// conv1d ... conv_transpose3d as `convolution`, and its gradients.

#include "passes/composite.h"

namespace coil {
namespace {

struct Window {
  Exprs stride, padding, dilation, output_padding;
};

/// A list with an item for each dim that the window moves in; one item is said of all.
Exprs items(const Composite& c, std::string_view name) {
  Exprs list = c.integers(name);
  const i64 dims = c.ndim(c.tensor("weight")) - 2;
  if (list.size() == 1 && dims > 0) list.resize(static_cast<std::size_t>(dims), list[0]);
  return list;
}

/// Without output padding.
Window window_of(const Composite& c) {
  Window window{items(c, "stride"), items(c, "padding"), items(c, "dilation"), {}};
  window.output_padding.assign(window.stride.size(), c.n(0));
  return window;
}

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

Values conv(Composite& c) { return {convolve(c, c.tensor("input"), window_of(c), false)}; }

Values conv_transpose(Composite& c) {
  Window window = window_of(c);
  window.output_padding = items(c, "output_padding");
  return {convolve(c, c.tensor("input"), window, true)};
}

/// Padding by name. "same" pads the right side by one more where the total is odd.
Values conv_named_padding(Composite& c) {
  Window window{items(c, "stride"), {}, items(c, "dilation"), {}};
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

/// `v` without what lies behind the spatial sizes of `like`.
ValueId cut_to(Composite& c, ValueId v, ValueId like) {
  for (i64 d = 2; d < c.ndim(like); ++d) v = c.slice(v, d, c.n(0), c.size(like, d));
  return v;
}

/// The gradient of a convolution's weight: a convolution of the input with the result's gradient,
/// in which batch and channels have changed places, and so have stride and dilation.
ValueId weight_gradient(Composite& c, ValueId input, ValueId gradient, const Window& window) {
  const ValueId weight = c.tensor("weight");
  const sym::Expr groups = c.integer("groups"), batch = c.size(input, 0);
  const auto each = [&](ValueId v) { return c.syms.floordiv(c.size(v, 1), groups); };
  // (batch, group, channel, ...) in this order, then two of the dims as one.
  const auto regrouped = [&](ValueId v, const Dims& front, Exprs shape) {
    Exprs split = c.shape(v);
    split[1] = each(v);
    split.insert(split.begin() + 1, groups);
    Dims order = front;
    for (i64 d = 3; d < static_cast<i64>(split.size()); ++d) order.push_back(d);
    const Exprs sizes = c.shape(v);
    shape.insert(shape.end(), sizes.begin() + 2, sizes.end());
    return c.reshape(c.permute(c.reshape(v, split), order), shape);
  };
  const ValueId x = regrouped(input, {2, 1, 0}, {each(input), c.syms.mul(groups, batch)});
  const ValueId g = regrouped(gradient, {1, 2, 0}, {c.size(gradient, 1), batch});
  const ValueId out = c.call("convolution", {x, g, None{}, window.dilation, window.padding,
                                             window.stride, false, window.output_padding, groups});
  // A stride may leave rows of the input out of the last window.
  return c.contiguous(c.transpose(cut_to(c, out, weight), 0, 1));
}

/// Gradients of input, weight and bias; those that nobody asked for are dead code.
Values backward(Composite& c) {
  const ValueId gradient = c.tensor("grad_output"), input = c.tensor("input");
  const ValueId weight = c.tensor("weight");
  const bool transposed = c.flag("transposed");
  const Window window = window_of(c);
  // What a transposed convolution leaves out at the end.
  Exprs lacking = window.output_padding;
  for (std::size_t i = 0; i < lacking.size() && !transposed; ++i) {
    sym::Arena& s = c.syms;
    const i64 d = static_cast<i64>(i) + 2;
    const sym::Expr reach = s.mul(window.dilation[i], s.sub(c.size(weight, d), c.n(1)));
    const sym::Expr starts = s.mul(window.stride[i], s.sub(c.size(gradient, d), c.n(1)));
    const sym::Expr made =
        s.sub(s.add(s.add(starts, reach), c.n(1)), s.mul(c.n(2), window.padding[i]));
    lacking[i] = s.sub(c.size(input, d), made);
  }
  ValueId to_input =
      c.call("convolution", {gradient, weight, None{}, window.stride, window.padding,
                             window.dilation, !transposed, lacking, c.integer("groups")});
  // An output padding of a whole stride lets the window stand where no input was.
  if (transposed) to_input = cut_to(c, to_input, input);
  const ValueId to_weight = transposed ? weight_gradient(c, gradient, input, window)
                                       : weight_gradient(c, input, gradient, window);
  Dims others = {0};
  for (i64 d = 2; d < c.ndim(gradient); ++d) others.push_back(d);
  return {to_input, to_weight, c.sum(gradient, others, KeepDim::No)};
}

constexpr DecompositionRow kRows[] = {
    {"convolution_backward", backward},
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
