#!/usr/bin/env python3
"""Random programs of ATen ops in eager PyTorch and through coil: on the interpreter, compiled fused and
unfused. A difference is shrunk to a Python script; tests/python/fuzz_*.py say how.

    python scripts/fuzz_graphs.py --count 10000             programs 0 to 9999, on all cores
    python scripts/fuzz_graphs.py --count 10000 --seed 3    others
    python scripts/fuzz_graphs.py --only 4711               one of them, in full

Prints a line a difference, and counts at the end. Results go to --store as they come, a line a batch with the
scripts, and what is there is not run again.
"""

import argparse
import collections
import os
import pathlib
import sys
import time

import worker_pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
SECONDS_A_BATCH = 900
SECONDS_ALONE = 120


# The worker: a task is a batch of programs.


def run_batch(task):
    import fuzz_draw
    import fuzz_run
    from fuzz_program import script
    from fuzz_shrink import shrink

    numbers = task["numbers"]
    programs = [fuzz_draw.draw(f"{task['seed']}.{n}") for n in numbers]
    verdicts = fuzz_run.check_batch(programs, compiles=not task["interp"])
    out = {"ok": 0, "refused": [], "different": [], "ops": collections.Counter()}
    for number, program, verdict in zip(numbers, programs, verdicts):
        out["ops"].update(s.op for s in program.steps)
        if verdict.kind == "ok":
            out["ok"] += 1
        elif verdict.kind == "refused":
            out["refused"].append([number, verdict.detail])
        else:
            small = shrink(program, verdict) if task["shrink"] else program
            out["different"].append([number, verdict.way, verdict.detail, script(small)])
    return with_reason(out)


def with_reason(row):
    return {**row, "reason": f"{len(row['different'])} differ" if row["different"] else ""}


# The parent.


class Worker(worker_pool.Worker):
    """A batch that ends its process is run one by one."""

    def run(self, task, seconds):
        row = super().run(task, seconds)
        if "ok" in row:
            return row
        alone = []
        for number in task["numbers"]:
            alone.append(super().run({**task, "numbers": [number]}, SECONDS_ALONE))
        return joined(row, alone)


def joined(batch, alone):
    """The row of a batch that has none, of those of its programs."""
    out = {**batch, "ok": 0, "refused": [], "different": [], "ops": collections.Counter()}
    for row in alone:
        if "ok" not in row:
            out["different"].append([*row["numbers"], "", f"the program {row['reason']}", ""])
            continue
        for field in ("ok", "refused", "different"):
            out[field] += row[field]
        out["ops"].update(row["ops"])
    if not out["different"]:
        out["different"].append([batch["numbers"][0], "together", f"the batch {batch['reason']}", ""])
        out["ok"] -= 1
    return with_reason(out)


class Pool(worker_pool.Pool):
    worker = Worker

    def keep(self, row):
        super().keep(row)
        tell(row)


def tell(row):
    for number, way, detail, _ in row["different"]:
        print(f"{row['seed']}.{number} {way or 'run'}: {' '.join(detail.split())[:300]}", flush=True)


def summary(rows, seconds):
    ops, refusals = collections.Counter(), collections.Counter()
    ok = refused = different = 0
    for row in rows:
        ops.update(row["ops"])
        ok += row["ok"]
        refused += len(row["refused"])
        different += len(row["different"])
        refusals.update(reason(detail) for _, detail in row["refused"])
    for text, count in refusals.most_common():
        print(f"  refused {count:5}  {text}")
    print(f"{ok + refused + different} programs of {sum(ops.values())} steps, {len(ops)} different ops: {ok} agree, "
          f"{refused} are refused, {different} differ; {seconds:.0f} s")
    return different


def reason(detail):
    """The refusal without names of nodes and numbers."""
    import re

    detail = re.sub(r"^node [^:]*: ", "", detail.splitlines()[0])
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|%\w+|p\d+_\w+", "X", detail))[:150]


def show_one(seed, number):
    import fuzz_draw
    import fuzz_run
    from fuzz_program import Merged, script
    from fuzz_shrink import shrink

    worker_pool.quieten()
    program = fuzz_draw.draw(f"{seed}.{number}")
    print(script(program), flush=True)
    verdict = fuzz_run.check_all_alone(program)
    print(verdict, flush=True)
    if verdict.kind == "different":
        small = shrink(program, verdict)
        print(script(small))
        print(fuzz_run.check_alone(small, verdict.way) if verdict.way in fuzz_run.WAYS else "")
        print(fuzz_run.imported(Merged([small]), fuzz_run.coil.Options()).text())


def chosen_rows(args):
    """Rows of the store that these arguments ask for."""
    wanted = range(args.first, args.first + args.count)
    rows = worker_pool.read_store(args.store, lambda row: (row["seed"], row["interp"], *row["numbers"]))
    return [row for key, row in rows.items() if key[:2] == (args.seed, args.interp) and any(n in wanted for n in key[2:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--store", type=pathlib.Path, default=ROOT / "build" / "fuzz_graphs.jsonl")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--interp", action="store_true", help="the interpreter alone")
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker_pool.serve(run_batch)
    if args.only is not None:
        return show_one(args.seed, args.only)
    start = time.monotonic()
    rows = chosen_rows(args)
    for row in rows:
        tell(row)
    done = {n for row in rows for n in row["numbers"]}
    wanted = [n for n in range(args.first, args.first + args.count) if n not in done]
    tasks = [
        {"seed": args.seed, "numbers": wanted[i : i + args.batch], "shrink": not args.no_shrink, "interp": args.interp}
        for i in range(0, len(wanted), args.batch)]
    Pool([sys.executable, __file__, "--worker"], args.jobs, SECONDS_A_BATCH, args.store).run(tasks)
    rows = chosen_rows(args)
    missing = args.count - sum(n in range(args.first, args.first + args.count) for row in rows for n in row["numbers"])
    if missing:
        print(f"{missing} programs were not run: workers did not start")
    return 1 if summary(rows, time.monotonic() - start) or missing else 0


if __name__ == "__main__":
    sys.exit(main())
