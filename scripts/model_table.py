#!/usr/bin/env python3
"""Models of torchvision, timm and transformers through torch.compile(backend="coil"): docs/models.md.

Each model, with random weights, gives for one input its outputs in eager float32, by coil, and in float64; coil's
are to be at most twice as far from float64 as eager's. Results are kept in --store, so that a run that was
stopped goes on where it was. Needs the package coil, torchvision, timm and transformers.

    python scripts/model_table.py                        what is not in the store yet
    python scripts/model_table.py --only 'hf\\.' --again  failures of these once more
"""

import sys

import worker_pool
from nearness import distance, reason_of

SECONDS_A_MODEL = 600
FACTOR, SLACK = 2.0, 1e-6


def double(value):
    return value.double() if value.is_floating_point() else value


def run_in_double(model, words):
    """The outputs in float64. What the model makes itself on the way takes the default dtype."""
    import torch

    import model_zoo

    exact, words = model_zoo.in_double(model), {k: double(v) for k, v in words.items()}
    torch.set_default_dtype(torch.float64)
    try:
        return exact(**words)
    finally:
        torch.set_default_dtype(torch.float32)


def judge(found, eager, exact):
    """The row's fields for outputs in three ways: the worst output's distances, relative to its size."""
    import torch

    if [(t.shape, t.dtype) for t in found] != [(t.shape, t.dtype) for t in eager]:
        return {"reason": "another shape or dtype"}
    worst = (-1.0, 0.0, 0.0)
    for f, e, x in zip(found, eager, exact, strict=True):
        if not f.is_floating_point():
            if not torch.equal(f, e):
                return {"reason": "integers differ"}
            continue
        size = distance(x, torch.zeros_like(x))
        if not (size > 0 and torch.isfinite(x).all()):
            return {"reason": "torch's own output is zero or not finite"}
        if not torch.isfinite(f).all():
            return {"reason": "an output is not finite"}
        ours, theirs = distance(f, x), distance(e, x)
        worst = max(worst, (ours / (FACTOR * theirs + SLACK * size), theirs / size, ours / size))
    share, theirs, ours = worst
    reason = "" if share <= 1 else f"{ours:.1e} from float64, eager {theirs:.1e}"
    return {"reason": reason, "eager": theirs, "coil": ours}


def run_model(task):
    """One model; how it fails is a result too."""
    import torch

    import model_zoo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    try:
        model, words = model_zoo.build(task["model"]), model_zoo.inputs(task["model"])
        with torch.no_grad():
            eager = model(**words)
            exact = run_in_double(model, words)
    except Exception as problem:
        return {"reason": f"eager: {reason_of(problem)}", "graphs": 0}
    try:
        with torch.no_grad():
            found = torch.compile(model, backend="coil")(**words)
    except Exception as problem:
        return {"reason": reason_of(problem), "graphs": 0}
    return {**judge(found, eager, exact), "graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"]}


def cell(row, key):
    return f"{row[key]:.1e}" if key in row else ""


def report(rows):
    import timm
    import torch
    import torchvision
    import transformers

    versions = [f"{m.__name__} {m.__version__.split('+')[0]}" for m in (torch, torchvision, timm, transformers)]
    run = [r for r in rows.values() if not r["reason"].startswith("eager: ")]
    good = sum(not r["reason"] for r in run)
    out = [
        "# Models",
        "",
        f'{", ".join(versions)}; eval mode, float32, random weights, `torch.compile(backend="coil")` on a CPU. A '
        "model passes if each output is at most twice as far from float64 as eager's (rms, plus 1e-6 of its size). "
        "Distances are those of the worst output, relative to its size. Transformers have two layers of width 64; "
        "deep models of timm are made shallower (`scripts/model_zoo.py`). Written by `scripts/model_table.py`.",
        "",
        f"{good} of the {len(run)} that torch itself runs pass.",
        "",
        "| model | graphs | eager | coil | coil / eager | result |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, row in sorted(rows.items()):
        ratio = f"{row['coil'] / row['eager']:.2f}" if row.get("eager") else ""
        reason = row["reason"].replace("|", "\\|") or "ok"
        out.append(f"| {name} | {row.get('graphs', 0)} | {cell(row, 'eager')} | {cell(row, 'coil')} | {ratio} | {reason} |")
    return "\n".join(out) + "\n"


def main():
    table = worker_pool.Table("models", __doc__, ("model",))
    if table.args.worker:
        return worker_pool.serve(run_model)
    import model_zoo

    names = model_zoo.names()
    rows = table.run([{"model": name} for name in names], SECONDS_A_MODEL)
    table.args.report.write_text(report({name: row for (name,), row in rows.items() if name in names}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
