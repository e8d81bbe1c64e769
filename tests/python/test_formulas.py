"""Formulas of ops that neither torch's core table nor coil has: compiled, beside eager."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

from torch.nn import functional as F  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def gradient(function, x):
    x = x.clone().requires_grad_()
    y = function(x)
    y.backward(torch.arange(1.0, y.numel() + 1).view(y.shape).to(y.dtype))
    return x.grad


@pytest.mark.parametrize(
    "shape, padding", [((2, 3, 5), (2, 1)), ((2, 1, 4, 6), (0, 3, 2, 5)), ((1, 2, 3, 1, 2), (1, 2, 3, 0, 0, 1))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_replication_pad_backward(shape, padding, dtype):
    x = torch.randn(shape, dtype=dtype)

    def padded(x):
        return F.pad(x, padding, mode="replicate")

    found = gradient(torch.compile(padded, backend="coil", fullgraph=True), x)
    expected = gradient(padded, x.double())
    tolerance = {"rtol": 1.6e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(found, expected.to(dtype), **tolerance)


@pytest.mark.parametrize(
    "name, settings",
    [
        ("conv2d", {"stride": [2], "padding": [1, 0]}),
        ("conv2d", {"padding": [1], "dilation": [2]}),
        ("conv2d", {"padding": "same", "dilation": [2]}),
        ("conv_transpose2d", {"stride": [2], "padding": [1], "output_padding": [1]}),
        ("conv_transpose2d", {"stride": [1, 2], "output_padding": (1, 0), "dilation": [2]}),
    ],
)
def test_convolution_settings(name, settings):
    """Of one item for all dims, and an output padding of a whole stride."""
    operands = [torch.randn(2, 4, 7, 6, requires_grad=True), torch.randn(4, 4, 3, 3, requires_grad=True)]

    def run(function):
        y = function(*operands, **settings)
        return y, *torch.autograd.grad(y.square().sum(), operands)

    function = getattr(F, name)
    for found, expected in zip(run(torch.compile(function, backend="coil", fullgraph=True)), run(function)):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"bidirectional": True, "num_layers": 2, "batch_first": True}, {"bias": False}])
def test_lstm_without_gradients(settings):
    model, x = torch.nn.LSTM(5, 7, **settings).eval(), torch.randn(6, 3, 5)
    state = [torch.randn(settings.get("num_layers", 1) * (1 + ("bidirectional" in settings)), n, 7) for n in (3, 6)]
    state = state[settings.get("batch_first", False)]
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        compiled = torch.compile(model, backend="coil", fullgraph=True)
        for args in ((x,), (x, (state, -state))):
            found, expected = (torch.utils._pytree.tree_leaves(m(*args)) for m in (compiled, model))
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_windows(name, dtype):
    op = getattr(torch, f"{name}_window")
    more = {"hamming": [(0.6,), (0.6, 0.3)], "kaiser": [(3.0,)]}.get(name, [])
    choices = [(n, periodic) for n in (0, 1, 2, 3, 12, 33) for periodic in (True, False)]
    choices += [(9, True, *m) for m in more]

    def windows(x):
        return [op(12, dtype=dtype) * x, *(op(*choice, dtype=dtype) * x for choice in choices)]

    x = torch.ones((), dtype=dtype)
    for found, expected in zip(torch.compile(windows, backend="coil", fullgraph=True)(x), windows(x), strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        # Half floats: eager's own roundings, bit for bit.
        tolerance = {torch.float32: 1e-6, torch.float64: 1e-14}.get(dtype, 0)
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (2, 3, 4)])
def test_samples_at_no_place(size, mode, padding):
    """NaN is an end of the image."""
    nan, n = float("nan"), len(size)
    image = torch.randn(1, 1, *size)
    grid = torch.tensor([[nan, 0.3, 0.1], [0.3, nan, 0.1], [nan, nan, nan]])[:, :n].reshape(1, *[1] * (n - 1), 3, n)

    def sampled(image, grid):
        return F.grid_sample(image, grid, mode, padding, align_corners=True)

    torch.testing.assert_close(torch.compile(sampled, backend="coil")(image, grid), sampled(image, grid))
