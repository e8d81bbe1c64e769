"""as_strided of an input counts in the input's memory, where the input itself may have no element."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fuzz_run  # noqa: E402
from fuzz_program import Program, Ref, Source, Step, script  # noqa: E402


def window(shape, strides, offset, dtype=torch.float32):
    """Of 40 numbers."""
    return Source(torch.arange(40).to(dtype), shape, strides, offset)


def seen(source, *args, op="as_strided.default", write=False):
    """The program that sees `source` so; a write shows in the view, and in the input where it has that element."""
    steps = [Step(op, [Ref(~0), *args], {}, 1)]
    if write:
        steps += [Step("add_.Scalar", [Ref(0), 100], {}, 1), Step("mul_.Scalar", [Ref(~0), 2], {}, 1)]
    return Program([source], steps, [Ref(i) for i in range(len(steps))])


GAPS = window((3, 2), (4, 1), 5)
PROGRAMS = [
    seen(GAPS, [10], [1], None),
    seen(GAPS, [2, 3], [4, 2], 0),  # before the first element
    seen(GAPS, [40], [1], 0),
    seen(GAPS, [3], [9], 12),  # behind the last one
    seen(GAPS, [4], [2], 3, write=True),
    seen(window((3, 2), (4, 1), 5, torch.complex64), [4], [2], 3, write=True),
    seen(window((5, 3), (1, 2), 1), [3, 5], [2, 1], None),  # elements that lie in one place
    seen(window((4,), (0,), 2), [3], [1], 1),
    seen(window((2, 3), (3, 1), 5), [2, 3], [3, 1], 0),  # dense, but begins behind
    seen(GAPS, [2, 5], [3, 1], 1, op="as_strided_copy.default", write=True),
    seen(window((0, 3), (3, 1), 0), [4, 0], [7, 9], None),
    seen(window((3, 0), (1, 1), 2), [2], [5], 1),
]


def test_like_eager():
    verdicts = fuzz_run.check_batch(PROGRAMS)
    wrong = [f"{v}\n{script(p)}" for p, v in zip(PROGRAMS, verdicts) if v.kind != "ok"]
    assert not wrong, "\n".join(wrong)


def chained(source, *steps, others=()):
    """Each step on the result of the one before, the first on `source`; all results."""
    made = [Step(op, [Ref(i - 1) if i else Ref(~0), *args], {}, 1) for i, (op, *args) in enumerate(steps)]
    return Program([source, *others], made, [Ref(i) for i in range(len(made))])


def scattered(source, size, stride, offset, *before):
    """as_strided_scatter of a view counts in the memory around it."""
    new = Source.of(torch.tensor([50.0, 60.0]))
    return chained(source, *before, ("as_strided_scatter.default", Ref(~1), size, stride, offset), others=[new])


ROW = window((6,), (1,), 0)
SCATTERS = [
    scattered(ROW, [2], [1], 2, ("slice.Tensor", 0, 1, 5)),
    scattered(ROW, [2], [1], 0, ("slice.Tensor", 0, 1, 5)),
    scattered(ROW, [2], [1], None, ("slice.Tensor", 0, 1, 5)),
    scattered(ROW, [2], [3], 2, ("neg.default",)),
    scattered(window((6,), (1,), 4), [2], [1], 5),
    *[scattered(GAPS, [2], [4], offset) for offset in (0, 5, 6, None)],
]


def test_scatter():
    verdicts = fuzz_run.check_batch(SCATTERS)
    wrong = [f"{v}\n{script(p)}" for p, v in zip(SCATTERS, verdicts) if v.kind != "ok"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", ["as_strided", "as_strided_copy"])
def test_of_a_part(op):
    """A view, although the schema does not say so."""
    for split in ("unsafe_chunk.default", "unsafe_split.Tensor", "chunk.default"):
        steps = [Step(split, [Ref(~0), 2, 0], {}, 2), Step(f"{op}.default", [Ref(1), [1, 2], [3, 2], None], {}, 1)]
        assert fuzz_run.check_all_alone(Program([GAPS], steps, [Ref(0), Ref(2)])).kind == "ok"


def test_of_a_view():
    steps = [Step("select.int", [Ref(~0), 1, 1], {}, 1), Step("as_strided.default", [Ref(0), [5], [2], None], {}, 1),
             Step("zero_.default", [Ref(1)], {}, 1)]
    program = Program([GAPS], steps, [Ref(0), Ref(1)])
    assert fuzz_run.check_all_alone(program).kind == "ok"


def test_through_torch_compile():
    """Reads alone: what AOT Autograd makes of a write has no memory around it."""
    torch._dynamo.reset()

    def function(x):
        between = x.as_strided((3,), (2,), 2)
        return between.view(3, 1), between * 3 + x.sum()

    compiled = torch.compile(function, backend="coil")
    for _ in range(2):
        memories = [torch.arange(12.0), torch.arange(12.0)]
        results = [f(m[1::2]) for f, m in zip((compiled, function), memories)]
        for found, expected in zip((*results[0], memories[0]), (*results[1], memories[1])):
            assert torch.equal(found, expected)
        assert results[0][0].untyped_storage().data_ptr() == memories[0].untyped_storage().data_ptr()


def build(*sources):
    steps = [Step("as_strided.default", [Ref(~0), [9], [1], 0], {}, 1)]
    steps += [Step("zero_.default", [Ref(~i)], {}, 1) for i in range(1, len(sources))]
    return fuzz_run.Build([Program(list(sources), steps, [Ref(0)])], "interp").compiled


def test_calls_that_are_refused():
    run = build(GAPS)
    memory = torch.zeros(40)
    assert run([memory.as_strided((3, 2), (4, 1), 5)])[0].shape == (9,)
    with pytest.raises(coil.RunError, match="reaches out of its memory"):
        run([memory.as_strided((3, 2), (4, 1), 4)])
    with pytest.raises(coil.RunError, match="reaches out of its memory"):
        run([memory[:14].clone()[4:].as_strided((3, 2), (4, 1), 4)])
    with pytest.raises(coil.RunError, match=r"strides \[8, 1\]; its memory is read"):
        run([memory.as_strided((3, 2), (8, 1), 5)])


def test_memory_of_two_inputs():
    run = build(GAPS, window((2,), (1,), 3))
    memory = torch.zeros(40)
    x = memory.as_strided((3, 2), (4, 1), 5)
    run([x, memory[20:22]])
    with pytest.raises(coil.RunError, match="lie in one memory, which is written to"):
        run([x, memory[3:5]])
