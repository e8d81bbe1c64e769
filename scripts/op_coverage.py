#!/usr/bin/env python3
"""PyTorch's operator database through torch.compile(fullgraph=True, backend="coil").

Runs each (op, dtype) pair, forward and then with the backward pass, once with backend "eager", which says
what the harness and Dynamo can do at all, and once with coil; then the pairs that eager does not pass once more
with fullgraph=False. Writes docs/op_coverage.md. Results are kept in --store, so that a run that was stopped
goes on where it was. Needs the package coil, and expecttest for torch's samples.

    python scripts/op_coverage.py                     first sample of each pair
    python scripts/op_coverage.py --full              all samples
    python scripts/op_coverage.py --dtypes float32 --passes backward    some of it
"""

import argparse
import collections
import math
import os
import pathlib
import re
import sys

import worker_pool
from nearness import flat_tensors, reason_of
from op_judge import Calls, copied, is_as_near, tolerance, unique, widest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
# "rest": the pairs of the other two that backend "eager" does not pass, without fullgraph.
PASSES = ["forward", "backward", "rest"]
COMPLEX = ["complex64", "complex128"]  # where --dtypes asks for them
SECONDS_A_PAIR = {False: 120, True: 1800}
WANTED = {True: 0.97, False: 0.95}  # with fullgraph, and of the rest without
REASONS = 8  # different ones that a row keeps
ON_ALL = " (the first sample, and every one where coil fails one)"
NO_GRADIENT = "no result has a gradient"
# Those whose gradient says which of several equal elements was taken: they get different ones.
SORTS = {"kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
# Those whose results have any order: their gradients are of a sum that has the same value in each.
UNORDERED = {"linalg.eig", "linalg.eigvals"}
# Ops that may give the index of any of several equal elements.
TIES = {"argsort", "kthvalue", "median", "mode", "nanmedian", "sort", "topk"}


# The worker: reads a task a line, writes a result a line.


def names_equal_elements(values, a, b):
    """Whether these indices, of elements that may be equal, select the same values along some dim."""
    import torch

    for dim in range(values.ndim):
        pair = [i.unsqueeze(dim) if i.ndim < values.ndim else i for i in (a, b)]
        try:
            x, y = (torch.take_along_dim(values, i, dim) for i in pair)
        except (RuntimeError, IndexError):
            continue
        if torch.equal(x, y):
            return True
    return False


def compare(op, dtype, values, expected, found):
    """What differs, in words, or "". `values` are those that indices, if any, select."""
    import torch
    from torch.utils import _pytree

    a, b = _pytree.tree_leaves(expected), _pytree.tree_leaves(found)
    if len(a) != len(b):
        return f"{len(b)} results instead of {len(a)}"
    for e, f in zip(a, b):
        if not isinstance(e, torch.Tensor):
            if e != f and not (e != e and f != f):
                return f"{f!r} instead of {e!r}"
        elif not isinstance(f, torch.Tensor) or (e.shape, e.dtype) != (f.shape, f.dtype):
            return "another shape or dtype"
    if op.name.startswith(("empty", "new_empty")):
        return ""
    like = flat_tensors(expected)
    a, b = unique(op, like, like), unique(op, flat_tensors(found), like)
    try:
        for e, f in zip(a, b):
            if e.is_floating_point() or e.is_complex():
                rtol, atol = tolerance(op, dtype, e.dtype)
                torch.testing.assert_close(f, e, rtol=rtol, atol=atol, equal_nan=True)
            elif op.name not in TIES or not names_equal_elements(values, e, f):
                torch.testing.assert_close(f, e, rtol=0, atol=0)
    except AssertionError as problem:
        return "wrong numbers: " + " ".join(str(problem).split())[:200]
    return ""


def different(x):
    """As many numbers of a half float's dtype, no two the same, in a random order."""
    import torch

    bits = 0x3000 + torch.randperm(x.numel(), generator=torch.Generator().manual_seed(2))
    values = bits.to(torch.int16).view(x.dtype).reshape(x.shape)
    return values.requires_grad_(x.requires_grad)


def without_ties(op, sample, task):
    """The sample, if need be with other numbers."""
    import torch

    is_half = task["dtype"] in ("float16", "bfloat16")
    if task["backward"] and op.name in SORTS and is_half and sample.input.numel() < 0x3C00:
        sample.input = different(sample.input)
    return sample


def few_bits(like, random):
    """Random numbers that each float dtype holds: a run in double begins with the same ones."""
    import torch

    x = torch.randn(like.shape, generator=random, dtype=widest(like.dtype))
    parts = torch.view_as_real(x) if x.is_complex() else x
    parts.copy_(parts.to(torch.bfloat16))
    return x.to(like.dtype)


def seeds_of(op, results):
    """What gradients begin with: random numbers, or for results in any order functions of themselves, as a
    sum of fourth powers has."""
    import torch

    if op.name in UNORDERED:
        return [t.detach() * t.detach().abs().square() for t in results]
    random = torch.Generator().manual_seed(1)
    return [few_bits(t, random) for t in results]


def with_gradients(op, sample, function):
    """A call that gives what `function` gives, and the gradients of a sum of it."""
    import torch

    def call(inputs, args, kwargs):
        leaves = [t for t in flat_tensors((inputs, args, kwargs)) if t.requires_grad]
        result = function(inputs, args, kwargs)
        wanted = flat_tensors(sample.output_process_fn_grad(result))
        wanted = [t for t in wanted if t.requires_grad]
        if not wanted or not leaves:
            raise ValueError(NO_GRADIENT)
        found = torch.autograd.grad(wanted, leaves, seeds_of(op, wanted), allow_unused=True)
        # AOT Autograd gives zeros where eager gives None.
        found = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]
        return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (result, found))

    return call


