"""Reports about views, strides, writes, aliasing, indices, order and sizes."""

import torch
from bug_rows import gradients, ints, rand, randn, refused, row, tensor
from torch.nn import functional as F

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
I32, I64, U8, I8, C64 = torch.int32, torch.int64, torch.uint8, torch.int8, torch.complex64

# Views, strides, offsets.

row("pytorch#93562", lambda x: x.select(1, 2), lambda n=6: [rand(3, 4, 5, n)[2]], lambda x, r: torch.equal(r, x[:, 2]))
row("pytorch#90870", lambda x: x.as_strided((3,), (2,)) + 1, lambda: [torch.arange(20.0)[5:15]], lambda x, r: r.tolist() == [6, 8, 10])
row("pytorch#99686 (a)", lambda x: torch.cat(list(reversed(x.split([2, 1, 2], 1))), 1) + torch.cat([x[:, :2], x[:, 2:]], 1),
    lambda n=4: [randn(n, 5)], lambda x, r: torch.equal(r, x[:, [3, 4, 2, 0, 1]] + x))
refused("pytorch#99686 (b)", lambda x: torch.cat(x.split([2, 1, 1], 1), 1), lambda: [randn(1, 5)])
row("pytorch#121227", lambda x: torch.stack(x.split([3, 3, 3], -1), dim=-1).tanh(), lambda n=1: [randn(n, 9)],
    lambda x, r: torch.allclose(r, x.view(-1, 3, 3).transpose(1, 2).tanh()))


def into_strided(x):
    out = torch.empty_strided(x.size(), x.stride())
    out[:] = x + x
    return out


row("pytorch#130394", into_strided, lambda: [randn(16, 16)[:, :8]], lambda x, r: r.stride() == (16, 1))
row("pytorch#168381", lambda x, y: (x.relu() + y).index_select(0, torch.tensor([0])),
    lambda: [randn(6, 3, 6).permute(1, 2, 0).unsqueeze(2), randn(3, 6, 1, 6)], lambda x, y, r: r.is_contiguous())
row("pytorch#172064", lambda g: torch.ops.aten.unfold_backward(g, [1, 64, 32], 1, 8, 4), lambda: [torch.ones(1, 15, 32, 8)])
row("pytorch#175325", lambda x: (x.as_strided((2, 3), (3, 1), 9) * 2, x.as_strided((4,), (1,))), lambda: [torch.arange(20.0)[7:]],
    lambda x, r, s: r[0, 0] == 18 and s[0] == 7)
row("pytorch#174963", lambda x: x.roll(-1, 0).as_strided((5, 10), (4, 1), 0),
    lambda: [torch.arange(100).view(2, 5, 2, 5).contiguous(memory_format=torch.channels_last)])


def strided_window_of_a_repeat(x):
    full = x.repeat(3, 2)
    return torch.as_strided(full[:, ::2], (3, 2), full.stride())


row("pytorch#197431", strided_window_of_a_repeat, lambda: [randn(1, 1)], lambda x, r: (r == x).all())
refused("pytorch#195665", lambda: torch.full([1, 2], 1.0).as_strided([64, 64, 3], [1, 64, 192]).cumsum(1), lambda: [])
row("pytorch#162410", lambda x, y: (x.copy_(x.flip(1)), (lambda y2: x + y2)(y.sum(1) + y))[1], lambda n=20: [randn(n, n), randn(n, n)], big=400)
row("pytorch#107571", lambda x: F.pad(x, (2, 2)), lambda: [tensor([[[0.5]]])], lambda x, r: r.tolist() == [[[0, 0, 0.5, 0, 0]]])
row("pytorch#144462", lambda x: F.pad(x, (10, 10)), lambda: [tensor([[[0.3607]]])], lambda x, r: r.count_nonzero() == 1 and r[0, 0, 10] == x[0, 0, 0])
row("pytorch#96484", lambda a, b: (F.pad(a, (0, -1)) + b).min(0).values, lambda: [randn(2), randn(2)], lambda a, b, r: r == (a[0] + b).min())
row("pytorch#183770", lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), lambda: [randn(2, 3, 5, 4).contiguous(memory_format=torch.channels_last)],
    lambda x, r: r.stride() == (168, 1, 21, 3))
