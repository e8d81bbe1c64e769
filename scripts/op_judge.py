"""Which numbers of an op are right where they are not close to eager's: those about as near to float64 as eager's
own are."""

import contextlib
import math
import typing

from nearness import distance, flat_tensors

NEIGHBOURS = 8


def widest(dtype):
    import torch

    return torch.complex128 if dtype.is_complex else torch.float64


def copied(sample, in_double=False):
    """The sample with tensors of its own; `in_double`: its floats and complex numbers, and such dtypes that
    it names, are double."""
    import torch
    from torch.utils import _pytree

    def copy(x):
        if in_double and isinstance(x, torch.dtype) and (x.is_floating_point or x.is_complex):
            return widest(x)
        if not isinstance(x, torch.Tensor):
            return x
        y = x.detach().clone(memory_format=torch.preserve_format)
        y = y.to(widest(y.dtype)) if in_double and (y.is_floating_point() or y.is_complex()) else y
        return y.requires_grad_(x.requires_grad)

    return _pytree.tree_map(copy, (sample.input, sample.args, sample.kwargs))


def tolerance(op, dtype, result):
    """torch.testing's for a result, or what the op's own entry asks for where that is more."""
    from torch.testing._comparison import default_tolerances
    from torch.testing._internal.common_device_type import toleranceOverride

    rtol, atol = default_tolerances(result)
    for info in op.decorators:
        for one in getattr(info, "decorators", [info]):
            if isinstance(one, toleranceOverride) and dtype in one.d:
                atol = max(atol, one.d[dtype].atol)
                rtol = max(rtol, one.d[dtype].rtol)
    return rtol, atol


def products(values, left, right):
    """What is the same for every choice of vectors: left diag(values) right, and whether their columns
    and rows are orthonormal."""
    k = values.shape[-1]
    whole = (left[..., :k] * values.unsqueeze(-2)) @ right[..., :k, :]
    return [values, whole, left.mH @ left, right @ right.mH]


def singular(results, _like):
    return products(results[1], results[0], results[2])


def singular_transposed(results, _like):
    return products(results[1], results[0], results[2].mH)


def symmetric(results, _like):
    return products(results[0], results[1], results[1].mH)


def orthogonal_triangular(results, _like):
    q, r = results
    if q.ndim < 2:  # mode "r"
        return [r.mH @ r, r.tril(-1)]
    return [q @ r, q.mH @ q, r.tril(-1)]


def in_the_order_of(values, like):
    """Eigenvalues, each at the place of the one in `like` that it is nearest to."""
    if values.numel() == 0:
        return values
    rows = values.reshape(-1, values.shape[-1]).clone()
    for row, wanted in zip(rows, like.reshape(rows.shape)):
        left = row.tolist()
        for i, w in enumerate(wanted.tolist()):
            row[i] = left.pop(min(range(len(left)), key=lambda k: abs(left[k] - w)))
    return rows.reshape(values.shape)


def eigenvalues(results, like):
    return [in_the_order_of(results[0], like[0])]


def general(results, like):
    import torch

    values, vectors = results
    whole = torch.linalg.solve(vectors, vectors * values.unsqueeze(-2), left=False)
    return [in_the_order_of(values, like[0]), whole, vectors.norm(dim=-2)]


# Ops whose results are not unique: what is, of (results, those of eager), and how many there are.
UNIQUE = {
    "linalg.svd": (singular, 3),
    "svd": (singular_transposed, 3),
    "linalg.eigh": (symmetric, 2),
    "linalg.qr": (orthogonal_triangular, 2),
    "qr": (orthogonal_triangular, 2),
    "linalg.eig": (general, 2),
    "linalg.eigvals": (eigenvalues, 1),
}


def unique(op, results, like):
    """Gradients, if any, follow the results and are unique."""
    if op.name not in UNIQUE:
        return results
    function, count = UNIQUE[op.name]
    return function(results[:count], like[:count]) + results[count:]


def besselj(n, x):
    import mpmath

    return mpmath.besselj(n, x)


def bessely(n, x):
    import mpmath

    if x < 0:
        return math.nan
    return mpmath.bessely(n, x) if x > 0 else -math.inf


# Functions of which eager has only six digits in float64 too, of arguments from 5 to 10. Torch needs sympy, and
# that needs mpmath, which has all of them.
EXACT = {
    "special.bessel_j0": lambda x: besselj(0, x),
    "special.bessel_j1": lambda x: besselj(1, x),
    "special.bessel_y0": lambda x: bessely(0, x),
    "special.bessel_y1": lambda x: bessely(1, x),
}