class Counted:
    """A backend that counts how often what it compiled was called."""

    def __init__(self, name):
        import torch

        self.backend, self.calls = torch._dynamo.lookup_backend(name), 0

    def __call__(self, module, inputs):
        compiled = self.backend(module, inputs)

        def call(*args):
            self.calls += 1
            return compiled(*args)

        return call


def once(x):
    """The same numbers, by an op that is compiled."""
    import torch

    if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
        return x
    return x.logical_not().logical_not() if x.dtype == torch.bool else x * 1


def amid_graphs(function):
    """The function with work before and after it: there is something to compile where it is a graph break itself."""
    from torch.utils import _pytree

    def call(*args, **kwargs):
        args, kwargs = _pytree.tree_map(once, (args, kwargs))
        return _pytree.tree_map(once, function(*args, **kwargs))

    return call


def run_sample(op, sample, task, backend):
    import torch

    dtype, function = getattr(torch, task["dtype"]), op.get_op()
    function = function if task["fullgraph"] else amid_graphs(function)

    def forward(inputs, args, kwargs):
        return function(inputs, *args, **kwargs)

    def whole(call):
        return with_gradients(op, sample, call) if task["backward"] else call

    torch.manual_seed(0)
    try:
        expected = whole(forward)(*copied(sample))
    except Exception as problem:
        return f"eager: {reason_of(problem)}"
    torch._dynamo.reset()
    compiled = torch.compile(forward, backend=backend, fullgraph=task["fullgraph"])
    torch.manual_seed(0)
    try:
        found = whole(compiled)(*copied(sample))
    except Exception as problem:
        return reason_of(problem)
    reason = compare(op, dtype, sample.input, expected, found)
    if reason.startswith("wrong numbers"):
        captured = torch.compile(forward, backend="aot_eager", fullgraph=task["fullgraph"])
        calls = Calls(whole(forward), whole(captured))
        if is_as_near(op, calls, sample, (flat_tensors(expected), flat_tensors(found))):
            return ""
    return reason


def run_pair(ops, task):
    """What a row says of a pair: samples that were run, how many failed, the reason of the first of these,
    the different reasons of all, and how often a compiled graph was called."""
    op, backend = ops[task["op"]], Counted(task["backend"])
    count, reasons, without = 0, [], ""
    for reason in results_of_samples(op, task, backend):
        if NO_GRADIENT in reason:
            without = reason  # the next sample may have one
            continue
        count += 1
        reasons += [reason] if reason else []
        if not task["full"]:
            break
    reason = reasons[0] if reasons else "" if count else without
    kinds = list(dict.fromkeys(reasons))[:REASONS]
    return {"samples": count, "failed": len(reasons), "reason": reason, "reasons": kinds, "calls": backend.calls}