row("pytorch#167902 of the CPU", lambda x: F.pad(x, (3, 2), mode="reflect"), lambda n=9: [randn(2, 3, n + 3)], big=100_000)

# Writes and aliasing.


def copy_to_another_dtype(x, y):
    y.copy_(x)
    return torch.moveaxis(y, 0, 1)


row("pytorch#95262", copy_to_another_dtype, lambda n=3: [randn(2, n, dtype=F16), randn(2, n)], lambda x, y, r: r.dtype is F32 and torch.equal(r, x.float().t()))
row("pytorch#113641", lambda x, y: torch.slice_scatter(x, y, 0, 2, 3, 2), lambda: [randn(8, 3), randn(1, 3)], lambda x, y, r: torch.equal(r[2], y[0]))


def last_of_duplicates(x, i, v):
    x[i] = v
    return x * 1


row("pytorch#138908", last_of_duplicates, lambda n=30: [torch.zeros(5), ints(0, 5, n), torch.arange(float(n))],
    lambda x, i, v, r: all(r[k] == max([0.0] + [float(a) for a, b in zip(v, i) if b == k]) for k in range(5)), is_open=True)


def add_through_duplicates(x):
    i = torch.tensor([0, 0])
    x[i] += x[i]
    x[i] += x[i]
    return x * 1


row("pytorch#174074", lambda x: add_through_duplicates(x), lambda: [tensor([[-0.8716, 0.1114]], F64)], lambda x, r: torch.allclose(r, x * 4))


def write_to_the_source_of_a_pad(a):
    b = F.pad(a, (0, 0))
    a[0] = 1
    return b, torch.sort(b).values


row("pytorch#177631", write_to_the_source_of_a_pad, lambda n=2: [torch.zeros(2, n)], lambda a, b, s: not b.any() and not s.any())
row("pytorch#97117", lambda a: write_to_the_source_of_a_pad(a)[0], lambda: [tensor([2.0])], lambda a, r: float(r) == 2)


def scatter_to_one_then_gather(x, i):
    out = torch.zeros(1, x.shape[1])
    out.scatter_add_(0, i.view(-1, 1).expand(-1, x.shape[1]), x)
    return out.index_select(0, i)


row("pytorch#191571", scatter_to_one_then_gather, lambda n=8: [randn(n, 4), torch.zeros(n, dtype=I64)],
    lambda x, i, r: torch.allclose(r, x.sum(0).expand(8, 4), atol=1e-5), big=30_000)


def update_copied_back(x, v):
    updated = torch.slice_scatter(x, v, 0, 1, 3)
    x.copy_(updated)
    return updated, updated.clone()


row("pytorch#195451", update_copied_back, lambda: [randn(5, 3), randn(2, 3)])


def another_dtype_then_write(x):
    y = x.view(I32) * 2
    x.sub_(-4)
    x[:, 2:5] = 2
    return y.view(I64), x * 1


row("pytorch#198101", another_dtype_then_write, lambda: [torch.arange(-12, 12).view(4, 6)], lambda x, y, z: torch.equal(y, (x.view(I32) * 2).view(I64)))


def shift_rows(x):
    x[1:] = x[:-1].clone()
    return x * 1


row("pytorch#197829", shift_rows, lambda n=3: [randn(n, 16, 16)], lambda x, r: torch.equal(r[1:], x[:-1]), big=2000)
row("pytorch#197829 of columns", lambda x: shift_rows(x.t()), lambda n=33: [randn(n, n)], lambda x, r: torch.equal(r.t()[:, 1:], x[:, :-1]), big=1024)
row("pytorch#133512", lambda x: (x.add_(1), x.as_strided((3,), (2,)).clone())[1], lambda: [torch.arange(10.0)[::2]], lambda x, r: r.tolist() == [1, 3, 5])


