"""Linear algebra through torch.compile(backend="coil"), forward and backward, beside eager and float64."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

from beside_torch import skips_what_torch_lacks  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def definite(*shape, dtype=torch.float64):
    a = torch.randn(*shape, shape[-1], dtype=dtype)
    return a @ a.mT + torch.eye(shape[-1], dtype=dtype)


def strides(tensor):
    return [s for n, s in zip(tensor.shape, tensor.stride()) if n > 1 and tensor.numel()]


def flat(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def check(function, *args, tolerance=1e-9):
    """Results, strides and gradients are eager's."""
    mine = [a.detach().clone().requires_grad_() for a in args]
    theirs = [a.detach().clone().requires_grad_() for a in args]
    found, expected = flat(torch.compile(function, backend="coil")(*mine)), flat(function(*theirs))
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert strides(f) == strides(e)
        torch.testing.assert_close(f, e, rtol=tolerance, atol=tolerance)
    for results in (found, expected):
        parts = [r.abs() if r.is_complex() else r for r in results if r.requires_grad]
        sum(((i + 1) * p.cos()).sum() for i, p in enumerate(parts)).backward()
    for m, t in zip(mine, theirs):
        torch.testing.assert_close(m.grad, t.grad, rtol=tolerance, atol=tolerance)


BATCHES = [(), (2,), (2, 3)]


@pytest.mark.parametrize("batch", BATCHES)
def test_solvers(batch):
    a, b = definite(*batch, 4), torch.randn(*batch, 4, 2, dtype=torch.float64)
    check(lambda a, b: torch.linalg.solve_ex(a, b)[0], a, b)
    check(lambda a, b: torch.linalg.solve_ex(a, b.mT, left=False)[0], a, b)
    check(lambda a: torch.linalg.inv_ex(a)[0], a)
    check(lambda a: torch.linalg.cholesky_ex(a)[0], a)
    check(lambda a: torch.linalg.cholesky_ex(a, upper=True)[0], a)
    check(lambda a, b: torch.cholesky_solve(b, a), a, b)
    check(lambda a: torch.cholesky_inverse(a), a)
    check(lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), a, b)
    check(lambda a, b: torch.linalg.solve_triangular(a, b.mT, upper=False, left=False), a, b)


@pytest.mark.parametrize("batch", BATCHES)
def test_determinants(batch):
    a = torch.randn(*batch, 4, 4, dtype=torch.float64)
    for x in (a, a.mT):
        check(torch.linalg.det, x)
        check(lambda x: torch.linalg.slogdet(x)[1], x)
        check(torch.logdet, x @ x.mT)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5)])
def test_lu(shape):
    check(torch.linalg.lu, torch.randn(*shape, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 5, 3)])
def test_qr(shape):
    def up_to_signs(a):
        q, r = torch.linalg.qr(a)
        signs = r.diagonal(dim1=-2, dim2=-1).sign()
        return q * signs.unsqueeze(-2), r * signs.unsqueeze(-1)

    check(up_to_signs, torch.randn(*shape, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5), (1, 1)])
def test_svd(shape):
    def whole(a):
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        return s, (u * s.sin().unsqueeze(-2)) @ vh

    a = torch.randn(*shape, dtype=torch.float64)
    check(whole, a)
    check(torch.linalg.svdvals, a)
    check(torch.linalg.pinv, a)
    check(lambda a: torch.linalg.norm(a, ord="nuc", dim=(-2, -1)), a)
    check(lambda a: torch.linalg.cond(a), a)


@pytest.mark.parametrize("batch", BATCHES)
def test_eigh(batch):
    def whole(a):
        values, vectors = torch.linalg.eigh(a + a.mT)
        return values, (vectors * values.sin().unsqueeze(-2)) @ vectors.mT

    a = torch.randn(*batch, 4, 4, dtype=torch.float64)
    check(whole, a)
    check(torch.linalg.eigvalsh, a)
    check(lambda a: torch.linalg.eigvalsh(a, UPLO="U"), a)


@pytest.mark.parametrize("batch", BATCHES)
def test_eig(batch):
    a = torch.randn(*batch, 5, 5, dtype=torch.float64)
    values, vectors = torch.compile(torch.linalg.eig, backend="coil")(a)
    assert vectors.stride() == torch.linalg.eig(a)[1].stride()
    torch.testing.assert_close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    torch.testing.assert_close(vectors.norm(dim=-2), torch.ones_like(values.real))


def test_eig_of_real_eigenvalues_is_real():
    values, vectors = torch.compile(torch.linalg.eig, backend="coil")(definite(6))
    assert not values.imag.any() and not vectors.imag.any()


@pytest.mark.parametrize("batch", BATCHES)
def test_functions_of_matrices(batch):
    a = torch.randn(*batch, 4, 4, dtype=torch.float64)
    check(torch.linalg.matrix_exp, a)
    check(torch.linalg.matrix_exp, 2 * a, tolerance=1e-7)  # with squarings


