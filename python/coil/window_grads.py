"""Backward formulas of pooling by means, of resampling and of padding by replication.

All of these are linear, and act along one dim after the other: result o of a dim of n elements is the sum over i
of w(o, i) x_i, where few w are not zero. So the gradient of x_i is the sum over o of w(o, i) g_o, over the few o that
read x_i: a gather and a sum, with no two writers of one element. Each op here is its w and where that window of o
begins.
"""

import math

import torch

aten = torch.ops.aten


class Axis:
    """One dim: `size` elements of x, `outputs` results, and the factor between that the user gave."""

    def __init__(self, size, outputs, scale=None):
        self.size, self.outputs, self.scale = size, outputs, scale

    def step(self, align_corners):
        """Elements of x between two results; a tensor where sizes are symbols."""
        if align_corners:
            return quotient(self.size - 1, self.outputs - 1) if self.outputs > 1 else 0.0
        return 1.0 / self.scale if self.scale else quotient(self.size, self.outputs)


def quotient(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return a / b
    return torch.scalar_tensor(a, dtype=torch.float32) / torch.scalar_tensor(b, dtype=torch.float32)


def gathered(grad, dim, axis, window):
    """The gradient along `dim`. `window` is (weight, first, count): results first(i) ... first(i) + count - 1 read
    element i, with weight(o, i)."""
    weight, first, count = window
    i = torch.arange(axis.size, device=grad.device).unsqueeze(1)
    o = first(i) + torch.arange(count, device=grad.device)
    inside = (o >= 0) & (o < axis.outputs)
    o = o.clamp(0, axis.outputs - 1)
    factor = torch.where(inside, weight(o, i).to(grad.dtype), 0)
    last = grad.movedim(dim, -1)
    return (aten.index.Tensor(last, [None] * (last.ndim - 1) + [o]) * factor).sum(-1).movedim(-1, dim)


def back(grad, axes, window):
    """Along the last dims, one of `axes` each. Half floats are summed in float32."""
    dtype = grad.dtype
    if dtype in (torch.float16, torch.bfloat16):
        grad = grad.float()
    for k, axis in enumerate(axes):
        grad = gathered(grad, grad.ndim - len(axes) + k, axis, window(k, axis))
    return grad.to(dtype)


def each_dim(values, count, otherwise):
    values = list(values or otherwise)
    return values * count if len(values) == 1 else values


# Means of windows.


def avg_pool_window(begin, kernel, stride, padded, whole):
    """Windows of `kernel` elements from o * stride - begin. `padded`: where padding ends, or None if it does
    not count; `whole`: the divisor is not the window's."""

    def window(axis):
        def length(o):
            start = o * stride - begin
            if padded is not None:
                return (start + kernel).clamp(max=axis.size + padded) - start
            return (start + kernel).clamp(max=axis.size) - start.clamp(min=0)

        def weight(o, i):
            start = o * stride - begin
            reads = (i >= start) & (i < start + kernel)
            return reads.double() if whole else torch.where(reads, 1.0 / length(o).double(), 0)

        return weight, lambda i: (i + begin - kernel) // stride + 1, -(-kernel // stride)

    return window


def avg_pool_backward(dims):
    def backward(
        grad, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None
    ):
        kernel = each_dim(kernel_size, dims, kernel_size)
        stride, padding = each_dim(stride, dims, kernel), each_dim(padding, dims, [0])

        def window(k, axis):
            padded = padding[k] if count_include_pad else None
            whole = divisor_override is not None
            return avg_pool_window(padding[k], kernel[k], stride[k], padded, whole)(axis)

        out = back(grad, axes_of(x.shape, grad.shape, dims), window)
        return out if divisor_override is None else out / divisor_override

    return backward


def adaptive_avg_pool_backward(dims):
    def window(_, axis):
        def weight(o, i):
            start = o * axis.size // axis.outputs
            end = ((o + 1) * axis.size + axis.outputs - 1) // axis.outputs
            return torch.where((i >= start) & (i < end), 1.0 / (end - start).double(), 0)

        count = (axis.outputs + axis.size - 1) // axis.size + 1
        return weight, lambda i: i * axis.outputs // axis.size, count

    def backward(grad, x):
        return back(grad, axes_of(x.shape, grad.shape, dims), window)

    return backward


def axes_of(sizes, outputs, dims):
    return [Axis(n, o) for n, o in zip(sizes[len(sizes) - dims :], outputs[len(outputs) - dims :])]


# Resampling.


def reach(axis, align_corners, support):
    """(first, count) of the results that lie nearer than `support` to an element."""
    step = axis.step(align_corners)
    if isinstance(step, float):
        count = math.ceil(2 * support / step) + 3 if step > 0 else axis.outputs
        if isinstance(axis.outputs, int) and count >= axis.outputs:
            return torch.zeros_like, axis.outputs
    else:  # sizes are symbols
        over = (axis.outputs + axis.size - 1) // axis.size
        count = 2 * support * (over + 1) + 3
    return lambda i: torch.floor((i - support) / step).to(torch.int64) - 1, count


def positions(o, axis, align_corners):
    """Where results lie in x, rounded as eager rounds it."""
    step = axis.step(align_corners)
    o = o.to(torch.float32)
    return o * step if align_corners else (o + 0.5) * step - 0.5


def nearest_window(offset):
    def window(_, axis):
        def weight(o, i):
            place = torch.floor((o.to(torch.float32) + offset) * axis.step(False)).to(torch.int64)
            return place.clamp(max=axis.size - 1) == i

        return weight, *reach(axis, False, 1)

    return window


def linear_window(align_corners):
    def window(_, axis):
        def weight(o, i):
            place = positions(o, axis, align_corners).clamp(min=0)
            low = place.to(torch.int64).clamp(max=axis.size - 1)
            part = (place - low).clamp(0, 1)
            high = (low + 1).clamp(max=axis.size - 1)
            return torch.where(i == low, 1 - part, 0) + torch.where(i == high, part, 0)

        return weight, *reach(axis, align_corners, 1)

    return window


def cubic_window(align_corners):
    """Keys, "Cubic convolution interpolation for digital image processing" (1981), with a = -0.75."""
    a = -0.75

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def window(_, axis):
        def weight(o, i):
            place = positions(o, axis, align_corners)
            low = torch.floor(place)
            t = place - low
            total = 0
            for k, factor in enumerate((far(t + 1), near(t), near(1 - t), far(2 - t))):
                tap = (low.to(torch.int64) + (k - 1)).clamp(0, axis.size - 1)
                total = total + torch.where(tap == i, factor, 0)
            return total

        return weight, *reach(axis, align_corners, 3)

    return window


def upsample_backward(dims, window_of, has_corners):
    """The schema's (grad, output_size, input_size, [align_corners,] scales...)."""

    def backward(grad, output_size, input_size, *rest, **words):
        words.update(zip(SCALES[dims] if not has_corners else ["align_corners", *SCALES[dims]], rest))
        scales = [words.get(name) for name in SCALES[dims]]
        axes = [Axis(n, o, s) for n, o, s in zip(input_size[2:], output_size, scales)]
        return back(grad, axes, window_of(words["align_corners"]) if has_corners else window_of)

    return backward


SCALES = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}


