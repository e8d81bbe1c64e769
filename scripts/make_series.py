#!/usr/bin/env python3
"""Writes src/ops/series.def: Chebyshev series of the parts that special functions are put together from.

Each series stands for a smooth function f(t) of -1 <= t <= 1, cut where its coefficients fall below
2^-57 of the largest. They are found by interpolation at Chebyshev's points with 60 digits; src/ops/pointwise.def
says what t is. Run it with a Python that has mpmath:  python scripts/make_series.py
"""

import pathlib

import mpmath
from mpmath import besseli, besselj, besselk, bessely, cos, erfc, exp, log, mpf, pi, sin, sqrt

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/ops/series.def"
POINTS = 72
mpmath.mp.dps = 60


def coefficients(f):
    """c[k] of f(t) = sum of c[k] T_k(t)."""
    nodes = [cos(pi * (j + mpf(1) / 2) / POINTS) for j in range(POINTS)]
    values = [f(t) for t in nodes]
    angles = [pi * (j + mpf(1) / 2) / POINTS for j in range(POINTS)]
    c = [2 * sum(v * cos(k * a) for v, a in zip(values, angles)) / POINTS for k in range(POINTS)]
    c[0] /= 2
    least = mpf(2) ** -57 * max(map(abs, c))
    while abs(c[-1]) < least:
        c.pop()
    assert len(c) < POINTS - 4, "the series does not converge"
    return c


def scaled(f, low, high):
    """f of low..high as a function of t."""
    return lambda t: f(low + (high - low) * (t + 1) / 2)


def of_square(f, high):
    """An even f of 0..high as a function of t = 2 (x / high)^2 - 1."""
    return lambda t: f(sqrt((t + 1) / 2) * high)


def of_inverse(f, low):
    """f of low..inf as a function of t = 2 low/x - 1."""
    return lambda t: f(2 * low / (t + 1))


def of_inverse_square(f, low):
    return lambda t: f(low * sqrt(2 / (t + 1)))


def without_log(kind, n, x):
    """K_n or Y_n less its term with the logarithm."""
    if kind == "k":
        return besselk(n, x) + (-1) ** n * log(x / 2) * besseli(n, x)
    return bessely(n, x) - 2 / pi * log(x) * besselj(n, x)


def phase_parts(n, x):
    """P and Q with J_n = sqrt(2/(pi x)) (P cos a - Q sin a), Y_n = sqrt(2/(pi x)) (P sin a + Q cos a)."""
    a = x - (2 * n + 1) * pi / 4
    j, y, scale = besselj(n, x), bessely(n, x), sqrt(pi * x / 2)
    return scale * (j * cos(a) + y * sin(a)), scale * (y * cos(a) - j * sin(a))


def airy_parts(z):
    """P and Q with Ai(-x) = (P sin a - Q cos a) / (sqrt(pi) x^(1/4)), a = z + pi/4, z = 2/3 x^(3/2)."""
    x = (3 * z / 2) ** (mpf(2) / 3)
    a, scale = z + pi / 4, sqrt(pi) * x ** (mpf(1) / 4)
    ai, bi = mpmath.airyai(-x), mpmath.airybi(-x)
    return scale * (ai * sin(a) + bi * cos(a)), scale * (bi * sin(a) - ai * cos(a))


def airy_decay(z):
    x = (3 * z / 2) ** (mpf(2) / 3)
    return mpmath.airyai(x) * exp(z) * x ** (mpf(1) / 4)


def quantile(log_p):
    """The z > 0 with erfc(z / sqrt 2) / 2 = exp(log_p)."""
    z = sqrt(-2 * log_p)
    z -= log(z * sqrt(2 * pi)) / z
    for _ in range(12):
        tail = erfc(z / sqrt(2)) / 2
        density = exp(-z * z / 2) / sqrt(2 * pi)
        step = (log(tail) - log_p) * tail / density
        z += step
        if abs(step) < mpf(10) ** -50:
            break
    return z


def quantile_tail(r):
    """h with z = r - (log(r) + h) / r, r = sqrt(-2 log p)."""
    return (r - quantile(-r * r / 2)) * r - log(r)


def quantile_middle(y):
    """z / y of p = 1/2 + y."""
    return sqrt(2) * mpmath.erfinv(2 * y) / y if y else sqrt(2 * pi)


