"""Publicly reported defects (docs/bug_cases.md) as programs: eager PyTorch beside the interpreter, kernels
fused and unfused, and kernels whose intermediate results are returned, too; at odd sizes, in other layouts,
with other numbers of threads, and with symbolic sizes. Many programs share a compile."""

import dataclasses
import functools
import itertools
import re

import bug_rows
import bug_rows_layers
import bug_rows_memory
import bug_rows_numbers
import fuzz_run
import pytest
import torch
from beside_torch import skips_what_torch_lacks
from fuzz_agree import Judge, same_bits
from fuzz_program import Program, Ref, Source, results_of
from record_ops import record, whole

import coil

ROWS = {r.report: r for r in bug_rows.ROWS}
assert len(ROWS) == len(bug_rows.ROWS) and bug_rows_layers and bug_rows_memory and bug_rows_numbers


@dataclasses.dataclass
class Case:
    """A row at one size in one layout."""

    row: bug_rows.Row
    about: str
    program: Program

    @functools.cached_property
    def judge(self):
        return Judge(self.program)


def in_other_layouts(inputs):
    """(name, inputs): transposed memory, a window of a larger memory, one row for all."""

    def transposed(x):
        return x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim)))

    def window(x):
        larger = x.new_ones([n + 3 for n in x.shape])
        view = larger[tuple(slice(1, n + 1) for n in x.shape)]
        return view.copy_(x)

    def expanded(x):
        return x[:1].expand(x.shape) if x.ndim and x.shape[0] else x

    for change in (transposed, window, expanded):
        yield change.__name__, [change(x) if x.ndim else x for x in inputs]


def recorded(row, about, inputs):
    try:
        return Case(row, about, record(row.function, inputs))
    except (RuntimeError, IndexError) as problem:
        if about == "as given":
            raise
        return None if problem else None  # eager PyTorch refuses this size or layout


def writes(case):
    """Whether the case writes to tensors, which must not be expanded then."""
    arguments = [a for s in case.program.steps for a in s.overload._schema.arguments]
    return any(a.alias_info is not None and a.alias_info.is_write for a in arguments)


@functools.cache
def cases():
    """All cases but the big ones."""
    out = []
    for row in ROWS.values():
        if row.front:
            continue
        given = recorded(row, "as given", row.made())
        out.append(given)
        if row.is_sized:
            out += [recorded(row, f"size {n}", row.made(n)) for n in row.sizes]
            out += [recorded(row, *pair) for pair in in_other_layouts(row.made())
                    if pair[0] != "expanded" or not writes(given)]
    return [c for c in out if c is not None]


def returning_all(case):
    """The program that also returns what it computes on the way."""
    program, kept, at = case.program, [], 0
    for step in program.steps:
        kept += [Ref(at + i) for i in range(step.results)]
        at += step.results
    more = [r for r in kept if r not in program.outputs]
    return Case(case.row, f"{case.about}, all returned", Program(program.inputs, program.steps, program.outputs + more))


@functools.cache
def ran(way):
    """(case, results, inputs afterwards) of each case, or the problem; compiled together."""
    chosen = cases()
    if way == "unfused":
        chosen = [c for c in chosen if c.about in ("as given", "size 17")]
    if way == "returning all":
        chosen = [returning_all(c) for c in chosen if c.about == "as given"]
    out = {}
    for start in range(0, len(chosen), 200):
        part = chosen[start : start + 200]
        out.update(zip([(c.row.report, c.about.split(",")[0]) for c in part], run_together(part, way)))
    return out


def run_together(part, way):
    """Those that coil takes, in one compile; where that fails, the halves."""
    if not part:
        return []
    refusals = [fuzz_run.refusal(c.program) for c in part]
    if any(refusals) and len(part) > 1:
        found = iter(run_together([c for c, r in zip(part, refusals) if r is None], way))
        return [next(found) if r is None else (c, r) for c, r in zip(part, refusals)]
    programs = [c.program for c in part]
    try:
        runs = fuzz_run.Build(programs, "fused" if way == "returning all" else way).run()
    except Exception as problem:
        if len(part) == 1:
            return [(part[0], problem)]
        half = len(part) // 2
        return run_together(part[:half], way) + run_together(part[half:], way)
    return list(zip(part, runs))


