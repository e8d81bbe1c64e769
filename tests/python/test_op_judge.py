"""The judge of scripts/op_coverage.py: what passes as right numbers, and that faults do not."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's database of ops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from op_coverage import seeds_of  # noqa: E402
from op_judge import Calls, is_as_near  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.opinfo.core import SampleInput  # noqa: E402


def judged(op, found, *args, captured=None, **kwargs):
    """Whether `found` passes as the result of an op, of torch's if it is a name, on these arguments; `captured` is
    what Dynamo makes of the op."""
    op = next((known for known in op_db if known.name == op), op)
    sample = SampleInput(args[0], args=args[1:], kwargs=kwargs)

    def call(inputs, args, kwargs):
        return op.op(inputs, *args, **kwargs)

    expected = call(sample.input, sample.args, sample.kwargs)
    return is_as_near(op, Calls(call, captured or call), sample, ([expected], [found]))


def numbers(n, dtype):
    return torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def test_another_rounding_passes_and_a_wrong_one_does_not():
    x = numbers(200, torch.float32) * 3
    exact = torch.exp(x.double())
    ulp = torch.finfo(torch.float32).eps * exact
    assert judged("exp", (exact + 0.5 * ulp).float(), x)
    assert not judged("exp", (exact + 4 * ulp).float(), x)


def test_numbers_where_eager_has_none_must_be_those_of_float64():
    """The exponential of a matrix of half floats is NaN in eager, if it is as large as this."""
    x = torch.tensor([[3.0, 9.0], [9.0, 1.0]], dtype=torch.float16)
    x = x.repeat(2, 2) / 2
    found = torch.matrix_exp(x.double()).to(torch.float16)
    assert torch.matrix_exp(x).isnan().any()
    assert judged("matrix_exp", found, x)
    assert not judged("matrix_exp", found * 1.01, x)
    assert not judged("matrix_exp", torch.where(found > 9000, torch.inf, found), x)


def test_what_overflows_is_infinite():
    x = torch.eye(4, dtype=torch.float16) * 12  # e^12 is no half float
    wanted = torch.matrix_exp(x.double()).to(torch.float16)
    assert wanted[0, 0].isinf()
    assert judged("matrix_exp", wanted, x)
    assert not judged("matrix_exp", wanted.clamp(max=60000), x)


def test_infinite_is_another_thing_than_no_number():
    x = torch.tensor([1.0, 1000.0])
    found = torch.tensor([2.7182817, torch.inf])
    assert judged("exp", found, x)
    for wrong in (torch.nan, -torch.inf, 3e38):
        assert not judged("exp", torch.tensor([2.7182817, wrong]), x)


def test_integers_are_computed_in_double_too():
    x = torch.arange(12, dtype=torch.uint8).reshape(3, 4) * 17
    wanted = torch.fft.hfft(x.double()).float()
    assert judged("fft.hfft", wanted, x)
    assert not judged("fft.hfft", wanted + 0.01, x)


def test_bessel_functions_of_double_are_known_to_more_digits_than_eagers():
    x = torch.tensor([5.1, 6.0], dtype=torch.float64)
    true = torch.tensor([-0.14433474706050063, 0.15064525725099692], dtype=torch.float64)  # DLMF 10.2.2
    assert (torch.special.bessel_j0(x) - true).abs().max() > 1e-8
    assert judged("special.bessel_j0", true, x)
    assert not judged("special.bessel_j0", true + 1e-6, x)


def test_what_dynamo_rounds_is_no_fault():
    """It writes addcdiv with a value in three ops, each of which is rounded."""
    a, b = numbers((50, 50), torch.float16), numbers((50, 50), torch.float16).abs() + 0.5
    in_steps = a + (b / a) * 3.14

    def captured(inputs, args, kwargs):
        return inputs + (args[0] / args[1]) * kwargs["value"]

    assert judged("addcdiv", in_steps, a, b, a, captured=captured, value=3.14)
    assert not judged("addcdiv", in_steps * 1.01, a, b, a, captured=captured, value=3.14)


def test_an_accident_of_eagers_is_no_measure():
    """3 in theory: each step is exact for 1, and rounded for half floats beside it."""

    class Op:
        name, decorators = "times_three", ()

        @staticmethod
        def op(x):
            return (x * 3 + 1 - 1) / x

    x = torch.ones(1, dtype=torch.float16)
    three = Op.op(x)
    assert three == 3
    assert judged(Op, torch.nextafter(three, three + 1), x)
    assert not judged(Op, three + 0.02, x)


def test_gradients_of_all_dtypes_begin_with_the_same_numbers():
    """In double they would else be of other numbers than the half floats that eager was given."""
    exp = next(op for op in op_db if op.name == "exp")
    wanted = seeds_of(exp, [torch.zeros(100, dtype=torch.float64)])[0]
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert torch.equal(seeds_of(exp, [torch.zeros(100, dtype=dtype)])[0].double(), wanted)
    wide, narrow = (seeds_of(exp, [torch.zeros(100, dtype=d)])[0] for d in (torch.complex128, torch.complex64))
    assert torch.equal(narrow.to(wide.dtype), wide) and wide.real.std() > 0.1 < wide.imag.std()
