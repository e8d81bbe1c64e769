"""Elementwise meaning and reductions, at the corners."""

import torch
from program import Values, of_function
from torch.nn import functional as F

INF, NAN = float("inf"), float("nan")


def integer_division(a, b):
    return (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), a / b, a.remainder(-3), a // -4,
            torch.div(a, 3, rounding_mode="floor"), a.bitwise_and(b), a >> 1, a.abs(), a.sign(), a.clamp(-3, 4), a ** 2)


def float_remainder(x, y):
    return (x % y, torch.fmod(x, y), x // y, torch.div(x, y, rounding_mode="trunc"), x.remainder(-0.75), x.frac(), x.trunc(),
            x.floor(), x.ceil(), x.round(), x.round(decimals=1))


def special_values(x, y):
    return (x + y, x * y, torch.maximum(x, y), torch.fmin(x, y), x.clamp(-1, 1), x.sign(), x.sigmoid(), x.tanh(), x.exp(),
            x.log(), x.sqrt(), x.abs(), torch.atan2(x, y), torch.copysign(x, y), x > y, x == x, torch.signbit(x),
            torch.isinf(x), torch.hypot(x, y), torch.pow(x, y), x.pow(2), x.pow(0.5), x.reciprocal(), x.relu())


def clamps_and_wheres(x, low, flag):
    return (x.clamp(min=0.1), x.clamp(max=0.1), x.clamp(None, 0.5), torch.clamp(x, min=low), torch.clamp(x, low, low + 1),
            torch.where(x > 0, x, 0.0), torch.where(flag, 1.0, 2.0), torch.where(flag, 1, x), x.masked_fill(flag, -INF),
            torch.lerp(x, low, 0.25), torch.addcmul(x, low, low, value=0.5), F.threshold(x, 0.2, -7.0), x.heaviside(low))


def transcendentals(x):
    p = x.abs() + 0.1
    return (x.sin(), x.cos(), x.tan(), x.atan(), x.sinh(), x.cosh(), x.asinh(), p.log1p(), p.log2(), p.log10(), x.expm1(),
            x.exp2(), x.erf(), x.erfc(), p.rsqrt(), p.lgamma(), (x / 4).asin(), (x / 4).acos(), (x / 4).atanh(),
            torch.logaddexp(x, -x), torch.xlogy(p, p), p.digamma(), (x / 4).erfinv(), torch.sinc(x))


def activations(x):
    return (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.softplus(x), F.elu(x), F.selu(x), F.celu(x, 0.5),
            F.hardtanh(x), F.hardsigmoid(x), F.hardswish(x), F.relu6(x), F.leaky_relu(x, 0.2), F.logsigmoid(x), F.softsign(x),
            F.hardshrink(x), F.softshrink(x), F.tanhshrink(x), F.glu(x, 1), F.prelu(x, torch.tensor([0.3])))


def reductions(x, n):
    return (x.sum(), x.mean((0, 2)), x.prod(1), x.amax((1, 2)), x.amin(0, keepdim=True), x.var(), x.var((0, 1), correction=0),
            x.std(2), torch.var_mean(x, 1), x.logsumexp((0, 2)), x.norm(), x.norm(1, 2), torch.linalg.vector_norm(x, INF, 0),
            n.sum(), n.sum(1), n.prod(), n.amax(0), n.float().mean(), x.any(), x.all(0), (x > 0).sum(2), x.sum((0, 1, 2), True))


def empty_reductions(x, n):
    return (x.sum(0), x.prod(0), x.mean(0), n.sum(), n.prod(0), x.any(0), x.all(), x.logsumexp(1), x.sum(1), x.amax(1),
            torch.cat([x, x + 1]), x.var(0), x.relu(), x.t().contiguous(), torch.softmax(x, 1), n.cumsum(0))


def softmaxes(x):
    return (x.softmax(0), x.softmax(1), x.log_softmax(2), F.softmin(x, 0), x.softmax(-1, dtype=torch.float64),
            x[:, :, :1].softmax(2), (x * 200).softmax(1), x.masked_fill(x > 0, -INF).softmax(2), x[0, 0, 0].softmax(0))


def cumulative(x, n):
    return (x.cumsum(0), x.cumsum(-1), x.cumprod(1), n.cumsum(1), n.cumprod(0), n.to(torch.int8).cumsum(0), n.to(torch.uint8).cumsum(1),
            x.half().cumsum(1), x.cumsum(1, dtype=torch.float64), torch.diff(x, dim=0), x.flip(1).cumsum(1).flip(1))


def products(a, b, batch):
    return (torch.einsum("ij,kj->ik", a, b), torch.einsum("bij,kj->bki", batch, a), torch.einsum("bij,bij->b", batch, batch),
            torch.einsum("ii->i", batch[0, :, :3]), a @ b.t(), batch @ a.t(), a @ b[0], a[0] @ b[0], torch.outer(a[0], b[1]),
            torch.addmm(a[:, :2], a, b.t()[:, :2], beta=0.5, alpha=2), torch.bmm(batch, batch.transpose(1, 2)),
            torch.baddbmm(batch[:, :, :3], batch, batch.transpose(1, 2)), torch.kron(a[:1], b[:1]), torch.tensordot(a, batch, ([1], [2])))


def create(x):
    n = x.shape[0]
    return (torch.arange(n), torch.arange(1, 2, 0.25), torch.linspace(-1, 1, 5), torch.eye(n), torch.ones_like(x), torch.full((2,), n),
            x.new_zeros(2, n), torch.arange(n, dtype=torch.float32) * x[:, 0], torch.tril(torch.ones(n, n, dtype=torch.bool)),
            torch.zeros(0, n), torch.full_like(x, NAN), torch.ones(2, dtype=torch.int8))


def programs():
    v = Values(107)
    yield of_function("integer_division", integer_division, [(v.ints(-20, 20, 6, 5), v.ints(1, 7, 6, 5) * (v.ints(0, 2, 6, 5) * 2 - 1))])
    yield of_function("float_remainder", float_remainder, [(v.normal(6, 7) * 5, v.normal(6, 7))])
    row = torch.tensor([0.0, -0.0, 1.0, -1.5, INF, -INF, NAN, 1e-40])
    yield of_function("special_values", special_values, [(row[:, None].expand(8, 8).contiguous(), row.expand(8, 8).contiguous())])
    yield of_function("clamps_and_wheres", clamps_and_wheres, [(v.normal(4, 5), v.normal(4, 5), v.bools(4, 5))])
    yield of_function("transcendentals", transcendentals, [(v.normal(5, 13).clamp(-3, 3),)])
    yield of_function("activations", activations, [(v.normal(5, 8) * 3,)])
    yield of_function("reductions", reductions, [(v.normal(3, 4, 5), v.ints(-5, 6, 4, 3))])
    yield of_function("empty_reductions", empty_reductions, [(torch.zeros(0, 4), torch.zeros(0, 4, dtype=torch.int64))])
    yield of_function("softmaxes", softmaxes, [(v.normal(3, 4, 5),)])
    yield of_function("cumulative", cumulative, [(v.normal(5, 9), v.ints(-9, 10, 5, 9))])
    yield of_function("products", products, [(v.normal(3, 4), v.normal(3, 4), v.normal(2, 3, 4))])
    yield of_function("create", create, [(v.normal(4, 3),)])
