#!/usr/bin/env python3
"""Run time of the rows of bench/rows.py in coil and its peers, side by side, as Markdown tables.

usage: bench/compare.py [--peers eager,inductor,...] [--threads 2] [--rounds 3] [--json FILE] [ROW or GROUP ...]

  eager        the exported program, run by torch as it is
  inductor     torch.compile with default options
  tuned        Inductor with constants frozen and max_autotune
  onnxruntime  ONNX Runtime on the ONNX file that torch.onnx makes of the program; inputs and outputs are bound
  openvino     OpenVINO on the same file, in f32, one stream
  coil         `coil bench`

All have the same file, inputs and number of threads, and OPENBLAS_CORETYPE is unset for all. Each peer of a row
is a process of its own and is prepared alone; then all are timed in turn, --rounds times: a call that is not
counted, then at least 10 calls and --seconds. `median` is the median of the rounds' medians, `min` the fastest
call; ratios are of medians, and of minima in brackets. A peer that is missing, fails or takes longer than
--limit has its reason in place of a time. `error` is the rms error against eager, relative to the rms of
eager's output; a result that is further off than a thousandth is called wrong, and the status is 1.
"""

import argparse
import json
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import peers as one_peer  # noqa: E402

PEERS = [*one_peer.PEERS, "coil"]
SETTLE_S = 0.2  # until the threads of the last one have stopped to spin
WRONG = 1e-3    # an error above that is called wrong


def environment(threads, cache):
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    return env | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "COIL_CACHE_DIR": f"{cache}/coil",
                  "TOKENIZERS_PARALLELISM": "false"}


def reason_of(text, status):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or line.startswith("coil:")]
    ended = f"ended by signal {-status}" if status < 0 else f"exit {status}"
    return (told or lines or [ended])[-1][:200]


class Failed(Exception):
    """A peer has no time for this row; the text says why."""


