#!/usr/bin/env python3
"""PyTorch's own example programs, higher-order ops, modules and optimizers through torch.compile, and cases of
mutation and aliasing: docs/outside_suites.md.

Each case runs with backend "eager", which says what the harness and Dynamo can do at all, and with coil; both are
compared with the program itself. Results are kept in --store, so that a run that was stopped goes on where it was.
Needs the package coil, and expecttest for torch's samples.

    python scripts/outside_suites.py                             what is not in the store yet
    python scripts/outside_suites.py --only '^modules' --again   failures of these once more
"""

import collections
import sys

import worker_pool
from outside_explanations import explanation

SECONDS_A_CASE = 600
TITLES = {
    "export": "torch/_export/db: programs with one feature of the language each",
    "hops": "hop_db: higher-order ops, forward",
    "hops backward": "hop_db: higher-order ops, results and gradients",
    "modules eval": "module_db: modules in eval mode, all inputs in float32",
    "modules train": "module_db: modules in train mode, results, gradients and buffers",
    "optimizers": "optim_db: three compiled steps, each set of arguments",
    "aliasing": "mutation and aliasing, `tests/python/alias_cases.py`",
}


def names_of(suite):
    import suites

    return suites.SUITES[suite].names()


def run_case(task):
    import torch

    import suites
    from nearness import reason_of

    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(allow_rnn=True):
        try:
            reason = suites.SUITES[task["suite"]].run(task["case"], task["backend"])
        except suites.EagerFails as problem:
            reason = f"eager: {problem}"
        except Exception as problem:
            reason = reason_of(problem)
    return {"reason": reason}


def report(rows):
    import torch

    out = [
        "# Outside suites",
        "",
        f"PyTorch {torch.__version__.split('+')[0]}'s own collections through `torch.compile(backend=\"coil\")` on a CPU. "
        'A case counts if `backend="eager"` passes in the same harness. Results of float dtypes are within the '
        "tolerances of `torch.testing`, or at most twice as far from float64 as eager's. Written by "
        "`scripts/outside_suites.py`.",
        "",
        "| suite | cases | eager passes | coil passes of these | part |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    failures = collections.defaultdict(list)
    for suite, title in TITLES.items():
        eager, coil = ({k[1]: r for k, r in rows.items() if (k[0], k[2]) == (suite, b)} for b in ("eager", "coil"))
        base = [name for name in coil if name in eager and not eager[name]["reason"]]
        bad = [name for name in base if coil[name]["reason"]]
        for name in bad:
            failures[coil[name]["reason"]].append(f"{suite} {name}")
        part = f"{1 - len(bad) / len(base):.1%}" if base else ""
        out.append(f"| {title} | {len(coil)} | {len(base)} | {len(base) - len(bad)} | {part} |")
    out += ["", "## Failures", ""]
    for reason, cases in sorted(failures.items(), key=lambda row: (-len(row[1]), row[0])):
        out += [f"- {reason}: {', '.join(sorted(cases))}", f"  {explanation(reason, cases)}"]
    if not failures:
        out.append("None.")
    return "\n".join(out) + "\n"


def main():
    table = worker_pool.Table("outside_suites", __doc__, ("suite", "case", "backend"))
    if table.args.worker:
        return worker_pool.serve(run_case)
    tasks = (
        {"suite": suite, "case": name, "backend": backend}
        for suite in TITLES for backend in ("eager", "coil") for name in names_of(suite))
    table.args.report.write_text(report(table.run(tasks, SECONDS_A_CASE)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
