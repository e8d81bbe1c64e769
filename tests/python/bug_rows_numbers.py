"""Reports about reductions, arithmetic, dtypes and rounding."""

import math

import torch
from bug_rows import gradients, ints, rand, randn, refused, row, tensor
from torch.nn import functional as F

I8, I16, I32, I64, U8, B = torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool
F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
C64 = torch.complex64
INF, NAN = math.inf, math.nan

# Reductions, scans, statistics.

row("pytorch#93815", lambda x: x.argmax(0), lambda n=20: [ints(-100, 100, n, n, dtype=I16)],
    lambda x, r: all(int(i) == x[:, c].tolist().index(x[:, c].max()) for c, i in enumerate(r)), big=700)
row("pytorch#99879", lambda x: (*x.min(1), x.argmin(1)), lambda n=18: [ints(0, 3, n, n).float()],
    lambda x, v, i, j: torch.equal(i, j) and all(int(k) == x[r].tolist().index(x[r].min()) for r, k in enumerate(i)), big=700)
row("pytorch#109925", lambda: torch.full((2, 4), 1).to(B).cumsum(1), lambda: [],
    lambda r: r.tolist() == [[1, 2, 3, 4]] * 2 and r.dtype is I64)
row("pytorch#113013", lambda x: F.adaptive_avg_pool1d(x, 2).argmax(), lambda n=3: [randn(3, n, n, dtype=F64)])
row("pytorch#113167", lambda x: torch.var_mean(x, correction=4.9), lambda: [tensor([0.1603])],
    lambda x, var, mean: var.isnan())
row("pytorch#117623", lambda x, out: torch.cumsum(x, 0, out=out),
    lambda: [rand(2, 8, 8, 2, 1, 3, 4, 8) * 9, torch.empty(2, 8, 8, 2, 1, 3, 4, 8, dtype=I16)], front=True)
row("pytorch#124821", lambda x: (x.sin() * 3).argmax(), lambda n=40: [randn(n)], big=100_000)
row("pytorch#139641", lambda x: torch.logcumsumexp(x, 0), lambda n=16: [rand(n, 32)], refusal="logcumsumexp")
row("pytorch#143568", lambda x: (x.max(), x.min(), x.amax(0)), lambda n=9: [rand(n, n) < 0.1], big=900)
row("pytorch#145401", lambda x: torch.var_mean(x, 1, correction=0, keepdim=True), lambda n=1200: [rand(n, 384, dtype=F16)],
    sizes=(1, 17))
row("pytorch#172062", lambda x: gradients(lambda a: a.cumprod(1), x), lambda n=100: [rand(1, n, dtype=F64) * 0.1])
row("pytorch#174073", lambda x: x.clone().tan_().t().argmin(), lambda n=6: [randn(4, n)], big=50_000)
row("pytorch#174073 as given", lambda x: x.tan_().t().argmin(),
    lambda: [torch.arange(24.0).view(4, 6) / 100 - (torch.arange(24) == 6).float().view(4, 6)],
    lambda x, r: int(r) == 1)
row("pytorch#177839", lambda x: torch.logit(x[:, :17], eps=0.51), lambda n=20: [torch.full((2, n), 0.3)],
    lambda x, r: torch.allclose(r, torch.full_like(r, math.log(0.51 / 0.49)), atol=1e-4))
row("pytorch#178964", lambda a, b: (a + b).max(1), lambda n=8: [randn(n, n).t(), randn(n, n)],
    lambda a, b, v, i: len(set(i.tolist())) > 1, big=600)
row("pytorch#183082", lambda x: x.clone().sin_().t().argmax(), lambda n=7: [torch.linspace(-1, 1, 5 * n)[torch.randperm(5 * n)].view(5, n)],
    lambda x, r: x.sin().t().reshape(-1)[int(r)] == x.sin().max(), big=20_000)
row("pytorch#184893", lambda x: (*x.max(0), *x.min(0)), lambda n=4: [rand(n, 32) < 0.5],
    lambda x, v, i, w, j: torch.equal(i, x.int().argmax(0)) and torch.equal(j, x.int().argmin(0)), sizes=(1, 2, 3, 5, 6, 7))


