"""Ops that are others, and gradients of pooling and resampling, through torch.compile(backend="coil")."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch.nn import functional as F  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function):
    return torch.compile(function, backend="coil", fullgraph=True)


def check(function, *args, **tolerance):
    expected, found = function(*args), compiled(function)(*args)
    pairs = list(zip(expected, found)) if isinstance(expected, tuple) else [(expected, found)]
    for e, f in pairs:
        assert e.dtype == f.dtype
        torch.testing.assert_close(f, e, equal_nan=True, **tolerance)


def check_gradients(function, *args, **tolerance):
    """Results and gradients of all float arguments."""
    results = []
    for run in (function, compiled(function)):
        mine = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        out = run(*mine)
        (out * torch.linspace(-1, 2, out.numel()).view(out.shape)).sum().backward()
        results.append([out.detach()] + [a.grad for a in mine if a.requires_grad])
    for e, f in zip(*results):
        torch.testing.assert_close(f, e, **tolerance)


values = torch.tensor([0.5, 1.0, float("nan"), -0.3, 2.0, 1.5, 0.0, 1.999, -5.0])


@pytest.mark.parametrize("function", [
    lambda x: torch.histc(x, 4, 0, 2),
    lambda x: torch.histc(torch.nan_to_num(x), 7),
    lambda x: torch.histc(x.half(), 4, 0, 2),
    lambda x: torch.histogram(torch.nan_to_num(x), 5),
    lambda x: torch.histogram(x, 4, range=(0.0, 2.0), density=True),
    lambda x: torch.histogram(torch.nan_to_num(x), torch.tensor([-1.0, 0.0, 0.5, 2.0]), weight=x.abs().nan_to_num()),
    lambda x: torch.frexp(x),
    lambda x: torch.special.log_ndtr(x * 10),
], ids=lambda f: None)
def test_counts_and_parts(function):
    check(function, values)


def test_histogram_of_two_dims():
    x = torch.randn(40, 2)
    check(lambda x: torch.histogramdd(x, [3, 4]).hist, x)
    check(lambda x: torch.histogramdd(x, [3, 4], range=[-1.0, 1.0, -2.0, 2.0], density=True).hist, x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integer_products(dtype):
    a, b = torch.randint(0, 20, (2, 3, 4)).to(dtype), torch.randint(0, 20, (2, 4, 5)).to(dtype)
    check(torch.addbmm, torch.randint(0, 9, (3, 5)).to(dtype), a, b)
    check(F.bilinear, a[0], a[1], torch.randint(0, 9, (5, 4, 4)).to(dtype))


@pytest.mark.parametrize("alpha, beta", [(2.7, 1.5), (0.6, 0.2), (2, 3), (0.2, 1)])
def test_factors_of_integers_lose_their_fractions(alpha, beta):
    a, b, c = torch.randint(0, 9, (3, 4)), torch.randint(0, 9, (4, 5)), torch.randint(0, 9, (3, 5))
    check(lambda x, y, z: torch.addmv(x[:, 0], y, z[:, 0], alpha=alpha, beta=beta), c, a, b)
    check(lambda x, y, z: torch.addbmm(x, y[None], z[None], alpha=alpha, beta=beta), c, a, b)
    check(lambda x, y, z: torch.addmm(x, y, z, alpha=alpha, beta=beta), c, a, b)


@pytest.mark.parametrize("ends", [(4.3, -3), (12.13, -14.3), (-7, 15.9), (0.7, 3.9)])
def test_ranges_of_integers(ends):
    tensors = [torch.tensor(float(e)) for e in ends]
    for steps in (1, 2, 50, 59):
        check(lambda x: torch.linspace(*ends, steps, dtype=torch.int64) + x, torch.tensor(0))
        check(lambda x: torch.logspace(*ends, steps, 1.7, dtype=torch.int64) + x, torch.tensor(0))
        check(lambda a, b: torch.linspace(a, b, steps, dtype=torch.int32), *tensors)
        check(lambda a, b: torch.logspace(a, b, steps, 1.7, dtype=torch.int32), *tensors)


def test_ranges_that_begin_with_fractions_or_flags():
    check(lambda x: torch.arange(0.5, 5, 1.5, dtype=torch.int64) + x, torch.tensor(0))
    for line in ((0.9, 5.9), (True, 5.5, True), (5.5, 0.2, -1.5), (-0.5, 3, 1), (2.7,), (-3.7, 3.9, 2.9)):
        torch._dynamo.reset()  # the numbers stay numbers
        check(lambda x: torch.arange(*line, dtype=torch.int64) + x, torch.tensor(0))
    check(lambda x: torch.arange(2.9, -5.5, -1.7, dtype=torch.int32) + x, torch.tensor(0, dtype=torch.int32))
    check(lambda x: torch.arange(False, True, True, dtype=torch.float32) + x, torch.tensor(0.0))
    check(lambda x: torch.arange(False, True, 0.25) + x, torch.tensor(0.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_exponential_of_half_matrices(dtype):
    x = (torch.randn(2, 5, 5) / 4).to(dtype)
    found = compiled(torch.matrix_exp)(x)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.matrix_exp(x.float()).to(dtype))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resampled_in_fixed_point(mode):
    image = torch.randint(0, 256, (2, 3, 13, 17), dtype=torch.uint8)
    for x in (image, image.contiguous(memory_format=torch.channels_last)):
        check(lambda x: F.interpolate(x, (7, 29), mode=mode), x)
        check(lambda x: F.interpolate(x, (7, 29), mode=mode, antialias=True), x)
        check(lambda x: F.interpolate(x, scale_factor=1.7, mode=mode, align_corners=True), x)
    with torch.inference_mode():
        check(lambda x: F.interpolate(x, scale_factor=0.6, mode=mode), image)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p):
    x, y = torch.randn(5, 4), torch.randn(3, 4)
    x[1] = x[0]
    check(lambda x: F.pdist(x, p), x)
    if p > 1:
        check_gradients(lambda x: F.pdist(x[1:], p), x)
        check_gradients(lambda x, y: torch.cdist(x, y, p), x, y)


def test_unpool():
    x = torch.randn(2, 3, 6, 8)
    pooled, places = F.max_pool2d(x, 2, return_indices=True)
    check_gradients(lambda v: F.max_unpool2d(v, places, 2), pooled)


image, volume = torch.randn(2, 3, 9, 10), torch.randn(2, 3, 5, 6, 7)


@pytest.mark.parametrize("function, x", [
    (lambda x: F.avg_pool2d(x, 3, 2, 1), image),
    (lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), ceil_mode=True, count_include_pad=False), image),
    (lambda x: F.avg_pool3d(x, 2, 2, 1), volume),
    (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), image),
    (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 3)), volume),
    (lambda x: F.adaptive_max_pool2d(x, (4, 3)), image),
    (lambda x: F.adaptive_max_pool3d(x, (2, 3, 3)), volume),
    (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), image),
    (lambda x: F.interpolate(x, size=(5, 13), mode="bilinear"), image),
    (lambda x: F.interpolate(x, size=(5, 13), mode="bicubic", align_corners=True), image),
    (lambda x: F.interpolate(x, size=(5, 13), mode="bilinear", antialias=True), image),
    (lambda x: F.interpolate(x, size=(3, 10), mode="bicubic", antialias=True), image),
    (lambda x: F.interpolate(x, size=(9, 10), mode="bicubic", antialias=True), image),
    (lambda x: F.interpolate(x, size=(4, 9, 8), mode="trilinear"), volume),
    (lambda x: F.fold(F.unfold(x, 3, padding=1), (9, 10), 3, padding=1), image),
], ids=lambda f: None)
def test_gradients_of_pooling_and_resampling(function, x):
    check_gradients(function, x)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_grid_sample(mode, padding):
    grid = torch.rand(2, 4, 5, 2) * 2.6 - 1.3
    check_gradients(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=False), image, grid,
                    rtol=1e-4, atol=1e-4)
    if mode != "bicubic":
        grid = torch.rand(2, 3, 4, 2, 3) * 2.6 - 1.3
        check_gradients(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=True), volume, grid,
                        rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_narrow_batch_norms(dtype):
    x, w = torch.randn(4, 3, 5).to(dtype), torch.rand(3).to(dtype)
    check(lambda x, w: torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5), x, w, rtol=1e-2, atol=1e-2)
    check(lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), x, rtol=1e-2, atol=1e-2)