def test_ldl():
    def solve(a, b):
        factor, pivots, _ = torch.linalg.ldl_factor_ex(a)
        return torch.linalg.ldl_solve(factor, pivots, b)

    a = torch.randn(3, 5, 5, dtype=torch.float64)
    a, b = a + a.mT, torch.randn(3, 5, 2, dtype=torch.float64)
    found = torch.compile(solve, backend="coil")(a, b)
    torch.testing.assert_close(a @ found, b)


def test_info_tells_where_a_factorisation_broke_down():
    @torch.compile(backend="coil")
    def infos(a):
        return torch.linalg.cholesky_ex(a)[1], torch.linalg.inv_ex(a)[1], torch.linalg.lu_factor_ex(a)[2]

    a = torch.stack([torch.eye(3), torch.ones(3, 3), -torch.eye(3)])
    for found, expected in zip(infos(a), ([0, 2, 1], [0, 2, 0], [0, 2, 0])):
        assert found.tolist() == expected


def with_check_errors():
    yield lambda a: torch.linalg.inv_ex(a, check_errors=True)[0]
    yield lambda a: torch.linalg.solve_ex(a, a, check_errors=True)[0]
    yield lambda a: torch.linalg.cholesky_ex(a, check_errors=True)[0]
    yield lambda a: torch.linalg.lu_factor_ex(a, check_errors=True)[0]


@pytest.mark.parametrize("function", with_check_errors())
def test_a_failed_factorisation_is_an_error_where_asked_for(function):
    step = torch.compile(function, backend="coil")
    good = definite(3, 4)
    torch.testing.assert_close(step(good), function(good))
    bad = good.clone()
    bad[1] = -1
    with pytest.raises(RuntimeError):
        step(bad)
    torch.testing.assert_close(step(good), function(good))


def test_what_is_not_finite_has_no_singular_values():
    a = torch.full((2, 2), float("nan"))
    with pytest.raises(RuntimeError, match="non-finite"):
        torch.compile(torch.linalg.svdvals, backend="coil")(a)


def test_sizes_change():
    step = torch.compile(lambda a: torch.linalg.eigvalsh(a @ a.mT), backend="coil", dynamic=True)
    for n in (5, 2, 7):
        a = torch.randn(n, n, dtype=torch.float64)
        torch.testing.assert_close(step(a), torch.linalg.eigvalsh(a @ a.mT))


GROUPED = {  # sizes of both; strides of 16 bytes, which torch asks for
    "rows": ((16, 24), (4, 24, 8)), "columns": ((4, 8, 24), (24, 16)), "sums": ((8, 16), (16, 16)),
    "batches": ((4, 16, 24), (4, 24, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", GROUPED)
def test_grouped_products(form, dtype):
    left, right = (torch.randn(sizes, dtype=dtype) for sizes in GROUPED[form])
    ends = None if form == "batches" else torch.tensor([3, 3, 11, 16], dtype=torch.int32)

    def product(a, b):
        return torch._grouped_mm(a, b, offs=ends)

    narrow = [] if form == "columns" else [right[..., :5]]  # rows of the result begin at multiples of 16 bytes
    for factor in (right, *narrow):
        with skips_what_torch_lacks(product, left, factor, fullgraph=True):
            found = torch.compile(product, backend="coil", fullgraph=True)(left, factor)
            torch.testing.assert_close(found, product(left, factor), check_stride=True)


@pytest.mark.parametrize("ends", [[3, 3, 11, 16], [0, 5, 5, 9]])  # 9: seven rows belong to no group
def test_grouped_products_of_transformers(ends):
    pytest.importorskip("transformers.integrations.moe")
    op = torch.ops.transformers.grouped_mm_fallback
    rows, matrices = torch.randn(16, 24), torch.randn(4, 24, 8)
    ends = torch.tensor(ends)

    def gradients(function):
        torch.manual_seed(1)
        leaves = [rows.clone().requires_grad_(), matrices.clone().requires_grad_()]
        out = function(*leaves)
        return [out.detach(), *torch.autograd.grad(out, leaves, torch.randn_like(out))]

    compiled = torch.compile(lambda a, b: op(a, b, ends), backend="coil", fullgraph=True)
    wanted = gradients(lambda a, b: op(a, b, ends))
    for e, f in zip(wanted, gradients(compiled), strict=True):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 0)])
@pytest.mark.parametrize("order", [1, 2, float("inf"), "fro", "nuc"])
def test_norms_of_matrices_without_elements(shape, order):
    a = torch.empty(shape)
    compiled = torch.compile(torch.linalg.matrix_norm, backend="coil", fullgraph=True)
    assert torch.equal(compiled(a, order), torch.linalg.matrix_norm(a, order))
