"""Reports about pooling, convolution, products, resampling, attention and normalisation."""

import torch
from bug_rows import gradients, rand, randn, refused, row, tensor
from torch.nn import functional as F

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
INF = float("inf")

# Losses and derivatives.

refused("pytorch#194501", lambda a, b: F.smooth_l1_loss(a, b, beta=-1.0), lambda: [tensor([1.0]), tensor([0.0])])


def jacobian(x):
    def f(x):
        a = torch.mm(x.prod() + x, x.sum() + x)
        return torch.mm(a, x.sum() + x).sum()

    return torch.func.jacfwd(f)(x)


row("pytorch#194706", jacobian, lambda: [(torch.arange(1.0, 5).view(2, 2) / 10).half()])

# Pooling.

row("pytorch#93384", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1), (1, 2)), lambda n=6: [randn(2, 2, 3, n + 2)])
row("pytorch#100987", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda n=6: [rand(1, 3, n, n)],
    lambda x, r: r.shape == (1, 3, 4, 4) and torch.allclose(r[:, :, 3, 3], x[:, :, 5:, 5:].sum((2, 3)) / 4))
row("pytorch#143720", lambda x: F.avg_pool1d(x, 4, 3, 2), lambda: [tensor([[1.7641]])], lambda x, r: torch.allclose(r, x / 4))
row("pytorch#198119", lambda x: gradients(lambda a: F.avg_pool1d(a, 3, 2, ceil_mode=True), x), lambda: [randn(1, 1, 6)],
    lambda x, r: torch.allclose(r[0, 0], tensor([1 / 3, 1 / 3, 2 / 3, 1 / 3, 1 / 3 + 1 / 2, 1 / 2])), refusal="avg_pool2d_backward")
row("pytorch#198119 in two dims", lambda x: gradients(lambda a: F.avg_pool2d(a, 3, 2, ceil_mode=True), x), lambda n=6: [randn(1, 2, n + 2, 8)], refusal="avg_pool2d_backward")

# Convolutions and products.

refused("pytorch#100225", lambda x, w: F.conv_transpose2d(x, w, stride=1, padding=1, output_padding=1).tanh(), lambda: [randn(1, 3, 28, 28), randn(3, 6, 3, 3)])
row("pytorch#158930", lambda x, w: F.conv1d(x.transpose(1, 2), w, padding=2, groups=w.shape[0])[..., :1], lambda n=64: [randn(4, 1, n), randn(n, 1, 3)])
row("pytorch#167313", lambda x, a, b: torch.addmm(x, a, b, alpha=0.5, beta=0.5).relu(), lambda n=3: [randn(2), randn(2, n), randn(n, 2)],
    lambda x, a, b, r: torch.allclose(r, (0.5 * x + 0.5 * (a @ b)).relu(), atol=1e-6))
refused("pytorch#177630", lambda a, b: a @ b, lambda: [randn(2, 3, 4, dtype=F16), randn(2, 4, 5)])
row("pytorch#184026", lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), lambda n=4: [randn(2, 16, n, 4), randn(16, 16, 3, 3)],
    lambda x, w, r: r.shape == (2, 16, 8, 8))
row("pytorch#183899", lambda x, a, b: torch.addmm(x, a, b, beta=0), lambda n=4: [torch.full((1, n), float("nan")), randn(3, 5), randn(5, n)],
    lambda x, a, b, r: r.isfinite().all())
row("pytorch#168965", lambda a, b: (a @ b).relu(), lambda n=12: [randn(3, n, 7), randn(3, 7, n)], big=300)

# Resampling.

row("pytorch#93262", lambda x: F.interpolate(x, (1, 1), mode="bilinear", align_corners=False), lambda: [randn(2, 8, 7, 10)],
    lambda x, r: torch.allclose(r[..., 0, 0], x[:, :, 3, 4:6].mean(-1), atol=1e-6))
row("pytorch#145264", lambda x: -F.interpolate(x, (36, 1), mode="bicubic"), lambda: [randn(8, 1, 4, 1)])
row("pytorch#170682", lambda x: F.interpolate(x, scale_factor=2), lambda n=50: [randn(2, 1, n, 30, dtype=BF16)],
    lambda x, r: torch.equal(r, x.repeat_interleave(2, 2).repeat_interleave(2, 3)), big=1000)
row("pytorch#183771", lambda x: F.interpolate(x, (5, 6, 7)), lambda: [randn(2, 5, 2, 3, 2).permute(0, 4, 1, 2, 3)], lambda x, r: r.stride() == (420, 1, 84, 14, 2))
row("pytorch#198201", lambda x: F.interpolate(x, scale_factor=(1.3, 1.5)), lambda: [torch.arange(12.0).view(1, 1, 3, 4)],
    lambda x, r: torch.equal(r[0, 0, :, 0], x[0, 0, :, 0]) and r.shape[-1] == 6)
refused("pytorch#197095", lambda x: F.interpolate(x, (2, 2)), lambda: [torch.ones(1, 1, 0, 4)])
refused("pytorch#197095 of the result", lambda x: F.interpolate(x, (0, 2)), lambda: [torch.ones(1, 1, 3, 4)])

# Attention and softmax.

