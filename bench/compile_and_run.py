#!/usr/bin/env python3
"""Compile time and run time of whole models, as a table. Figures only: nothing fails on a slow machine.

    bench/compile_and_run.py [--coil build/coil] [--threads 2] [--rounds 3] [--json] [--peer] [MODEL.pt2 ...]

Without models: the fixtures encoder, convnet and mlp, and build/models/*.pt2 where tests/models has
exported some. Times are the best of all rounds, for a machine that others use too; `median` is the smallest
median of a round.

  cold     from the file to something that can be called, without a cache, C++ compiler included
  cached   the same with program and objects in the cache
  process  a whole process of `coil run` with a warm cache: wall time, and processor time in brackets
  median, min  one call
  kernels, templates  launched in one call; `compiled` counts the kernels that differ, those of `init` included
  moved    bytes of all buffers that the steps of a call read or write
  eager    with --peer, where torch can be imported: the exported program under torch's own executor, on the
           same sizes and threads, a round of it after each round of coil; `x` is eager / coil
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures" / "2.15.0"


def default_models():
    models = [FIXTURES / f"{name}.pt2" for name in ("encoder", "convnet", "mlp")]
    return models + sorted((ROOT / "build" / "models").glob("*.pt2"))


class Coil:
    """The command under test, with a cache of its own that starts empty."""

    def __init__(self, command, threads, cache):
        self.command = str(command)
        self.options = ["--threads", str(threads)]
        self.env = dict(os.environ, COIL_CACHE_DIR=cache)

    def bench(self, model):
        done = subprocess.run([self.command, "bench", str(model), "--json", *self.options], env=self.env,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"exit {done.returncode}")
        return json.loads(done.stdout)

    def process(self, model):
        """(wall, processor) milliseconds of one whole `coil run`."""
        start = time.perf_counter()
        child = subprocess.Popen([self.command, "run", str(model), *self.options], env=self.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"coil run: exit {child.returncode}")
        return 1000 * wall, 1000 * (used.ru_utime + used.ru_stime)


class Eager:
    """The exported program under torch's own executor."""

    def __init__(self, torch, model, threads):
        torch.set_num_threads(threads)
        program = torch.export.load(str(model))
        self.torch = torch
        self.module = program.module()
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        flat = [self.example(values[name]) for name in program.graph_signature.user_inputs]
        tree = torch.utils._pytree  # pylint: disable=protected-access
        self.args, self.kwargs = tree.tree_unflatten(flat, program.call_spec.in_spec)

    def example(self, value):
        """Something of the type that the file states; a symbolic size is the one that was exported."""
        if not isinstance(value, self.torch.Tensor):
            return value if isinstance(value, (int, float, str, type(None))) else value.node.hint
        shape = [size if isinstance(size, int) else size.node.hint for size in value.shape]
        if value.dtype.is_floating_point or value.dtype.is_complex:
            return self.torch.randn(shape).to(value.dtype)
        return self.torch.randint(0, 2, shape).to(value.dtype)

    def median(self):
        with self.torch.no_grad():
            self.module(*self.args, **self.kwargs)
            times, start = [], time.perf_counter()
            while len(times) < 10 or (time.perf_counter() - start < 0.3 and len(times) < 1000):
                one = time.perf_counter()
                self.module(*self.args, **self.kwargs)
                times.append(1000 * (time.perf_counter() - one))
        return sorted(times)[len(times) // 2]


def measure(coil, model, rounds, eager):
    benches, processes, peers = [], [], []
    for _ in range(rounds):
        benches.append(coil.bench(model))
        processes.append(coil.process(model))
        if eager is not None:
            peers.append(eager.median())
    row = {
        "model": model.stem,
        "cold_ms": min(b["compile_cold_ms"] for b in benches),
        "cached_ms": min(b["compile_cached_ms"] for b in benches),
        "process_ms": min(p[0] for p in processes),
        "process_cpu_ms": min(p[1] for p in processes),
        "median_ms": min(b["run_ms"]["median"] for b in benches),
        "min_ms": min(b["run_ms"]["min"] for b in benches),
    }
    for key in ("kernels", "unique_kernels", "calls", "arena_bytes", "bytes_moved", "isa"):
        row[key] = benches[0].get(key)
    if peers:
        row["eager_ms"] = min(peers)
        row["ratio"] = min(peers) / row["median_ms"]
    return row


def text_of(ms):
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms" if ms >= 1 else f"{1000 * ms:.0f} us"


def table(rows, with_peer):
    head = ["model", "cold", "cached", "process", "median", "min", "kernels", "compiled", "templates", "arena", "moved"]
    lines = [head + (["eager", "x"] if with_peer else [])]
    for row in rows:
        line = [row["model"], text_of(row["cold_ms"]), text_of(row["cached_ms"]),
                f"{text_of(row['process_ms'])} ({text_of(row['process_cpu_ms'])})", text_of(row["median_ms"]),
                text_of(row["min_ms"]), str(row["kernels"]), str(row["unique_kernels"]), str(row["calls"]),
                f"{row['arena_bytes']:,} B", f"{row['bytes_moved']:,} B"]
        if with_peer:
            line += [text_of(row["eager_ms"]), f"{row['ratio']:.2f}"] if "ratio" in row else ["-", "-"]
        lines.append(line)
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        cells = [cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths))]
        print("  ".join(cells))


def import_torch():
    try:
        import torch  # pylint: disable=import-outside-toplevel
        return torch
    except ImportError:
        sys.exit("--peer needs torch: run this with .venv/bin/python, which `make test-torch` makes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--coil", type=pathlib.Path, default=ROOT / "build" / "coil")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--peer", action="store_true", help="time torch beside it")
    arguments = parser.parse_args()
    torch = import_torch() if arguments.peer else None
    rows, failures = [], 0
    with tempfile.TemporaryDirectory(prefix="coil-bench-") as cache:
        coil = Coil(arguments.coil, arguments.threads, cache)
        for model in arguments.models or default_models():
            try:
                eager = Eager(torch, model, arguments.threads) if torch else None
                rows.append(measure(coil, model, arguments.rounds, eager))
            except (RuntimeError, OSError) as problem:
                print(f"{model}: {problem}", file=sys.stderr)
                failures += 1
    if arguments.json:
        print(json.dumps(rows, indent=2))
    elif rows:
        print(f"isa {rows[0]['isa']}, {arguments.threads} threads, best of {arguments.rounds} rounds")
        table(rows, arguments.peer)
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
