"""Layers of torch.nn in the forms that fixtures lack."""

import torch
from program import Program, Values, of_function
from torch import nn
from torch.nn import functional as F


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv1d(3, 4, 3, stride=2, padding=1)
        self.same = nn.Conv1d(3, 2, 4, padding="same")
        self.dilated = nn.Conv2d(2, 4, 3, dilation=2, padding=2, groups=2, bias=False)
        self.wide = nn.Conv2d(2, 3, (1, 5), padding=(0, 2), padding_mode="circular")
        self.three = nn.Conv3d(2, 3, 2, stride=(1, 2, 1))

    def forward(self, x, y, z):
        return self.one(x), self.same(x), self.dilated(y), self.wide(y), self.three(z)


class TransposedConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.ConvTranspose1d(3, 2, 3, stride=2, output_padding=1)
        self.two = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)
        self.dilated = nn.ConvTranspose2d(4, 1, 2, dilation=2, bias=False)

    def forward(self, x, y):
        return self.one(x), self.two(y), self.dilated(y)


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        y = self.conv(x.to(memory_format=torch.channels_last)).relu()
        return y, F.max_pool2d(y, 2), y.mean((2, 3)), y.contiguous().view(y.shape[0], -1).sum(1)


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.rms = nn.GroupNorm(2, 6), nn.RMSNorm(7)
        self.layer, self.instance = nn.LayerNorm((6, 7)), nn.InstanceNorm1d(6, affine=True)
        self.plain, self.batch = nn.LayerNorm(7, elementwise_affine=False), nn.BatchNorm1d(6)
        self.batch.running_mean.uniform_(-1, 1)

    def forward(self, x):
        return self.group(x), self.rms(x), self.layer(x), self.instance(x), self.plain(x), self.batch(x), F.normalize(x, dim=1)


class BidirectionalLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.lstm(x)