def results_of_samples(op, task, backend):
    import torch

    try:
        dtype = getattr(torch, task["dtype"])
        for sample in op.sample_inputs("cpu", dtype, requires_grad=task["backward"]):
            yield run_sample(op, without_ties(op, sample, task), task, backend)
    except Exception as problem:
        yield f"samples: {reason_of(problem)}"


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def work():
    # Samples on a GPU are not coil's on a CPU.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from torch.testing._internal.common_methods_invocations import op_db

    ops = {name_of(op): op for op in op_db}
    worker_pool.serve(lambda task: run_pair(ops, task))


# The parent.


def key_of(row):
    more = row.get("backward", False), row.get("fullgraph", True)
    return (row["op"], row["dtype"], row["backend"], row["full"], *more)


def supports(op, dtype, backward):
    import torch

    dtype = getattr(torch, dtype)
    if backward:
        return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return dtype in op.supported_dtypes("cpu")


def known_pairs(args):
    """(op, dtype, backward) of what torch's database has."""
    from torch.testing._internal.common_methods_invocations import op_db

    for backward in (p == "backward" for p in args.passes if p != "rest"):
        for dtype in args.dtypes:
            for op in op_db:
                if re.search(args.only, name_of(op)) and supports(op, dtype, backward):
                    yield name_of(op), dtype, backward


def pairs_of_the_rest(args):
    """Those that eager does not pass as one graph, as far as they are known."""
    rows = eager_rows(worker_pool.read_store(args.store, key_of), args.full)
    for (op, dtype, backward, fullgraph), row in rows.items():
        if fullgraph and row["reason"] and dtype in args.dtypes and re.search(args.only, op):
            yield op, dtype, backward


def eager_rows(rows, full):
    """What eager does, by (op, dtype, backward, fullgraph): of all samples, where they were asked for and run."""
    found = {}
    for row in sorted(rows.values(), key=lambda row: row["full"]):
        op, dtype, backend, row_full, *kind = key_of(row)
        if backend == "eager" and row_full <= full:
            found[op, dtype, *kind] = row
    return found


def run_pairs(pool, args, pairs, known, *, fullgraph):
    """Coil on all samples, or the first; eager, which says what coil is measured by, on the first, and on all
    of a pair where one of coil's fails. Of the rest, the first."""
    whole = args.full and fullgraph

    def run(backend, full, pairs):
        tasks = [
            {"op": op, "dtype": dtype, "backend": backend, "full": full, "backward": backward, "fullgraph": fullgraph}
            for op, dtype, backward in pairs
        ]
        pool.run([t for t in tasks if key_of(t) not in known])

    pairs = list(pairs)
    for backend in args.backends:
        run(backend, whole and backend == "coil", pairs)
    if whole and "eager" in args.backends:
        rows = worker_pool.read_store(args.store, key_of)

        def fails(pair, backend, full):
            op, dtype, backward = pair
            return rows.get((op, dtype, backend, full, backward, fullgraph), {"reason": ""})["reason"] != ""

        run("eager", True, [p for p in pairs if fails(p, "coil", True) and not fails(p, "eager", False)])


def report(rows, full):
    """docs/op_coverage.md of these results."""
    import torch

    samples = "every sample" if full else "the first sample"
    out = [
        "# Op coverage",
        "",
        f"PyTorch {torch.__version__.split('+')[0]}'s op database through "
        '`torch.compile(fullgraph=True, backend="coil")` on a CPU, '
        f"{samples} of each (op, dtype) pair, beside "
        f'`backend="eager"` in the same harness{ON_ALL if full else ""}. "Backward" is {samples} with a gradient: '
        "the results, and the gradients of a random sum of them. Written by `scripts/op_coverage.py`.",
    ]
    lines, failures = table(rows, full, fullgraph=True)
    out += lines
    out += [
        "",
        "## Pairs that are not one graph",
        "",
        'The first sample of the pairs that `backend="eager"` does not pass above, with `fullgraph=False`, between '
        'a product of its arguments and one of its results. "Compiled": of those that eager passes, where code of '
        "coil's ran.",
    ]
    lines, more = table(rows, False, fullgraph=False)
    out, failures = out + lines, failures + more
    return "\n".join(out + missing_ops(failures) + all_failures(failures)) + "\n"


