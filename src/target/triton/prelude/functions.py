# Functions that printed kernels use where Triton has none, or none with coil's meaning. The printer
# copies those that a kernel needs, with the ones that they call, so each stands by itself: `@triton.jit`
# directly above `def`, a blank line between. What is rounded exactly is exact; the rest is within the
# tolerance of torch.testing.assert_close. Names with _f64 take and give f64.

import triton
import triton.language as tl


# ---- arithmetic ----

@triton.jit
def divide(a, b):
    # `/` of f32 is approximate in compiled code.
    if a.dtype == tl.float32:
        q = tl.div_rn(a, b)
    else:
        q = a / b
    return q


@triton.jit
def square_root(x):
    if x.dtype == tl.float32:
        r = tl.sqrt_rn(x)
    else:
        r = tl.sqrt(x)
    return r


@triton.jit
def min_float(a, b):
    # NaN if either is NaN; the first of two equal ones.
    return tl.where((a <= b) | (a != a), a, b)


@triton.jit
def max_float(a, b):
    return tl.where((a >= b) | (a != a), a, b)


@triton.jit
def int_truncdiv(a, b):
    # x / 0 is 0; the smallest integer / -1 wraps.
    zero = b == 0
    if a.dtype.is_int_signed():
        minus_one = b == -1
        q = a // tl.where(zero | minus_one, tl.full([], 1, a.dtype), b)
        q = tl.where(minus_one, a * -1, q)
    else:
        q = a // tl.where(zero, tl.full([], 1, a.dtype), b)
    return tl.where(zero, tl.full([], 0, a.dtype), q)


@triton.jit
def int_floordiv(a, b):
    q = int_truncdiv(a, b)
    if a.dtype.is_int_signed():
        below = (b != 0) & ((a < 0) != (b < 0)) & (q * b != a)
        q = q - tl.cast(below, a.dtype)
    return q


@triton.jit
def int_fmod(a, b):
    return tl.where(b == 0, tl.full([], 0, a.dtype), a - int_truncdiv(a, b) * b)


@triton.jit
def int_remainder(a, b):
    return tl.where(b == 0, tl.full([], 0, a.dtype), a - int_floordiv(a, b) * b)


