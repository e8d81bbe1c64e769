#!/usr/bin/env python3
"""PyTorch's operator database through torch.compile(fullgraph=True, backend="coil").

Runs each (op, dtype) pair once with backend "eager", which says what the harness and Dynamo can do at
all, and once with coil, and writes docs/op_coverage.md. Results are kept in --store, so that a run
that was stopped goes on where it was. Needs the package coil, and expecttest for torch's samples.

    python scripts/op_coverage.py                     first sample of each pair
    python scripts/op_coverage.py --full              all samples
    python scripts/op_coverage.py --dtypes float32    some of it
"""

import argparse
import collections
import json
import math
import os
import pathlib
import queue
import re
import selectors
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
SECONDS_A_PAIR = {False: 120, True: 1800}
WANTED = 0.97
# Ops that may give the index of any of several equal elements.
TIES = {"argsort", "kthvalue", "median", "mode", "nanmedian", "sort", "topk"}


# The worker: reads a task a line, writes a result a line.


def flat_tensors(tree):
    import torch
    from torch.utils import _pytree

    return [x for x in _pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def copied(sample, dtype=None):
    """The sample with tensors of its own; `dtype`: of its floats."""
    import torch
    from torch.utils import _pytree

    def copy(x):
        if not isinstance(x, torch.Tensor):
            return x
        y = x.detach().clone(memory_format=torch.preserve_format)
        return y.to(dtype) if dtype is not None and y.is_floating_point() else y

    return _pytree.tree_map(copy, (sample.input, sample.args, sample.kwargs))


def tolerance(op, dtype, result):
    """torch.testing's for a result, or what the op's own entry asks for where that is more."""
    from torch.testing._comparison import default_tolerances
    from torch.testing._internal.common_device_type import toleranceOverride

    rtol, atol = default_tolerances(result)
    for info in op.decorators:
        for one in getattr(info, "decorators", [info]):
            if isinstance(one, toleranceOverride) and dtype in one.d:
                atol = max(atol, one.d[dtype].atol)
                rtol = max(rtol, one.d[dtype].rtol)
    return rtol, atol


def distance(a, b):
    import torch

    difference = (a.to(torch.float64) - b.to(torch.float64))[torch.isfinite(b.to(torch.float64))]
    return math.sqrt(difference.square().mean().item()) if difference.numel() else 0.0


def products(values, left, right):
    """What is the same for every choice of vectors: left diag(values) right, and whether their columns
    and rows are orthonormal."""
    k = values.shape[-1]
    whole = (left[..., :k] * values.unsqueeze(-2)) @ right[..., :k, :]
    return [values, whole, left.mH @ left, right @ right.mH]


def singular(results, _like):
    return products(results[1], results[0], results[2])


def singular_transposed(results, _like):
    return products(results[1], results[0], results[2].mH)


def symmetric(results, _like):
    return products(results[0], results[1], results[1].mH)


def orthogonal_triangular(results, _like):
    q, r = results
    if q.ndim < 2:  # mode "r"
        return [r.mH @ r, r.tril(-1)]
    return [q @ r, q.mH @ q, r.tril(-1)]


def in_the_order_of(values, like):
    """Eigenvalues, each at the place of the one in `like` that it is nearest to."""
    if values.numel() == 0:
        return values
    rows = values.reshape(-1, values.shape[-1]).clone()
    for row, wanted in zip(rows, like.reshape(rows.shape)):
        left = row.tolist()
        for i, w in enumerate(wanted.tolist()):
            row[i] = left.pop(min(range(len(left)), key=lambda k: abs(left[k] - w)))
    return rows.reshape(values.shape)


def eigenvalues(results, like):
    return [in_the_order_of(results[0], like[0])]


def general(results, like):
    import torch

    values, vectors = results
    whole = torch.linalg.solve(vectors, vectors * values.unsqueeze(-2), left=False)
    return [in_the_order_of(values, like[0]), whole, vectors.norm(dim=-2)]


# Results that are not unique, by the ops that give them, as what is: (results, those of eager).
UNIQUE = {
    "linalg.svd": singular,
    "svd": singular_transposed,
    "linalg.eigh": symmetric,
    "linalg.qr": orthogonal_triangular,
    "qr": orthogonal_triangular,
    "linalg.eig": general,
    "linalg.eigvals": eigenvalues,
}


def unique(op, results, like):
    return UNIQUE[op.name](results, like) if op.name in UNIQUE else results


def is_as_near(op, sample, expected, found, like):
    """Whether the results are at most twice as far from a run in float64 as eager's."""
    import torch

    try:
        inputs, args, kwargs = copied(sample, torch.float64)
        exact = unique(op, flat_tensors(op.get_op()(inputs, *args, **kwargs)), like)
    except Exception:
        return False
    for e, f, x in zip(expected, found, exact):
        if not e.is_floating_point():
            if not torch.equal(e, f):
                return False
            continue
        if e.shape != x.shape or not torch.equal(torch.isfinite(e), torch.isfinite(f)):
            return False
        if not distance(f, x) <= 2 * distance(e, x) + 1e-12:
            return False
    return True


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


def compare(op, sample, dtype, expected, found):
    """What differs, in words, or ""."""
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
            elif op.name not in TIES or not names_equal_elements(sample.input, e, f):
                torch.testing.assert_close(f, e, rtol=0, atol=0)
    except AssertionError as problem:
        if dtype.is_floating_point and is_as_near(op, sample, a, b, like):
            return ""
        return "wrong numbers: " + " ".join(str(problem).split())[:200]
    return ""


def reason_of(problem):
    """A failure as a short text; equal reasons give equal texts."""
    inner = getattr(problem, "inner_exception", None) or problem
    ops = getattr(inner, "ops", None)
    if ops is not None:
        return "missing: " + ", ".join(sorted(op for op, _, _ in ops))
    lines = [line for line in str(inner).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    text = re.sub(r"^node [^(:]*(\([^)]*\))?: ", "", text)
    return f"{type(inner).__name__}: {text[:160]}"


def run_sample(op, sample, dtype, backend):
    import torch

    torch.manual_seed(0)
    inputs, args, kwargs = copied(sample)
    try:
        expected = op.get_op()(inputs, *args, **kwargs)
    except Exception as problem:
        return f"eager: {reason_of(problem)}"
    torch._dynamo.reset()
    function = op.get_op()

    def call(inputs, args, kwargs):
        return function(inputs, *args, **kwargs)

    compiled = torch.compile(call, backend=backend, fullgraph=True)
    torch.manual_seed(0)
    try:
        found = compiled(*copied(sample))
    except Exception as problem:
        return reason_of(problem)
    return compare(op, sample, dtype, expected, found)


def run_pair(ops, task):
    """(samples that were run, reason of the first failure or "")."""
    import torch

    op, dtype = ops[task["op"]], getattr(torch, task["dtype"])
    count = 0
    try:
        samples = op.sample_inputs("cpu", dtype, requires_grad=False)
        for sample in samples:
            count += 1
            reason = run_sample(op, sample, dtype, task["backend"])
            if reason:
                return count, reason
            if not task["full"]:
                break
    except Exception as problem:
        return count, f"samples: {reason_of(problem)}"
    return count, ""


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def work():
    """Nothing but results is written to the real stdout."""
    import logging

    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    ops = {name_of(op): op for op in op_db}
    print("ready", file=results, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.monotonic()
        task["samples"], task["reason"] = run_pair(ops, task)
        task["seconds"] = round(time.monotonic() - start, 2)
        print(json.dumps(task), file=results, flush=True)


# The parent.


class Worker:
    """A process that runs one task at a time, and is replaced when it hangs or dies."""

    def __init__(self):
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.read(300)

    def read(self, seconds):
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            if not ready.select(seconds):
                return None
        return self.process.stdout.readline()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def run(self, task):
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        limit = SECONDS_A_PAIR[task["full"]]
        line = self.read(limit)
        if line:
            return json.loads(line)
        status = "hangs" if line is None else "ends the process"
        self.stop()
        return {**task, "samples": 0, "reason": status, "seconds": limit}


def key_of(task):
    return (task["op"], task["dtype"], task["backend"], task["full"])


def read_store(path):
    rows = {}
    if path.is_file():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[key_of(row)] = row
    return rows


def all_tasks(args):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for backend in args.backends:
        for dtype in args.dtypes:
            for op in op_db:
                if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
                    continue
                if args.only and not re.search(args.only, name_of(op)):
                    continue
                yield {"op": name_of(op), "dtype": dtype, "backend": backend, "full": args.full}


def run_all(tasks, jobs, store):
    pending = queue.SimpleQueue()
    for task in tasks:
        pending.put(task)
    lock = threading.Lock()
    done = [0]

    def serve():
        worker = Worker()
        while True:
            try:
                task = pending.get_nowait()
            except queue.Empty:
                worker.stop()
                return
            row = worker.run(task)
            with lock, store.open("a") as out:
                out.write(json.dumps(row) + "\n")
                done[0] += 1
                if done[0] % 50 == 0 or done[0] == len(tasks):
                    print(f"[op-coverage] {done[0]} of {len(tasks)}", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def report(rows, full):
    """docs/op_coverage.md of these results."""
    import torch

    out = [
        "# Op coverage",
        "",
        f"PyTorch {torch.__version__.split('+')[0]}'s op database through "
        '`torch.compile(fullgraph=True, backend="coil")` on a CPU, forward, '
        f"{'every sample' if full else 'the first sample'} of each (op, dtype) pair, beside "
        '`backend="eager"` in the same harness. Written by `scripts/op_coverage.py`.',
        "",
        "| dtype | pairs | eager passes | coil passes of these | part | missing to 97% |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    failures = []
    for dtype in DTYPES:
        eager = {k[0]: r for k, r in rows.items() if k[1:] == (dtype, "eager", full)}
        coil = {k[0]: r for k, r in rows.items() if k[1:] == (dtype, "coil", full)}
        if not coil:
            continue
        base = [op for op in coil if op in eager and not eager[op]["reason"]]
        good = [op for op in base if not coil[op]["reason"]]
        failures += [(coil[op]["reason"], op, dtype) for op in base if coil[op]["reason"]]
        part = len(good) / max(len(base), 1)
        lacking = max(0, math.ceil(WANTED * len(base)) - len(good))
        out.append(
            f"| {dtype} | {len(coil)} | {len(base)} | {len(good)} | {part:.1%} | {lacking} |"
        )
    out += ["", "## Ops that are missing", "", "| op of ATen | pairs that need it |"]
    out += ["| --- | ---: |"]
    missing = collections.Counter()
    for reason, _, _ in failures:
        if reason.startswith("missing: "):
            missing.update(reason.removeprefix("missing: ").split(", "))
    out += [f"| `{op}` | {count} |" for op, count in sorted(missing.items(), key=rank)]
    out += ["", "## All failures", "", "| reason | pairs | where |", "| --- | ---: | --- |"]
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for reason, op, dtype in failures:
        groups[reason][op].append(dtype)
    for reason, ops in sorted(groups.items(), key=lambda row: (-pairs_of(row[1]), row[0])):
        where = "; ".join(f"{op}: {', '.join(dtypes)}" for op, dtypes in sorted(ops.items()))
        text = reason.replace("|", "\\|")
        out.append(f"| {text} | {pairs_of(ops)} | {where} |")
    return "\n".join(out) + "\n"


def pairs_of(ops):
    return sum(map(len, ops.values()))


def rank(row):
    return -row[1], row[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help="every sample of each pair")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--backends", nargs="+", default=["eager", "coil"])
    parser.add_argument("--only", help="a pattern that names of ops must match")
    parser.add_argument("--again", action="store_true", help="run coil's failures again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--store", type=pathlib.Path, default=ROOT / "build/op_coverage.jsonl")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "docs/op_coverage.md")
    args = parser.parse_args()
    if args.worker:
        return work()
    args.store.parent.mkdir(parents=True, exist_ok=True)
    known = read_store(args.store)
    if args.again:
        known = {k: r for k, r in known.items() if not (k[2] == "coil" and r["reason"])}
    run_all([t for t in all_tasks(args) if key_of(t) not in known], args.jobs, args.store)
    args.report.write_text(report(read_store(args.store), args.full))
    return 0


if __name__ == "__main__":
    sys.exit(main())
