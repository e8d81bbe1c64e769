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


LSTM = 2  # a kind of layer of oneDNN's


def rnn_layer(
    x, input_weight, weight, input_bias, bias, h, c, reverse, batch_sizes, mode, hidden_size, num_layers,
    has_biases, bidirectional, batch_first, train,
):  # fmt: skip
    """An LSTM without gradients, as torch hands it to oneDNN: one layer, one direction, time first."""
    from torch._higher_order_ops.scan import scan_op

    if mode != LSTM or num_layers != 1 or bidirectional or batch_first or batch_sizes or train:
        return NotImplemented
    gates = x @ input_weight.t()
    if has_biases:
        gates = gates + (input_bias + bias)

    def step(h, c, from_x, weight):
        i, f, g, o = (from_x + h @ weight.t()).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return [h, c, h.clone()]

    gates = gates.flip(0) if reverse else gates
    h, c, y = scan_op(step, [h[0].clone(), c[0].clone()], [gates], (weight,))
    y = y.flip(0) if reverse else y
    return y, h.unsqueeze(0), c.unsqueeze(0), torch.empty(0, dtype=torch.uint8, device=x.device)


def formulas():
    """Decompositions by op."""
    table = {
        aten._efficientzerotensor.default: efficient_zero_tensor,
        aten.mkldnn_rnn_layer.default: rnn_layer,
    }
    for n in (1, 2, 3):
        op = getattr(aten, f"replication_pad{n}d_backward").default
        table[op] = replication_pad_backward(n)
    return {**table, **get_decompositions([aten.batch_norm_backward])}
