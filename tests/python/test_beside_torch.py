"""When a test is skipped for what torch lacks: only where torch fails without coil, and for the same cause."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

from beside_torch import skips_what_torch_lacks  # noqa: E402


def is_skipped(function, check, **options):
    """Whether what `check` raises, of coil's values and eager's, is a skip: else it goes on as it was."""
    x = torch.ones(3)
    torch._dynamo.reset()
    try:
        with skips_what_torch_lacks(function, x, **options):
            check(torch.compile(function, backend="coil", **options)(x), function(x))
    except pytest.skip.Exception:
        return True
    except ArithmeticError:
        return False
    raise AssertionError("nothing failed")


def breaks(x):
    torch._dynamo.graph_break()
    return x + 1


def differs(x):
    return x + (2 if torch.compiler.is_compiling() else 1)


def has_a_fault_of_its_own(*_):
    raise ArithmeticError


def test_what_torch_refuses_in_the_same_words():
    assert is_skipped(breaks, torch.testing.assert_close, fullgraph=True)


def test_another_failure_beside_torchs():
    with pytest.raises(ArithmeticError), skips_what_torch_lacks(breaks, torch.ones(3), fullgraph=True):
        raise ArithmeticError


def test_what_torch_can_do():
    assert not is_skipped(torch.sin, has_a_fault_of_its_own)


def test_values_that_torchs_tracing_changes():
    assert is_skipped(differs, torch.testing.assert_close)
    assert not is_skipped(differs, has_a_fault_of_its_own)
