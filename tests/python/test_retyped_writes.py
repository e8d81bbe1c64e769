"""Writes through a view of another dtype show in what it is a view of, bit by bit."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("coil")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fuzz_run  # noqa: E402
from fuzz_program import Program, Ref, Source, Step, replay, script  # noqa: E402


def written(x, *steps, others=()):
    """The program of these steps: (op, of which result, or -1 the input, arguments)."""
    made, count = [], 0
    for op, of, *args in steps:
        args = [Ref(~(a + 1)) if isinstance(a, Other) else a for a in args]
        results = 2 if op == "chunk.default" else 1
        made.append(Step(op, [Ref(of), *args], {}, results))
        count += results
    return Program([Source.of(x), *map(Source.of, others)], made, [Ref(i) for i in range(count)])


class Other(int):
    """One of the other inputs."""


FLOATS, BYTES = torch.arange(1.0, 13).view(3, 4), torch.arange(7, 39, dtype=torch.uint8).view(2, 16)
QUIET, SIGNALLING = 0x7E01, 0x7C01  # halves that are NaN
NANS = torch.tensor([[QUIET, SIGNALLING, 1], [SIGNALLING, 2, SIGNALLING]], dtype=torch.int16)
PROGRAMS = [
    # of one size
    written(FLOATS, ("view.dtype", -1, torch.int32), ("add_.Scalar", 0, 5)),
    written(FLOATS, ("view.dtype", -1, torch.int32), ("select.int", 0, 1, 2), ("zero_.default", 1)),
    written(FLOATS.t(), ("view.dtype", -1, torch.int32), ("slice.Tensor", 0, 0, 1, 4, 2), ("fill_.Scalar", 1, 7)),
    written(FLOATS, ("slice.Tensor", -1, 1, 1, 3), ("view.dtype", 0, torch.int32), ("bitwise_not_.default", 1)),
    # of a tensor to itself, which is none
    written(BYTES, ("view.dtype", -1, torch.bool), ("copy_.default", 0, Ref(0))),
    # of smaller ones, and of larger
    written(FLOATS, ("view.dtype", -1, torch.uint8), ("chunk.default", 0, 2, 1), ("add_.Scalar", 2, 1)),
    written(FLOATS[1:], ("view.dtype", -1, torch.float64), ("neg_.default", 0)),
    written(BYTES, ("view.dtype", -1, torch.float32), ("t.default", 0), ("select.int", 1, 0, 1), ("fill_.Scalar", 2, 2.5)),
    written(BYTES, ("view.dtype", -1, torch.complex64), ("conj_physical_.default", 0)),
    # of a view of a view
    written(BYTES, ("view.dtype", -1, torch.int64), ("select.int", 0, 0, 1), ("view.dtype", 1, torch.int16),
            ("slice.Tensor", 2, 0, 0, 4, 3), ("zero_.default", 3)),
    # of strides over all of the memory
    written(FLOATS.t(), ("view.dtype", -1, torch.int32), ("as_strided.default", 0, [3, 2], [2, 1], 1)),
    written(BYTES, ("view.dtype", -1, torch.int32), ("as_strided_copy.default", 0, [2, 2], [3, 1], 1)),
    written(FLOATS, ("view.dtype", -1, torch.int16), ("as_strided.default", 0, [9], [2], 1), ("fill_.Scalar", 1, 7)),
    written(BYTES, ("view.dtype", -1, torch.int32), ("as_strided.default", 0, [2], [3], 1), ("fill_.Scalar", 1, 7)),
    written(torch.view_as_complex(FLOATS.view(6, 2)), ("view_as_real.default", -1), ("as_strided.default", 0, [4], [3], 1),
            ("neg_.default", 1)),
    # elements that stay keep all their bits
    written(NANS, ("view.dtype", -1, torch.float16), ("select.int", 0, 1, 1), ("fill_.Scalar", 1, 1.5)),
    written(NANS, ("view.dtype", -1, torch.bfloat16), ("select.int", 0, 0, 0), ("fill_.Scalar", 1, 1.5)),
    written(BYTES, ("view.dtype", -1, torch.bool), ("select.int", 0, 0, 1), ("fill_.Scalar", 1, 7)),
    written(torch.arange(6, dtype=torch.int32), ("view.dtype", -1, torch.bool), ("copy_.default", 0, Other(0)),
            others=[torch.arange(-1.0, 23)]),
]


def bits(tensor):
    return tensor.contiguous().view(torch.uint8) if tensor.dtype.itemsize > 1 else tensor


def test_like_eager():
    """Results are compared where their numbers say all; what was written to, to the last bit."""
    verdicts = fuzz_run.check_batch(PROGRAMS)
    wrong = [f"{v}\n{script(p)}" for p, v in zip(PROGRAMS, verdicts) if v.kind != "ok"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("way", fuzz_run.WAYS)
def test_bits(way):
    for program, (_, inputs) in zip(PROGRAMS, fuzz_run.Build(PROGRAMS, way).run()):
        expected = [s.tensor() for s in program.inputs]
        replay(program, inputs=expected)
        for x, e in zip(inputs, expected):
            assert torch.equal(bits(x), bits(e)), script(program)
