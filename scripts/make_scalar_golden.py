#!/usr/bin/env python3
"""Writes tests/unit/data/scalar_golden.txt: what torch's eager CPU kernels give for scalar ops.

A line `op from to` opens a block; each further line holds the bits of the operands and of the
result in hex. Operands are special values, each with each, and some random ones.

Ops that IEEE 754 rounds exactly, and all integer ops, are taken from torch as they are, but for
square roots: torch takes them from MKL, which is not exact, and here they are. Elementary functions
of f32 are torch's f64 result rounded once. Those of f64 are computed with mpmath where
operands and result are finite, since torch's own are a few ulp off; the rest is from torch.

Left out, since torch has no one answer: division of integers by zero (raises) and of the smallest
by -1 (traps), floats that f8e4m3fn cannot hold (versions differ), and casts for which torch's
vector and scalar kernels disagree. Nor is a subnormal divisor of fmod, for which torch's vector
kernel gives NaN.

Run it with the Python that has torch:  python scripts/make_scalar_golden.py
"""

import itertools
import math
import pathlib
import random

import mpmath
import torch

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/data/scalar_golden.txt"

DTYPES = {
    "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
    "bool": torch.bool, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
FLOATS = ["f32", "f64"]
INTS = ["u8", "i8", "i16", "i32", "i64"]

def first_of_equals(op):
    """min and max of zeros of both signs are the first operand, as in clamp. torch's maximum gives the
    second in its vector loop, the first in what is left of it."""
    return lambda a, b: torch.where(a == b, a, op(a, b))


EXACT_UNARY = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "floor": torch.floor,
    "ceil": torch.ceil, "trunc": torch.trunc, "round": torch.round, "sqrt": lambda x: exact_sqrt(x),
    "isnan": torch.isnan, "isinf": torch.isinf, "signbit": torch.signbit,
}
EXACT_BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"), "fmod": torch.fmod,
    "remainder": torch.remainder, "min": first_of_equals(torch.minimum),
    "max": first_of_equals(torch.maximum), "fmin": torch.fmin,
    "fmax": torch.fmax, "copysign": torch.copysign, "nextafter": torch.nextafter, "eq": torch.eq,
    "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
}
INT_UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "bits_not": torch.bitwise_not}
INT_BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "pow": torch.pow,
    "gcd": torch.gcd, "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floordiv": EXACT_BINARY["floordiv"], "fmod": torch.fmod, "remainder": torch.remainder,
    "min": torch.minimum, "max": torch.maximum, "bits_and": torch.bitwise_and,
    "bits_or": torch.bitwise_or, "bits_xor": torch.bitwise_xor, "shl": torch.bitwise_left_shift,
    "shr": torch.bitwise_right_shift, "eq": torch.eq, "lt": torch.lt, "ge": torch.ge,
}
DIVISIONS = {"truncdiv", "floordiv", "fmod", "remainder"}
BOOL_BINARY = ["bits_and", "bits_or", "bits_xor", "min", "max", "eq", "lt", "ge"]
ELEMENTARY = {
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x), "expm1": mpmath.expm1, "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10, "log1p": mpmath.log1p,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin,
    "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
    "erf": mpmath.erf, "erfc": mpmath.erfc, "erfinv": mpmath.erfinv,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma,
    "atan2": mpmath.atan2, "hypot": mpmath.hypot, "pow": mpmath.power,
}
ELEMENTARY_BINARY = {"atan2", "hypot", "pow"}
POLYNOMIALS = {
    "chebyshev_t": "chebyshev_polynomial_t", "chebyshev_u": "chebyshev_polynomial_u",
    "chebyshev_v": "chebyshev_polynomial_v", "chebyshev_w": "chebyshev_polynomial_w",
    "hermite_h": "hermite_polynomial_h", "hermite_he": "hermite_polynomial_he",
    "laguerre_l": "laguerre_polynomial_l", "legendre_p": "legendre_polynomial_p",
}

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 3.5, -2.0]
FURTHER = [0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, -0.9375, 0.99999, 7.25, 20.0, -33.125, 88.0, 1e5, 1e-42,
           -3e-39, 1.17549435e-38, 3.4e38, 6e-8, 1.4375, -1.4375]

lines = []
rng = random.Random(20)


def bits(tensor):
    size = tensor.element_size()
    mask = (1 << 8 * size) - 1
    return [f"{v & mask:0{2 * size}x}" for v in tensor.contiguous().view(BITS[size]).tolist()]


def emit(op, source, target, operands, result):
    lines.append(f"{op} {source} {target}")
    columns = [bits(t) for t in [*operands, result]]
    lines.extend(" ".join(row) for row in zip(*columns))


def on_vectors(function, *operands):
    """The function as torch's vector kernels have it, not their scalar tails."""
    count = operands[0].numel()
    return function(*(t.repeat(16) for t in operands))[:count]


def values(dtype, items):
    return torch.tensor(items, dtype=DTYPES[dtype])


