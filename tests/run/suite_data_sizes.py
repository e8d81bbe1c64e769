"""Sizes that the data decides."""

import torch
from program import Values, of_function


def nonzero(x):
    at = torch.nonzero(x)
    return at, at.sum(0)


def masked_select(x, mask):
    picked = torch.masked_select(x, mask)
    return picked, picked * 2 + 1


def rows_by_mask(x, mask):
    rows = x[mask]
    return rows, rows.sum(0), rows.relu()


def write_by_mask(x, values):
    y = x.clone()
    y[y < 0] = 0.25
    y[values > 0] += 1
    return y


def nonzero_as_index(x):
    at = torch.nonzero(x > 0).squeeze(1)
    return x[at], x.index_select(0, at).exp()


def slice_by_item(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x.narrow(0, 0, k) * 2


def make_by_item(n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k < 100)
    return torch.arange(k), torch.full((k, 2), 0.5).cumsum(0)


def programs():
    v = Values(104)
    sparse = torch.tensor([[0, 3, 0], [7, 0, 0], [0, 0, -1]])
    yield of_function("nonzero", nonzero, [(sparse,), (torch.zeros_like(sparse),), (torch.ones_like(sparse),)])
    x = v.normal(4, 3)
    yield of_function("masked_select", masked_select, [
        (x, x > 0), (x, torch.zeros(4, 3, dtype=torch.bool)), (x, torch.ones(4, 3, dtype=torch.bool))])
    yield of_function("rows_by_mask", rows_by_mask, [
        (x, torch.tensor([True, False, True, True])), (x, torch.zeros(4, dtype=torch.bool)),
        (x, torch.tensor([False, False, False, True]))])
    yield of_function("write_by_mask", write_by_mask, [(v.normal(3, 4), v.normal(3, 4))])
    yield of_function("nonzero_as_index", nonzero_as_index, [(v.normal(9),), (-torch.ones(9),)])
    yield of_function("slice_by_item", slice_by_item, [
        (v.normal(6, 2), torch.tensor(4)), (v.normal(6, 2), torch.tensor(0)), (v.normal(6, 2), torch.tensor(6))])
    yield of_function("make_by_item", make_by_item, [(torch.tensor(5),), (torch.tensor(0),), (torch.tensor(1),)])
