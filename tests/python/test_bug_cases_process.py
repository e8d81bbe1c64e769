"""Publicly reported defects (docs/bug_cases.md) that are about the process around a program: memory, threads,
caches, the compiler's environment. `reported` says which report a test is for."""

import concurrent.futures
import gc
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import textwrap
import threading

import fuzz_run
import pytest
import torch
from record_ops import record

import coil
import coil.session

ROOT = pathlib.Path(__file__).resolve().parents[2]
MLP = ROOT / "tests" / "fixtures" / "2.15.0" / "mlp.pt2"


def reported(*reports):
    return pytest.mark.reported(*reports)


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend="coil", options=coil.Options(**options))


def most_memory():
    """Kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def grows(step, times):
    """By how many kilobytes the process grows while `step` is repeated, once it has settled."""
    for _ in range(times // 4):
        step()
    gc.collect()
    before = most_memory()
    for _ in range(times):
        step()
    gc.collect()
    return most_memory() - before


@reported("pytorch#184406")
@pytest.mark.parametrize("way", ["interp", "fused"])
def test_smallest_integer_by_minus_one(way):
    """Eager PyTorch itself ends the process."""
    divide = torch.ops.aten.div.Tensor_mode
    program = record(lambda a, b: (a + b, a * b), [torch.tensor([-(2**31), 7], dtype=torch.int32)] * 2)
    for step, mode in zip(program.steps, ("floor", "trunc")):
        step.op, step.kwargs = "div.Tensor_mode", {"rounding_mode": mode}
    program.inputs[1].memory = torch.tensor([-1, -2], dtype=torch.int32)
    assert divide.name() == "aten::div.Tensor_mode"
    kept = program.inputs[0].memory
    program.inputs[0].memory = torch.tensor([5, 7], dtype=torch.int32)  # while eager makes the types
    document = fuzz_run.imported(fuzz_run.Merged([program]), coil.Options())
    options = coil.Options(fuzz_run.WAYS[way])
    run = coil.session.session(options).compile(document, options._table)
    floor, trunc = run([kept.clone(), program.inputs[1].tensor()])
    assert floor.tolist() == [-(2**31), -4] and trunc.tolist() == [-(2**31), -3]


@reported("pytorch#135758")
def test_floating_point_state_stays():
    compiled(lambda x: x.pow(2))(torch.randn(50))
    assert (torch.tensor([1e-310], dtype=torch.float64) * 1).item() == 1e-310 and 1e-310 * 0.5 != 0.0


@reported("pytorch#99949", "pytorch#189121")
def test_runs_are_equal():
    run, x = compiled(lambda x: (x.exp().sum(), x.softmax(0))), torch.randn(70_000)
    first = run(x)
    assert all(torch.equal(a, b) for _ in range(5) for a, b in zip(first, run(x)))


@reported("pytorch#130822", "pytorch#198307")
def test_quantised_tensors_are_refused():
    """As one graph: torch 2.9 cuts its own around the op."""

    def quantised(x):
        return torch.quantize_per_tensor(x.t(), 1.0, 0, torch.quint8).dequantize()

    torch._dynamo.reset()
    with pytest.raises(Exception) as caught:
        torch.compile(quantised, backend="coil", fullgraph=True)(torch.randn(4, 4))
    assert "quantize_per_tensor" in str(caught.value) or "quint8" in str(caught.value)


@reported("pytorch#96937")
def test_constants_do_not_leak():
    run, x = compiled(lambda x: x + torch.tensor([1, 2, 3, 4, 5, 6, 7, 8])), torch.zeros(8)
    assert grows(lambda: run(x), 4000) < 4000


@reported("pytorch#134946", "pytorch#138462")
def test_one_program_in_many_threads():
    run, inputs = compiled(lambda x, w: (x @ w).relu()), [torch.randn(16, 32) for _ in range(8)]
    w = torch.randn(32, 24)
    expected = [run(x, w) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert all(map(torch.equal, expected, pool.map(lambda x: run(x, w), inputs)))


@reported("pytorch#158614", "pytorch#193915")
def test_closed_files_are_unmapped():
    def load():
        coil.load(MLP, coil.Options(target="interp"))

    assert grows(load, 40) < 8000
    assert "mlp.pt2" not in pathlib.Path("/proc/self/maps").read_text()


@reported("pytorch#167630")
def test_compilations_do_not_leak():
    program = record(lambda x, w: (x @ w).relu() @ w, [torch.randn(4, 64), torch.randn(64, 64)])
    assert grows(lambda: fuzz_run.Build([program], "interp").run(), 60) < 8000


@reported("pytorch#189503")
def test_rejected_calls_do_not_leak():
    program = record(lambda x: x.exp() + 1, [torch.randn(256, 256)])
    build, wrong = fuzz_run.Build([program], "fused"), torch.randn(300, 300)

    def call():
        with pytest.raises(coil.RunError):
            build.compiled([wrong])

    assert grows(call, 400) < 4000


@reported("pytorch#122192", "pytorch#160281", "pytorch#170604")
def test_results_of_earlier_calls_stay():
    f, g = compiled(torch.cos), torch.compile(torch.sin, backend="coil")
    for _ in range(3):
        x = torch.randn(5)
        y, z = f(x), f(x * 2)
        assert torch.allclose(g(y), x.cos().sin(), atol=1e-6) and torch.allclose(y, x.cos(), atol=1e-6)
        assert torch.allclose(z, (x * 2).cos(), atol=1e-6)


SCRIPT = """
import sys, time, torch
import coil
run = torch.compile(lambda x: (x.sin().sin() + 1).softmax(-1).sum(0), backend="coil")
torch.manual_seed(0)
print(run(torch.randn(33, 17)).view(torch.int32).sum().item())
"""


def process(cache, **env):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "COIL_CACHE_DIR": str(cache), **env})


@reported("torchdynamo#1185", "pytorch#92664", "pytorch#119698", "pytorch#144609", "pytorch#103453", "pytorch#162199",
          "pytorch#125235", "pytorch#148271", "pytorch#191010")
def test_processes_share_a_cache(tmp_path):
    """Two at once, then one that finds it warm; the folder's name has a space. All end at once."""
    cache = tmp_path / "a folder with spaces"
    cold = [process(cache, TMPDIR=str(tmp_path)) for _ in range(2)]
    found = [p.communicate(timeout=300) for p in cold]
    found.append(process(cache).communicate(timeout=300))
    assert len({out for out, _ in found}) == 1 and found[0][0].strip(), found


