#!/usr/bin/env python3
"""Compile time and peak memory through torch.compile: coil beside Inductor and a backend that does nothing.

usage: bench/compile_time_torch.py [--models bert_base,resnet18] [--modes inference,training] [--rounds 3] [--json FILE]
       bench/compile_time_torch.py --models mlp --rounds 1       whether it works

Each measurement is a process of its own, with empty caches of its own.

  cold    from torch.compile(...) to the first result, the imports of the backend and of Dynamo counted, torch's own
          and the model's not: they are there in every program
  cached  the same in a second process that finds the caches of the first
  warm    once more in a process that compiled another model before: nothing is imported, the caches are empty
  bar     in coil's rows: warm of the backend that does nothing, and a tenth of what Inductor's compile_fx_inner takes
          there; what coil's warm is to keep below
  step    resident memory at the most during the third step of training, beyond what was resident before it
  process the same, and with all that was resident before it

The backend that does nothing runs AOT Autograd with coil's partitioner and no decompositions, and gives back the
graph as it is: what is left when it is taken away is the backend's own time.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BACKENDS = ("coil", "inductor", "nothing")
STATES = ("cold", "cached", "warm")


# The child: one measurement.


def bert(layers, size, tokens):
    import torch
    import transformers

    config = transformers.BertConfig(
        num_hidden_layers=layers, hidden_size=size, num_attention_heads=max(1, size // 64), intermediate_size=4 * size,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return transformers.BertModel(config), (torch.randint(0, 30000, (1, tokens)),), lambda result: result[0]


def resnet18():
    import torch
    import torchvision

    return torchvision.models.resnet18(), (torch.randn(1, 3, 224, 224),), lambda result: result


def mlp():
    import torch
    from torch import nn

    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)), (torch.randn(4, 64),), lambda result: result


MODELS = {"bert_base": lambda: bert(12, 768, 128), "bert_small": lambda: bert(2, 128, 32), "resnet18": resnet18, "mlp": mlp}


def do_nothing(gm, inputs):
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    def compiler(module, _):
        return make_boxed_func(module.forward)

    return aot_autograd(
        fw_compiler=compiler, partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True,
    )(gm, inputs)


def first_call(model, args, pick, task):
    """Seconds from torch.compile to the first result or gradient, and the step once more."""
    import torch

    start = time.perf_counter()
    backend = do_nothing if task["backend"] == "nothing" else task["backend"]
    run = torch.compile(model, backend=backend)

    def step():
        if task["mode"] == "inference":
            with torch.no_grad():
                return pick(run(*args))
        model.zero_grad()
        pick(run(*args)).square().mean().backward()

    step()
    return time.perf_counter() - start, step


def status_kb(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}")


def peak_mb(step):
    """(beyond what was resident, in all) at the most during one step."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier steps and the compilation freed is not resident
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the mark of the most starts anew
    before = status_kb("VmRSS")
    step()
    return (status_kb("VmHWM") - before) / 1024, status_kb("VmHWM") / 1024


def inner_seconds():
    """What Inductor's compile_fx_inner has taken in this process, forward and backward."""
    from torch._dynamo.utils import compile_times

    times = dict(zip(*compile_times(repr="csv", aggregate=True)))
    return sum(float(t) for name, t in times.items() if name.split(".")[-1] == "compile_fx_inner")


def child(task):
    import torch

    torch.manual_seed(0)
    if task["state"] == "warm":
        first_call(*MODELS["mlp"](), task)
        torch._dynamo.reset()
    model, args, pick = MODELS[task["model"]]()
    model.train(task["mode"] == "training")
    before = inner_seconds() if task["state"] == "warm" else 0.0
    seconds, step = first_call(model, args, pick, task)
    row = {**task, "seconds": seconds, "inner": inner_seconds() - before}
    if task["mode"] == "training":
        step()
        row["step_mb"], row["process_mb"] = peak_mb(step)
    print(json.dumps(row))


# The parent.


def measure(task, folder):
    caches = {
        "COIL_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder, "CCACHE_DISABLE": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(task)], capture_output=True, text=True, timeout=3600,
        env={**os.environ, **caches})
    if done.returncode:
        raise RuntimeError(f"{task}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure_round(model, mode):
    """Rows of all backends and states, backends in turn."""
    rows = []
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for state in STATES:
                task = {"model": model, "mode": mode, "backend": backend, "state": state}
                rows.append(measure(task, other if state == "warm" else one))
    return rows


def middle(rows, key, **wanted):
    """The median of the rows that have these values, or None."""
    values = [r[key] for r in rows if key in r and wanted.items() <= r.items()]
    return statistics.median(values) if values else None


def table(rows):
    out = [
        "| model | mode | backend | cold, s | cached, s | warm, s | bar, s | step, MB | process, MB |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for model, mode, backend in dict.fromkeys((r["model"], r["mode"], r["backend"]) for r in rows):
        here = {"model": model, "mode": mode}
        seconds = [middle(rows, "seconds", **here, backend=backend, state=state) for state in STATES]
        bar = None
        if backend == "coil":
            bar = middle(rows, "seconds", **here, backend="nothing", state="warm")
            bar += middle(rows, "inner", **here, backend="inductor", state="warm") / 10
        memory = [middle(rows, key, **here, backend=backend, state="cached") for key in ("step_mb", "process_mb")]
        cells = ["" if s is None else f"{s:.2f}" for s in (*seconds, bar)] + ["" if m is None else f"{m:.0f}" for m in memory]
        out.append("| " + " | ".join([model, mode, backend, *cells]) + " |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--models", default="bert_base,resnet18", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--modes", default="inference,training")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the rows")
    arguments = parser.parse_args()
    if arguments.child:
        return child(json.loads(arguments.child))
    rows = []
    for model in arguments.models.split(","):
        for mode in arguments.modes.split(","):
            for _ in range(arguments.rounds):
                rows += measure_round(model, mode)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