class RecurrentMix(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.rnn = nn.GRU(4, 5, 2), nn.RNN(5, 3, nonlinearity="relu", bidirectional=True)
        self.tanh, self.cell = nn.RNN(6, 4, bias=False), nn.LSTMCell(4, 3)

    def forward(self, x, h):
        y, last = self.gru(x, h)
        z, _ = self.rnn(y)
        w, _ = self.tanh(z)
        return y, last, z, w, self.cell(w[0])


class CausalBlock(nn.Module):
    """The attention of a GPT with its mask written out, and rotary positions."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
        self.register_buffer("mask", torch.tril(torch.ones(12, 12)).view(1, 1, 12, 12))
        angles = torch.outer(torch.arange(12.0), 1.0 / 100 ** (torch.arange(4) / 4))
        self.register_buffer("turn", torch.cat([angles, angles], -1), persistent=False)

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        t = x.shape[2]
        return x * self.turn[:t].cos() + torch.cat([-b, a], -1) * self.turn[:t].sin()

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, 2, 8).transpose(1, 2) for p in self.qkv(x).split(c, dim=2))
        scores = (self.rotate(q) @ self.rotate(k).transpose(-2, -1)) * 8**-0.5
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        return self.out((F.softmax(scores, -1) @ v).transpose(1, 2).contiguous().view(b, t, c))


def attention_forms(q, k, v, mask, allowed):
    f = F.scaled_dot_product_attention
    return (f(q, k, v), f(q, k, v, attn_mask=mask), f(q, k, v, attn_mask=allowed), f(q, k, v, is_causal=True, scale=0.3),
            f(q, k[:, :1], v[:, :1], enable_gqa=True), f(q[0], k[0], v[0]))


def spelled_attention(q, k, v, mask, bias, allowed):
    """As models write it out; the second row of `allowed` is empty, so that softmax makes it NaN."""
    scores = q @ k.transpose(-1, -2)
    masked = ((scores / 8**0.5 + mask).softmax(-1) @ v).transpose(1, 2).flatten(2)
    filled = torch.where(allowed, scores, float("-inf")).softmax(-1) @ v
    windows = (scores * 0.3 + bias).view(1, 2, 2, 5, 5) + mask.view(1, 2, 1, 5, 5)
    return masked, filled, windows.view(2, 2, 5, 5).softmax(-1) @ v, torch.bmm(torch.bmm(q[0], k[0].mT).softmax(2), v[0])


def pooling(x):
    y = x[:, :, 0]
    return (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, ceil_mode=True), F.max_pool2d(x, 2, 1, dilation=2), F.avg_pool2d(x, 2, ceil_mode=True),
            F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.avg_pool2d(x, 2, divisor_override=3), F.adaptive_avg_pool2d(x, (3, 2)),
            F.adaptive_max_pool2d(x, 2), F.max_pool1d(y, 3), F.avg_pool1d(y, 2), F.adaptive_avg_pool1d(y, 4), F.avg_pool3d(x, 2),
            F.max_pool2d(x, 2, return_indices=True), F.lp_pool2d(x, 2, 2))


def resampling(x):
    up = lambda **k: F.interpolate(x, **k)
    return (up(scale_factor=2, mode="bilinear", align_corners=True), up(size=(9, 4), mode="bilinear"), up(scale_factor=1.5, mode="nearest"),
            up(size=(3, 11), mode="nearest-exact"), up(size=(8, 8), mode="bicubic"), up(size=(4, 4), mode="area"),
            F.interpolate(x[:, :, 0], size=9, mode="linear"), F.pixel_unshuffle(x[:, :, :4, :6], 2))


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.padded = nn.Embedding(11, 5), nn.Embedding(7, 5, padding_idx=0)

    def forward(self, ids, more):
        return self.words(ids) + self.padded(more), F.one_hot(more, 7), F.embedding(more.int(), self.words.weight)


def losses(x, target, y):
    return (F.cross_entropy(x, target), F.nll_loss(x.log_softmax(1), target, reduction="none"), F.mse_loss(x, y), F.l1_loss(x, y),
            F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.kl_div(x.log_softmax(1), y.softmax(1), reduction="sum"),
            F.cosine_similarity(x, y), F.huber_loss(x, y), F.pairwise_distance(x, y))


def programs():
    v = Values(108)
    yield Program("convolutions", Convolutions, [(v.normal(2, 3, 11), v.normal(2, 2, 7, 6), v.normal(1, 2, 4, 5, 3))])
    yield Program("transposed_convolutions", TransposedConvolutions, [(v.normal(2, 3, 5), v.normal(1, 4, 4, 3))])
    yield Program("channels_last", ChannelsLast, [(v.normal(2, 3, 6, 5),)])
    yield Program("norms", Norms, [(v.normal(3, 6, 7),)])
    yield Program("bidirectional_lstm", BidirectionalLstm, [(v.normal(3, 6, 4),)])
    yield Program("recurrent_mix", RecurrentMix, [(v.normal(5, 2, 4), v.normal(2, 2, 5))])
    yield Program("causal_block", CausalBlock, [(v.normal(2, 9, 16),)])
    q, k, w = (v.normal(2, 2, 5, 8) for _ in range(3))
    allowed = v.bools(5, 5) | torch.eye(5, dtype=torch.bool)
    yield of_function("attention_forms", attention_forms, [(q, k, w, v.normal(2, 1, 5, 5), allowed)])
    allowed = allowed & (torch.arange(5) != 1).unsqueeze(1)
    yield of_function("spelled_attention", spelled_attention, [(q, k, w, v.normal(2, 1, 5, 5), v.normal(1, 2, 5, 5), allowed)])
    yield of_function("pooling", pooling, [(v.normal(2, 3, 7, 9),)])
    yield of_function("resampling", resampling, [(v.normal(1, 2, 6, 7),)])
    yield Program("embeddings", Embeddings, [(v.ints(0, 11, 2, 4), v.ints(0, 7, 2, 4))])
    yield of_function("losses", losses, [(v.normal(5, 4), v.ints(0, 4, 5), v.normal(5, 4))])