@triton.jit
def float_fmod(x, y):
    # Long division in f64: each step takes 26 bits of the quotient, whose products with the two halves
    # of y are exact, and so is each difference.
    r = tl.abs(x).to(tl.float64)
    d = tl.abs(y).to(tl.float64)
    high = (d.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
    low = d - high
    for step in range(11 if x.dtype == tl.float32 else 84):
        q = r / d
        # Half of the exponent at a time where the quotient itself is too large.
        scale = tl.where(tl.abs(q) == float("inf"), 4.149515568880993e180, d * 0.0 + 1.0)
        q = tl.where(scale == 1.0, q, (r / scale) / (d * scale))
        whole = tl.where(q < 0, tl.ceil(q), tl.floor(q))
        top = (q.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
        q = tl.where((scale == 1.0) & (tl.abs(q) < 67108864.0), whole, top)
        r = r - q * (high * scale) * scale - q * (low * scale) * scale
    r = tl.where(r < 0, r + d, r)
    r = tl.where(tl.abs(y) == float("inf"), tl.abs(x).to(tl.float64), r)
    r = tl.where((d == 0) | (tl.abs(x) == float("inf")) | (x != x) | (y != y), float("nan"), r)
    return copysign(tl.cast(r, x.dtype), x)


@triton.jit
def float_remainder(x, y):
    r = float_fmod(x, y)
    return tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


@triton.jit
def float_floordiv(a, b):
    # As Python's //: the quotient of what fmod leaves is whole but for rounding.
    rest = float_fmod(a, b)
    q = divide(a - rest, b)
    q = tl.where((rest != 0) & ((rest < 0) != (b < 0)), q - 1.0, q)
    below = tl.floor(q)
    whole = tl.where(q - below > 0.5, below + 1.0, below)
    whole = tl.where(q == 0, copysign(q * 0.0, divide(a, b)), whole)
    return tl.where(b == 0, divide(a, b), whole)


@triton.jit
def int_power(base, exponent):
    # By squaring, wrapping; a negative exponent gives 0, 1 or -1.
    one = tl.full([], 1, base.dtype)
    zero = tl.full([], 0, base.dtype)
    result = base * 0 + 1
    b = base + exponent * 0
    e = exponent + base * 0
    if base.dtype.is_int_signed():
        e = tl.where(e < 0, zero, e)
    result = result + e * 0
    for bit in range(base.dtype.primitive_bitwidth):
        result = tl.where((e & 1) != 0, result * b, result)
        b = b * b
        e = e >> 1
    if base.dtype.is_int_signed():
        sign = tl.where((exponent & 1) != 0, base, one)
        inverse = tl.where(base == 1, one, tl.where(base == -1, sign, zero))
        result = tl.where(exponent < 0, inverse, result)
    return result


@triton.jit
def int_gcd(a, b):
    # Euclid's steps, as many as the largest numbers of the width need.
    zero = tl.full([], 0, a.dtype)
    x = a + b * 0
    y = b + a * 0
    if a.dtype.is_int_signed():
        x = tl.where(x < 0, x * -1, x)
        y = tl.where(y < 0, y * -1, y)
    for step in range(3 * a.dtype.primitive_bitwidth // 2):
        rest = int_fmod(x, y)
        x = tl.where(y == 0, x, y)
        y = tl.where(y == 0, zero, rest)
    return x


# ---- bits ----

@triton.jit
def signbit(x):
    if x.dtype == tl.float32:
        s = x.to(tl.int32, bitcast=True) < 0
    else:
        s = x.to(tl.int64, bitcast=True) < 0
    return s


@triton.jit
def copysign(x, y):
    return tl.where(signbit(x) != signbit(y), x * -1.0, x)


@triton.jit
def nextafter(x, y):
    if x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        tiny = copysign(tl.full([], 1, tl.int32).to(tl.float32, bitcast=True) + x * 0.0, y)
        away = (x < y) == (x > 0)
        moved = (bits + tl.where(away, 1, -1)).to(tl.float32, bitcast=True)
    else:
        bits = x.to(tl.int64, bitcast=True)
        tiny = copysign(tl.full([], 1, tl.int64).to(tl.float64, bitcast=True) + x * 0.0, y)
        away = (x < y) == (x > 0)
        moved = (bits + tl.where(away, 1, -1)).to(tl.float64, bitcast=True)
    r = tl.where(x == 0, tiny, moved)
    r = tl.where(x == y, y, r)
    return tl.where((x != x) | (y != y), x + y, r)


@triton.jit
def shift_left(x, count):
    inside = (count >= 0) & (count < x.dtype.primitive_bitwidth)
    shifted = x << tl.where(inside, count, tl.full([], 0, count.dtype))
    return tl.where(inside, shifted, tl.full([], 0, x.dtype))


@triton.jit
def shift_right(x, count):
    # A count outside gives the sign's fill.
    inside = (count >= 0) & (count < x.dtype.primitive_bitwidth)
    by = tl.where(inside, count, tl.full([], 0, count.dtype))
    fill = tl.where(x < 0, tl.full([], 0, x.dtype) - 1, tl.full([], 0, x.dtype))
    return tl.where(inside, x >> by, fill)


# ---- random numbers ----

@triton.jit
def philox(seed, stream, index):
    # The first two words of Philox 4x32-10 of the counter (index, stream) and the key seed.
    key0 = (seed & 0xFFFFFFFF).to(tl.uint64)
    key1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint64)
    w0 = (index & 0xFFFFFFFF).to(tl.uint64)
    w1 = ((index >> 32) & 0xFFFFFFFF).to(tl.uint64)
    w2 = (stream & 0xFFFFFFFF).to(tl.uint64)
    w3 = ((stream >> 32) & 0xFFFFFFFF).to(tl.uint64)
    for turn in tl.static_range(10):
        p0 = w0 * 0xD2511F53
        p1 = w2 * 0xCD9E8D57
        w0 = (p1 >> 32) ^ w1 ^ key0
        w2 = (p0 >> 32) ^ w3 ^ key1
        w1 = p1 & 0xFFFFFFFF
        w3 = p0 & 0xFFFFFFFF
        key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF
        key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return ((w1 << 32) | w0).to(tl.int64, bitcast=True)


# ---- rounding ----

@triton.jit
def truncate(x):
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))


@triton.jit
def round_even(x):
    below = tl.floor(x)
    rest = x - below
    odd = tl.floor(below * 0.5) * 2.0 != below
    r = tl.where((rest > 0.5) | ((rest == 0.5) & odd), below + 1.0, below)
    return tl.where(r == 0, x * 0.0, r)


