"""tests/kernels: one text each feeds both printers, and both give what numpy gives.

The C++ ones are compiled against the prelude with the flags of the runtime; the Triton ones run in Triton's
interpreter, without torch or a GPU. scripts/gpu_tests.sh runs the same ones compiled.
"""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
import kernel_cases  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "kernels"
COIL = os.environ.get("COIL", str(ROOT / "build-ci" / "coil"))
PRELUDE = ROOT / "src" / "target" / "cpp" / "prelude"


def dump(path, stage):
    done = subprocess.run([COIL, "dump", str(path), "--stage", stage], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def all_kernels():
    return [(file, kernel) for file, kernels in kernel_cases.CASES.items() for kernel in kernels]


def test_every_text_has_cases():
    named = {(p.stem, name) for p in KERNELS.glob("*.kernels")
             for name in re.findall(r"^kernel (\w+)", p.read_text(), re.M)}
    assert named == set(all_kernels())


# ---- Triton ----


@pytest.fixture(scope="module")
def triton_launches(tmp_path_factory):
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("triton")
    tables = {}
    for file in kernel_cases.CASES:
        path = folder / f"coil_{file}.py"
        path.write_text(dump(KERNELS / f"{file}.kernels", "triton"))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        tables[file] = module.LAUNCHES
    return tables


def run_triton(entry, arrays, size):
    import triton_shim

    return triton_shim.launch(entry, arrays, [size] if entry["symbols"] else [])


def check(run, kernel, case, size):
    rng = np.random.default_rng(size + len(kernel))
    size = kernel_cases.size_of_case(kernel, size)
    arrays, want = case(size, rng)
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    dtypes = run(arrays, size)
    for name, expected in want.items():
        kernel_cases.assert_right(f"{kernel} %{name}, s0 = {size}", dtypes[name], arrays[name], expected)


@pytest.mark.parametrize("file,kernel", all_kernels())
def test_triton_interpreted(triton_launches, file, kernel):
    entry = triton_launches[file][kernel]

    def run(arrays, size):
        faults = run_triton(entry, arrays, size)
        assert not faults.any()
        return {name: dtype for name, dtype, _ in entry["buffers"]}

    with np.errstate(all="ignore"):
        for size in kernel_cases.sizes_of(kernel):
            check(run, kernel, kernel_cases.CASES[file][kernel], size)


def folded(slots):
    """Along a row neighbours: slot 2l takes 2l + 1, and so on. Of columns halves: slot l takes l + length/2."""
    while len(slots) > 1:
        half = len(slots) // 2
        slots = slots[:half] + slots[half:] if slots.ndim > 1 else slots[::2] + slots[1::2]
    return slots[0]


def in_slots(x, length):
    """Sums along the first dim as one tile of a GPU has them: element r in slot r % length."""
    slots = np.zeros((length, *x.shape[1:]), np.float32)
    for at in range(0, len(x), length):
        slots[:len(x[at:at + length])] += x[at:at + length]
    return folded(slots)


def in_pieces(x, length, piece, folds):
    partials = np.array([in_slots(x[at:at + piece], length) for at in range(0, len(x), piece)])
    return in_slots(partials, folds)


def test_triton_sums_in_the_order_that_the_mapping_states(triton_launches):
    """Bit for bit, with values whose sums round."""
    x = np.random.default_rng(5).standard_normal((2, 40000)).astype(np.float32)
    arrays = dict(x=x, y=np.zeros(2, np.float32))
    run_triton(triton_launches["split"]["split_sum"], arrays, 0)
    np.testing.assert_array_equal(arrays["y"], [in_pieces(row, 4096, 4096, 16) for row in x])
    for rows in (60, 200, 257, 700):
        x = np.random.default_rng(rows).standard_normal((rows, 40)).astype(np.float32)
        arrays = dict(x=x, y=np.zeros(40, np.float32))
        run_triton(triton_launches["column_sum"]["column_sum"], arrays, rows)
        want = in_slots(x * x, 64) if rows <= 256 else in_pieces(x * x, 64, 128, 64)
        np.testing.assert_array_equal(arrays["y"], want)


@pytest.mark.parametrize("kernel", ["gather", "gather_wrap", "gather_masked", "histogram", "scatter"])
def test_triton_reports_an_index_out_of_range(triton_launches, kernel):
    """Nothing is accessed through it, the other elements are right, and the first position is reported."""
    entry = triton_launches["gather"][kernel]
    for bad in (10, -11, 2**40):
        arrays, want = kernel_cases.CASES["gather"][kernel](40, np.random.default_rng(3))
        arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        arrays["i"][[5, 17]] = bad
        if kernel == "gather_masked":
            arrays["keep"][[5, 17]] = 1
        faults = run_triton(entry, arrays, 40)
        row = 6 if "t" in arrays and arrays["t"].ndim == 2 else 1
        assert 2**63 - 1 - faults[0] == 5 * row
        if kernel.startswith("gather"):
            others = np.delete(np.arange(40), [5, 17])
            np.testing.assert_array_equal(arrays["out"][others], want["out"][others])


def test_triton_reports_indices_of_closing_stages(triton_launches):
    arrays, _ = kernel_cases.CASES["split"]["closing_gather"](40, np.random.default_rng(3))
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    arrays["i"][[5, 17]] = -2, 99  # the first index may not be negative, the second wraps
    faults = run_triton(triton_launches["split"]["closing_gather"], arrays, 40)
    assert [2**63 - 1 - f for f in faults] == [5, 17]


def test_triton_compiles_without_a_gpu(triton_launches, tmp_path):
    """To code for an H200; scripts/gpu_tests.sh runs it."""
    for file in kernel_cases.CASES:
        (tmp_path / f"{file}.py").write_text(pathlib.Path(sys.modules[f"coil_{file}"].__file__).read_text())
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, str(ROOT / "tests/gpu/run_kernels.py"), str(tmp_path), "--compile", "90"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(all_kernels())} passed, 0 failed" in done.stdout


