"""Every scalar op of every dtype, and every cast: the Triton printer's code, in Triton's interpreter, gives
what the C++ printer's compiled code gives on the same kernel text."""

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
pytest.importorskip("triton")
import triton_shim  # noqa: E402
from test_kernel_texts import COIL, PRELUDE, ROOT  # noqa: E402

N = 256
DTYPES = ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]
NARROW = ["f16", "bf16"]
OPS = re.findall(r"^S\((\w+),\s*(\d), (\w+),\s*(\w+)\)", (ROOT / "src/ops/scalar.def").read_text(), re.M)


# Rows of triton's table without any spelling: the target has no such function.
ABSENT = set(re.findall(r'^T\((\w+), "", "", ""\)', (ROOT / "src/target/triton/spelling.def").read_text(), re.M))


def is_float(dtype):
    return dtype in ("f32", "f64", "f16", "bf16")


def takes(domain, dtype):
    if domain == "Wide":
        return dtype == "i64"
    if dtype == "bool":
        return domain in ("Bits", "Any")
    return domain != "Float" if not is_float(dtype) else domain in ("Float", "Number", "Any")


def ops_text(dtype):
    """A kernel that stores the result of each op that takes `dtype`; and the outputs' dtypes."""
    outputs, lines = {}, []
    value = 3
    for name, arity, result, domain in OPS:
        if result == "Given" or name in ABSENT or not takes(domain, dtype):
            continue
        operands = ["v0", "v1", "v2"][: int(arity)]
        if name == "where":
            lines.append(f"v{value} = lt v0, v1")
            operands, value = [f"v{value}", "v0", "v1"], value + 1
        lines.append(f"v{value} = {name} {', '.join(operands)}")
        lines.append(f"store %o_{name}[i0], v{value}")
        outputs[f"o_{name}"] = "bool" if result == "Bool" else dtype
        value += 1
    return kernel_text(f"ops_{dtype}", {"x": dtype, "y": dtype, "z": dtype}, outputs, lines), outputs


def casts_text(dtype):
    outputs, lines = {}, []
    for number, to in enumerate(DTYPES + NARROW):
        lines += [f"v{number + 1} = cast {to} v0", f"store %o_{to}[i0], v{number + 1}"]
        outputs[f"o_{to}"] = to
    return kernel_text(f"casts_{dtype}", {"x": dtype}, outputs, lines), outputs


def kernel_text(name, inputs, outputs, lines):
    buffers = [f"    %{n}: {d}[s0]" for n, d in inputs.items()] + [f"    %{n}: {d}[s0] written" for n, d in outputs.items()]
    loads = [f"v{i} = load {d} %{n}[i0]" for i, (n, d) in enumerate(inputs.items())]
    body = "".join(f"    {line}\n" for line in loads + lines)
    return f"kernel {name} (\n" + ",\n".join(buffers) + f") {{\n  size s0 in 0..\n  grid i0 < s0\n  stage {{\n{body}  }}\n}}\n"


def numpy_type(dtype):
    return np.dtype("uint16" if dtype == "bf16" else triton_shim.NAMES[dtype])