@triton.jit
def float_to_u64(x):
    # Negative numbers wrap.
    return tl.where(x < 0, tl.cast(tl.cast(tl.where(x < 0, x, x * 0.0), tl.int64), tl.uint64),
                    tl.cast(tl.where(x < 0, x * 0.0, x), tl.uint64))


# ---- elementary functions ----

@triton.jit
def two_to_the(n):
    # f32, whole n in -126..127
    return ((n + 127.0).to(tl.int32) << 23).to(tl.float32, bitcast=True)


@triton.jit
def expm1_f32(x):
    # n = round(x / ln 2); 2^n * (e^r - 1) + (2^n - 1), all halved, since 2^128 would overflow.
    bounded = tl.where(x > 89.0, 89.0, tl.where(x < -20.0, -20.0, x))
    bounded = tl.where(x != x, 0.0, bounded)
    n = tl.floor(bounded * 1.44269504 + 0.5)
    r = bounded - n * 0.693359375
    r = r + n * 2.12194440e-4
    t = 0.00139420459343366573 + r * 0.000199156214594158555
    t = 0.00833327062738751497 + r * t
    t = 0.0416663421301957635 + r * t
    t = 0.166666668262300483 + r * t
    t = 0.500000004923429274 + r * t
    p = r * r * t + r
    half_scale = two_to_the(n - 1.0)
    half = half_scale * p + (half_scale - 0.5)
    return tl.where((x == 0) | (x != x), x, half + half)


@triton.jit
def expm1_f64(x):
    # W. Kahan: with u = e^x rounded, (u - 1) * x / log(u) loses nothing.
    u = tl.exp(x)
    r = (u - 1.0) * x / tl.log(u)
    r = tl.where(u == 1.0, x, r)
    r = tl.where(u - 1.0 == -1.0, -1.0, r)
    return tl.where((u == float("inf")) | (x != x), u, r)


@triton.jit
def expm1(x):
    if x.dtype == tl.float32:
        r = expm1_f32(x)
    else:
        r = expm1_f64(x)
    return r


@triton.jit
def log1p_f64(x):
    # W. Kahan: with u = 1 + x rounded, log(u) * x / (u - 1).
    u = x + 1.0
    r = tl.log(u) * (x / (u - 1.0))
    return tl.where((u == 1.0) | (x == float("inf")), x, r)


@triton.jit
def tanh(x):
    if x.dtype == tl.float32:
        m = expm1_f32(tl.abs(x) * -2.0)
        r = copysign(tl.div_rn(m, m + 2.0), x)
    else:
        m = expm1_f64(tl.abs(x) * -2.0)
        r = copysign(m / (m + 2.0), x)
    return r


@triton.jit
def tan_f64(x):
    return tl.sin(x) / tl.cos(x)


@triton.jit
def atan_f64(x):
    # The angle of 1/x above 1, halved three times by tan(a/2) = t / (1 + sqrt(1 + t^2)), then the series.
    a = tl.abs(x)
    t = tl.where(a > 1.0, 1.0 / tl.where(a > 1.0, a, 1.0), a)
    for halving in range(3):
        t = t / (1.0 + tl.sqrt(1.0 + t * t))
    z = t * t
    s = z * 0.0
    for k in tl.static_range(10):
        s = 1.0 / (19.0 - 2.0 * k) - z * s
    r = 8.0 * t * s
    r = tl.where(a > 1.0, 1.5707963267948966 - r, r)
    return copysign(tl.where(x != x, x, r), x)


@triton.jit
def asin_f64(x):
    bottom = tl.sqrt((1.0 - x) * (1.0 + x))
    return atan_f64(x / bottom)


@triton.jit
def acos_f64(x):
    return 2.0 * atan_f64(tl.sqrt((1.0 - x) / (1.0 + x)))


@triton.jit
def atan2_f64(y, x):
    ax = tl.abs(x)
    ay = tl.abs(y)
    top = tl.where(ay > ax, ax, ay)
    bottom = tl.where(ay > ax, ay, ax)
    ratio = top / tl.where(bottom == 0, 1.0, bottom)
    ratio = tl.where(top == float("inf"), 1.0, ratio)
    r = atan_f64(ratio)
    r = tl.where(ay > ax, 1.5707963267948966 - r, r)
    r = tl.where(signbit(x), 3.141592653589793 - r, r)
    return tl.where((x != x) | (y != y), x + y, copysign(r, y))


