"""Ops in terms of others, where torch's core table has no decomposition and coil no op: distances between rows,
products of three tensors, gradients of maxima of windows."""

import math

import torch
from torch._decomp import get_decompositions

aten = torch.ops.aten

# torch has these, but not in its core table.
OF_TORCH = ["_batch_norm_with_update_functional", "batch_norm_backward"]


def slope(difference, distance, p):
    """The derivative of the p-norm of `difference`, which is `distance`, by its elements: zero where torch says
    zero, at norms of zero and, for p < 1, at elements of zero."""
    size, sign = difference.abs(), difference.sign()
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return sign
    if p == float("inf"):
        return torch.where(size == distance, sign, 0)
    flat = distance == 0
    if p == 2:
        return torch.where(flat, 0, difference / distance)
    if p < 1:
        flat = flat | (difference == 0)
    return torch.where(flat, 0, sign * size ** (p - 1) / distance ** (p - 1))


def cdist_backward(grad, x1, x2, p, cdist):
    """Of the rows of x1: the distance of each to all rows of x2."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return (grad.unsqueeze(-1) * slope(difference, cdist.unsqueeze(-1), p)).sum(-2)


def pdist_backward(grad, x, p, pdist):
    """Distances are those of rows i < j, in the order of i, then j."""
    n = x.shape[0]
    if n < 2:
        return torch.zeros_like(x)
    i = torch.arange(n, device=x.device)
    low, high = torch.minimum(i[:, None], i), torch.maximum(i[:, None], i)
    place = (low * n - low * (low + 1) // 2 + high - low - 1).clamp(0, n * (n - 1) // 2 - 1)
    apart = (low != high).unsqueeze(-1)
    of_pairs = aten.index.Tensor(torch.stack([grad, pdist], -1), [place])
    weight, distance = of_pairs.split(1, -1)
    difference = x.unsqueeze(1) - x.unsqueeze(0)
    return torch.where(apart, weight * slope(difference, distance, p), 0).sum(1)


def pdist(x, p=2.0):
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind(0)
    rows = [aten.index.Tensor(x, [places]) for places in (i, j)]
    return torch.linalg.vector_norm(rows[0] - rows[1], p, -1)


def trilinear(a, b, c, expand_a, expand_b, expand_c, sum_dims, _unroll=1):
    """The sum over `sum_dims` of a * b * c, each with dims of one element put in."""
    for k, dims in enumerate((expand_a, expand_b, expand_c)):
        for dim in sorted(dims):
            a, b, c = (t.unsqueeze(dim) if k == n else t for n, t in enumerate((a, b, c)))
    product = a * b * c
    return product.sum(list(sum_dims)) if sum_dims else product


def adaptive_max_pool_backward(dims):
    """Each result's gradient goes to the element that its index names in the plane."""

    def backward(grad, x, indices):
        flat = (*x.shape[: x.ndim - dims], math.prod(x.shape[x.ndim - dims :]))
        zeros = torch.zeros(flat, dtype=grad.dtype, device=grad.device)
        places, values = (t.flatten(t.ndim - dims) for t in (indices, grad))
        return zeros.scatter_add(-1, places, values).reshape(x.shape)

    return backward


def grouped_attention(query, key, value, *args, **words):
    """Heads of keys and values that serve several heads of queries are repeated: coil's op has one for each."""
    each = query.shape[1] // key.shape[1]
    if each == 1:
        return NotImplemented  # coil takes it as it is
    key, value = (t.repeat_interleave(each, 1) for t in (key, value))
    return aten._scaled_dot_product_flash_attention_for_cpu.default(query, key, value, *args, **words)


def efficient_zero_tensor(size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return torch.zeros(size, dtype=dtype, device=device)


def formulas():
    """Decompositions by op."""
    table = {
        aten._cdist_backward.default: cdist_backward,
        aten._pdist_forward.default: pdist,
        aten._pdist_backward.default: pdist_backward,
        aten._trilinear.default: trilinear,
        aten.adaptive_max_pool2d_backward.default: adaptive_max_pool_backward(2),
        aten.adaptive_max_pool3d_backward.default: adaptive_max_pool_backward(3),
        aten._efficientzerotensor.default: efficient_zero_tensor,
    }
    return {**table, **get_decompositions([getattr(aten, name) for name in OF_TORCH])}
