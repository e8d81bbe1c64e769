"""Tasks that run in worker processes, each result kept in a file at once.

A task is a flat dict. Its result is a row: the task and what the worker adds, with `reason` empty where it
passed. A run that was stopped goes on where it was; a worker that hangs or dies costs its own task alone.
"""

import argparse
import json
import logging
import os
import pathlib
import queue
import re
import selectors
import subprocess
import sys
import threading
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
START_S = 300


class Table:
    """A script that keeps rows in build/NAME.jsonl, and writes docs/NAME.md of them. A task is known by its
    values of the fields `key`."""

    def __init__(self, name, doc, key):
        self.key = key
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
        parser.add_argument("--only", default="", help=f"a pattern that '{' '.join(key).upper()}' must match")
        parser.add_argument("--again", action="store_true", help="run failures again")
        parser.add_argument("--jobs", type=int, default=os.cpu_count())
        parser.add_argument("--store", type=pathlib.Path, default=ROOT / f"build/{name}.jsonl")
        parser.add_argument("--report", type=pathlib.Path, default=ROOT / f"docs/{name}.md")
        self.args = parser.parse_args()

    def key_of(self, row):
        return tuple(row[field] for field in self.key)

    def rows(self):
        return read_store(self.args.store, self.key_of)

    def wanted(self, tasks):
        """Those that the options ask for, and whose rows are not there."""
        known = {k for k, row in self.rows().items() if not (self.args.again and row["reason"])}
        tasks = [t for t in tasks if re.search(self.args.only, " ".join(self.key_of(t)))]
        return [t for t in tasks if self.key_of(t) not in known]

    def run(self, tasks, seconds):
        """Runs what is wanted, each with this limit; all rows by key."""
        command = [sys.executable, sys.argv[0], "--worker"]
        Pool(command, self.args.jobs, seconds, self.args.store).run(self.wanted(tasks))
        return self.rows()


def quieten():
    """Of this process: errors alone are said, by one thread."""
    import torch

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def serve(run):
    """The worker: reads a task a line and writes a row a line. `run(task)` gives the result's fields.
    Nothing but rows is written to the real stdout."""
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    quieten()
    print("ready", file=rows, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.monotonic()
        row = {**task, **run(task), "seconds": round(time.monotonic() - start, 2)}
        print(json.dumps(row), file=rows, flush=True)


class Worker:
    """A process that runs one task at a time, and is replaced when it hangs or dies. It and the compilers that it
    starts have these cores."""

    def __init__(self, command, cores):
        self.command, self.cores, self.process, self.unread = command, cores, None, b""

    def start(self):
        self.unread = b""
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        os.sched_setaffinity(self.process.pid, self.cores)
        if self.read(START_S) != "ready\n":
            raise RuntimeError(f"a worker did not start: {' '.join(self.command)}")

    def read(self, seconds):
        """The next line: empty where the process has ended, None where none comes in time."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.unread:
                if not ready.select(max(deadline - time.monotonic(), 0)):
                    return None
                # What has come is read whole: a line left in a buffer would not wake the selector.
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part:
                    return ""
                self.unread += part
        line, _, self.unread = self.unread.partition(b"\n")
        return line.decode() + "\n"

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def run(self, task, seconds):
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.read(seconds)
        if line:
            return json.loads(line)
        status = "hangs" if line is None else "ends the process"
        self.stop()
        return {**task, "reason": status, "seconds": seconds}


def read_store(path, key_of):
    """Rows by key; a later row replaces an earlier one."""
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {key_of(row): row for row in rows}


def share_of_cores(i, jobs):
    cores = sorted(os.sched_getaffinity(0))
    first = i * len(cores) // jobs
    return cores[first : max((i + 1) * len(cores) // jobs, first + 1)]


class Pool:
    """`jobs` workers of this command line, a limit of seconds for a task, and the file of rows."""

    worker = Worker

    def __init__(self, command, jobs, seconds, store):
        self.command, self.jobs, self.seconds, self.store = command, jobs, seconds, store
        self.lock = threading.Lock()
        self.pending, self.total, self.done, self.failures = queue.SimpleQueue(), 0, 0, 0

    def run(self, tasks):
        """Runs them all, and says twenty times how far it is."""
        self.store.parent.mkdir(parents=True, exist_ok=True)
        self.total, self.done, self.failures = len(tasks), 0, 0
        for task in tasks:
            self.pending.put(task)
        threads = [threading.Thread(target=self.work, args=(share_of_cores(i, self.jobs),)) for i in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work(self, cores):
        worker = self.worker(self.command, cores)
        while True:
            try:
                task = self.pending.get_nowait()
            except queue.Empty:
                worker.stop()
                return
            row = worker.run(task, self.seconds)
            with self.lock:
                self.keep(row)

    def keep(self, row):
        with self.store.open("a") as out:
            out.write(json.dumps(row) + "\n")
        self.done += 1
        self.failures += bool(row["reason"])
        if self.done * 20 // self.total != (self.done - 1) * 20 // self.total:
            text = f"{self.done} of {self.total}, {self.failures} failed"
            print(f"[{self.store.stem}] {text}", file=sys.stderr, flush=True)
