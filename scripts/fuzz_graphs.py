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
import json
import os
import pathlib
import queue
import sys
import threading
import time

import worker_pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
SECONDS_A_BATCH = 900
SECONDS_ALONE = 120


# The worker: reads a task a line, writes a result a line.


def quiet():
    import logging
    import warnings

    import torch

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def run_task(task, report):
    import fuzz_draw
    import fuzz_run
    from fuzz_program import script
    from fuzz_shrink import shrink

    numbers = task["numbers"]
    programs = [fuzz_draw.draw(f"{task['seed']}.{n}") for n in numbers]
    verdicts = fuzz_run.check_batch(programs, lambda i: report(None if i is None else numbers[i]), not task["interp"])
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
    return out


def work():
    """Nothing but results is written to the real stdout."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    quiet()

    def write(row):
        print(json.dumps(row), file=results, flush=True)

    print("ready", file=results, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.monotonic()
        row = run_task(task, lambda n: write({"at": n}))
        write({**task, **row, "seconds": round(time.monotonic() - start, 2)})


# The parent.


class Worker(worker_pool.Worker):
    """One whose tasks are batches of programs: it says at which it is, so that one that hangs is known."""

    def __init__(self, cores):
        super().__init__([sys.executable, __file__, "--worker", ",".join(map(str, cores))])

    def run(self, task):
        """The result, or (why there is none, at which program)."""
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        at = None
        seconds = SECONDS_A_BATCH if len(task["numbers"]) > 1 else SECONDS_ALONE
        while True:
            line = self.read(seconds)
            if not line:
                self.stop()
                return None, ("hangs" if line is None else "ends the process"), at
            row = json.loads(line)
            if "at" not in row:
                return row, "", None
            at = row["at"]

    def run_safely(self, task):
        """A batch that ends its worker is run one by one."""
        row, batch_why, at = self.run(task)
        if row is not None:
            return row
        out = {**task, "ok": 0, "refused": [], "different": [], "ops": {}, "seconds": 0.0}
        for number in task["numbers"]:
            one, why, _ = self.run({**task, "numbers": [number]})
            if one is None:
                out["different"].append([number, "", f"the program {why}", ""])
                continue
            out["ok"] += one["ok"]
            out["refused"] += one["refused"]
            out["different"] += one["different"]
            out["seconds"] += one["seconds"]
            for op, count in one["ops"].items():
                out["ops"][op] = out["ops"].get(op, 0) + count
        if not out["different"]:
            out["different"].append([task["numbers"][0] if at is None else at, "together", f"the batch {batch_why}", ""])
            out["ok"] -= 1
        return out


def run_all(tasks, jobs, store):
    pending = queue.SimpleQueue()
    for task in tasks:
        pending.put(task)
    lock = threading.Lock()

    def serve(cores):
        worker = Worker(cores)
        while True:
            try:
                task = pending.get_nowait()
            except queue.Empty:
                worker.stop()
                return
            row = worker.run_safely(task)
            with lock, store.open("a") as out:
                out.write(json.dumps(row) + "\n")
            tell(row)

    threads = [threading.Thread(target=serve, args=(share(i, jobs),)) for i in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def share(i, jobs):
    """The cores of one worker and the compilers that it starts."""
    cores = sorted(os.sched_getaffinity(0))
    first = i * len(cores) // jobs
    return cores[first : max((i + 1) * len(cores) // jobs, first + 1)]


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

    quiet()
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
    lines = args.store.read_text().splitlines() if args.store.is_file() else []
    wanted = range(args.first, args.first + args.count)
    rows = [json.loads(line) for line in lines]
    return [
        row for row in rows
        if (row["seed"], row["interp"]) == (args.seed, args.interp) and any(n in wanted for n in row["numbers"])]


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
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        os.sched_setaffinity(0, map(int, args.worker.split(",")))
        return work()
    if args.only is not None:
        return show_one(args.seed, args.only)
    start = time.monotonic()
    args.store.parent.mkdir(parents=True, exist_ok=True)
    rows = chosen_rows(args)
    for row in rows:
        tell(row)
    done = {n for row in rows for n in row["numbers"]}
    wanted = [n for n in range(args.first, args.first + args.count) if n not in done]
    tasks = [
        {"seed": args.seed, "numbers": wanted[i : i + args.batch], "shrink": not args.no_shrink, "interp": args.interp}
        for i in range(0, len(wanted), args.batch)]
    run_all(tasks, args.jobs, args.store)
    rows = chosen_rows(args)
    missing = args.count - sum(n in range(args.first, args.first + args.count) for row in rows for n in row["numbers"])
    if missing:
        print(f"{missing} programs were not run: workers did not start")
    return 1 if summary(rows, time.monotonic() - start) or missing else 0


if __name__ == "__main__":
    sys.exit(main())
