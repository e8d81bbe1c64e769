"""The kernels of tests/kernels: inputs, and what they must give, by numpy in float64.

Each case is a function of the dynamic size and a random generator that returns two dicts by buffer name:
the content of every buffer before the launch, and the expected content of the written ones. Arrays are in
memory form: bool as uint8, bf16 as uint16.
"""

import numpy as np

SIZES = (1, 15, 16, 17, 1000, 0)
LONG = 5000  # several chunks of a row
SPLIT = 40000  # rows that a GPU splits over programs, with a last piece that is short
SPLIT_COLUMNS = 700

# torch.testing.assert_close, by dtype
TOLERANCES = {"f32": (1.3e-6, 1e-5), "f64": (1e-7, 1e-7), "f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5)}


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def whole(rng, *shape):
    """Multiples of 1/64: their sums are exact in any order."""
    return (rng.integers(-64, 65, shape) / 64).astype(np.float32)


def erf(x):
    import math

    return np.array([math.erf(v) for v in x])


def pointwise(s, rng):
    x, y = normal(rng, s), to_bf16(normal(rng, s))
    wide = x.astype(np.float64)
    z = 0.5 * wide * (1 + erf(wide / np.sqrt(2))) * from_bf16(y)
    return dict(x=x, y=y, z=np.zeros(s, np.uint16)), dict(z=to_bf16(z))


def pointwise_integers(s, rng):
    x, y = rng.integers(-50, 50, (s, 3)), rng.integers(-4, 5, (s, 3))
    if s:
        x[0, 0], y[0, 0] = np.iinfo(np.int64).min, -1
    safe = np.where(y == 0, 1, y)
    with np.errstate(over="ignore"):
        q, r = np.where(y == 0, 0, x // safe), np.where(y == 0, 0, x % safe)
    zeros = np.zeros((s, 3), np.int64)
    return dict(x=x, y=y, q=zeros, r=zeros.copy(), less=zeros.astype(np.uint8)), dict(q=q, r=r, less=x < y)


def softmax_of(x):
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=1, keepdims=True)


def softmax(s, rng):
    x = 3 * normal(rng, 3, s)
    return dict(x=x, y=np.zeros_like(x)), dict(y=softmax_of(x))


def layer_norm(s, rng):
    x, g, b = 2 * normal(rng, 3, s) + 1, normal(rng, s), normal(rng, s)
    wide = x.astype(np.float64)
    y = wide
    if s:
        y = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * g + b
    return dict(x=x, g=g, b=b, y=np.zeros_like(x)), dict(y=y)


def column_sum(s, rng):
    x = whole(rng, s, 40)
    return dict(x=x, y=np.ones(40, np.float32)), dict(y=(x.astype(np.float64) ** 2).sum(axis=0))


def column_sum_wide(s, rng):
    x = whole(rng, 7, s)
    return dict(x=x, y=np.ones(s, np.float32)), dict(y=(x.astype(np.float64) ** 2).sum(axis=0))


def row_sum_blocks(s, rng):
    x = whole(rng, s, 200)
    wide = x.astype(np.float64)
    ones = np.ones(s, np.float32)
    return dict(x=x, y=ones, z=ones.copy()), dict(y=wide.sum(axis=1), z=2 * wide.sum(axis=1))


def transpose_add(s, rng):
    x, y = normal(rng, s, 50), normal(rng, 50, s)
    return dict(x=x, y=y, z=np.zeros_like(x)), dict(z=x.astype(np.float64) + y.T)


def transpose_store(s, rng):
    x = normal(rng, s, 50)
    return dict(x=x, y=np.zeros_like(x), z=np.zeros((50, s), np.uint16)), dict(y=x.astype(np.float64), z=to_bf16(x.T))


def transpose_batch(s, rng):
    x, keep = rng.integers(-(2**62), 2**62, (3, s, 20)), rng.integers(0, 2, (3, 20, s)).astype(np.uint8)
    y = np.where(keep, x.transpose(0, 2, 1), 0)
    return dict(x=x, keep=keep, y=np.zeros_like(y)), dict(y=y)


def cumsum(s, rng):
    x = whole(rng, 3, s)
    return dict(x=x, y=np.zeros_like(x)), dict(y=np.cumsum(x.astype(np.float64), axis=1))


def cumsum_integers(s, rng):
    x = rng.integers(-(2**62), 2**62, (3, s))
    return dict(x=x, y=np.zeros_like(x)), dict(y=np.cumsum(x, axis=1))


def cumsum_columns(s, rng):
    x = whole(rng, s, 9)
    return dict(x=x, y=np.zeros_like(x)), dict(y=np.cumsum(x.astype(np.float64), axis=0))


def argmax(s, rng):
    x = rng.integers(0, 40, (3, s)).astype(np.float32)  # ties
    if s > 2:
        x[1, s // 2] = x[1, s - 1] = np.nan
    i, v = np.full(3, np.iinfo(np.int64).max), np.full(3, -np.inf)
    if s:
        i = np.argmax(x, axis=1)  # numpy's NaN is the largest too
        v = x[np.arange(3), i].astype(np.float64)
    return dict(x=x, i=np.zeros(3, np.int64), v=np.zeros(3, np.float32)), dict(i=i, v=v)


def any_all(s, rng):
    x = rng.integers(0, 3, (3, s)).astype(np.uint8)
    x[0], x[1] = 0, 2
    zeros = np.full(3, 7, np.uint8)
    return dict(x=x, any=zeros, all=zeros.copy()), dict(any=(x != 0).any(axis=1), all=(x != 0).all(axis=1))


def max_pool(s, rng):
    x = normal(rng, 2, 2 * s)
    if s:
        x[1, s] = np.nan
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 0)), constant_values=-np.inf)
    y = np.maximum(np.maximum(padded[:, 0:2 * s:2], padded[:, 1:2 * s + 1:2]), padded[:, 2:2 * s + 2:2]) if s else x
    return dict(x=x, y=np.zeros((2, s), np.float32)), dict(y=y)