# Padding.


def replication_pad_backward(dims):
    def backward(grad, x, padding):
        def window(k, axis):
            left, right = padding[2 * (dims - 1 - k)], padding[2 * (dims - 1 - k) + 1]

            def weight(o, i):
                return (o - left).clamp(0, axis.size - 1) == i

            if axis.size == 1:
                return weight, torch.zeros_like, axis.outputs
            # What the first and the last element stand for begins and ends with the padded dim.
            return weight, lambda i: torch.where(i == 0, 0, i + left), max(left, right, 0) + 1

        return back(grad, axes_of(x.shape, grad.shape, dims), window)

    return backward


def window_grads():
    """Backward formulas by op."""
    table = {
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool_backward(2),
        aten._adaptive_avg_pool3d_backward.default: adaptive_avg_pool_backward(3),
        aten.avg_pool2d_backward.default: avg_pool_backward(2),
        aten.avg_pool3d_backward.default: avg_pool_backward(3),
        aten.upsample_linear1d_backward.default: upsample_backward(1, linear_window, True),
        aten.upsample_bilinear2d_backward.default: upsample_backward(2, linear_window, True),
        aten.upsample_trilinear3d_backward.default: upsample_backward(3, linear_window, True),
        aten.upsample_bicubic2d_backward.default: upsample_backward(2, cubic_window, True),
    }
    for n in (1, 2, 3):
        nearest = getattr(aten, f"upsample_nearest{n}d_backward").default
        exact = getattr(aten, f"_upsample_nearest_exact{n}d_backward").default
        table[nearest] = upsample_backward(n, nearest_window(0.0), False)
        table[exact] = upsample_backward(n, nearest_window(0.5), False)
        table[getattr(aten, f"replication_pad{n}d_backward").default] = replication_pad_backward(n)
    return table
