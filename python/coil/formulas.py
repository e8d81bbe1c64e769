"""Ops in terms of others, where torch's core table has no decomposition and coil no op."""

import torch
from torch._decomp import get_decompositions

aten = torch.ops.aten


def replication_pad_backward(dims):
    """Each element of x gathers the gradients of all places that repeat it, along one dim after the other.
    Half floats are summed in float32."""

    def backward(grad, x, padding):
        dtype = grad.dtype
        if dtype in (torch.float16, torch.bfloat16):
            grad = grad.float()
        for k in range(dims):
            dim, size, left = grad.ndim - 1 - k, x.shape[x.ndim - 1 - k], padding[2 * k]
            places = (torch.arange(grad.shape[dim], device=grad.device) - left).clamp(0, size - 1)
            zeros = torch.zeros(
                [*grad.shape[:dim], size, *grad.shape[dim + 1 :]], dtype=grad.dtype, device=grad.device
            )
            grad = zeros.index_add(dim, places, grad)
        return grad.to(dtype)

    return backward


def efficient_zero_tensor(size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return torch.zeros(size, dtype=dtype, device=device)


def grouped_attention(query, key, value, *args, **words):
    """Heads of keys and values that serve several heads of queries are repeated: the op that gives its
    rows' sums too has one of each."""
    each = query.shape[1] // key.shape[1]
    if each == 1:
        return NotImplemented  # coil takes it as it is
    key, value = (t.repeat_interleave(each, 1) for t in (key, value))
    return aten._scaled_dot_product_flash_attention_for_cpu.default(query, key, value, *args, **words)


def formulas():
    """Decompositions by op."""
    table = {aten._efficientzerotensor.default: efficient_zero_tensor}
    for n in (1, 2, 3):
        op = getattr(aten, f"replication_pad{n}d_backward").default
        table[op] = replication_pad_backward(n)
    return {**table, **get_decompositions([aten.batch_norm_backward])}
