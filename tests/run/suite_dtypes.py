"""Element types: half, double, complex, narrow integers, bool, and mixes of them."""

import torch
from program import Program, Values, of_function
from torch import nn


class HalfBlock(nn.Module):
    """Matrix product, normalisation and softmax in a 16-bit type."""

    def __init__(self, dtype):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(24, dtype=dtype), nn.Linear(24, 40, dtype=dtype)

    def forward(self, x):
        y = self.up(self.norm(x))
        return torch.softmax(y, -1), y.mean(0), (y * 3 - 1).exp().amax(1)


class DoubleBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm = nn.Linear(9, 11, dtype=torch.float64), nn.LayerNorm(11, dtype=torch.float64)

    def forward(self, x):
        y = self.norm(torch.tanh(self.up(x)))
        return y, y.var(1), torch.logsumexp(y, 0), y.float()


def complex_numbers(a, b):
    return a * b + 1j, (a + 2.5).abs(), torch.view_as_real(a - b), a.conj() * a, a.real, b.imag, -a


def complex_views(x):
    z = torch.view_as_complex(x)
    return z * z, torch.view_as_real(z * 1j), torch.complex(x[:, 0], x[:, 1] * 2)


def narrow_integers(a, b, c, d):
    return a + a, b * b, c - 1, d << 3, a // 3, b % 7, ~c, (a > 100) & (b < 0), a.to(torch.int8), b.to(torch.uint8)


def promotion(u8, i8, i32, f16, f32, flag):
    zero = torch.tensor(2.0, dtype=torch.float64)
    return (u8 + i8, u8 + i32, i32 + f16, f16 + f32, flag + flag, flag + u8, i32 * 1.5, i32 / 2, u8 + 300,
            f32 * zero, i8 * zero, flag * 2.5, i32 + True, torch.where(flag, i32, f16), f16 * 1e-3)


def casts(x, i):
    return (x.to(torch.int32), x.to(torch.int64), x.bool(), x.half(), x.bfloat16(), x.double(),
            i.to(torch.uint8), i.to(torch.int8), i.to(torch.int16), i.float(), i.half(), i.bool(),
            x.bfloat16().float(), x.half().to(torch.int16))


def bool_logic(a, b, x):
    return (a & b, a | b, a ^ b, ~a, torch.logical_and(x, a), torch.logical_not(x), torch.logical_xor(a, x > 0),
            a.all(), b.any(1), (a & ~b).sum(), a.to(torch.int64).cumsum(1), torch.isnan(x), a == b)


def bfloat_chain(x, y):
    z = (x * y + 1.0) - x.sigmoid()
    return z, torch.softmax(z, 0), z.float().sum(), (z / 3).abs(), torch.where(z > 0, z, 0.1), z.sum(1)


def programs():
    v = Values(105)
    f16, bf16, f64 = torch.float16, torch.bfloat16, torch.float64
    yield Program("half_block", lambda: HalfBlock(f16), [(v.normal(6, 24, dtype=f16),)])
    yield Program("bfloat_block", lambda: HalfBlock(bf16), [(v.normal(6, 24, dtype=bf16),)])
    yield Program("double_block", DoubleBlock, [(v.normal(5, 9, dtype=f64),)])
    a, b = (torch.complex(v.normal(3, 4), v.normal(3, 4)) for _ in range(2))
    yield of_function("complex_numbers", complex_numbers, [(a, b)])
    yield of_function("complex_views", complex_views, [(v.normal(5, 2),)])
    yield of_function("narrow_integers", narrow_integers, [
        (v.ints(0, 256, 4, 9, dtype=torch.uint8), v.ints(-128, 128, 4, 9, dtype=torch.int8),
         v.ints(-32768, 32768, 4, 9, dtype=torch.int16), v.ints(-2**31, 2**31, 4, 9, dtype=torch.int32))])
    yield of_function("promotion", promotion, [
        (v.ints(0, 256, 7, dtype=torch.uint8), v.ints(-128, 128, 7, dtype=torch.int8),
         v.ints(-1000, 1000, 7, dtype=torch.int32), v.normal(7, dtype=f16), v.normal(7), v.bools(7))])
    big = torch.tensor([0.0, -0.0, 1.5, -2.5, 99.99, -127.9, 1e-40, 65519.0, 32767.0])
    yield of_function("casts", casts, [(big, torch.tensor([0, 255, 256, -1, 127, 128, -129, 70000, 2**31]))])
    yield of_function("bool_logic", bool_logic, [
        (v.bools(3, 5), v.bools(3, 5), torch.where(v.bools(3, 5), 0.0, v.normal(3, 5)))])
    yield of_function("bfloat_chain", bfloat_chain, [(v.normal(5, 6, dtype=bf16), v.normal(5, 6, dtype=bf16))])
