"""Complex tensors through torch.compile(backend="coil"), beside eager: results, strides and gradients."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

F = torch.nn.functional
C64, C128 = torch.complex64, torch.complex128
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):  # what fullgraph implies, but not in 2.9
        yield


def z(*shape, dtype=C128):
    return torch.randn(shape, dtype=dtype)


def flat(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def copies(args):
    out = [a.detach().clone(memory_format=torch.preserve_format) for a in args]
    return [a.requires_grad_(a.is_floating_point() or a.is_complex()) for a in out]


def with_gradients(function, args):
    results = flat(function(*args))
    wanted = [r for r in results if r.requires_grad]
    if wanted:
        random = torch.Generator().manual_seed(1)
        seeds = [torch.randn(r.shape, dtype=r.dtype, generator=random) for r in wanted]
        torch.autograd.backward(wanted, seeds)
    return results, [a.grad for a in args]


def strides(tensor):
    return [s for n, s in zip(tensor.shape, tensor.stride()) if n > 1 and tensor.numel()]


def check(function, *args):
    torch._dynamo.reset()
    expected, expected_grads = with_gradients(function, copies(args))
    compiled = torch.compile(function, backend="coil", fullgraph=True)
    found, found_grads = with_gradients(compiled, copies(args))
    assert len(expected) == len(found)
    for e, f in zip(expected, found):
        assert strides(e) == strides(f)
        torch.testing.assert_close(f, e, equal_nan=True)
    for e, f in zip(expected_grads, found_grads):
        assert (e is None) == (f is None)
        if e is not None:
            torch.testing.assert_close(f, e, equal_nan=True)


INDEX = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])
ROWS = torch.tensor([2, 0, 0])
ZERO = torch.tensor(0)


@pytest.mark.parametrize("turned", [False, True])
def test_places_from_data(turned):
    x, s, mask = z(3, 4), z(2, 4), torch.tensor([[True, False, True, True]] * 3)
    if turned:
        x = z(4, 3).t()
    check(lambda x: x.gather(0, INDEX), x)
    check(lambda x: x.gather(-1, INDEX), x)
    check(lambda x, s: x.scatter(0, INDEX, s), x, s)
    check(lambda x: x.scatter(-1, INDEX, 2 + 1j), x)
    check(lambda x, s: x.scatter_add(1, INDEX, s), x, s)
    check(lambda x, s: x.index_add(0, ROWS, s, alpha=2 - 1j), x, z(3, 4))
    check(lambda x, s: x.index_copy(-1, ROWS[:2], s), x, z(3, 2))
    check(lambda x: x.index_fill(1, ROWS, 2 + 1j), x)
    check(lambda x, v: x.index_fill(1, ROWS, v), x, z())
    check(lambda x: torch.take_along_dim(x, ROWS[:, None], 1), x)
    check(lambda x, s: x.masked_scatter(mask, s), x, z(3, 4))
    check(lambda x, s: x.put(ROWS, s, accumulate=True), x, z(3))
    check(lambda x: (x.nonzero(), torch.nonzero(x.real.relu() + 0j).shape[1]), x.detach())
    check(lambda w: F.embedding(INDEX, w.detach()), z(4, 5))


def test_places_in_tensors_without_dims():
    check(lambda x: x.gather(0, ZERO), z())
    check(lambda x, s: x.index_add(0, ZERO, s), z(), z())
    check(lambda x, s: x.scatter_add(0, ZERO, s), z(), z())
    check(lambda x: x.index_fill(0, ZERO, 1j), z())
    check(lambda x: (x.cumsum(0), x.cumprod(0), x.prod(), x.logcumsumexp(0)), z())


@pytest.mark.parametrize("reduce", ["multiply", "add"])
def test_numbers_that_are_combined(reduce):
    function = torch.compile(lambda x: x.scatter(0, INDEX, 1.5, reduce=reduce), backend="coil")
    x = z(3, 4)
    torch.testing.assert_close(function(x), x.scatter(0, INDEX, 1.5, reduce=reduce))


def test_moved_elements():
    x, v = z(3, 4), z(2, 3, 4, 5)
    check(lambda x: (x.tril(-1), x.triu(1), x.flip(-1), x.roll(1), x.roll((1, 2), (0, -1)), x.tile(2, 3)), x)
    for mode in ("reflect", "replicate", "circular"):
        check(lambda v: (F.pad(v, (1, 2, 2, 1), mode=mode), F.pad(v[0], (1, 0), mode=mode)), v)
    check(lambda v: F.pad(v, (-1, 2, 0, 1), value=2.5), v)
    check(lambda v: F.unfold(v, 2), v)
    check(lambda v: F.fold(v, (4, 5), 2), z(2, 12, 12))
    check(lambda x: (torch.as_strided_copy(x, (2, 3), (1, 4), 1), torch.diag_embed(x, 1, 0, 2)), x)
    check(lambda x, s: x.as_strided_scatter(s, (2, 2), (1, 5), 1), x, z(2, 2))
    check(lambda x, s: x.diagonal_scatter(s), x, z(3))
    check(lambda x, r, i: torch.cat([i, x, r], -1), x, torch.randn(3, 2).double(), torch.arange(6).view(3, 2))
    check(lambda x: torch.stft(x, 16, return_complex=True, onesided=False), z(100))


def test_writes_through_views():
    def write(x, s):
        x = x.clone()
        x.as_strided((2, 2), (4, 1), 1).add_(s)
        x.diagonal().mul_(2j)
        torch.view_as_real(x)[..., 1].mul_(3)
        x.real[0] = 5
        return x

    check(write, z(3, 4), z(2, 2))


def test_products_and_sums_of_exponentials():
    for x in (z(3, 4), z(4, 3).t(), z(2, 70) / 1.2):
        for dim in (0, -1):
            check(lambda x: (x.prod(dim), x.cumprod(dim), x.logsumexp(dim), x.logcumsumexp(dim)), x)
        check(lambda x: (x.prod(), x.logsumexp((0, 1), keepdim=True)), x)
    check(lambda x: x.detach().prod(1, dtype=C128), torch.randn(3, 4).double())
    for dtype in (torch.int32, torch.bool, torch.float16):
        check(lambda x: (x.detach().sum(dtype=dtype), x.detach().sum(0, dtype=dtype)), z(3, 2) * 3)
    check(lambda x: x.detach().cumsum(0, dtype=torch.int32), z(3, 2) * 3)
    check(torch.logaddexp, z(3, 4), z(3, 4) * 5)
    edge = torch.complex(torch.tensor([INF, -INF, NAN, 0, -INF]), torch.tensor([1.0, 2, 0, NAN, -1]))
    function = torch.compile(torch.logaddexp, backend="coil")
    for other in (edge, edge.flip(0)):
        torch.testing.assert_close(function(edge, other), torch.logaddexp(edge, other), equal_nan=True)


@pytest.mark.parametrize("dtype", [C64, C128])
def test_made_from_numbers(dtype):
    check(lambda: torch.eye(3, 4, dtype=dtype))
    check(lambda: torch.linspace(1 + 2j, 3 - 1j, 7, dtype=dtype))
    check(lambda: torch.logspace(1 + 2j, 0, 7, dtype=dtype))
    check(lambda: (torch.linspace(1 + 2j, 3, 5), torch.logspace(0, 3, 4, dtype=torch.int64)))


NAMES = ["tanh", "sigmoid", "atanh", "log1p", "expm1", "reciprocal", "sqrt", "log", "sgn", "abs"]


@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    function = getattr(torch, name)
    check(function, z(200) * 2)
    check(function, z(200, dtype=C64))
    zero = torch.zeros(3, dtype=C64) + torch.tensor([0, 1, -1])
    if name != "atanh":  # eager's is not one number in vectors and at their ends
        check(function, zero)


def test_numbers_as_operands():
    check(lambda x: (x * 2j, x / (1 - 1j), (2 + 1j) / x, x - 1j, x**2, 2**x), z(3, 4))


def test_linear_algebra():
    a = z(4, 4)
    h = a @ a.mH + torch.eye(4, dtype=C128)
    for function in (torch.linalg.inv, torch.linalg.det, torch.linalg.slogdet, torch.linalg.qr,
                     torch.linalg.lu, torch.linalg.cholesky, torch.cholesky_inverse, torch.trace,
                     torch.logdet, torch.linalg.vander, lambda t: torch.linalg.matrix_power(t, -2),
                     lambda t: torch.linalg.solve(t, t[:, :2])):  # fmt: skip
        check(function, h)


@pytest.mark.skipif(not hasattr(torch.ops.aten, "cholesky"), reason="this torch has dropped torch.cholesky")
@pytest.mark.parametrize("dtype", [torch.float64, C128])
def test_cholesky_by_its_old_name(dtype):
    a = torch.randn(2, 4, 4, dtype=dtype)
    h = a @ a.mH + torch.eye(4, dtype=dtype)
    check(lambda h: torch.cholesky(h @ h.mH), h)
    check(lambda h: torch.cholesky(h @ h.mH, upper=True), h)