attention = F.scaled_dot_product_attention
row("pytorch#131060", lambda q, k, v, m: (attention(q, k, v, attn_mask=m), (q @ k.mT).masked_fill(~m, -INF).softmax(-1)),
    lambda: [randn(1, 2, 4), randn(1, 2, 4), randn(1, 2, 4), tensor([[False, False], [True, True]])],
    lambda q, k, v, m, a, s: not a[0, 0].any() and s[0, 0].isnan().all())
row("pytorch#131060 of minus infinity", lambda q, k, v, m: attention(q, k, v, attn_mask=m),
    lambda: [randn(1, 2, 4), randn(1, 2, 4), randn(1, 2, 4), tensor([[-INF, -INF], [0.0, 0.0]])], lambda q, k, v, m, a: not a[0, 0].any())
refused("pytorch#171191", lambda s, m, v: torch.bmm(s + m, v), lambda: [randn(1, 3, 3), randn(1, 3, 3, dtype=F64), randn(1, 3, 4)])
row("pytorch#174049", lambda q, k, v, m: ((q @ k.transpose(-2, -1)).div(0.3536) + m).softmax(-1) @ v,
    lambda n=6: [randn(1, 2, n, 64) * 0.2, randn(1, 2, n, 64) * 0.2, randn(1, 2, n, 64), randn(n, n)])
row("pytorch#191203", lambda q, k, v, s: ((q @ k.transpose(-2, -1)) * s + torch.full((8, 8), -1e9).triu(1)).softmax(-1) @ v,
    lambda: [randn(1, 2, 8, 8), randn(1, 2, 8, 8), randn(1, 2, 8, 8), tensor(0.5)])
row("pytorch#195320", lambda q, k, v: (torch.matmul(q, k.permute(0, 2, 3, 1)) * 0.5).softmax(-1) @ v, lambda n=5: [randn(2, 3, n, 8), randn(2, 6, 3, 8), randn(2, 3, 6, 8)])
row("pytorch#195320 other dims", lambda q, k, v: (torch.matmul(q, k.permute(0, 2, 1, 3)) * 0.5).softmax(-2) @ v, lambda n=5: [randn(2, 3, n, 8), randn(2, 8, 3, 6), randn(2, 3, 6, 8)])
row("pytorch#176091", lambda q, k, v: attention(q, k, v), lambda n=33: [randn(1, 1, n, 64), randn(1, 1, n, 64), randn(1, 1, n, 64)], big=400)

# Normalisation.


def norm_of_constants(x):
    y = F.elu(F.batch_norm(x, torch.zeros(10), torch.ones(10)))
    return F.group_norm(y, 10)


row("pytorch#100970", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), lambda n=2: [randn(1, 3, 2, n), randn(3), rand(3) + 0.5, randn(3, 1, 1, 1), randn(3)],
    lambda x, m, v, w, b, r: r.shape == (1, 3, 2, 2), sizes=(1, 16))
row("pytorch#117542", lambda x: F.layer_norm(x, x.shape[-1:]), lambda n=20: [1 + randn(4, n) * 1e-4])
refused("pytorch#147287", lambda x: torch.ops.aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5), lambda: [torch.empty(0, 3, 2)])
row("pytorch#181696", norm_of_constants, lambda: [torch.ones(6, 10, 12)], lambda x, r: not r.any())
row("pytorch#181696 odd", lambda x: F.group_norm(x, 5) + F.layer_norm(x, x.shape[1:]), lambda n=12: [torch.full((3, 10, n), 0.1)], lambda x, r: not r.any())
row("pytorch#183601", lambda x: F.instance_norm(x), lambda n=12: [randn(4, 3, 10, n + 1)])
row("pytorch#120217", lambda x: F.layer_norm(x, (512,)), lambda n=9: [randn(n, 512, dtype=F16)], big=2000)
row("pytorch#96628", lambda p, g, m: (lambda n: (p - 0.1 * n, n))(m * 0.9 + g), lambda n=17: [randn(n), randn(n), randn(n)], big=32768)
row("pytorch#183696", lambda x, w, g: gradients(residual_norms, x, w, g), lambda n=6: [randn(n, 32), randn(32, 32), rand(32)])


def residual_norms(x, w, g):
    y = x + F.rms_norm(x, (32,), g) @ w
    z = y + F.rms_norm(y, (32,), g)
    return torch.cat([z, torch.zeros(x.shape[0], 8)], 1)


row("pytorch#186084", lambda x, w, b: F.layer_norm(x, (96,), w, b), lambda n=9: [randn(n, 96, dtype=BF16), randn(96, dtype=BF16), randn(96, dtype=BF16)])
row("pytorch#181442", lambda x: x.mean(1), lambda n=64: [randn(25, n).t()], big=3000)
row("pytorch#179570", lambda x: (x.log2().ceil().clamp(-127, 127) + 127).to(torch.uint8), lambda: [2.0 ** torch.arange(-126.0, 127.0)],
    lambda x, r: r.tolist() == list(range(1, 254)))


def dynamic_scale(x, w):
    """A scale from the rounded largest value, as eager rounds it."""
    scale = x.abs().amax() / 448.0
    return ((x / scale).to(BF16) @ w) * scale


row("pytorch#154020", dynamic_scale, lambda n=4: [randn(n, 64, dtype=BF16), randn(64, 32, dtype=BF16)])
