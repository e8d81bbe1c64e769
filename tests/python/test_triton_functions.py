"""The functions that printed Triton kernels bring along, in Triton's interpreter, against Python's math."""

import importlib.util
import math
import os
import pathlib
import sys

import numpy as np
import pytest

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402
import triton_shim  # noqa: E402

PRELUDE = pathlib.Path(__file__).resolve().parents[2] / "src/target/triton/prelude/functions.py"
spec = importlib.util.spec_from_file_location("coil_functions", PRELUDE)
functions = importlib.util.module_from_spec(spec)
sys.modules["coil_functions"] = functions
spec.loader.exec_module(functions)


def apply(name, result, *operands):
    """The function on arrays of one length, a power of two; results are of coil's dtype `result`."""
    n = len(operands[0])
    out = np.zeros(n, triton_shim.NAMES[result])
    dtypes = {np.dtype(v): k for k, v in triton_shim.NAMES.items() if k not in ("bf16", "bool")}
    tensors = [triton_shim.Tensor(np.ascontiguousarray(o), dtypes[o.dtype]) for o in operands]
    kernel = caller(name, len(operands))
    with np.errstate(all="ignore"):
        kernel[(1,)](*tensors, triton_shim.Tensor(out, result), n)
    return out


def caller(name, operands, cache={}):
    """A kernel that applies one function; Triton reads its text from a file."""
    key = (name, operands)
    if key not in cache:
        import tempfile

        loads = "".join(f"    x{i} = tl.load(in{i} + at)\n" for i in range(operands))
        heads = ", ".join(f"in{i}" for i in range(operands))
        arguments = ", ".join(f"x{i}" for i in range(operands))
        text = (f"import triton\nimport triton.language as tl\nfrom coil_functions import {name}\n\n\n@triton.jit\n"
                f"def call({heads}, out, n: tl.constexpr):\n    at = tl.arange(0, n)\n{loads}"
                f"    tl.store(out + at, {name}({arguments}))\n")
        path = pathlib.Path(tempfile.mkdtemp()) / f"call_{name}.py"
        path.write_text(text)
        one = importlib.util.spec_from_file_location(f"call_{name}_{operands}", path)
        module = importlib.util.module_from_spec(one)
        sys.modules[one.name] = module
        one.loader.exec_module(module)
        cache[key] = module.call
    return cache[key]


def spread(lo, hi, count=64):
    return np.linspace(lo, hi, count)


def checked(function):
    def one(*x):
        try:
            return function(*x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return one


SPECIAL = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-30])

FUNCTIONS = [
    ("expm1_f64", math.expm1, np.concatenate([spread(-40, 40), spread(-1e-3, 1e-3)])),
    ("log1p_f64", math.log1p, np.concatenate([spread(-0.99, 10), spread(-1e-6, 1e-6)])),
    ("tanh", math.tanh, np.concatenate([spread(-20, 20), spread(-1e-3, 1e-3)])),
    ("tan_f64", math.tan, spread(-1.5, 1.5)),
    ("atan_f64", math.atan, np.concatenate([spread(-5, 5), spread(-1e5, 1e5)])),
    ("asin_f64", math.asin, spread(-1, 1)),
    ("acos_f64", math.acos, spread(-1, 1)),
    ("sinh_f64", math.sinh, np.concatenate([spread(-5, 5), spread(-710, 710)])),
    ("cosh_f64", math.cosh, np.concatenate([spread(-5, 5), spread(-710, 710)])),
    ("asinh_f64", math.asinh, np.concatenate([spread(-5, 5), spread(-1e200, 1e200)])),
    ("acosh_f64", math.acosh, np.concatenate([spread(1, 5), spread(0.5, 1e200)])),
    ("atanh_f64", math.atanh, spread(-0.999, 0.999)),
    ("erfc_f64", math.erfc, np.concatenate([spread(-6, 6), spread(1.9, 27)])),
    ("lgamma_f64", math.lgamma, np.concatenate([spread(-9.7, 10.1), spread(0.01, 300)])),
    ("square_root", math.sqrt, spread(0, 9)),
    ("truncate", lambda x: float(math.trunc(x)) if math.isfinite(x) else x, spread(-9, 9)),
    ("round_even", lambda x: float(round(x)) if math.isfinite(x) else x, np.concatenate([spread(-9, 9), spread(-3.5, 3.5, 8)])),
]


def padded(x):
    """To a power of two: lengths of tiles are."""
    n = 1 << (len(x) - 1).bit_length()
    return np.concatenate([x, np.ones(n - len(x))])


