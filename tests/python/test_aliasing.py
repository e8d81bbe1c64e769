"""Mutation and aliasing through torch.compile(backend="coil"), with and without a graph for gradients."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from alias_cases import CASES, difference, outcome  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_like_eager(name, dynamic):
    function, arguments = CASES[name]
    compiled = torch.compile(function, backend="coil", dynamic=dynamic)
    for _ in range(2):  # the second call finds the graph compiled
        assert difference(outcome(compiled, arguments()), outcome(function, arguments())) == ""


@pytest.mark.parametrize("name", [n for n in CASES if "data" not in n and "argument" not in n])
def test_with_gradients(name):
    """Arguments are results of a differentiable op, so that writes to them are part of the graph."""
    if name == "parts_of_chunk_and_unbind":
        pytest.skip("autograd allows no write to one of several views that one op made")
    function, arguments = CASES[name]
    if not all(a.is_floating_point() for a in arguments()):
        pytest.skip("nothing to differentiate")

    def gradients(run):
        leaves = [a.clone().requires_grad_() for a in arguments()]
        inner = [leaf * 1 for leaf in leaves]
        results = torch.utils._pytree.tree_leaves((run(*inner), inner))
        parts = [(t * torch.arange(1.0, t.numel() + 1).reshape(t.shape)).sum() for t in results if t.requires_grad]
        return torch.autograd.grad(sum(parts), leaves, allow_unused=True)

    for found, expected in zip(gradients(torch.compile(function, backend="coil")), gradients(function)):
        torch.testing.assert_close(found if expected is not None else None, expected)