def log_gamma_part(a):
    """log(gamma(1 + a)) / a"""
    return mpmath.loggamma(1 + a) / a if a else -mpmath.euler


AIRY_DECAY = mpf(4) / 3 * sqrt(mpf(2))  # 2/3 * 2^(3/2)
AIRY_WAVE = mpf(16) / 3  # 2/3 * 4^(3/2)
Z0 = mpmath.besseljzero(0, 1)
Z1 = mpmath.besseljzero(1, 1)


def rows():
    for n in (0, 1):
        yield f"i{n}_small", scaled(lambda x: exp(-x) * (besseli(n, x) / x**n if x else mpf(1)), 0, 8)
        yield f"i{n}_large", of_inverse(lambda x: sqrt(x) * exp(-x) * besseli(n, x), mpf(8))
        yield f"i{n}_near", of_square(lambda x: besseli(n, x) / x**n, mpf(2))
        yield f"k{n}_near", of_square(lambda x: without_log("k", n, x) * x**n, mpf(2))
        yield f"k{n}_far", of_inverse(lambda x: sqrt(x) * exp(x) * besselk(n, x), mpf(2))
        zero = (Z0, Z1)[n]
        yield f"j{n}_near", of_square(lambda x: besselj(n, x) / x**n / (x * x - zero * zero), mpf(5))
        yield f"p{n}_far", of_inverse_square(lambda x: phase_parts(n, x)[0], mpf(5))
        yield f"q{n}_far", of_inverse_square(lambda x: phase_parts(n, x)[1] * x, mpf(5))
    yield "y0_near", of_square(lambda x: without_log("y", 0, x), mpf(5))
    yield "y1_near", of_square(lambda x: (without_log("y", 1, x) + 2 / (pi * x)) / x, mpf(5))
    yield "airy_wave", scaled(mpmath.airyai, -4, 0)
    yield "airy_near", scaled(lambda x: mpmath.airyai(x) * exp(x), 0, 2)
    yield "airy_decay", of_inverse(airy_decay, AIRY_DECAY)
    yield "airy_p", of_inverse_square(lambda z: airy_parts(z)[0], AIRY_WAVE)
    yield "airy_q", of_inverse_square(lambda z: airy_parts(z)[1] * z, AIRY_WAVE)
    yield "lgamma1p", scaled(log_gamma_part, 0, 1)
    yield "sinc_near", of_square(lambda x: sin(x) / x, mpf(1) / 2)
    yield "ndtri_middle", of_square(quantile_middle, mpf(3) / 8)
    yield "ndtri_tail", scaled(lambda u: quantile_tail(1 / u), mpf(1) / 8, mpf(1) / 2 + mpf(1) / 64)
    yield "ndtri_far", scaled(lambda u: quantile_tail(1 / u), mpf(1) / 64, mpf(1) / 8)
    k = mpf(15) / 4
    yield "erfcx", lambda t: erfcx_scaled(k * (1 + t) / (1 - t))


def erfcx_scaled(x):
    """(1 + 2 x) exp(x^2) erfc(x); the form is of Shepherd and Laframboise (1981)."""
    if x < 60:
        return (1 + 2 * x) * exp(x * x) * erfc(x)
    total, term, k = mpf(1), mpf(1), 0  # asymptotic
    while abs(term) > mpf(10) ** -55 and k < 200:
        term *= -(2 * k + 1) / (2 * x * x)
        total += term
        k += 1
    return (1 + 2 * x) * total / (x * sqrt(pi))


def wrapped(name, items):
    lines, line = [], f"SERIES({name}"
    for item in items:
        if len(line) + len(item) + 2 > 98:
            lines.append(line + ",")
            line = "       " + item
        else:
            line += ", " + item
    return "\n".join([*lines, line + ")"])


def main():
    text = ["// Made by scripts/make_series.py: SERIES(name, c0, c1, ...), the function sum c[k] T_k(t) of -1 <= t <= 1.",
            "// clang-format off"]
    for name, f in rows():
        c = coefficients(f)
        print(name, len(c), flush=True)
        text.append(wrapped(name, [mpmath.nstr(x, 17) for x in c]))
    OUTPUT.write_text("\n".join(text) + "\n// clang-format on\n")


if __name__ == "__main__":
    main()