@pytest.mark.parametrize("name,reference,x", FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_f64(name, reference, x):
    x = padded(np.concatenate([x, SPECIAL]))
    want = np.array([checked(reference)(v) for v in x])
    if name == "lgamma_f64":
        want[np.isin(x, [0.0, -1.0])] = math.inf
    if name == "atanh_f64":
        want[np.abs(x) == 1] = math.copysign(math.inf, 1) * np.sign(x[np.abs(x) == 1])
    if name == "log1p_f64":
        want[x == -1] = -math.inf
    np.testing.assert_allclose(apply(name, "f64", x), want, rtol=1e-12, atol=1e-13)


def test_tanh_and_expm1_of_f32():
    x = padded(np.concatenate([spread(-100, 100, 128), spread(-1, 1), spread(-1e-4, 1e-4), SPECIAL]))
    x = x.astype(np.float32)
    for name, reference in (("tanh", np.tanh), ("expm1", np.expm1)):
        with np.errstate(all="ignore"):
            want = reference(x.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(apply(name, "f32", x), want, rtol=5e-7, err_msg=name)


def test_signs_of_zero_are_kept():
    x = np.array([0.0, -0.0])
    for name in ("expm1_f64", "log1p_f64", "tanh", "atan_f64", "asin_f64", "sinh_f64", "asinh_f64", "atanh_f64",
                 "truncate", "round_even"):
        np.testing.assert_array_equal(np.signbit(apply(name, "f64", x)), [False, True], err_msg=name)


def test_erfinv():
    y = padded(np.concatenate([spread(-0.9999, 0.9999), [1 - 1e-12, 1e-200, 0.0, -0.0, 1, -1, 1.5, math.nan]]))
    x = apply("erfinv_f64", "f64", y)
    inside = np.abs(y) < 1
    back = np.array([math.erf(v) for v in x[inside]])
    np.testing.assert_allclose(back, y[inside], rtol=1e-12)
    assert (x[y == 1] == math.inf).all() and (x[y == -1] == -math.inf).all()
    assert np.isnan(x[(np.abs(y) > 1) | np.isnan(y)]).all()


def test_digamma():
    """By its recurrence and its value at 1."""
    x = padded(np.concatenate([spread(-8.3, 20), [1.0, 0.5, 100.0]]))
    here, next_ = apply("digamma_f64", "f64", x), apply("digamma_f64", "f64", x + 1)
    np.testing.assert_allclose(next_, here + 1 / x, rtol=1e-10, atol=1e-10)
    assert abs(here[x == 1.0][0] + 0.5772156649015329) < 1e-12
    ends = apply("digamma_f64", "f64", np.array([0.0, -0.0, -1.0, math.inf]))
    np.testing.assert_array_equal(ends, [-math.inf, math.inf, math.nan, math.inf])


def test_philox():
    words = np.array([0, -1, 0x299F31D0A4093822, 1], np.int64), np.array([0, -1, 0x0370734413198A2E, 5], np.int64)
    index = np.array([0, -1, 0x85A308D3243F6A88 - 2**64, 7], np.int64)
    found = apply("philox", "i64", *words, index).view(np.uint64).tolist()
    assert found[:3] == [0xE169C58D6627E8D5, 0x41C83B0E408F276D, 0x94FDCCEBD16CFE09]


def pairs():
    values = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 7.25, -7.25, math.inf, -math.inf, math.nan,
                       1e10])
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


@pytest.mark.parametrize("name,reference", [
    ("power_f64", np.power), ("atan2_f64", np.arctan2), ("hypot_f64", np.hypot), ("copysign", np.copysign),
    ("float_fmod", np.fmod), ("nextafter", np.nextafter), ("min_float", np.minimum), ("max_float", np.maximum)])
def test_pairs_of_f64(name, reference):
    a, b = pairs()
    with np.errstate(all="ignore"):
        want = reference(a, b)
    np.testing.assert_allclose(apply(name, "f64", a, b), want, rtol=1e-13)


@pytest.mark.parametrize("name,reference", [("float_floordiv", lambda a, b: a // b), ("float_remainder", lambda a, b: a % b)])
def test_python_division_of_floats(name, reference):
    a, b = pairs()
    keep = np.isfinite(a) & np.isfinite(b) & (b != 0)
    a, b = padded(a[keep]), padded(b[keep])
    want = np.array([reference(x, y) for x, y in zip(a.tolist(), b.tolist())])
    got = apply(name, "f64", a, b)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fmod_is_exact(dtype):
    rng = np.random.default_rng(1)
    exponents = rng.integers(-120, 120, 256) if dtype == "float32" else rng.integers(-1000, 1000, 256)
    x = np.ldexp(rng.standard_normal(256), exponents).astype(dtype)
    y = np.ldexp(rng.standard_normal(256), rng.permutation(exponents)).astype(dtype)
    np.testing.assert_array_equal(apply("float_fmod", "f32" if dtype == "float32" else "f64", x, y), np.fmod(x, y))


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32"])
def test_integers(dtype):
    kind = np.dtype(triton_shim.NAMES[dtype])
    info = np.iinfo(kind)
    values = np.array([0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 2,
                       *([-1, -2, -3, -7] if info.min else [4, 6, 8, 9])], dtype=kind)
    a, b = (m.ravel().copy() for m in np.meshgrid(values, values))

    def wrapped(x):
        return (x + info.min * -1) % 2**info.bits + info.min if info.min else x % 2**info.bits

    def trunc(x, y):
        return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    def power(x, y):
        if y >= 0:
            return pow(x, y, 2**info.bits)
        return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)

    references = {
        "int_truncdiv": trunc,
        "int_floordiv": lambda x, y: 0 if y == 0 else x // y,
        "int_fmod": lambda x, y: 0 if y == 0 else x - trunc(x, y) * y,
        "int_remainder": lambda x, y: 0 if y == 0 else x % y,
        "int_power": power,
        "shift_left": lambda x, y: x << y if 0 <= y < info.bits else 0,
        "shift_right": lambda x, y: x >> y if 0 <= y < info.bits else (-1 if x < 0 else 0),
    }
    for name, reference in references.items():
        want = np.array([wrapped(reference(x, y)) for x, y in zip(a.tolist(), b.tolist())], dtype=kind)
        np.testing.assert_array_equal(apply(name, dtype, a, b), want, err_msg=name)