def loop_of_writes(x, v, ids):
    out = []
    for k in range(4):
        x[ids[k : k + 1]] = v[k] * 5
        out.append(x[ids[k + 1 : k + 2]] * 1)
    return torch.cat(out)


row("pytorch#96064", loop_of_writes, lambda n=5: [randn(6, n), randn(4, n), tensor([0, 1, 1, 0, 2])])
row("pytorch#120857", lambda a, b: (lambda p, q: (p.max(), q.max()))(*torch._foreach_abs([a, b])), lambda n=64: [randn(n, n), randn(n, n)])
row("pytorch#176591", lambda a, b, c, d: [t.sum() for t in torch._foreach_lerp([a, b], [c, d], 0.1)], lambda n=9: [randn(n, 5), randn(3), randn(n, 5), randn(3)])
row("pytorch#120242", lambda x, out: torch.sin(x, out=out), lambda: [randn(5), torch.zeros(5)], front=True)

# Indices.

for name, f, inputs in (
    ("pytorch#121251", lambda x, i: x.index_select(0, i), lambda: [rand(2, 2, 2, 2), tensor([2])]),
    ("pytorch#135546", lambda x, i: x.gather(0, i), lambda: [rand(4), tensor([0, -1])]),
    ("pytorch#135546 loss", lambda x, i: F.nll_loss(x, i), lambda: [rand(3, 4), tensor([0, -1, 2])]),
    ("pytorch#169779", lambda x, i: x.index_select(0, i) * 2, lambda: [rand(5, 10), tensor([-1])]),
    ("pytorch#183769", lambda x: x.unsqueeze(1).select(1, 1), lambda: [rand(3, 4)]),
    ("pytorch#185885", lambda x, i, s: x.index_add(0, i, s), lambda: [torch.zeros(4, 3), tensor([0, -1]), torch.ones(2, 3)]),
    ("pytorch#100831", lambda i, w: F.embedding(i, w), lambda: [tensor([[5, 60]]), rand(1, 1)]),
    ("pytorch#151918", lambda i, w: F.embedding(i, w), lambda: [torch.arange(-4, 4), rand(8, 1)]),
    ("pytorch#94830", lambda a, i: a[i], lambda: [torch.empty(0), tensor([0])]),
    ("pytorch#126691", lambda a, i: a.view(-1)[i], lambda: [rand(1024, 128), torch.arange(1, -(1024 * 128) - 2, -1)]),
):
    refused(name, f, inputs)
row("pytorch#97365", lambda a, b: a[b - 1], lambda n=20: [rand(n), torch.zeros(4, dtype=I64)], lambda a, b, r: (r == a[-1]).all())
row("pytorch#149496", lambda w, i: F.embedding(i, w), lambda n=32: [randn(1000, 16), ints(0, 1000, n, 8)], lambda w, i, r: torch.equal(r, w[i]), big=3000)
row("pytorch#173053", lambda w, i: F.embedding(i, w, padding_idx=-1, sparse=True), lambda n=6: [randn(1000, 4, dtype=BF16), ints(0, 1000, n, 3)])
row("pytorch#191837", lambda i, s: torch.zeros(40, 30).index_add(0, i, s.t()), lambda n=16: [ints(0, 40, n), randn(30, n)], big=5000)
row("pytorch#191837 scatter", lambda i, s: torch.zeros(9, 70).scatter_add(0, i.t(), s.t()), lambda n=16: [ints(0, 9, 70, n), randn(70, n)], big=2000)

# Sorting, searching.