def gather(low, high):
    def case(s, rng):
        i, t = rng.integers(low, high, s), normal(rng, 10, 6)
        at = np.clip(i, 0, 9) if low < -10 else i % 10
        return dict(i=i, t=t, out=np.zeros((s, 6), np.float32)), dict(out=t[at].astype(np.float64))

    return case


def gather_masked(s, rng):
    i, keep, t = rng.integers(-5, 15, s), rng.integers(0, 2, s).astype(np.uint8), normal(rng, 10)
    keep[(i < 0) | (i > 9)] = 0
    out = np.where(keep, t[i % 10], np.float32(7.5))
    return dict(i=i, keep=keep, t=t, out=np.zeros(s, np.float32)), dict(out=out.astype(np.float64))


def histogram(s, rng):
    i, n = rng.integers(0, 10, s), rng.integers(0, 5, 10)
    return dict(i=i, n=n), dict(n=n + np.bincount(i, minlength=10))


def scatter(s, rng):
    i, x, total, last = rng.integers(0, 10, s), whole(rng, s), whole(rng, 10), whole(rng, 10)
    want_total, want_last = total.astype(np.float64), last.astype(np.float64)
    np.add.at(want_total, i, x)
    for at, value in zip(i, x):
        want_last[at] = value
    return dict(i=i, x=x, sum=total, last=last), dict(sum=want_total, last=want_last)


def cat(s, rng):
    a, b = normal(rng, s), normal(rng, 3)
    return dict(a=a, b=b, y=np.zeros(s + 3, np.float32)), dict(y=np.concatenate([a, b]).astype(np.float64))


def pad(s, rng):
    x = normal(rng, 3, s).astype(np.float16)
    y = np.pad(x.astype(np.float64), ((0, 0), (2, 5)), constant_values=-1.5)
    return dict(x=x, y=np.zeros((3, s + 7), np.float16)), dict(y=y)


def kept_row(length):
    def case(s, rng):
        x = whole(rng, s, length)
        wide = x.astype(np.float64)
        return dict(x=x, y=np.zeros_like(x)), dict(y=wide / (1 + np.abs(wide).sum(axis=1, keepdims=True)))

    return case


def kept_columns(s, rng):
    x = whole(rng, 30, s)
    wide = x.astype(np.float64)
    return dict(x=x, y=np.zeros_like(x)), dict(y=wide / (1 + np.abs(wide).sum(axis=0, keepdims=True)))


def split_sum(_, rng):
    x = whole(rng, 2, 40000)
    return dict(x=x, y=np.ones(2, np.float32)), dict(y=x.astype(np.float64).sum(axis=1))


def split_norm(s, rng):
    x = normal(rng, 2, s) + 1
    wide = x.astype(np.float64)
    mean = wide.mean(axis=1) if s else np.zeros(2)
    m2 = ((wide - mean[:, None]) ** 2).sum(axis=1)
    ones = np.ones(2, np.float32)
    arrays = dict(x=x, mean=ones, keep=np.array([1, 0], np.uint8), m2=ones.copy(), y=np.zeros_like(x))
    return arrays, dict(mean=mean, m2=np.array([m2[0], 1.0]), y=wide - mean[:, None])