# ---- C++ ----


def has_avx2():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    return cpuinfo.exists() and {"avx2", "fma", "f16c"} <= set(cpuinfo.read_text().split())


def head_of(text):
    """(name, dtype, shape) of a kernel's arguments, from its text; each dim is an expression of s0."""
    rows = re.findall(r"%(\w+): (\w+)\[(.*?)\](.*)", re.search(r"\((.*?)\) {", text, re.S).group(1))
    return [(name, dtype, shape) for name, dtype, shape, marks in rows if "kept" not in marks]


def of_size(expr):
    return eval(f"lambda s0: {expr}", {"min": min, "max": max})


def cpp_launches(texts, kernel):
    """Takes the launches of a kernel from the front of a list of texts: (name, arguments, units)."""
    launches = []
    while texts and re.match(rf"kernel {kernel}{f'_{len(launches)}' if len(launches) else '(_0)?'} ", texts[0]):
        text = texts.pop(0)
        units = re.search(r"^  mapping .*units (.*?) grain", text, re.M).group(1)
        launches.append((text.split()[1], head_of(text), of_size(units)))
    return launches


@pytest.fixture(scope="module", params=["plain", "avx2"])
def cpp_functions(request, tmp_path_factory):
    """By file and kernel the launches: a function, its arguments, the number of units as a function of s0."""
    if request.param == "avx2" and not has_avx2():
        pytest.skip("this machine has no AVX2")
    folder = tmp_path_factory.mktemp("cpp")
    text = "".join(f'#include "{p.name}"\n' for p in sorted(PRELUDE.glob("[0-9]*.h")))
    text += "using namespace COIL_KERNEL_NAMESPACE;\n"
    launches = {}
    for file, kernels in kernel_cases.CASES.items():
        code = dump(KERNELS / f"{file}.kernels", "code")
        for part in re.split(r"^// kernel ", code, flags=re.M)[1:]:
            name, body = part.split("\n", 1)
            text += body.replace("KERNEL", f"k_{name}", 1)
        texts = re.split(r"^(?=kernel )", dump(KERNELS / f"{file}.kernels", "kernels"), flags=re.M)[1:]
        for kernel in re.findall(r"^kernel (\w+)", (KERNELS / f"{file}.kernels").read_text(), re.M):
            launches[file, kernel] = cpp_launches(texts, kernel)
        assert not texts and kernels
    (folder / "kernels.cpp").write_text(text)
    flags = ["-std=gnu++20", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions",
             "-fno-rtti", "-w"]
    flags += ["-mavx2", "-mfma", "-mf16c"] if request.param == "avx2" else ["-DCOIL_FORCE_PLAIN"]
    compiler = os.environ.get("COIL_CXX", "c++")
    subprocess.run([compiler, *flags, f"-I{PRELUDE}", "-o", folder / "kernels.so", folder / "kernels.cpp", "-lm"],
                   check=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))
    return {key: [(getattr(library, f"k_{name}"), arguments, units) for name, arguments, units in some]
            for key, some in launches.items()}


@pytest.mark.parametrize("file,kernel", all_kernels())
def test_cpp_compiled(cpp_functions, file, kernel):
    whole = re.search(rf"^kernel {kernel} .*?^}}", (KERNELS / f"{file}.kernels").read_text(), re.S | re.M).group(0)
    dtypes = {name: dtype for name, dtype, _ in head_of(whole)}

    def run(arrays, size):
        memory = dict(arrays)
        for function, arguments, units in cpp_functions[file, kernel]:
            for name, dtype, shape in arguments:
                if name not in memory:  # scratch that launches pass on
                    elements = np.prod([of_size(e)(size) for e in shape.split(", ")] if shape else [1])
                    memory[name] = np.full(8 * int(elements), 0xff, np.uint8)
            pointers = (ctypes.c_void_p * len(arguments))(*[memory[name].ctypes.data for name, _, _ in arguments])
            symbols = (ctypes.c_int64 * 1)(size)
            fault = (ctypes.c_int64 * 8)()
            function(pointers, symbols, None, ctypes.c_int64(0), ctypes.c_int64(units(size)), fault)
            assert not any(fault)
        return dtypes

    for size in kernel_cases.sizes_of(kernel):
        check(run, kernel, kernel_cases.CASES[file][kernel], size)