@contextlib.contextmanager
def default_in_double():
    """While this holds, floats that are made of integers are double."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def run(call, arguments):
    """The tensors of a call, of the same random numbers each time."""
    import torch

    torch.manual_seed(0)
    return flat_tensors(call(*arguments))


def exact_results(op, call, sample):
    import torch

    if op.name in EXACT:
        x = sample.input.detach().to(torch.float64)
        values = [float(EXACT[op.name](v)) for v in x.flatten().tolist()]
        return [torch.tensor(values, dtype=torch.float64).reshape(x.shape)]
    with default_in_double():
        return run(call, copied(sample, in_double=True))


def is_number(x):
    return x.is_floating_point() or x.is_complex()


def beside(sample, random):
    """The sample with each float moved by about two units of its last place."""
    import torch
    from torch.utils import _pytree

    def move(x):
        if not isinstance(x, torch.Tensor) or not is_number(x):
            return x
        by = 2 * torch.finfo(x.dtype).eps * torch.randn(x.shape, generator=random, dtype=torch.float64)
        y = x.detach().clone(memory_format=torch.preserve_format)
        y.copy_(y.to(widest(x.dtype)) * (1 + by))
        return y.requires_grad_(x.requires_grad)

    inputs, args, kwargs = _pytree.tree_map(move, (sample.input, sample.args, sample.kwargs))
    return type(sample)(inputs, args=args, kwargs=kwargs)


def are_alike(a, b):
    """Where two results hold the same number; an infinite complex number has many forms."""
    import torch

    if a.is_complex():
        return (a == b) | ~(torch.isfinite(a) | torch.isfinite(b))
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def has_the_same_kinds(op, expected, found, exact):
    """Whether integers are equal, and what is infinite or none in eager is it too, or else close to float64."""
    import torch

    for e, f, x in zip(expected, found, exact):
        if not is_number(e):
            if not torch.equal(e, f):
                return False
            continue
        if e.shape != x.shape or (torch.isfinite(e) & ~torch.isfinite(f)).any():
            return False
        lost = ~torch.isfinite(e) & ~are_alike(e, f)
        rtol, atol = tolerance(op, e.dtype, e.dtype)
        if not torch.allclose(f[lost], x[lost].to(f.dtype), rtol=rtol, atol=atol, equal_nan=True):
            return False
    return True


def distances(results, exact, like):
    """How far each result is from the exact one where `like` is finite; 0 for integers."""
    import torch

    where = [torch.isfinite(e) & torch.isfinite(x) for e, x in zip(like, exact)]
    rows = zip(results, exact, where)
    return [distance(r[kept], x[kept]) if is_number(r) else 0.0 for r, x, kept in rows]


class Calls(typing.NamedTuple):
    """A function as it is, and in the ops that a backend is given."""

    eager: typing.Callable
    captured: typing.Callable


def distances_of_eager(op, calls, sample, results, exact):
    """How far eager is from float64, as lists of which the largest count: that of this sample; of the ops that a
    backend is given, since Dynamo and AOT Autograd write some in terms of others (addcdiv with a value in three,
    each rounded; the gradient of a product without a division); and the root mean square over samples beside this
    one, since a few numbers may be exact by accident (a gradient that is zero in theory, and in whose terms the
    same rounding errors cancel)."""
    import torch

    yield distances(results, exact, results)
    try:
        captured = unique(op, run(calls.captured, copied(sample)), results)
        yield distances(captured, exact, captured)
    except Exception:
        pass  # not in one graph
    random, found = torch.Generator().manual_seed(3), []
    for _ in range(NEIGHBOURS):
        other = beside(sample, random)
        try:
            like = run(calls.eager, copied(other))
            wanted = unique(op, exact_results(op, calls.eager, other), like)
            found.append(distances(unique(op, like, like), wanted, like))
        except Exception:
            continue  # not in the domain, or of another size
    yield [math.sqrt(sum(d * d for d in ds) / len(ds)) for ds in zip(*found)] or [0.0] * len(results)


def is_as_near(op, calls, sample, results):
    """Whether the second of two lists of results is at most twice as far from a run in float64 as eager, whose
    are the first."""
    like = results[0]
    try:
        exact = unique(op, exact_results(op, calls.eager, sample), like)
    except Exception:
        return False
    expected, found = (unique(op, r, like) for r in results)
    if not has_the_same_kinds(op, expected, found, exact):
        return False
    far, near = distances(found, exact, expected), [0.0] * len(found)
    for more in distances_of_eager(op, calls, sample, expected, exact):
        near = list(map(max, near, more))
        if all(f <= 2 * n + 1e-12 for f, n in zip(far, near)):
            return True
    return False