def table(rows, full, *, fullgraph):
    """A table, and coil's failures as (reason, op, where)."""
    missing = f"missing to {WANTED[fullgraph]:.0%}"
    out = ["", f"| dtype | pass | pairs | eager passes | compiled | coil passes of these | part | {missing} |"]
    out += ["| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    failures = []
    for backward in (False, True):
        for dtype in DTYPES + COMPLEX:
            row, failed = count_dtype(rows, dtype, (full, backward, fullgraph))
            out += row
            failures += failed
    return out, failures


def count_dtype(rows, dtype, kind):
    """A line of the table, and coil's failures as (reason, op, where); `kind` is the rest of the key."""
    full, backward, fullgraph = kind
    coil = {k[0]: r for k, r in rows.items() if k[1:] == (dtype, "coil", *kind)}
    eager = {k[0]: r for k, r in eager_rows(rows, full).items() if k[1:] == (dtype, backward, fullgraph)}
    base = [op for op in coil if op in eager and not eager[op]["reason"]]
    if not base:
        return [], []
    reasons = {op: coil[op]["reason"] or without_code(eager[op], coil[op]) for op in base}
    good = sum(not reason for reason in reasons.values())
    lacking = max(0, math.ceil(WANTED[fullgraph] * len(base)) - good)
    name = "backward" if backward else "forward"
    compiled = sum(coil[op].get("calls", 0) > 0 for op in base)
    row = f"| {dtype} | {name} | {len(coil)} | {len(base)} | {compiled} | {good} | {good / len(base):.1%} | {lacking} |"
    where = dtype + (" backward" if backward else "") + ("" if fullgraph else " in parts")
    return [row], [(reason, op, where) for op, reason in reasons.items() if reason]


def without_code(eager, coil):
    """A pair that passes without a call of coil's is none where eager's backend had something to run."""
    is_without = coil.get("calls", 0) == 0 and eager.get("calls", 0) > 0
    return "no graph came to coil" if is_without else ""


def missing_ops(failures):
    out = ["", "## Ops that are missing", "", "| op of ATen | pairs that need it |"]
    out += ["| --- | ---: |"]
    missing = collections.Counter()
    for reason, _, _ in failures:
        if reason.startswith("missing: "):
            missing.update(reason.removeprefix("missing: ").split(", "))
    return out + [f"| `{op}` | {count} |" for op, count in sorted(missing.items(), key=rank)]


def all_failures(failures):
    out = ["", "## All failures", "", "| reason | pairs | where |", "| --- | ---: | --- |"]
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for reason, op, where in failures:
        groups[reason][op].append(where)
    for reason, ops in sorted(groups.items(), key=lambda row: (-pairs_of(row[1]), row[0])):
        places = "; ".join(f"{op}: {', '.join(where)}" for op, where in sorted(ops.items()))
        text = reason.replace("|", "\\|")
        out.append(f"| {text} | {pairs_of(ops)} | {places} |")
    return out


def pairs_of(ops):
    return sum(map(len, ops.values()))


def rank(row):
    return -row[1], row[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help="every sample of each pair")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES + COMPLEX)
    parser.add_argument("--backends", nargs="+", default=["eager", "coil"])
    parser.add_argument("--passes", nargs="+", default=PASSES, choices=PASSES)
    parser.add_argument("--only", default="", help="a pattern that names of ops must match")
    parser.add_argument("--again", action="store_true", help="run coil's failures again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--store", type=pathlib.Path, default=ROOT / "build/op_coverage.jsonl")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "docs/op_coverage.md")
    args = parser.parse_args()
    if args.worker:
        return work()
    known = worker_pool.read_store(args.store, key_of)
    if args.again:
        known = {k: r for k, r in known.items() if not (k[2] == "coil" and r["reason"])}
    command = [sys.executable, __file__, "--worker"]
    pool = worker_pool.Pool(command, args.jobs, SECONDS_A_PAIR[args.full], args.store)
    run_pairs(pool, args, known_pairs(args), known, fullgraph=True)
    if "rest" in args.passes:
        run_pairs(pool, args, pairs_of_the_rest(args), known, fullgraph=False)
    args.report.write_text(report(worker_pool.read_store(args.store, key_of), args.full))
    return 0


if __name__ == "__main__":
    sys.exit(main())
