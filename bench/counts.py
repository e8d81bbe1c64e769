#!/usr/bin/env python3
"""How many kernels a call launches and how many bytes they move: Inductor's and coil's, as a Markdown table.

usage: bench/counts.py [--coil build/coil] [--folder build/bench] [--json FILE] [ROW or GROUP ...]

Both compile the same exported program with default options for inference (torch.no_grad).

  kernels    Inductor: the outermost parallel loop nests in the `cpp_fused_*` functions that its wrapper calls,
             each call counted; loops that it runs on one thread between them stand behind a plus and are not
             part of the sum. coil: the kernels of the executed plan.
  calls      Inductor: the library calls of its wrapper (extern_kernels.*, torch.ops.*). coil: template and
             library calls of the executed plan.
  bytes      each distinct buffer that a kernel or call reads or writes, once for each of them. Inductor:
             `metrics.num_bytes_accessed` with the log artifact `inductor_metrics` on. coil: `coil bench`.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_ROWS = ["softmax_4k_1k", "layernorm_add", "gelu_chain", "transpose_add", "colsum", "maxpool", "linear_gelu",
                "cross_entropy", "attention", "parts", "resnet18", "mobilenet_v3_small", "minilm", "gpt2"]
TIMEOUT_S = 900

# What a wrapper calls that is neither a kernel nor a library: memory, views and checks.
FREE = re.compile(r"empty_strided\w*|reinterpret_tensor\w*|assert_\w+|args\.clear|call|Runner|alloc_\w+|as_strided|"
                  r"(\w+\.)?(item|size|stride)|rand_strided")
LOOP = re.compile(r"\s*for ?\(int64_t x\d+\s*=")


def loop_nests(source):
    """(parallel, serial): the outermost loops over a range in the C++ text of one `cpp_fused_*` function.

    Serial are those that one thread runs while others wait (`omp single`); a function without threads is too
    small for them, and its loops count as parallel.
    """
    nests, serial, depth, inside, single = 0, 0, 0, None, None  # inside, single: the depth where each began
    for line in source.splitlines():
        if "#pragma omp single" in line:
            single = depth
        if inside is None and LOOP.match(line):
            nests += single is None
            serial += single is not None
            inside = depth
        before = depth
        depth += line.count("{") - line.count("}")
        closed = depth < before
        if inside is not None and depth <= inside and (closed or line.rstrip().endswith(";")):
            inside = None
        if single is not None and depth <= single and closed:
            single = None
    return nests, serial


def wrapper_counts(code):
    """([(kernel, parallel nests, serial nests)], [library call]), both in order, of the text of an Inductor wrapper."""
    nests = {name: loop_nests(text) for name, text in
             re.findall(r"^(cpp_fused_\w+) = async_compile\.cpp_pybinding\(\[.*?\], r?'''(.*?)'''", code, re.S | re.M)}
    body = code[code.index("def call("):]
    body = body[:body.index("\nrunner =")] if "\nrunner =" in body else body[:body.index("\ndef ")]
    kernels, libraries = [], []
    for line in body.splitlines():
        match = re.match(r"\s+(?:[\w, \[\]]+ = )?([A-Za-z_][\w.]*)\(", line)
        if not match or line.lstrip().startswith(("def ", "#")) or FREE.fullmatch(match[1]):
            continue
        if match[1] in nests:
            kernels.append((match[1], *nests[match[1]]))
        else:
            libraries.append(match[1])
    return kernels, libraries


def inductor(name, folder):
    """Compiles the row with Inductor in this process; what it made of it."""
    import torch
    from torch._inductor import config, metrics
    from torch._inductor.utils import run_and_get_code

    import peers
    import rows

    config.force_disable_caches = True  # a cached graph is not counted
    torch._logging.set_logs(inductor_metrics=True)  # pylint: disable=protected-access
    program = torch.export.load(rows.ensure(name, folder)).module()
    inputs = [torch.from_numpy(a) for a in peers.arrays_of(folder / f"{name}.inputs.npz", "in")]
    with torch.no_grad():
        _, codes = run_and_get_code(torch.compile(program), *inputs)
    kernels, libraries = [], []
    for code in codes:
        if "async_compile" not in code and "def call(" not in code:
            raise RuntimeError("no wrapper in Python: is cpp_wrapper on?")
        more = wrapper_counts(code)
        kernels += more[0]
        libraries += more[1]
    return {"kernels": sum(k[1] for k in kernels), "serial": sum(k[2] for k in kernels), "calls": len(libraries),
            "bytes": metrics.num_bytes_accessed, "graphs": len(codes), "kernel_names": kernels, "call_names": libraries}


def in_process(name, folder):
    """inductor() in a process of its own; {"reason": ...} where it fails."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, __file__, "--folder", str(folder), "--one", out.name, name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return {"reason": f"more than {TIMEOUT_S} s"}
        if done.returncode != 0:
            return {"reason": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
        return json.loads(pathlib.Path(out.name).read_text())


def coil(command, name, folder):
    with tempfile.TemporaryDirectory(prefix="coil-counts-") as cache:
        done = subprocess.run([str(command), "bench", str(folder / f"{name}.pt2"), "--json", "--inputs",
                               str(folder / f"{name}.inputs.npz")], capture_output=True, text=True, check=False,
                              env=dict(os.environ, COIL_CACHE_DIR=cache))
    if done.returncode != 0:
        return {"reason": done.stderr.strip().splitlines()[0]}
    found = json.loads(done.stdout)
    return {"kernels": found["kernels"], "calls": found["calls"], "bytes": found["bytes_moved"],
            "different": found["unique_kernels"], "recomputed": found["recomputed_operations"]}


def cells(found):
    if found is None:
        return ["-"] * 4
    if "reason" in found:
        return [found["reason"].replace("|", "/")[:60], "", "", ""]
    serial = f" (+{found['serial']})" if found.get("serial") else ""
    return [f"{found['kernels']}{serial}", str(found["calls"]), str(found["kernels"] + found["calls"]),
            f"{found['bytes'] / 1e6:,.2f}"]


def verdict(row):
    """Whether coil launches and moves no more than Inductor."""
    ours, theirs = row["coil"], row["inductor"]
    if ours is None or "reason" in ours or "reason" in theirs:
        return "?"
    steps = ours["kernels"] + ours["calls"] <= theirs["kernels"] + theirs["calls"]
    return {(True, True): "yes", (True, False): "more bytes", (False, True): "more kernels",
            (False, False): "more of both"}[steps, ours["bytes"] <= theirs["bytes"]]


def table(rows):
    head = ["row", "Inductor kernels", "calls", "sum", "MB", "coil kernels", "calls", "sum", "MB", "no more"]
    lines = [head, ["---"] + ["---:"] * 8 + ["---"]]
    lines += [[row["row"], *cells(row["inductor"]), *cells(row["coil"]), verdict(row)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--coil", type=pathlib.Path, default=ROOT / "build" / "coil", help="'' for Inductor alone")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--json", type=pathlib.Path, help="write everything there, names of kernels included")
    parser.add_argument("--inductor", type=pathlib.Path, help="take Inductor's side from this file of --json")
    parser.add_argument("--one", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        arguments.one.write_text(json.dumps(inductor(arguments.rows[0], arguments.folder)))
        return
    import rows as bench_rows

    known = {}
    if arguments.inductor:
        known = {row["row"]: row["inductor"] for row in json.loads(arguments.inductor.read_text())}
    found = []
    for name in bench_rows.chosen(arguments.rows or DEFAULT_ROWS):
        bench_rows.ensure(name, arguments.folder)
        found.append({"row": name, "inductor": known.get(name) or in_process(name, arguments.folder),
                      "coil": coil(arguments.coil, name, arguments.folder) if arguments.coil.is_file() else None})
        print(f"{name} done", file=sys.stderr, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
