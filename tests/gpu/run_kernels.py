"""The kernels of tests/kernels, printed for Triton, compiled and run on an NVIDIA GPU.

  run_kernels.py MODULES [--time SIZE]     MODULES: a folder with NAME.py for each tests/kernels/NAME.kernels
  run_kernels.py MODULES --compile SM      only compiles what is in the folder, for the architecture SM (90),
                                           without a GPU

Compares with numpy at the sizes of tests/python/kernel_cases.py. Prints one line a kernel and, last,
`N passed, N failed, N skipped`; one SKIPPED line says what is missing where nothing can run.
"""

import argparse
import ctypes
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "gpu")]
from launch_table import scratch_of, taken_launches  # noqa: E402

POINTERS = {
    "u8": "*u8", "i8": "*i8", "i16": "*i16", "i32": "*i32", "i64": "*i64", "u16": "*u16", "u32": "*u32", "u64": "*u64",
    "bool": "*u8", "f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "f64": "*fp64",
}
BYTES = {"u8": 1, "i8": 1, "bool": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "f32": 4}


def skipped(reason):
    print(f"SKIPPED: {reason}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def load_module(path):
    spec = importlib.util.spec_from_file_location(f"coil_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compile_launch(entry, step, capability, constants):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    dtypes = {name: dtype for name, dtype, _ in entry["buffers"] + entry.get("scratch", [])}
    types = [POINTERS[dtypes[name]] for name in step["buffers"]] + ["i64"] * len(step["symbols"])
    types += ["*fp64"] * bool(entry["scalars"]) + [POINTERS[dtype] for dtype, _ in step["kept"]]
    types += ["*i64"] * step["faults"] + ["constexpr"] * len(constants)
    names = step["function"].arg_names
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types) if t.startswith("*")}
    source = ASTSource(fn=step["function"], signature=dict(zip(names, types, strict=True)), attrs=aligned,
                       constexprs={(names.index(name),): value for name, value in constants.items()})
    options = {"num_warps": step["warps"], "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def compile_all(entry, capability):
    """The size of the code of all launches, for indices of both widths."""
    import triton.language as tl

    size = 0
    for step in entry["launches"]:
        for constants in [dict(index_t=t) for t in (tl.int32, tl.int64)] if step["constants"] else [{}]:
            size += len(compile_launch(entry, step, capability, constants).asm["cubin"])
    return size


class Launcher:
    """A kernel on a device; its launches are compiled when they are needed."""

    def __init__(self, driver, entry):
        self.driver, self.entry, self.compiled = driver, entry, {}

    def function_of(self, number, constants):
        key = (number, *((name, str(value)) for name, value in constants.items()))
        if key not in self.compiled:
            compiled = compile_launch(self.entry, self.entry["launches"][number], self.driver.capability, constants)
            metadata = compiled.metadata
            function = self.driver.load(compiled.asm["cubin"], metadata.name, metadata.shared)
            self.compiled[key] = (function, 32 * metadata.num_warps, metadata.shared)
        return self.compiled[key]

    def run(self, arrays, size, repeats=0):
        """Changes written arrays in place; returns the faults and, with `repeats`, the least time in ms."""
        import numpy as np

        entry, driver = self.entry, self.driver
        symbols = [size] if entry["symbols"] else []
        faults = np.zeros(max(1, entry["sites"]), np.int64)
        pointers = {name: driver.upload(arrays[name]) for name, _, _ in entry["buffers"]}
        for name, dtype, elements in scratch_of(entry, symbols):
            pointers[name] = driver.allocate(BYTES.get(dtype, 8) * elements)
        owned = list(pointers.values()) + [driver.upload(faults)]
        fault_words = owned[-1]
        launches = []
        for number, step, values, programs, constants in taken_launches(entry, symbols):
            kept = [driver.allocate(BYTES.get(dtype, 8) * elements * programs) for dtype, elements in step["kept"]]
            owned += kept
            arguments = [pointers[name] for name in step["buffers"]] + [ctypes.c_int64(v) for v in values] + kept
            arguments += [fault_words] * step["faults"]
            # Behind the kernel's own arguments Triton's code takes two scratch pointers.
            arguments += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
            function, threads, shared = self.function_of(number, constants)
            launches.append((function, programs, threads, shared, arguments))

        def work():
            for launch in launches:
                driver.launch(*launch)

        work()
        driver.synchronize()
        for name, _, written in entry["buffers"]:
            if written:
                driver.download(arrays[name], pointers[name])
        driver.download(faults, fault_words)
        time = driver.milliseconds(work, repeats) if repeats else None
        for pointer in owned:
            driver.free(pointer)
        return faults, time


def check(launcher, kernel, case, time_size):
    """One line of the report, after all sizes."""
    import numpy as np

    import kernel_cases

    entry = launcher.entry
    sizes = kernel_cases.sizes_of(kernel)
    for size in sizes:
        size = kernel_cases.size_of_case(kernel, size)
        arrays, want = case(size, np.random.default_rng(size))
        arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        faults, _ = launcher.run(arrays, size)
        if faults.any():
            raise AssertionError(f"s0 = {size}: faults {faults}")
        dtypes = {name: dtype for name, dtype, _ in entry["buffers"]}
        for name, expected in want.items():
            kernel_cases.assert_right(f"{kernel} %{name}, s0 = {size}", dtypes[name], arrays[name], expected)
    if not time_size:
        return f"right at s0 = {', '.join(map(str, sizes))}"
    arrays, _ = case(time_size, np.random.default_rng(0))
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    _, time = launcher.run(arrays, time_size, repeats=50)
    moved = sum(a.nbytes for a in arrays.values())
    return f"{1000 * time:8.1f} us at s0 = {time_size}, {moved / time / 1e6:7.1f} GB/s of its buffers"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", type=pathlib.Path)
    parser.add_argument("--time", type=int, default=0, metavar="SIZE")
    parser.add_argument("--compile", type=int, default=0, metavar="SM")
    arguments = parser.parse_args()
    for needed in ("numpy", "triton"):
        if importlib.util.find_spec(needed) is None:
            skipped(f"python3 has no {needed} on this machine")
    import cuda_driver

    driver = None
    if not arguments.compile:
        try:
            driver = cuda_driver.Driver()
        except (OSError, cuda_driver.CudaError) as e:
            skipped(f"no NVIDIA GPU can be used: {e}")
        print(f"{driver.name}, sm_{driver.capability}")
    import kernel_cases

    passed = failed = 0
    files = sorted(p.stem for p in arguments.modules.glob("*.py")) if arguments.compile else kernel_cases.CASES
    for file in files:
        launches = load_module(arguments.modules / f"{file}.py").LAUNCHES
        for kernel in launches:
            case = kernel_cases.CASES[file][kernel] if driver else None
            try:
                if arguments.compile:
                    line = f"compiles to {compile_all(launches[kernel], arguments.compile)} bytes"
                else:
                    line = check(Launcher(driver, launches[kernel]), kernel, case, arguments.time)
                passed += 1
            except Exception as e:  # one kernel's failure leaves the others their turn
                line = f"FAILED: {type(e).__name__}: {e}"
                failed += 1
            print(f"{kernel:20} {line}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