def constants_that_are_nan():
    y = torch.ones(2, 2)
    return torch.atan2(y, y).log2().acosh().softmax(1)


row("pytorch#188225", constants_that_are_nan, lambda: [], lambda r: r.isnan().all())
row("pytorch#186799", lambda x, y: gradients(lambda a, b: torch.atan2(a, b).amin(1), x, y), lambda n=9: [randn(n, 12), randn(n, 12)],
    lambda x, y, gx, gy: torch.allclose((gy * y + gx * x), torch.zeros(()), atol=1e-5) and int((gx != 0).sum()) == 9)
row("pytorch#186799 second form",
    lambda x, w: gradients(lambda a, b: a + a.amax(1, keepdim=True).expand(1, 10, 2) @ b, x, w), lambda: [randn(1, 10, 2, dtype=F16), randn(2, 2, dtype=F16)])
row("pytorch#191499", lambda x: (x.amin(), x.amax(), x.argmin(), x.argmax()),
    lambda n=18: [tensor([5, 1, 100, 3] + [9] * (n - 5) + [80], U8) if n > 4 else tensor([7], U8)],
    lambda x, *r: [int(i) for i in r] == [1, 100, 1, 2], big=100_000)
row("pytorch#191499 signed", lambda x, y: (x.amin(), y.amax(), x.argmin(), y.argmax()),
    lambda n=18: [ints(5, 100, n, dtype=I8), ints(-100, -5, n, dtype=I8)], lambda x, y, *r: int(r[0]) >= 5 and int(r[1]) < 0, big=100_000)
row("pytorch#193263",
    lambda: [torch.full((), v).cumsum(d) for v in (5.0, 5, True) for d in (0, -1)] + [torch.tensor(5.0).cumsum(0)], lambda: [],
    lambda *r: [float(x) for x in r] == [5, 5, 5, 5, 1, 1, 5] and r[4].dtype is I64)
for name, scale, shift in (("huge", 1e30, 0.0), ("tiny", 1e-30, 0.0), ("near 1e5", 1.0, 1e5)):
    row(f"pytorch#197089 {name}", lambda x: (x.std(), x.var(), *torch.var_mean(x), *torch.std_mean(x)),
        lambda n=1000, scale=scale, shift=shift: [(randn(n, dtype=F64) * scale + shift).float()],
        lambda x, std, *r, shift=shift: abs(float(std) / float(x.double().std()) - 1) < (1e-4 if shift else 1e-5), sizes=(15, 16, 17), big=200_000)
row("pytorch#197108", lambda x, y: (*torch.var_mean(x), *torch.std_mean(x), *torch.var_mean(y, 0)),
    lambda: [torch.empty(0), torch.empty(0, 3)], lambda x, y, *r: all(t.isnan().all() for t in r))
refused("pytorch#197807", lambda x: torch.logcumsumexp(x, 0), lambda: [tensor(0, U8)])
row("pytorch#198081", lambda x: (x.any(), x.any(0), torch.any(x) * 200 + 100, x.all(), x.all(0)), lambda: [tensor([[0, 3], [0, 0]], U8)],
    lambda x, a, b, c, *r: a.dtype is U8 and b.tolist() == [0, 1] and int(c) == 44)
refused("pytorch#137213", lambda x, a, b: torch.aminmax(x, dim=-1, out=(a, b)),
        lambda: [rand(10, 10), torch.empty(10, dtype=F64), torch.empty(10, dtype=F64)])

# Division and remainder.

for op in (torch.fmod, torch.remainder, torch.floor_divide):
    refused(f"pytorch#154420 {op.__name__}", op, lambda: [ints(0, 255, 100_000, dtype=U8), ints(0, 3, 100_000, dtype=U8)], "[Zz]ero")
