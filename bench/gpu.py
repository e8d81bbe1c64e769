#!/usr/bin/env python3
"""Times of coil's Triton kernels beside Inductor's on an NVIDIA GPU, as a Markdown table.

usage: bench/gpu.py FOLDER [NAME ...]        (needs torch with CUDA and Triton; the coil command is not needed)
       bench/gpu.py FOLDER --print COIL      prints the kernels there before, on any machine with torch

FOLDER/kernels holds the texts of tests/kernels, FOLDER/rows rows of bench/rows.py that are one kernel, as
`coil dump --stage triton` prints them. Each kernel's result is compared with eager's first, in tolerances of
torch.testing. A time is the median of replays of a CUDA graph; `GB/s` counts each buffer once. Buffers that fit
into the L2 cache stay there between replays, on both sides. Inductor runs with default options.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "gpu"), str(ROOT / "bench")]
from launch_table import scratch_of, taken_launches  # noqa: E402
from run_kernels import load_module  # noqa: E402

ROWS = ["softmax_4k_1k", "layernorm_add", "gelu_chain", "transpose_add", "colsum", "maxpool"]

# Kernel of tests/kernels: its file, its dynamic size here, and the same in torch.
KERNELS = {
    "pointwise": ("pointwise", 4_000_000, lambda t, x, y: (t.nn.functional.gelu(x) * y.float()).bfloat16()),
    "softmax_long": ("softmax", 1_000_000, lambda t, x: t.softmax(x, 1)),
    "layer_norm_long": ("layer_norm", 1_000_000, lambda t, x, g, b: t.nn.functional.layer_norm(x, x.shape[1:], g, b)),
    "column_sum": ("column_sum", 10_000, lambda t, x: x.square().sum(0)),
    "column_sum_wide": ("column_sum", 4_000_000, lambda t, x: x.square().sum(0)),
    "transpose_add": ("transpose_add", 400_000, lambda t, x, y: x + y.t()),
    "cumsum_long": ("cumsum", 1_000_000, lambda t, x: x.cumsum(1)),
    "argmax_long": ("argmax", 1_000_000, lambda t, x: tuple(reversed(x.max(1)))),
    "max_pool": ("max_pool", 4_000_000, lambda t, x: t.nn.functional.max_pool1d(x[None], 3, 2, 1)[0]),
    "gather": ("gather", 1_000_000, lambda t, i, table: table[i]),
    "cat": ("masked_tails", 8_000_000, lambda t, a, b: t.cat([a, b])),
    "pad": ("masked_tails", 4_000_000, lambda t, x: t.nn.functional.pad(x, (2, 5), value=-1.5)),
    "kept_row": ("masked_tails", 100_000, lambda t, x: x / (1 + x.abs().sum(1, keepdim=True))),
}


def print_kernels(coil, folder):
    import rows

    coil = pathlib.Path(coil).resolve()
    subprocess.run([ROOT / "scripts" / "gpu_tests.sh", "--print", folder.resolve() / "kernels"], check=True,
                   env=dict(os.environ, COIL=str(coil)))
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    for row_name in ROWS:
        command = [coil, "dump", rows.ensure(row_name), "--stage", "triton"]
        text = subprocess.run(command, check=True, capture_output=True, text=True)
        (folder / "rows" / f"{row_name}.py").write_text(text.stdout)


def launcher(entry, tensors, size):
    """A call without arguments that launches the kernel on the tensors, in the order of its buffers."""
    import torch

    dtypes = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "bool": torch.uint8}
    symbols = [size] if entry["symbols"] else []
    by_name = {name: t.view(torch.uint8) if t.dtype == torch.bool else t
               for (name, _, _), t in zip(entry["buffers"], tensors, strict=True)}
    for name, dtype, elements in scratch_of(entry, symbols):
        by_name[name] = torch.empty(elements, dtype=dtypes[dtype], device="cuda")
    faults = torch.zeros(max(1, entry["sites"]), dtype=torch.int64, device="cuda")
    calls = []
    for _, step, values, programs, constants in taken_launches(entry, symbols):
        arguments = [by_name[name] for name in step["buffers"]] + values
        arguments += [torch.empty(n * programs, dtype=dtypes[dtype], device="cuda") for dtype, n in step["kept"]]
        arguments += [faults] * step["faults"]
        options = dict(constants, num_warps=step["warps"], enable_fp_fusion=False)
        calls.append((step["function"][(programs,)], arguments, options))

    def run():
        for function, arguments, options in calls:
            function(*arguments, **options)

    return run


def measure(name, run_coil, outputs, function, inputs):
    """One row of the table, after the results have been compared."""
    import torch
    from triton.testing import do_bench_cudagraph

    def as_tuple(result):
        return (result,) if isinstance(result, torch.Tensor) else tuple(result)

    torch._dynamo.reset()
    compiled = torch.compile(function)
    with torch.no_grad():
        run_coil()
        compiled(*inputs)
        for got, want in zip(outputs, as_tuple(function(*inputs)), strict=True):
            loose = {"rtol": 1e-4, "atol": 1e-4} if got.dtype == torch.float32 else {}
            torch.testing.assert_close(got, want, equal_nan=True, **loose)
        ours = do_bench_cudagraph(run_coil, rep=100, return_mode="median")
        theirs = do_bench_cudagraph(lambda: compiled(*inputs), rep=100, return_mode="median")
    moved = sum(t.numel() * t.element_size() for t in [*inputs, *outputs])
    print(f"| {name} | {1000 * theirs:.1f} | {1000 * ours:.1f} | {ours / theirs:.2f} | {moved / ours / 1e6:.0f} |", flush=True)


def text_kernel(name, folder):
    import kernel_cases
    import numpy as np
    import torch

    file, size, function = KERNELS[name]
    entry = load_module(folder / "kernels" / f"{file}.py").LAUNCHES[name]
    arrays, _ = kernel_cases.CASES[file][name](size, np.random.default_rng(0))
    tensors = {}
    for buffer, dtype, _ in entry["buffers"]:
        array = torch.from_numpy(np.ascontiguousarray(arrays[buffer]))
        tensors[buffer] = (array.view(torch.bfloat16) if dtype == "bf16" else array).cuda()
    inputs = [tensors[n] for n, _, written in entry["buffers"] if not written]
    outputs = [tensors[n] for n, _, written in entry["buffers"] if written]
    run = launcher(entry, list(tensors.values()), size)
    measure(f"{name}, s0 = {size:,}", run, outputs, lambda *values: function(torch, *values), inputs)


def row(name, folder):
    import rows
    import torch

    (entry,) = load_module(folder / "rows" / f"{name}.py").LAUNCHES.values()
    model, inputs = rows.build(name)
    model, inputs = model.cuda(), [t.cuda() for t in inputs]
    with torch.no_grad():
        outputs = [torch.empty_like(model(*inputs))]
    weights = {"p_" + n.replace(".", "_"): p for n, p in model.named_parameters()}
    values, given = [], iter(inputs)
    for buffer, _, written in entry["buffers"]:
        values.append(outputs[0] if written else weights[buffer] if buffer in weights else next(given))
    measure(f"row {name}", launcher(entry, values, 0), outputs, model, inputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--print", metavar="COIL")
    arguments = parser.parse_args()
    if arguments.print:
        return print_kernels(arguments.print, arguments.folder)
    import torch
    import triton

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}\n")
    print("| kernel | Inductor, us | coil, us | coil / Inductor | coil, GB/s |\n| --- | ---: | ---: | ---: | ---: |")
    failed = 0
    for name in arguments.names or [*KERNELS, *(f"rows/{r}" for r in ROWS)]:
        try:
            if name.startswith("rows/"):
                row(name.removeprefix("rows/"), arguments.folder)
            else:
                text_kernel(name, arguments.folder)
        except Exception as e:  # one kernel's failure leaves the others their turn
            failed += 1
            print(f"| {name} | FAILED: {type(e).__name__}: {str(e).strip().splitlines()[0]} | | | |", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