def split_blocks(s, rng):
    x = rng.integers(-40, 41, (2, s)).astype(np.float32)  # ties, and sums that are exact
    total, at, top = x.astype(np.float64).sum(axis=1), np.full(2, np.iinfo(np.int64).max), np.full(2, -np.inf)
    if s:
        at = np.argmax(x, axis=1)
        top = x[np.arange(2), at].astype(np.float64)
    zeros = np.zeros(2, np.float32)
    return dict(x=x, y=np.zeros_like(x), total=zeros, at=zeros.astype(np.int64)), dict(
        y=x - top[:, None], total=total, at=at)


def split_scan(s, rng):
    x = whole(rng, 2, s)
    from_largest = x.astype(np.float64) - x.max(axis=1, keepdims=True, initial=-np.inf)
    want = dict(y=np.cumsum(from_largest, axis=1), z=from_largest.min(axis=1, initial=np.inf))
    return dict(x=x, y=np.zeros_like(x), z=np.zeros(2, np.float32)), want


def split_columns(s, rng):
    x = 3 * normal(rng, s, 5)
    y = softmax_of(x.T)
    i = x.argmax(axis=0) if s else np.full(5, np.iinfo(np.int64).max)
    return dict(x=x, y=np.zeros_like(x), i=np.zeros(5, np.int64)), dict(y=y.T, i=i)


def pieces(s, rng):
    x = whole(rng, s)
    want = np.array([x[at:at + 100].astype(np.float64).sum() for at in range(0, s, 100)])
    return dict(x=x, y=np.ones(len(want), np.float32)), dict(y=want)


def closing_gather(s, rng):
    i, t = rng.integers(0, 10, s), whole(rng, 10)
    arrays = dict(i=i, t=t, y=np.zeros(s, np.float32), total=np.zeros(1, np.float32))
    return arrays, dict(y=t[i].astype(np.float64), total=np.array([t[i].astype(np.float64).sum()]))


def again(s, rng):
    x = whole(rng, 2, s)
    y = x.astype(np.float64) ** 2
    return dict(x=x, y=np.zeros_like(x), z=np.zeros_like(x)), dict(y=y, z=y - y.sum(axis=1, keepdims=True))


def closing(s, rng):
    x = whole(rng, s)
    square = x.astype(np.float64) ** 2
    arrays = dict(x=x, square=np.ones(s, np.float32), total=np.ones(1, np.float32))
    return arrays, dict(square=square, total=np.array([square.sum()]))


# By file of tests/kernels and kernel; a file or kernel without a case fails the tests.
CASES = {
    "pointwise": dict(pointwise=pointwise, pointwise_integers=pointwise_integers),
    "softmax": dict(softmax=softmax, softmax_long=softmax),
    "layer_norm": dict(layer_norm=layer_norm, layer_norm_long=layer_norm),
    "column_sum": dict(column_sum=column_sum, column_sum_wide=column_sum_wide,
                       row_sum_blocks=row_sum_blocks),
    "transpose_add": dict(transpose_add=transpose_add, transpose_store=transpose_store,
                          transpose_batch=transpose_batch),
    "cumsum": dict(cumsum=cumsum, cumsum_long=cumsum, cumsum_integers=cumsum_integers,
                   cumsum_columns=cumsum_columns),
    "argmax": dict(argmax=argmax, argmax_long=argmax, any_all=any_all),
    "max_pool": dict(max_pool=max_pool),
    "gather": dict(gather=gather(0, 10), gather_wrap=gather(-10, 10), gather_clamp=gather(-20, 20),
                   gather_masked=gather_masked, histogram=histogram, scatter=scatter),
    "masked_tails": dict(cat=cat, pad=pad, kept_row=kept_row(300), kept_long=kept_row(20000),
                         kept_columns=kept_columns),
    "split": dict(split_sum=split_sum, split_norm=split_norm, split_blocks=split_blocks, split_scan=split_scan,
                  split_columns=split_columns, pieces=pieces, closing=closing, closing_gather=closing_gather, again=again),
}


def sizes_of(kernel):
    longer = []
    if kernel.endswith("_long") or kernel == "cumsum_integers":
        longer = [LONG, SPLIT]
    if kernel in ("split_norm", "split_blocks", "split_scan", "closing", "again"):
        longer = [SPLIT]
    if kernel in ("column_sum", "cumsum_columns", "split_columns"):
        longer = [SPLIT_COLUMNS]
    return SIZES[:1] if kernel == "split_sum" else [*SIZES, *longer]


def size_of_case(kernel, size):
    """Rows of constant length are few."""
    return min(size, {"kept_row": 40, "kept_long": 2}.get(kernel, size))


def assert_right(kernel, dtype, got, want):
    if dtype == "bf16":
        got, want = from_bf16(got), from_bf16(want)
    if dtype not in TOLERANCES:
        np.testing.assert_array_equal(got, want, err_msg=kernel)
        return
    rtol, atol = TOLERANCES[dtype]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=rtol, atol=atol, equal_nan=True, err_msg=kernel)