def exact_sqrt(x):
    """Rounded from f64, which for f32 is the same as rounding once."""
    roots = [math.sqrt(v) if v >= 0 else math.nan for v in x.double().tolist()]
    return torch.tensor(roots, dtype=torch.float64).to(x.dtype)


def random_floats(count):
    return [rng.uniform(-4, 4) * 10 ** rng.choice([-6, -1, 0, 0, 0, 1, 3]) for _ in range(count)]


def float_pairs():
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    pairs += list(zip(random_floats(24), random_floats(24)))
    pairs += list(zip(FURTHER, reversed(FURTHER)))
    return [list(column) for column in zip(*pairs)]


def int_pairs(dtype):
    limits = torch.iinfo(DTYPES[dtype])
    some = [0, 1, 3, 7, limits.max, limits.min, limits.max // 3]
    some += [-1, -2] if limits.min < 0 else [2, 8]
    pairs = list(itertools.product(some, some))
    pairs += [(rng.randint(limits.min, limits.max), rng.randint(limits.min, limits.max) >> 3)
              for _ in range(6)]
    return pairs


def exact_floats():
    for dtype in FLOATS:
        x = values(dtype, SPECIAL + FURTHER + random_floats(10))
        for op, function in EXACT_UNARY.items():
            result = on_vectors(function, x)
            emit(op, dtype, "bool" if result.dtype == torch.bool else dtype, [x], result)
        a, b = (values(dtype, column) for column in float_pairs())
        for op, function in EXACT_BINARY.items():
            result = on_vectors(function, a, b)
            tiny = torch.finfo(b.dtype).tiny
            keep = (b == 0) | ~(b.abs() < tiny) | torch.tensor(op not in DIVISIONS)
            target = "bool" if result.dtype == torch.bool else dtype
            emit(op, dtype, target, [a[keep], b[keep]], result[keep])


def integers():
    for dtype in INTS:
        smallest = torch.iinfo(DTYPES[dtype]).min
        pairs = int_pairs(dtype)
        for op, function in INT_UNARY.items():
            x = values(dtype, sorted({a for a, _ in pairs}))
            emit(op, dtype, dtype, [x], on_vectors(function, x))
        for op, function in INT_BINARY.items():
            kept = [(a, b) for a, b in pairs
                    if op not in DIVISIONS or (b != 0 and (a, b) != (smallest, -1))]
            if op == "pow":
                kept = [(a, b % 100 if b > 100 else b) for a, b in kept]
            a, b = (values(dtype, list(column)) for column in zip(*kept))
            result = on_vectors(function, a, b)
            emit(op, dtype, "bool" if result.dtype == torch.bool else dtype, [a, b], result)
    a, b = values("bool", [0, 0, 1, 1]), values("bool", [0, 1, 0, 1])
    for op in BOOL_BINARY:
        emit(op, "bool", "bool", [a, b], on_vectors(INT_BINARY[op], a, b))
    emit("bits_not", "bool", "bool", [a], on_vectors(torch.logical_not, a))


def true_value(function, operands, eager):
    """The f64 nearest to the function, or what eager gives where it does not come to rounding."""
    if not all(math.isfinite(v) and v != 0 for v in [*operands, eager]):
        return eager
    return float(function(*(mpmath.mpf(v) for v in operands)))


def elementary():
    mpmath.mp.dps = 60
    for dtype in FLOATS:
        for op, function in ELEMENTARY.items():
            columns = float_pairs() if op in ELEMENTARY_BINARY else [SPECIAL + FURTHER]
            if op in ("erf", "erfc", "erfinv", "atanh", "lgamma", "digamma"):
                columns[0] = columns[0] + [rng.uniform(-1, 1) for _ in range(12)]
                columns[0] += [-5.5, 12.25, 26.0]
            operands = [values(dtype, column) for column in columns]
            wide = [t.double() for t in operands]
            result = getattr(torch, op)(*wide)
            if dtype == "f64":
                rows = zip(*(t.tolist() for t in [*wide, result]))
                result = values("f64", [true_value(function, row[:-1], row[-1]) for row in rows])
            if op == "rsqrt":  # two roundings, so in its own dtype
                result = 1 / exact_sqrt(operands[0])
            emit(op, dtype, dtype, operands, result.to(DTYPES[dtype]))


def zeta_of(s, q):
    """The sum of (q + k)^-s: its first terms, then Euler and Maclaurin's formula."""
    n = 40 + max(0, -int(q))
    a = q + n
    total = sum((q + k) ** -s for k in range(n)) + a ** (1 - s) / (s - 1) + a**-s / 2
    factor = s * a ** (-s - 1)
    for j in range(1, 25):
        total += mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * factor
        factor *= (s + 2 * j - 1) * (s + 2 * j) / a**2
    return total


def upper_gamma(a, x):
    """Q(a, x); for large a the integral itself, in units of its width."""
    if a <= 1e5:
        return mpmath.gammainc(a, x, mpmath.inf, regularized=True)
    root = mpmath.sqrt(a)
    density = lambda u: mpmath.exp((a - 1) * mpmath.log1p(u / root) - u * root)
    ends = [(x - a) / root + k for k in range(0, 24, 2)]
    log_scale = (a - 1) * mpmath.log(a) - a + mpmath.log(root) - mpmath.loggamma(a)
    return mpmath.quad(density, ends) * mpmath.exp(log_scale)


def special_pairs(op):
    """Edges, where eager is taken at its word, and numbers within."""
    edges = [0.0, 1.0, math.inf, math.nan, -1.5]
    if op == "zeta":
        edges = [1.0, 0.5, 2.0, 3.0, math.nan]
        pairs = list(itertools.product(edges, [0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, -2.0]))
        pairs += [(2.5, -1.5), (4.0, 1e-30), (300.0, 1e10)]
        pairs += [(rng.choice([2.0, 3.0, 4.0, rng.uniform(1.01, 30)]), 10 ** rng.uniform(-3, 4)) for _ in range(40)]
        return pairs + [(rng.choice([2.0, 4.0]), -rng.uniform(0, 12)) for _ in range(12)]
    pairs = list(itertools.product(edges, edges))
    pairs = [p for p in pairs if not any(map(math.isnan, p)) or not (0.0 in p or math.inf in p)]
    for _ in range(80):
        a = 10 ** rng.uniform(-4, 4)
        pairs.append((a, a * math.exp(rng.gauss(0, 1) / math.sqrt(max(a, 0.3)))))
    return pairs + [(1e-10, 1.0), (1e-10, 0.25), (2e6, 2.001e6), (1e12, 1e12)]


def special():
    """Functions of two operands: exact within, eager at the edges."""
    exact = {
        "zeta": zeta_of,
        "igamma": lambda a, x: 1 - upper_gamma(a, x) if a > 1e5 else mpmath.gammainc(a, 0, x, regularized=True),
        "igammac": upper_gamma,
    }
    for dtype in FLOATS:
        for op, function in exact.items():
            pairs = special_pairs(op)
            operands = [values(dtype, list(column)) for column in zip(*pairs)]
            wide = [t.double() for t in operands]
            eager = (torch.special.zeta if op == "zeta" else getattr(torch, op))(*wide)
            rows = zip(*(t.tolist() for t in [*wide, eager]))
            result = [true_value(function, row[:-1], row[-1]) for row in rows]
            emit(op, dtype, dtype, operands, values("f64", result).to(DTYPES[dtype]))
        polynomials(dtype)


def polynomials(dtype):
    """What eager computes without a rounding that shows: small numbers, and what is not finite."""
    xs = [0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.0, 4.0, math.nan, math.inf]
    pairs = list(itertools.product(xs, [-1.0, -0.5, 0.0, 1.0, 2.0, 3.0, 5.0, 2.75, math.nan, math.inf, 1e30]))
    for op, name in POLYNOMIALS.items():
        x, n = (values(dtype, list(column)) for column in zip(*pairs))
        function = getattr(torch.special, name)
        result, exact = function(x, n), function(x.double(), n.double()).to(x.dtype)
        keep = (result == exact) | (result.isnan() & exact.isnan())
        emit(op, dtype, dtype, [x[keep], n[keep]], result[keep])


def casts():
    reals = SPECIAL + [0.3, -1.5, 2.5, 300.7, -300.2, 70000.5, -129.0, 448.0, 464.0, 3e9, -3e9,
                       1e20, -1e20, 1e-8, 1e-40, 2147483648.0, 9.3e18, 1.5e19, 65519.9,
                       65520.0, 61440.0]
    for source, target in itertools.product(DTYPES, DTYPES):
        if source == target:
            continue
        if source == "bool":
            x = values("bool", [0, 1])
        elif DTYPES[source].is_floating_point:
            x = values("f64", reals).to(DTYPES[source])
        else:
            limits = torch.iinfo(DTYPES[source])
            some = {0, 1, 2, 127, 100, 16777217, limits.max, limits.min, limits.max // 3, -1, -77}
            x = values(source, sorted(v for v in some if limits.min <= v <= limits.max))
        if target == "f8e4m3fn":
            x = x[~(x.double().abs() > 464)]
        vector = on_vectors(lambda t: t.to(DTYPES[target]), x)
        single = torch.stack([x[k].to(DTYPES[target]) for k in range(x.numel())])
        agree = [v == s or vector.double()[k].isnan().item()
                 for k, (v, s) in enumerate(zip(bits(vector), bits(single)))]
        agree = torch.tensor(agree)
        emit("cast", source, target, [x[agree]], vector[agree])


def main():
    exact_floats()
    integers()
    elementary()
    casts()
    special()
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    version = torch.__version__.split("+")[0]
    header = f"# Made by scripts/make_scalar_golden.py with torch {version}.\n"
    OUTPUT.write_text(header + "\n".join(lines) + "\n")
    print(f"{OUTPUT}: {len(lines)} lines")


if __name__ == "__main__":
    main()