refused("pytorch#174174", lambda x: x.remainder(0), lambda: [ints(0, 9, 5)], "[Zz]ero")
row("pytorch#186164", lambda x, d: (torch.floor_divide(x, d), x // torch.tensor(3), x // 3, torch.div(x, d, rounding_mode="floor")),
    lambda n=20: [torch.arange(-(n // 2), n - n // 2), tensor(3)],
    lambda x, d, *r: all(t.tolist() == [v // 3 for v in x.tolist()] for t in r), big=70_000)
row("pytorch#194345", lambda a, b, c, d: (torch.remainder(a, b), torch.fmod(a, b), torch.fmod(c, d)),
    lambda: [tensor([1e10, 65504, 3.4e38, -1e10]), tensor([1e-20, 6e-8, 1.4e-45, 1e-20]),
             tensor([3.39e38], BF16), tensor([9.2e-41], BF16)],
    lambda a, b, c, d, r, m, h: (r.abs() < b).all() and m.tolist() == [math.fmod(p, q) for p, q in zip(a.tolist(), b.tolist())])
row("pytorch#197895", lambda a, b: (a // b, torch.div(a, b, rounding_mode="floor")),
    lambda: [tensor([1.0, 0.5, 6.0, 1.0], F64), tensor([0.1, 0.1, 0.2, 1 / 3], F64)], lambda a, b, *r: all(t.tolist() == [9, 4, 29, 3] for t in r))
row("pytorch#197895 in f32", lambda a, b: (a // b, torch.div(a, b, rounding_mode="floor")),
    lambda: [tensor([1.0, 0.5, 6.0, 1.0]), tensor([0.1, 0.1, 0.2, 1 / 3])], lambda a, b, *r: all(t.tolist() == [9, 4, 29, 2] for t in r))

# Integers and casts.


def reciprocal_in_place(x):
    y = x.exp()
    x.reciprocal_()
    return y + x, x * 2


row("pytorch#93824", reciprocal_in_place, lambda n=5: [rand(n) + 1], big=40_000)
row("pytorch#97124", lambda: (lambda a: (a + a).float() * 0.8)(torch.zeros(1, 2, dtype=I32)), lambda: [], lambda r: r.tolist() == [[0, 0]])
row("pytorch#97127", lambda: torch.zeros(2, 2).argmax(0).float().mean(), lambda: [], lambda r: float(r) == 0)
for dtype in (I8, I16, U8, B):
    row(f"pytorch#97968 {dtype}", lambda x, y: ((x & y).clamp_max(y), torch.bitwise_and(x, y).max()),
        lambda n=10, dtype=dtype: [ints(0, 90, 5, n, 1).to(dtype), ints(0, 90, n, 1).to(dtype)])
row("pytorch#105264", lambda x: (x + x).to(I16), lambda: [tensor(128, U8)], lambda x, r: int(r) == 0)
row("pytorch#105264 in rows", lambda x: (x + x).to(I16), lambda n=40: [ints(100, 256, n, dtype=U8)], lambda x, r: int(r.max()) < 256, big=100_000)


def index_add_with_alpha():
    source, index = torch.tensor([0.3], dtype=F64), torch.tensor([0])
    return torch.zeros(1, dtype=F64).index_add(0, index, source, alpha=2.0) / 2, source


row("pytorch#108963", index_add_with_alpha, lambda: [], lambda a, b: torch.equal(a, b))
row("pytorch#113016", lambda x, y: (x + y, -x, (-(x + y)).to(I32), (x - y).long(), (x * y).float()),
    lambda n=33: [ints(0, 256, n, dtype=U8), ints(0, 256, n, dtype=U8)], lambda x, y, s, m, w, *r: int(w.min()) >= 0)
row("pytorch#126824", lambda x, y: (torch.minimum(x, y), torch.maximum(x, y), torch.clamp(x.long(), max=y.long()).bool()), lambda n=33: [rand(n) < 0.5, rand(n) < 0.5],
    lambda x, y, r, *_: torch.equal(r, x & y))
row("pytorch#131910", lambda x: x.byte(), lambda n=20: [(torch.arange(n) - n // 2) * 0.75], lambda x, r: r.tolist() == [int(v) % 256 for v in x.tolist()])
row("pytorch#143729", lambda x: (lambda m, e: (m, e, m * e))(*torch.frexp(x)), lambda n=4: [randn(n, 1)], refusal="frexp")
row("pytorch#161763", lambda x: -torch.tensor(7, dtype=U8) + x, lambda n=2: [randn(2, n)], lambda x, r: torch.equal(r, x + 249))
row("pytorch#183901", lambda: torch.arange(0, 9) * torch.tensor([1500000000]), lambda: [], lambda r: r.tolist() == [1500000000 * i for i in range(9)])
row("pytorch#191308", lambda a, b: a @ b, lambda n=2: [torch.ones(1, 1, n, dtype=I8), torch.ones(1, n, 2, dtype=I8)], lambda a, b, r: r.dtype is I8 and int(r.max()) == 2)
for dtype in (I8, I16, I32, I64):
    row(f"pytorch#190764 {dtype}", lambda a, b: ((a + b).long(), (a - b).long(), (a * b).long(), (-a).long(), a.abs().long()),
        lambda n=20, dtype=dtype: [ints(torch.iinfo(dtype).min, torch.iinfo(dtype).max, n, dtype=dtype) for _ in range(2)],
        lambda a, b, s, *r: s[0] == (a + b)[0].long(), big=60_000)

# Promotion, rounding, low precision.

row("pytorch#91224", lambda c, x: torch.where(c, x, torch.tensor(2.5, dtype=F16)), lambda n=17: [rand(n) < 0.5, randn(n, dtype=F16)],
    lambda c, x, r: r.dtype is F16)
row("pytorch#92324", lambda x: torch.add(x, 3.589, alpha=57), lambda n=1024: [randn(n)])
row("pytorch#95181", lambda x: torch.sub(x, 1, alpha=2), lambda: [rand(1, dtype=F64)], lambda x, r: torch.equal(r, x - 2))
row("pytorch#100466", lambda x: x * (x >= 0).to(F32), lambda n=3: [rand(n, 3)], lambda x, r: torch.equal(r, x))
row("pytorch#105914", lambda x: torch.linalg.vector_norm(x).clamp_min(1e-8), lambda n=64: [randn(n, dtype=F16)], lambda x, r: r.dtype is F16)
row("pytorch#122260", lambda x, y: ((x / 1e-6 + y / 1e-6).softmax(-1), x / 1e-6 + y / 1e-6), lambda n=20: [rand(4, n), rand(4, n)])
row("pytorch#128306", lambda x: (x > 0.2, x == 0.2), lambda: [tensor([[0.1, 0.2002, 0.3, 0.4]], BF16)],
    lambda x, g, e: g.tolist() == [[False, False, True, True]] and e.tolist() == [[False, True, False, False]])
row("pytorch#141727", lambda x: F.rms_norm(x.float(), (96,), eps=1e-5).to(BF16), lambda n=15: [randn(2, n, 96, dtype=BF16)])
row("pytorch#143978", lambda x: x.rsqrt().angle().atan().sin(), lambda n=10: [randn(n)], lambda x, r: torch.equal(r.isnan(), x < 0))
row("pytorch#173987", lambda x: torch.eq(x, 3.14), lambda n=128: [torch.full((3, n), 3.14).to(BF16)], lambda x, r: r.all())
row("pytorch#179561", lambda x, w: (lambda y: (y * y.sigmoid()).sum(1))((x @ w).to(BF16).float()), lambda n=12: [randn(n, 16), randn(16, 24)])
row("pytorch#181568", lambda x, w, b: ((x @ w).to(BF16) + b).mean(-1), lambda n=15: [randn(2, n, 32), randn(32, 17), randn(17)])
row("pytorch#183605", lambda x: x * (x.var() + 1e-9).rsqrt(), lambda: [torch.full((3, 5), 1e-10, dtype=F16)], lambda x, r: r.isnan().all())


def half_chain(x):
    y = torch.where(x > 0, x, torch.full_like(x, 0.25))
    return (y.float() + x.half()).sum()


row("pytorch#183761", half_chain, lambda n=50: [randn(n, dtype=F16)])


def two_casts(i):
    x = i.float() / 10
    z = torch.where(i % 5 == 0, 0.5, -0.5)
    return (z.to(F16) + x.to(F16)).float().sum()


row("pytorch#182131", two_casts, lambda: [torch.arange(24).view(2, 3, 4)], lambda i, r: abs(float(r) - 20.5996) < 5e-5)
row("pytorch#185337", lambda x: x.half().float().sum(1), lambda n=5: [torch.arange(4.0 * n).reshape(n, 4).t() / 7],
    lambda x, r: torch.allclose(r, x.half().double().sum(1).float(), rtol=1e-6), big=20_000)
row("pytorch#190421", lambda: torch.full((2,), 0.0).log().sum(dtype=I32).float(), lambda: [], is_open=True)
row("pytorch#193206", lambda x: torch.linalg.vector_norm(x, 2, 1), lambda n=9: [randn(n, 65)], big=3000)
row("pytorch#196032", lambda x, h: (x.sigmoid(), h.sigmoid()),
    lambda n=200: [torch.linspace(-87, 110, n), torch.linspace(-30, 30, n).half()],
    lambda x, h, r, s: torch.allclose(r.double(), x.double().sigmoid(), rtol=3e-7, atol=1e-45))
row("pytorch#196033", torch.hypot, lambda n=50: [randn(n) * 1e20, randn(n) * 1e19], lambda a, b, r: torch.allclose(r.double(), torch.hypot(a.double(), b.double()), rtol=2e-7))

# Subnormals and signed zero.

row("pytorch#125557", lambda s: (2.0**s, torch.exp2(s)), lambda n=4: [tensor([-126.0, -127.0, -149.0, -150.0] * n)[: max(n, 4)]],
    lambda s, p, e: p.tolist() == e.tolist() == [2.0**-126, 2.0**-127, 2.0**-149, 0.0])
row("pytorch#188541", lambda x: (lambda y: (y, y.signbit(), y == 0, torch.copysign(torch.ones(()), y)))(F.logsigmoid(x)),
    lambda: [tensor([80.0, 85, 87, 88, 90, 100])], lambda x, y, s, z, c: s.all() and (c == -1).all() and (y < 0).all())
row("pytorch#186577", lambda x: (lambda y: (1 / (y.abs() + 1e-6), (y.abs() + 1e-6).rsqrt()))(F.layer_norm(x, (128,))), lambda n=8: [randn(n, 128)])
row("pytorch#189799", lambda x: ((x.ceil() + 0.0).reciprocal(), x.ceil() * 1, x.ceil() - 0.0), lambda: [tensor([-0.5, -0.1, -0.9])],
    lambda x, r, s, t: (r == INF).all() and s.signbit().all() and t.signbit().all())
row("pytorch#195007", lambda x: torch.frexp(x), lambda: [tensor([1e-40, -3e-45, 0.0, 1e-38])],
    lambda x, m, e: torch.equal(torch.ldexp(m.double(), e).float(), x) and (m.abs()[[0, 1, 3]] >= 0.5).all(), refusal="frexp")

# Complex numbers.

row("pytorch#115071", lambda a: a + a, lambda n=41: [randn(n).to(C64) * (1 + 2j)], lambda a, r: torch.equal(r, 2 * a))
row("pytorch#144029", torch.logaddexp, lambda: [tensor([1.7641 + 1j]), tensor([0.4002 + 2j])],
    lambda a, b, r: abs(complex(r) - (1.9110 + 1.1868j)) < 1e-3, refusal="complex operands")
row("pytorch#172826", lambda x: (x * (1 + 2j) + 3j, x - 1j), lambda n=5: [randn(n).to(C64)])
row("pytorch#174891", lambda x, m: x + m, lambda: [torch.full((2, 2), 1, dtype=C64), torch.ones(2, 1, dtype=C64)], lambda x, m, r: (r == 2).all())
row("pytorch#160281 of the CPU", lambda x: (x + 1) + 1, lambda: [tensor([1.0, 2.0])], lambda x, r: r.tolist() == [3, 4])
row("pytorch#160495", lambda x, y: x + y, lambda: [torch.ones(1, dtype=C64), torch.tensor(2 + 1j)], lambda x, y, r: r.tolist() == [3 + 1j])