@reported("pytorch#151466")
def test_cache_that_vanishes(tmp_path):
    x = torch.randn(9)
    run = compiled(lambda x: x.sin() * 3, cache_dir=str(tmp_path / "c"), cache=True)
    expected = run(x)
    shutil.rmtree(tmp_path / "c")
    assert torch.equal(run(x), expected)
    again = compiled(lambda x: x.sin() * 3, cache_dir=str(tmp_path / "c"), cache=True)
    assert torch.equal(again(x), expected)


@reported("pytorch#95708", "pytorch#122705")
def test_no_openmp():
    assert b"libgomp" not in pathlib.Path(coil._coil.__file__).read_bytes()


@reported("pytorch#121122")
def test_cache_is_the_users(monkeypatch):
    for name in ("COIL_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert coil.session.cache_folder() == os.path.expanduser("~/.cache/coil")


@reported("pytorch#108586", "pytorch#121197")
def test_compilations_in_threads():
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [torch.randn(50, 50) @ torch.randn(50, 50) for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        programs = [record(lambda x, k=k: x.sin() * k, [torch.randn(7 + k)]) for k in range(4)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(len(b.run()) == 1 for b in pool.map(lambda p: fuzz_run.Build([p], "fused"), programs))
    finally:
        stop.set()
        busy.join()


@reported("pytorch#127821", "pytorch#128084", "pytorch#153389", "pytorch#187319")
def test_custom_ops_are_refused():
    @torch.library.custom_op("coil_tests::add_to", mutates_args={"x"})
    def add_to(x: torch.Tensor, n: float) -> None:
        x.add_(n)

    def f(x):
        y = x * 2
        add_to(y[0], 1.0)
        add_to(y[1], 2.0)
        return y

    with pytest.raises(RuntimeError) as caught:
        compiled(f)(torch.zeros(2, 3))
    assert "add_to" in str(caught.value) or "auto_functionalized" in str(caught.value)


def test_the_page_is_current():
    assert subprocess.run([sys.executable, ROOT / "scripts" / "make_bug_cases_page.py", "--check"]).returncode == 0