@triton.jit
def hypot_f64(x, y):
    ax = tl.abs(x)
    ay = tl.abs(y)
    top = tl.where(ax > ay, ax, ay)
    ratio = tl.where(ax > ay, ay, ax) / tl.where(top == 0, 1.0, top)
    r = top * tl.sqrt(1.0 + ratio * ratio)
    r = tl.where((x != x) | (y != y), x + y, r)
    return tl.where((ax == float("inf")) | (ay == float("inf")), float("inf"), r)


@triton.jit
def sinh_f64(x):
    a = tl.abs(x)
    e = expm1_f64(tl.where(a > 20.0, 0.0, a))
    half = tl.exp(a * 0.5)
    r = tl.where(a > 20.0, 0.5 * half * half, 0.5 * (e + e / (e + 1.0)))
    return copysign(tl.where(x != x, x, r), x)


@triton.jit
def cosh_f64(x):
    a = tl.abs(x)
    half = tl.exp(a * 0.5)
    e = tl.exp(tl.where(a > 20.0, 0.0, a))
    return tl.where(a > 20.0, 0.5 * half * half, tl.where(x != x, x, 0.5 * (e + 1.0 / e)))


@triton.jit
def asinh_f64(x):
    a = tl.abs(x)
    square = tl.where(a > 1e9, 0.0, a * a)
    r = log1p_f64(tl.where(a > 1e9, 0.0, a) + square / (1.0 + tl.sqrt(1.0 + square)))
    r = tl.where(a > 1e9, tl.log(a) + 0.6931471805599453, r)
    return copysign(tl.where(x != x, x, r), x)


@triton.jit
def acosh_f64(x):
    t = tl.where(x > 1e9, 0.0, x - 1.0)
    r = log1p_f64(t + tl.sqrt(2.0 * t + t * t))
    return tl.where(x > 1e9, tl.log(x) + 0.6931471805599453, r)


@triton.jit
def atanh_f64(x):
    a = tl.abs(x)
    return copysign(0.5 * log1p_f64(2.0 * a / (1.0 - a)), x)


@triton.jit
def erfc_f64(x):
    # From 2 on by Laplace's continued fraction, before that from erf.
    a = tl.where(x > 2.0, x, 2.0)
    t = a
    for k in range(80):
        t = a + (40.0 - 0.5 * k) / t
    tail = tl.exp(a * a * -1.0) / (t * 1.7724538509055159)
    tail = tl.where(x == float("inf"), 0.0, tail)
    return tl.where(x > 2.0, tail, 1.0 - tl.erf(x))


@triton.jit
def erfinv_f64(y):
    # A rough start, then Halley's method; near 1 on erfc, which keeps digits.
    a = tl.abs(y)
    inside = (a < 1.0) & (a > 1e-150)
    b = tl.where(inside, a, 0.25)
    el = log1p_f64(b * b * -1.0)
    m = 4.3307467508 + el * 0.5
    x = tl.sqrt(tl.sqrt(m * m - el * 6.8027210884) - m)
    for step in range(4):
        miss = tl.where(b < 0.5, tl.erf(x) - b, (1.0 - b) - erfc_f64(x))
        newton = miss / (1.1283791670955126 * tl.exp(x * x * -1.0))
        x = x - newton / (1.0 + x * newton)
    x = tl.where(a <= 1e-150, a * 0.8862269254527580, x)
    x = tl.where(a == 1.0, float("inf"), x)
    x = copysign(x, y)
    return tl.where((a > 1.0) | (y != y), float("nan"), x)


@triton.jit
def lgamma_f64(x):
    # Reflected below 1/2, raised above 10, then Stirling's series.
    low = x < 0.5
    z = tl.where(low, 1.0 - x, x)
    product = z * 0.0 + 1.0
    for step in range(10):
        small = z < 10.0
        product = tl.where(small, product * z, product)
        z = tl.where(small, z + 1.0, z)
    w = 1.0 / z
    w2 = w * w
    series = w * (1.0 / 12 - w2 * (1.0 / 360 - w2 * (1.0 / 1260 - w2 * (1.0 / 1680 - w2 * (1.0 / 1188 - w2 * (
        691.0 / 360360 - w2 / 156))))))
    r = (z - 0.5) * tl.log(z) - z + 0.9189385332046727 + series - tl.log(product)
    fraction = x - tl.floor(x + 0.5)
    sine = tl.abs(tl.sin(fraction * 3.141592653589793))
    r = tl.where(low, 1.1447298858494002 - tl.log(sine) - r, r)
    pole = (x <= 0) & (tl.floor(x) == x)
    r = tl.where(pole | (tl.abs(x) == float("inf")), float("inf"), r)
    return tl.where(x != x, x, r)


