#!/usr/bin/env python3
"""Compile time and peak memory through torch.compile: coil beside Inductor and a backend that does nothing.

usage: bench/compile_time_torch.py [--models bert_base,resnet18] [--modes inference,training] [--rounds 3] [--json FILE]

Each measurement is a process of its own, with empty caches of its own.

  cold    from torch.compile(...) to the first result, the imports of the backend and of Dynamo counted, torch's own
          and the model's not: they are there in every program
  cached  the same in a second process that finds the caches of the first
  warm    once more in a process that compiled another model before: nothing is imported, the caches are empty
  peak    resident memory at the most during the third step of training, beyond what was resident before the step;
          and the most of the whole process

The backend that does nothing runs AOT Autograd with coil's partitioner and no decompositions, and gives back the
graph as it is: what is left when it is taken away is the backend's own time.
"""

import argparse
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
    """(beyond what was resident, of the whole process) during one step."""
    whole = status_kb("VmHWM")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the mark of the most starts anew
    before = status_kb("VmRSS")
    step()
    return (status_kb("VmHWM") - before) / 1024, whole / 1024


def child(task):
    import torch

    torch.manual_seed(0)
    if task["state"] == "warm":
        first_call(*MODELS["mlp"](), task)
        torch._dynamo.reset()
    model, args, pick = MODELS[task["model"]]()
    model.train(task["mode"] == "training")
    seconds, step = first_call(model, args, pick, task)
    row = {**task, "seconds": seconds}
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


def table(rows):
    out = [
        "| model | mode | backend | cold, s | cached, s | warm, s | step, MB | process, MB |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    groups = {}
    for row in rows:
        groups.setdefault((row["model"], row["mode"], row["backend"]), []).append(row)

    def middle(group, key, state):
        values = [r[key] for r in group if r["state"] == state and key in r]
        return statistics.median(values) if values else None

    for names, group in groups.items():
        seconds = [f"{middle(group, 'seconds', state):.2f}" for state in STATES]
        memory = [middle(group, key, "cached") for key in ("step_mb", "process_mb")]
        cells = [*names, *seconds, *("" if m is None else f"{m:.0f}" for m in memory)]
        out.append("| " + " | ".join(cells) + " |")
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