class Python:
    """A process of bench/peers.py."""

    def __init__(self, peer, model, options, cache):
        env = environment(options.threads, cache) | {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/{peer}"}
        self.log = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(
            [sys.executable, str(HERE / "peers.py"), peer, str(model), "--threads", str(options.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        try:
            self.prepared = self.answer(options.limit)
        except Failed:
            self.close()
            raise

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self, limit):
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            raise Failed(f"more than {limit:.0f} s") from None
        if line is None:
            status = self.child.wait()
            self.log.seek(0)
            raise Failed(reason_of(self.log.read(), status))
        return json.loads(line)

    def round(self, options):
        try:
            self.child.stdin.write(f"{options.seconds}\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # answer() says why
        times = self.answer(options.limit)
        return {"median": statistics.median(times), "min": min(times)}

    def close(self):
        self.child.kill()
        self.child.wait()


class Coil:
    """The command; a round is a process of `coil bench`, which measures in the same way."""

    def __init__(self, _, model, options, cache):
        self.options, self.env, self.model = options, environment(options.threads, cache), model
        self.prepared = {}
        with tempfile.TemporaryDirectory(prefix="coil-compare-") as folder:
            out = pathlib.Path(folder) / "out.npz"
            self.command("run", "--outputs", str(out))
            with one_peer.numpy.load(out) as arrays:
                found = [arrays[name] for name in sorted(arrays.files, key=lambda n: int(n.removeprefix("out")))]
        self.prepared["error"] = one_peer.error(found, one_peer.arrays_of(model.with_suffix(".eager.npz"), "out"))

    def command(self, name, *more):
        inputs = str(self.model.with_suffix(".inputs.npz"))
        line = [str(self.options.coil), name, str(self.model), "--threads", str(self.options.threads), "--inputs", inputs,
                *more]
        for option in self.options.option:
            line += ["-O", option]
        try:
            done = subprocess.run(line, capture_output=True, text=True, env=self.env, timeout=self.options.limit,
                                  check=False)
        except FileNotFoundError:
            raise Failed(f"{self.options.coil} is not there: `make build`") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"more than {self.options.limit:.0f} s") from None
        if done.returncode != 0:
            raise Failed(reason_of(done.stderr, done.returncode))
        return done.stdout

    def round(self, _):
        found = json.loads(self.command("bench", "--json"))
        for key in ("compile_cold_ms", "compile_cached_ms"):
            self.prepared[key] = min(found[key], self.prepared.get(key, found[key]))
        self.prepared["compile_s"] = self.prepared["compile_cold_ms"] / 1000
        self.prepared |= {key: found.get(key) for key in ("kernels", "calls", "bytes_moved", "arena_bytes", "isa")}
        return {"median": found["run_ms"]["median"], "min": found["run_ms"]["min"]}

    def close(self):
        pass


def load_average():
    return round(os.getloadavg()[0], 2)


def measure(name, model, options, cache):
    """{peer: {median, min, error, compile_s, ...} or {reason}} of one row."""
    ready, found, loads = {}, {}, [load_average()]
    try:
        for peer in options.peers:
            note(f"{name}: preparing {peer}")
            try:
                ready[peer] = (Coil if peer == "coil" else Python)(peer, model, options, cache)
                found[peer] = {"rounds": []}
            except Failed as why:
                found[peer] = {"reason": str(why)}
        for number in range(options.rounds):
            note(f"{name}: round {number + 1}")
            for peer in list(ready):
                time.sleep(SETTLE_S)
                try:
                    found[peer]["rounds"].append(ready[peer].round(options))
                except Failed as why:
                    found[peer] = {"reason": str(why)}
                    ready.pop(peer).close()
            loads.append(load_average())
        for peer, process in ready.items():
            rounds = found[peer]["rounds"]
            found[peer] |= process.prepared | {"median": statistics.median(r["median"] for r in rounds),
                                               "min": min(r["min"] for r in rounds)}
    finally:
        for process in ready.values():
            process.close()
    return {"row": name, "load": loads, "peers": found}


def note(text):
    print(f"[{time.strftime('%H:%M:%S')}, load {load_average()}] {text}", file=sys.stderr, flush=True)


def markdown(lines):
    head, *rest = [[str(cell).replace("|", "/") for cell in line] for line in lines]
    marks = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, marks, *rest])


def significant(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def ratio(found, theirs):
    """coil's times over the smallest of the peers named, median and minimum; a wrong result has no time."""
    right = [f for f in (found.get(p, {}) for p in theirs) if "median" in f and f["error"] < WRONG]
    ours = found["coil"]
    if not right or "median" not in ours:
        return "-"
    return " ".join(text.format(ours[key] / min(f[key] for f in right))
                    for key, text in (("median", "{:.2f}"), ("min", "({:.2f})")))


def run_table(results, peers):
    others = [p for p in peers if p != "coil"]
    against = {p: [p] for p in ("inductor", "tuned") if p in peers} | {"best peer": others} if "coil" in peers else {}
    lines = [["ms: median (min)", *peers, *(f"coil / {name}" for name in against), "load"]]
    for result in results:
        found = result["peers"]
        cells = [f"{significant(f['median'])} ({significant(f['min'])})" if "median" in f else "-"
                 for f in (found[p] for p in peers)]
        ratios = [ratio(found, names) for names in against.values()]
        lines.append([result["row"], *cells, *ratios, f"{min(result['load'])}-{max(result['load'])}"])
    return markdown(lines)


def compile_table(results, peers):
    peers = [p for p in peers if p != "eager"]
    heads = [f"{p} (compile_fx_inner)" if p in ("inductor", "tuned") else f"{p} (cached)" if p == "coil" else p
             for p in peers]
    lines = [["s: from a program to a first result", *heads]]
    for result in results:
        cells = []
        for found in (result["peers"][p] for p in peers):
            text = significant(found["compile_s"]) if "compile_s" in found else "-"
            if "compile_fx_inner_s" in found:
                text += f" ({significant(found['compile_fx_inner_s'])})"
            if "compile_cached_ms" in found:
                text += f" ({significant(found['compile_cached_ms'] / 1000)})"
            cells.append(text)
        lines.append([result["row"], *cells])
    return markdown(lines)


def error_table(results, peers):
    lines = [["error against eager", *peers]]
    for result in results:
        cells = [f"{f['error']:.1e}{' WRONG' if not f['error'] < WRONG else ''}" if "error" in f else "-"
                 for f in (result["peers"][p] for p in peers)]
        lines.append([result["row"], *cells])
    return markdown(lines)


def report(machine, results, peers):
    parts = [machine, run_table(results, peers), compile_table(results, peers), error_table(results, peers)]
    reasons = [f"- {r['row']}, {p}: {f['reason']}" for r in results for p, f in r["peers"].items() if "reason" in f]
    return "\n\n".join(parts + (["\n".join(["Not measured:", "", *reasons])] if reasons else []))


def machine_text(options):
    """What the figures depend on, in one line."""
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    versions = subprocess.run([sys.executable, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
                              capture_output=True, text=True, check=False).stdout.split()
    shown = [v.replace("==", " ") for v in versions if v.split("==")[0] in ("torch", "onnxruntime", "openvino")]
    return (f"{model}, {os.cpu_count()} cores, {options.threads} threads, {', '.join(shown)}, "
            f"{time.strftime('%Y-%m-%d %H:%M')}, load {load_average()}, {options.rounds} rounds")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names or groups (kernels, models); those two groups by default")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS, help=",".join(PEERS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of calls in a round")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a peer may take to prepare a row")
    parser.add_argument("--coil", type=pathlib.Path, default=ROOT / "build" / "coil")
    parser.add_argument("-O", dest="option", action="append", default=[], help="an option of coil, key=value")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "bench", help="of the exported rows")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures there, row by row")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the tables there too")
    options = parser.parse_args()
    if unknown := [p for p in options.peers if p not in PEERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return options


def main():
    options = parse()
    import rows  # pylint: disable=import-outside-toplevel

    machine, results = machine_text(options), []
    note(machine)
    with tempfile.TemporaryDirectory(prefix="coil-compare-") as cache:
        for name in rows.chosen(options.rows or ["kernels", "models"]):
            results.append(measure(name, rows.ensure(name, options.folder), options, cache))
            if options.json:
                options.json.write_text(json.dumps({"machine": machine, "rows": results}, indent=1))
    text = report(machine, results, options.peers)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n")
    wrong = [f for r in results for f in r["peers"].values() if not f.get("error", 0) < WRONG]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