@triton.jit
def digamma_f64(x):
    # Reflected below 0, raised above 10, then the asymptotic series.
    low = x < 0
    fraction = x - truncate(x)
    reflected = -3.141592653589793 / tan_f64(3.141592653589793 * fraction)
    z = tl.where(low, 1.0 - x, x)
    r = tl.where(low, reflected, 0.0)
    for step in range(10):
        small = z < 10.0
        r = tl.where(small, r - 1.0 / z, r)
        z = tl.where(small, z + 1.0, z)
    w = 1.0 / (z * z)
    series = w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132 - w * (
        691.0 / 32760 - w / 12))))))
    r = r + tl.log(z) - 0.5 / z - series
    r = tl.where(x == float("inf"), x, r)
    r = tl.where(low & (fraction == 0), float("nan"), r)
    return tl.where(x == 0, copysign(x * 0.0 + float("inf"), x * -1.0), r)


@triton.jit
def zeta_positive_f64(s, q):
    # Twelve terms of the sum of (q + k)^-s, then Euler and Maclaurin's formula.
    a = q + 12.0
    power = power_f64(a, s * -1.0)
    r = power_f64(a, 1.0 - s) / (s - 1.0)
    term = s * power / a
    rest = term * (1.0 / 12)
    term = term * ((s + 1.0) / a * ((s + 2.0) / a))
    rest = rest - term * (1.0 / 720)
    term = term * ((s + 3.0) / a * ((s + 4.0) / a))
    rest = rest + term * (1.0 / 30240)
    term = term * ((s + 5.0) / a * ((s + 6.0) / a))
    rest = rest - term * (1.0 / 1209600)
    term = term * ((s + 7.0) / a * ((s + 8.0) / a))
    rest = rest + term * (1.0 / 47900160)
    term = term * ((s + 9.0) / a * ((s + 10.0) / a))
    rest = rest - term * (691.0 / 1307674368000)
    r = r + tl.where(power == 0, 0.0, power * 0.5 + rest)
    for k in range(12):
        r = r + power_f64(q + (11 - k), s * -1.0)
    return r


@triton.jit
def zeta_f64(s, q):
    # Below 0 the sum over all integers, which has the period 1 in q, less what it has too much.
    floor = tl.floor(q)
    fraction = q - floor
    low = q < 0
    r = zeta_positive_f64(s, tl.where(low, fraction, q))
    below = zeta_positive_f64(s, 1.0 - fraction) - zeta_positive_f64(s, 1.0 - tl.where(low, q, 0.0))
    even = tl.floor(s * 0.5) * 2.0 == s
    r = tl.where(low, tl.where(even, r + below, r - below), r)
    r = tl.where((s == float("inf")) & (q > 0), power_f64(q, s * -1.0), r)
    bad = (s != s) | (q != q) | (tl.abs(q) == float("inf")) | (low & (tl.floor(s) != s))
    r = tl.where(bad, float("nan"), r)
    r = tl.where((q <= 0) & (floor == q), float("inf"), r)
    r = tl.where(s < 1.0, float("nan"), r)
    return tl.where(s == 1.0, float("inf"), r)


@triton.jit
def power_f64(x, y):
    a = tl.abs(x)
    r = tl.exp2(y * tl.log2(a))
    # |x| is 0 or infinite, or y infinite: the result is 0, 1 or infinite.
    grows = (a < 1.0) == (y < 0)
    extreme = tl.where(a == 1.0, 1.0, tl.where(grows, float("inf"), 0.0))
    ends = (a == 0) | (a == float("inf")) | (tl.abs(y) == float("inf"))
    r = tl.where(ends, extreme, r)
    # Odd whole y keep the sign of x, other whole ones take it away, fractions have no result.
    whole = truncate(y) == y
    odd = whole & (truncate(y * 0.5) * 2.0 != y)
    r = tl.where(odd & signbit(x), r * -1.0, r)
    r = tl.where((x < 0) & (whole == 0) & (a != float("inf")), float("nan"), r)
    r = tl.where((x != x) | (y != y), x + y, r)
    return tl.where((y == 0) | (x == 1.0), 1.0, r)