MINUS_NAN = torch.tensor([0xFFC00000 - (1 << 32)], dtype=I32).view(F32)
row("pytorch#117617", lambda x: x.topk(4).values,
    lambda: [torch.cat([tensor([1.0, float("nan"), 5.0, -3.0]), MINUS_NAN, tensor([7.0, float("inf")])])],
    lambda x, v: v[:2].isnan().all() and v[2:].tolist() == [float("inf"), 7])
row("pytorch#145929", lambda x, b: torch.bucketize(x, b), lambda: [tensor([2, 5], U8), tensor([-10, -7, -7, -3], I8)], lambda x, b, r: r.tolist() == [4, 4])
row("pytorch#147281", lambda b: torch.bucketize(1, b), lambda: [randn(1000).sort().values], lambda b, r: int(r) == int((b < 1).sum()))
row("pytorch#174459", lambda x: torch.sort(x, dim=-1, descending=True, stable=True), lambda n=8: [ints(1, 3, n, 3)], big=20_000)
row("pytorch#182343", lambda b, v: (torch.searchsorted(b[1:], v, right=True), torch.searchsorted(b.cumsum(0)[1:], v)),
    lambda n=6: [tensor([0, 3, 7, 12]), ints(-2, 15, n)], lambda b, v, r, s: r.tolist() == [sum(e <= x for e in (3, 7, 12)) for x in v.tolist()])

# Empty, data-dependent and large sizes, alignment.

row("pytorch#164875", lambda x, c: x[:0].sum() + torch.nonzero(c).shape[1], lambda: [torch.ones(20, 3), tensor(True)], front=True)
row("pytorch#93582", lambda x: (x.sum(), x.sum(0), x.prod(1)), lambda n=30: [rand(n, 40)], big=4000)
row("pytorch#138542", lambda x: x.prod(1), lambda n=40: [rand(3, n) * 0.2 + 0.9], lambda x, r: torch.allclose(r, x.double().prod(1).float(), rtol=1e-5), big=50_000)
row("pytorch#141891", lambda x: x.sin() + x.cos(), lambda n=80: [torch.zeros(n + 1)[1:]], lambda x, r: (r == 1).all(), big=64**3 + 64)
row("pytorch#184563", lambda x: x[1:] + 1, lambda n=1025: [randn(n)], lambda x, r: torch.equal(r, x[1:] + 1), big=100_001)


def windows(x, h=8, w=4):
    """Rolled windows of a plane, normalised: indices through division and remainder."""
    x = x.roll((-2, -2), (0, 1)).view(h // w, w, h // w, w, -1).permute(0, 2, 1, 3, 4).reshape(-1, w * w, x.shape[-1])
    return x - x.mean(-1, keepdim=True)


row("pytorch#103651", windows, lambda n=128: [randn(8, 8, n)])
row("pytorch#103651 as given", lambda x: windows(x.view(56, 56, 16), 56, 7), lambda: [randn(3136, 16)])
row("pytorch#196681", lambda x, w: F.gelu(x) @ w, lambda n=66: [randn(1, 8, n, n).contiguous(memory_format=torch.channels_last), randn(n, 1)])
row("pytorch#136662", lambda x: gradients(two_slice_updates, x), lambda: [randn(2, 3)],
    lambda x, r: torch.equal(r[:, 2], 2 * x[:, 2].sign()) and not r[:, :2].any())


def two_slice_updates(x):
    y = torch.zeros_like(x)
    y[:, 0] += x[:, 2].abs()
    y[:, 0] += x[:, 2].abs()
    return y


row("pytorch#182012", lambda x, s: gradients(torch.diagonal_scatter, x, s), lambda: [randn(8, 8), randn(8)],
    lambda x, s, gx, gs: torch.equal(gx, 1 - torch.eye(8)) and (gs == 1).all())


def write_through_expanded():
    a = torch.arange(2)[0].expand(2)
    a[-1] = 3
    return a * 1


row("pytorch#152425", write_through_expanded, lambda: [], lambda r: r.tolist() == [3, 3])
