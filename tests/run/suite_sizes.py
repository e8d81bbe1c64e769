"""Dynamic sizes, 0 and 1 among them, and inputs in other layouts."""

import torch
from program import Program, Values, of_function
from torch import nn
from torch.nn import functional as F

AUTO = torch.export.Dim.AUTO


class DynamicMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(6, 20), nn.LayerNorm(20), nn.Linear(20, 3)

    def forward(self, x):
        return self.down(self.norm(F.gelu(self.up(x)))).softmax(-1)


class DynamicConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x):
        y = F.max_pool2d(self.conv(x).relu(), 2)
        return y, F.adaptive_avg_pool2d(y, 1).flatten(1)


def pointwise(x, y):
    return x * 2 + y, (x - y).relu(), x.exp().sum(1), x.t().contiguous()


def reductions(x):
    return x.sum(), x.sum(0), x.mean(1), x.cumsum(0), x.softmax(1), (x > 0).any(1), x.flatten() * 2


def reshape_sizes(x):
    b, t, c = x.shape
    return x.view(b * t, c) * 2, x.reshape(b, -1).sum(1), x[:, : t // 2].mean((1, 2)), x.transpose(1, 2).reshape(b, c * t)


def broadcast(x, y):
    return x[:, None] + y[None, :], torch.outer(x, y), x.expand(3, -1).sum(0), torch.cat([x, y, x])


def matrix_products(a, b):
    return a @ b, (a @ b).sum(), b.t() @ a.t(), a.sum(0) @ b


def other_layouts(x, y, z):
    return x + y, x @ y.t(), z.sum((2, 3)), z * 2, x.t() @ y, z[:, 1:].amax(1)


def same_length(x, y):
    return x + y, (x * y).sum()


def programs():
    v = Values(110)
    batch = torch.export.Dim("batch", min=0, max=40)
    rows = [4, 1, 0, 40]
    yield of_function("pointwise", pointwise, [(v.normal(n, m), v.normal(n, m)) for n, m in [(3, 5), (1, 1), (0, 3), (7, 0), (2, 33)]],
                      ({0: AUTO, 1: AUTO}, {0: AUTO, 1: AUTO}))
    yield of_function("reductions", reductions, [(v.normal(n, m),) for n, m in [(3, 5), (1, 2), (1, 1), (0, 3), (2, 100)]],
                      ({0: AUTO, 1: AUTO},))
    yield Program("dynamic_mlp", DynamicMlp, [(v.normal(n, 6),) for n in rows], ({0: batch},))
    yield Program("dynamic_conv", DynamicConv, [(v.normal(n, 2, h, w),) for n, h, w in [(2, 6, 8), (1, 5, 4), (3, 9, 7)]],
                  ({0: AUTO, 2: AUTO, 3: AUTO},))
    yield of_function("reshape_sizes", reshape_sizes, [(v.normal(n, t, 4),) for n, t in [(2, 6), (1, 4), (5, 3)]], ({0: AUTO, 1: AUTO},))
    yield of_function("broadcast", broadcast, [(v.normal(n), v.normal(m)) for n, m in [(3, 4), (1, 5), (0, 2), (6, 6)]], ({0: AUTO}, {0: AUTO}))
    yield of_function("matrix_products", matrix_products, [(v.normal(n, k), v.normal(k, m)) for n, k, m in [(3, 4, 5), (1, 1, 1), (0, 2, 3), (9, 33, 17), (2, 0, 3)]],
                      ({0: AUTO, 1: AUTO}, {0: AUTO, 1: AUTO}))
    image = v.normal(2, 3, 4, 5).to(memory_format=torch.channels_last)
    yield of_function("other_layouts", other_layouts, [(v.normal(5, 3).t(), v.normal(3, 10)[:, ::2], image)])
    yield of_function("same_length", same_length, [(v.normal(n), v.normal(n)) for n in (4, 1, 9)], ({0: AUTO}, {0: AUTO}))