def check(case, run):
    if isinstance(run, fuzz_run.Refused) and case.row.refusal:
        assert case.row.refusal in str(run)
        return
    if isinstance(run, Exception):
        raise AssertionError(f"{case.about}: {run}") from run
    if not case.row.is_open:
        assert case.judge.difference(*run) == "", case.about
    if case.about == "as given" and case.row.right is not None:
        before = case.row.made()
        assert bool(case.row.right(*before, *run[0])), [x for x in run[0]]


WAYS = ("interp", "fused", "unfused", "returning all")


@pytest.mark.parametrize("report", [r.report for r in ROWS.values() if not r.front])
def test_row(report):
    for way in WAYS:
        found = {about: pair for (name, about), pair in ran(way).items() if name == report}
        assert "as given" in found
        for case, run in found.values():
            check(case, run)
    # What is fused has the bits of what is not.
    for (name, about), (case, run) in ran("fused").items():
        if name == report:
            other = ran("unfused").get((name, about), (None, None))[1]
            if other is None or isinstance(run, Exception):
                continue  # not compiled, or a refusal, which has been checked
            assert all(map(same_bits, itertools.chain(*run), itertools.chain(*other))), about


@pytest.mark.parametrize("report", [r.report for r in ROWS.values() if r.front])
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)  # what fullgraph implies, but not in 2.9
def test_row_through_torch_compile(report):
    row = ROWS[report]
    mine, other = row.made(), row.made()
    expected = row.function(*other)
    torch._dynamo.reset()
    with skips_what_torch_lacks(row.function, *row.made(), fullgraph=True):
        found = torch.compile(row.function, backend="coil", fullgraph=True)(*mine)
        for e, f in zip(results_of(expected) + other, results_of(found) + mine, strict=True):
            assert (e.shape, e.dtype, e.stride()) == (f.shape, f.dtype, f.stride())
            torch.testing.assert_close(f, e)
        if not isinstance(expected, torch.Tensor):
            assert found == expected or results_of(found)


def refusal(function, inputs):
    """What is said against a call; "" where it is taken."""
    torch._dynamo.reset()
    try:
        function(*inputs)
    except (RuntimeError, IndexError, ValueError) as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("row", bug_rows.REFUSALS, ids=lambda r: r.report)
def test_refused(row):
    """Not taken, as in eager PyTorch; recorded ops, since torch.compile's own checks come first."""
    assert refusal(row.function, row.made())
    said = refusal(torch.compile(row.function, backend="coil", fullgraph=True), row.made())
    if not said and not refusal(torch.compile(row.function, backend="aot_eager", fullgraph=True), row.made()):
        pytest.skip("this torch's AOT Autograd lets it pass")
    assert said and re.search(row.right, said)


BIG = [r.report for r in ROWS.values() if r.big and not r.refusal]


def run_big(threads):
    rows = [ROWS[name] for name in BIG]
    programs = [record(r.function, r.made(r.big)) for r in rows]
    return programs, fuzz_run.Build(programs, "fused", threads).run()


def test_threads_do_not_change_bits():
    """At sizes that threads share, in one compile: eager's results, and one thread's bits."""
    programs, one = run_big(1)
    for name, program, run in zip(BIG, programs, one):
        if not ROWS[name].is_open:
            assert Judge(program).difference(*run) == "", name
    for threads in (2, 5):
        _, many = run_big(threads)
        for name, a, b in zip(BIG, one, many):
            assert all(map(same_bits, itertools.chain(*a), itertools.chain(*b))), f"{name} with {threads} threads"


SYMBOLIC = [r.report for r in ROWS.values() if r.is_sized and 17 in r.sizes and not r.is_open and not r.refusal]


@pytest.mark.parametrize("report", SYMBOLIC[::3])
def test_symbolic_sizes(report):
    """One graph with sizes that are symbols."""
    row = ROWS[report]
    torch._dynamo.reset()
    run = torch.compile(row.function, backend="coil", dynamic=True)
    for n in (15, 17, 40):
        try:
            program = record(row.function, row.made(n))
        except (RuntimeError, IndexError):
            continue
        mine = row.made(n)
        found = results_of(run(*mine))
        assert Judge(program).difference(found, mine, False) == "" or same_values(row, n, found)


def same_values(row, n, found):
    for e, f in zip(results_of(row.function(*row.made(n))), found, strict=True):
        torch.testing.assert_close(f, e)
    return True
