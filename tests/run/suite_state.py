"""Weights that share memory, buffers that live on between calls."""

import torch
from program import Program, Values
from torch import nn
from torch.nn import functional as F


class TiedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids):
        return self.out(torch.tanh(self.embedding(ids)))


class OffsetWeights(nn.Module):
    """Three views of one storage: an offset, an overlap, a transpose."""

    def __init__(self):
        super().__init__()
        storage = torch.randn(64)
        self.register_buffer("low", storage[3:27].view(4, 6))
        self.register_buffer("high", storage[20:50].view(5, 6))
        self.register_buffer("turned", storage[40:64].view(6, 4).t())

    def forward(self, x):
        return x @ self.low.t(), F.linear(x, self.high), x @ self.turned.t(), self.low[1:] * 2


class ExpandedWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.randn(1).expand(7))
        self.register_buffer("turned", torch.randn(5, 7).t())

    def forward(self, x):
        return x + self.one, (x + self.turned.t()).sum(0)


class KeyValueCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 16, 4))
        self.register_buffer("values", torch.zeros(1, 2, 16, 4))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, position):
        b, s, c = x.shape
        q, k, v = (t.view(b, s, 2, 4).transpose(1, 2) for t in self.qkv(x).split(8, -1))
        self.keys.index_copy_(2, position, k)
        self.values[:, :, position] = v
        self.filled += s
        mask = torch.arange(16)[None, :] <= position[:, None]
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return y.transpose(1, 2).reshape(b, s, c), self.filled.clone()


class SlidingBuffer(nn.Module):
    """A ring that is shifted by one at each call, written through a view."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 3))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int32), persistent=False)

    def forward(self, x):
        self.ring[:-1] = self.ring[1:].clone()
        self.ring[-1].copy_(x)
        self.steps.add_(1)
        return self.ring.mean(0) * self.steps, self.ring


class RunningStatistics(nn.Module):
    """batch_norm in training mode writes its statistics, which its schema does not say."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5, momentum=0.25)

    def eval(self):
        return self.train()

    def forward(self, x):
        y = self.norm(x)
        return y, self.norm.running_mean.clone(), self.norm.running_var + 0, self.norm.num_batches_tracked + 0


class Constants(nn.Module):
    """Tensors made in forward are lifted to constants of the file."""

    def forward(self, x):
        table = torch.tensor([[1.0, -2.0], [0.5, float("inf")]])
        return x * table, torch.tensor([3, 1, 2]), torch.tensor(2.5) * x


def programs():
    v = Values(102)
    at = torch.tensor
    yield Program("tied_weights", TiedWeights, [(v.ints(0, 20, 2, 3),)])
    yield Program("offset_weights", OffsetWeights, [(v.normal(3, 6),)])
    yield Program("expanded_weight", ExpandedWeight, [(v.normal(5, 7),)])
    yield Program("key_value_cache", KeyValueCache, [
        (v.normal(1, 2, 8), at([0, 1])), (v.normal(1, 2, 8), at([2, 3])), (v.normal(1, 2, 8), at([1, 4]))])
    yield Program("sliding_buffer", SlidingBuffer, [(v.normal(3),) for _ in range(5)])
    yield Program("running_statistics", RunningStatistics, [(v.normal(6, 5) * 3 + 1,), (v.normal(6, 5),)])
    yield Program("constants", Constants, [(v.normal(2, 2),)])
