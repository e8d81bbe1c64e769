"""Gather, scatter, sort, padding."""

import torch
from program import Values, of_function
from torch.nn import functional as F

NAN = float("nan")


def sort_ties(x, n):
    up, at = torch.sort(n, dim=1, stable=True)
    down, down_at = torch.sort(n, dim=0, descending=True, stable=True)
    return up, at, down, down_at, torch.sort(x, 1)[0], torch.argsort(x, 0), torch.topk(x, 2, 0), torch.topk(x, 3, largest=False)


def nan_order(x):
    best, at = x.max(1)
    return (best, at, x.argmax(), x.argmin(0), torch.sort(x, 1)[0], torch.topk(x, 2)[0], x.amax(0), x.min(),
            torch.fmax(x[0], x[1]), torch.maximum(x[0], x[1]), torch.isnan(x).sum(), x.nan_to_num(0.5))


def arg_ties(n, flat):
    return n.argmax(1), n.argmin(0, keepdim=True), n.max(0), n.min(1), flat.argmax(), (n > 1).int().argmax(1)


def scatters(x, index, values):
    zero = torch.zeros(4, 5)
    return (zero.scatter(1, index, values), zero.scatter(0, index[:, :2], 3.0), x.scatter_add(1, index, values),
            x.scatter_reduce(1, index, values, "amax"), x.scatter_reduce(1, index, values, "sum", include_self=False),
            x.scatter_reduce(0, index, values, "prod"), x.scatter_reduce(1, index, values, "mean"))


def index_writes(x, rows, cols, values):
    y = x.index_put((rows, cols), values, accumulate=True)
    z = x.clone()
    z[rows] = 2.0
    z[:, cols] += 1
    z.index_put_((rows, cols), torch.tensor(9.0))
    return y, z, x.index_add(0, rows, x[rows], alpha=2), x.index_fill(1, cols, -1.0), x.index_copy(0, rows[:1], x[:1] * 5)


def index_reads(x, rows, cols):
    return (x[rows], x[rows, cols], x[:, cols], x[rows[:, None], cols[None, :]], x[-1], x[..., -2],
            x.take_along_dim(rows[None, :] % 4, 1), torch.gather(x, 0, rows[None, :]), x[None, rows, ::2])


def padding(x):
    y = x[None]
    return (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.5), F.pad(x, (-1, 2, 1, -1)), F.pad(y, (2, 1), "reflect"),
            F.pad(y, (1, 3), "replicate"), F.pad(y, (2, 2), "circular"), F.pad(y[None], (1, 1, 2, 1), "reflect"))


def move_around(x, y):
    return (x.flip(0, 1), x.roll((1, -2), (0, 1)), torch.cat([x, y, x[:1]]), torch.stack([x, x * 2], 1), x.repeat(2, 1, 2),
            x.tril(1), x.triu(-1), x.repeat_interleave(2, 1), x.rot90(), torch.hstack([x, y[:3]]), x.unfold(1, 2, 1))


def programs():
    v = Values(106)
    yield of_function("sort_ties", sort_ties, [(v.normal(4, 6), v.ints(0, 3, 4, 6))])
    x = torch.tensor([[1.0, NAN, -2.0, 3.0], [NAN, NAN, 0.5, -1.0], [4.0, 4.5, -0.5, 2.0]])
    yield of_function("nan_order", nan_order, [(x,)])
    yield of_function("arg_ties", arg_ties, [(v.ints(0, 3, 4, 7), v.ints(0, 2, 40))])
    yield of_function("scatters", scatters, [
        (v.normal(4, 5), torch.stack([torch.randperm(4, generator=v.generator)[:3] for _ in range(4)]), v.normal(4, 3))])
    yield of_function("index_writes", index_writes, [
        (v.normal(4, 5), torch.tensor([0, 2, 0, 3]), torch.tensor([1, -1, 1, 0]), v.normal(4))])
    yield of_function("index_reads", index_reads, [(v.normal(4, 5), torch.tensor([3, 0, 1]), torch.tensor([0, 4, 2]))])
    yield of_function("padding", padding, [(v.normal(4, 5),)])
    yield of_function("move_around", move_around, [(v.normal(3, 4), v.normal(5, 4))])
