"""Writes through views, written inputs, outputs that alias."""

import torch
from program import Values, of_function


def mutated_input(x, y):
    x.mul_(2)
    x[0] = y
    return x.sum(0), y + 1


def mutated_and_returned(x):
    before = x.clone()
    x.add_(1)
    return x, before, x.t()


def write_through_views(x, v):
    y = x.clone()
    y[1:] += 1
    y[:, 0] = v
    y.t()[2].mul_(3)
    y[::2, 1:3].copy_(y[::2, 0:2].clone() * 10)
    y.view(-1)[5:9] = 7
    y.diagonal().zero_()
    return y, y[1:].sum()


def read_older_views(x):
    y = x * 1
    row, flat = y[1], y.view(-1)
    y.add_(1)
    row.mul_(2)
    flat[0] = -5
    return y, row + 0, flat[:4] * 1


def chain_of_views(x):
    y = x.clone()
    z = y.transpose(0, 1)[1:, ::2].unsqueeze(0).expand(1, 3, 2)[0]
    z.sub_(100)
    a, b = y.chunk(2, 1)
    a.copy_(b)
    return y


def outputs_alias_inputs(x, y):
    return x, x.view(-1), x[1:], y.t(), y.unsqueeze(0).expand(2, -1, -1)


def outputs_alias_each_other(x):
    y = x.exp()
    return y, y, y[0], y.view(-1), y.t()


def reshape_copy_or_view(x):
    y = x.clone()
    view = y.reshape(-1)
    view[0] = 9
    copy = y.t().reshape(-1)
    copy[0] = 4
    same = y.contiguous()
    same[1, 1] = 3
    other = y.t().contiguous()
    other[0, 1] = 8
    return y, view, copy, other, y.to(torch.float32).flatten() + 0


def masked_writes(x, mask):
    y = x.clone()
    y[mask] = 0.5
    y[1].masked_fill_(mask[1], -1)
    y.clamp_(max=1.5)
    y.add_(1)
    return y.relu_()


def unbind_and_write(x):
    y = x.clone()
    first, *_, last = y.unbind(1)
    last.copy_(first)
    a, b = y.split([1, 3], 0)
    b.neg_()
    return y, a + 0


def programs():
    v = Values(101)
    yield of_function("mutated_input", mutated_input, [(v.normal(3, 5), v.normal(5))])
    yield of_function("mutated_and_returned", mutated_and_returned, [(v.normal(3, 4),)])
    yield of_function("write_through_views", write_through_views, [(v.normal(4, 4), v.normal(4))])
    yield of_function("read_older_views", read_older_views, [(v.normal(3, 4),)])
    yield of_function("chain_of_views", chain_of_views, [(v.normal(4, 4),)])
    yield of_function("outputs_alias_inputs", outputs_alias_inputs, [(v.normal(3, 4), v.normal(2, 3))])
    yield of_function("outputs_alias_each_other", outputs_alias_each_other, [(v.normal(3, 4),)])
    yield of_function("reshape_copy_or_view", reshape_copy_or_view, [(v.normal(3, 4),)])
    yield of_function("masked_writes", masked_writes, [(v.normal(3, 4), v.bools(3, 4))])
    yield of_function("unbind_and_write", unbind_and_write, [(v.normal(4, 3),)])
