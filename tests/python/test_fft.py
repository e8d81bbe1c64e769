"""torch.compile(backend="coil") on transforms of torch.fft: numbers, strides and gradients beside eager."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

N = torch.fft
W = torch.hann_window


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def real(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def pair(*shape, dtype=torch.complex128):
    return torch.randn(*shape, dtype=dtype)


def strides(tensor):
    return [s for n, s in zip(tensor.shape, tensor.stride()) if n > 1 and tensor.numel()]


def assert_same(found, expected):
    assert (found.shape, found.dtype, strides(found)) == (expected.shape, expected.dtype, strides(expected))
    torch.testing.assert_close(found.resolve_conj(), expected.resolve_conj())


CASES = [
    ("fft", N.fft, real(3, 10)), ("fft_n", lambda x: N.fft(x, n=7), pair(3, 10)),
    ("fft_longer", lambda x: N.fft(x, n=13, dim=0, norm="ortho"), pair(10, 3)),
    ("ifft", N.ifft, pair(3, 12)), ("ifft_of_real", lambda x: N.ifft(x, norm="forward"), real(3, 9)),
    ("rfft", N.rfft, real(2, 3, 8)), ("rfft_odd", lambda x: N.rfft(x, dim=1, norm="forward"), real(2, 9, 4)),
    ("irfft", N.irfft, pair(3, 6)), ("irfft_odd", lambda x: N.irfft(x, n=11, norm="ortho"), pair(3, 6)),
    ("hfft", N.hfft, pair(3, 6)), ("ihfft", lambda x: N.ihfft(x, n=9), real(3, 8)),
    ("fft2", N.fft2, pair(2, 4, 6)), ("ifft2", lambda x: N.ifft2(x, s=(5, 3)), pair(2, 4, 6)),
    ("rfft2", N.rfft2, real(2, 4, 6)), ("irfft2", N.irfft2, pair(2, 4, 4)),
    ("hfft2", N.hfft2, pair(2, 4, 4)), ("ihfft2", N.ihfft2, real(2, 4, 6)),
    ("fftn", lambda x: N.fftn(x, dim=(2, 0)), pair(3, 4, 5)), ("ifftn", N.ifftn, pair(3, 4, 5)),
    ("rfftn", lambda x: N.rfftn(x, s=(4, -1), dim=(0, 1)), real(3, 4, 5)),
    ("irfftn", N.irfftn, pair(3, 4, 5)), ("hfftn", N.hfftn, pair(3, 4, 5)), ("ihfftn", N.ihfftn, real(3, 4, 6)),
    ("permuted", lambda x: N.fft2(x.permute(2, 0, 1)), pair(3, 4, 5)),
    ("shift", lambda x: N.ifftshift(N.fftshift(x, dim=1)), real(3, 5)),
    ("stft", lambda x: torch.stft(x, 16, 5, 12, W(12, dtype=torch.float64), return_complex=True), real(2, 60)),
    ("stft_real", lambda x: torch.stft(x, 16, normalized=True, center=False, return_complex=False), real(60)),
    ("convolution", lambda x: N.irfft(N.rfft(x, n=31) * N.rfft(x.flip(0), n=31), n=31), real(16)),
    ("power", lambda x: N.rfft(x).abs().square().sum(), real(4, 30)),
]


@pytest.mark.parametrize("function, x", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_transform_and_its_gradient(function, x):
    def run(call):
        leaf = x.clone().requires_grad_()
        out = call(leaf)
        weight = torch.linspace(0.5, 1.5, out.numel(), dtype=torch.float64).reshape(out.shape)
        (torch.view_as_real(out.resolve_conj()).sum(-1) if out.is_complex() else out).mul(weight).sum().backward()
        return out.detach(), leaf.grad

    compiled = torch.compile(function, backend="coil", fullgraph=True)
    with torch.no_grad():
        assert_same(compiled(x), function(x))
    expected = run(function)
    for found, wanted in zip(run(compiled), expected):
        torch.testing.assert_close(found.resolve_conj(), wanted.resolve_conj())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool])
def test_dtypes(dtype):
    x = torch.randint(0, 2, (3, 30)).to(dtype)
    for function in (N.fft, N.rfft, N.ihfft, N.hfft, N.irfft2, N.fftn):
        compiled = torch.compile(function, backend="coil", fullgraph=True)
        assert_same(compiled(x), function(x))


def test_lengths_are_dynamic():
    def function(x):
        return N.irfft(N.rfft(x) * 2, n=x.shape[-1]), N.fft(x, dim=0, norm="ortho")

    compiled = torch.compile(function, backend="coil", fullgraph=True, dynamic=True)
    for shape in ((3, 8), (4, 9), (5, 37), (2, 202)):
        x = real(*shape)
        for found, wanted in zip(compiled(x), function(x)):
            assert_same(found, wanted)


def test_istft_gives_the_signal_back():
    window = W(16, dtype=torch.float64)

    def function(x):
        z = torch.stft(x, 16, 4, window=window, return_complex=True)
        return torch.istft(z, 16, 4, window=window, length=64)

    x = real(2, 64)
    torch.testing.assert_close(torch.compile(function, backend="coil")(x), x)