def values(dtype, rng):
    if dtype == "bool":
        return rng.integers(0, 2, N).astype(np.uint8)
    if dtype == "bf16":
        x = rng.standard_normal(N).astype(np.float32)
        # No subnormals: the interpreter widens them to 0.
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    kind = numpy_type(dtype)
    if is_float(dtype):
        x = rng.standard_normal(N) * rng.choice([0.3, 1, 4, 30], N)
        x[:N // 4] = rng.choice([0.0, -0.0, 1, -1, 2, 0.5, -1.5, 3, np.inf, -np.inf, np.nan, 10, -7], N // 4)
        return x.astype(kind)
    info = np.iinfo(kind)
    x = rng.integers(max(info.min, -9), 10, N).astype(kind)
    x[:N // 4] = rng.choice(np.array([info.min, info.max, 0, 1, info.max // 2], kind), N // 4)
    return x


def finite_for(dtype, x):
    """Casts of floats to integers have a meaning where the integer holds the value."""
    if not is_float(dtype):
        return x
    if dtype == "bf16":
        return np.where((x & 0x4000) != 0, np.uint16(0x3FC0), x)  # below 2 in size
    return np.where(np.isfinite(x), np.clip(x, 0, 100), x.dtype.type(3))


def printed(path, stage):
    done = subprocess.run([COIL, "dump", str(path), "--stage", stage], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """By kernel name: its outputs' dtypes, the Triton launch and the C++ function."""
    folder = tmp_path_factory.mktemp("ops")
    texts = {f"ops_{d}": ops_text(d) for d in DTYPES} | {f"casts_{d}": casts_text(d) for d in DTYPES + NARROW}
    path = folder / "all.kernels"
    path.write_text("\n".join(text for text, _ in texts.values()))
    module_path = folder / "coil_ops.py"
    module_path.write_text(printed(path, "triton"))
    spec = importlib.util.spec_from_file_location("coil_ops", module_path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["coil_ops"] = module
    spec.loader.exec_module(module)
    source = "".join(f'#include "{p.name}"\n' for p in sorted(PRELUDE.glob("[0-9]*.h")))
    source += "using namespace COIL_KERNEL_NAMESPACE;\n"
    for part in re.split(r"^// kernel ", printed(path, "code"), flags=re.M)[1:]:
        name, body = part.split("\n", 1)
        source += body.replace("KERNEL", f"k_{name}", 1)
    (folder / "ops.cpp").write_text(source)
    flags = ["-std=gnu++20", "-O1", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-w", "-DCOIL_FORCE_PLAIN"]
    subprocess.run([os.environ.get("COIL_CXX", "c++"), *flags, f"-I{PRELUDE}", "-o", folder / "ops.so", folder / "ops.cpp",
                    "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "ops.so"))
    return {n: (outputs, module.LAUNCHES[n], getattr(library, f"k_{n}")) for n, (_, outputs) in texts.items()}


def run_both(entry, inputs):
    outputs, launch, function = entry
    results = []
    for target in ("triton", "cpp"):
        arrays = {n: a.copy() for n, a in inputs.items()} | {n: np.zeros(N, numpy_type(d)) for n, d in outputs.items()}
        if target == "triton":
            with np.errstate(all="ignore"):
                triton_shim.launch(launch, arrays, [N])
        else:
            names = [name for name, _, _ in launch["buffers"]]
            pointers = (ctypes.c_void_p * len(names))(*[arrays[n].ctypes.data for n in names])
            function(pointers, (ctypes.c_int64 * 1)(N), None, ctypes.c_int64(0), ctypes.c_int64(1), (ctypes.c_int64 * 8)())
        results.append(arrays)
    return results


def check(kernel, name, dtype, got, want):
    if dtype == "bf16":
        got, want = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, want))
    if not is_float(dtype):
        np.testing.assert_array_equal(got, want, err_msg=f"{kernel} {name}")
        return
    # Both are within a few units of the last place; functions near a pole or a zero differ by more.
    rtol, atol = {"f64": (1e-11, 1e-12), "f16": (1e-3, 1e-5), "bf16": (1e-2, 1e-5)}.get(dtype, (3e-6, 1e-6))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=f"{kernel} {name}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_ops(compiled, dtype):
    rng = np.random.default_rng(7)
    inputs = {n: values(dtype, rng) for n in "xyz"}
    entry = compiled[f"ops_{dtype}"]
    got, want = run_both(entry, inputs)
    failures = []
    for name, out in entry[0].items():
        try:
            check(f"ops_{dtype}", name, out, got[name], want[name])
        except AssertionError as e:
            failures.append(str(e))
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("dtype", DTYPES + NARROW)
def test_casts(compiled, dtype):
    inputs = {"x": finite_for(dtype, values(dtype, np.random.default_rng(8)))}
    entry = compiled[f"casts_{dtype}"]
    got, want = run_both(entry, inputs)
    for name, out in entry[0].items():
        check(f"casts_{dtype}", name, out, got[name], want[name])


def test_ops_compile_without_a_gpu(tmp_path):
    """For an H200: the functions that the interpreter runs are also valid Triton to the compiler. These two
    kernels use them all."""
    text = tmp_path / "ops.kernels"
    text.write_text("\n".join(ops_text(dtype)[0] for dtype in ("f32", "i32")))
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "ops.py").write_text(printed(text, "triton"))
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, str(ROOT / "tests/gpu/run_kernels.py"), str(tmp_path / "modules"), "--compile", "90"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 0 failed" in done.stdout
