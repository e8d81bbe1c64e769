"""Inputs that coil does not take, and what happens in the middle of a compilation: a clear exception or
the right result, never a wrong number."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, **more):
    return torch.compile(function, backend="coil", **more)


def right_or_refused(function, *args, text=""):
    """Eager's result, or an exception whose message says `text`."""
    try:
        expected = function(*args)
    except Exception:
        expected = None
    try:
        found = compiled(function)(*args)
    except Exception as problem:
        assert text in str(problem), str(problem)
        return False
    assert expected is not None, "eager refuses it"
    torch.testing.assert_close(found, expected)
    return True


class Tagged(torch.Tensor):
    """A subclass that keeps its type."""


def test_tensor_subclass():
    x = torch.randn(3).as_subclass(Tagged)
    found = compiled(lambda x: x * 2 + 1)(x)
    torch.testing.assert_close(found.as_subclass(torch.Tensor), x.as_subclass(torch.Tensor) * 2 + 1)


class Counting(torch.Tensor):
    """A subclass that gets every call."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def test_subclass_with_torch_function():
    x = torch.randn(3).as_subclass(Counting)
    right_or_refused(lambda x: (x * 2).exp(), x)


def test_wrapper_subclass():
    two_tensor = pytest.importorskip("torch.testing._internal.two_tensor")
    x = two_tensor.TwoTensor(torch.randn(3, 4), torch.randn(3, 4))
    found = compiled(lambda x: (x * 2).sin())(x)
    torch.testing.assert_close(found.a, (x.a * 2).sin())
    torch.testing.assert_close(found.b, (x.b * 2).sin())


def test_masked_and_nested_tensors():
    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged)
    try:
        found = compiled(lambda x: x * 2)(nested)
    except Exception as problem:
        assert isinstance(problem, (RuntimeError, TypeError)) and str(problem)
    else:
        torch.testing.assert_close(found.values(), nested.values() * 2)


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_sparse_input(convert):
    x = convert(torch.eye(3))
    right_or_refused(lambda x, y: torch.mm(x, y) + 1, x, torch.randn(3, 2))


def test_quantised_input():
    x = torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)
    right_or_refused(lambda x: x.dequantize() + 1, x)


def test_meta_tensor():
    x = torch.empty(3, device="meta")
    try:
        found = compiled(lambda x: x * 2)(x)
    except RuntimeError as problem:
        assert "CPU" in str(problem) and "meta" in str(problem)
    else:
        assert found.device.type == "meta" and found.shape == (3,)


def test_meta_tensor_beside_others():
    with pytest.raises(Exception, match="meta|device"):
        compiled(lambda x, y: x * y)(torch.empty(3, device="meta"), torch.ones(3))


def test_mkldnn_input():
    right_or_refused(lambda x: x.to_dense() * 2, torch.randn(3, 4).to_mkldnn())


def test_dtype_that_changes_compiles_again():
    run = compiled(lambda x: x * 2 + 1)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64):
        x = torch.ones(3).to(dtype)
        assert torch.equal(run(x), x * 2 + 1)


def test_dtype_that_coil_has_not():
    x = torch.randn(8).to(torch.float8_e5m2fnuz)
    with pytest.raises(RuntimeError, match="float8_e5m2fnuz"):
        compiled(lambda x: x.float() * 2, fullgraph=True)(x)


def test_wrong_dtype_past_the_guards():
    """A program by itself has no guards: it checks."""
    program = torch.export.export(nn.Linear(3, 2), (torch.randn(4, 3),))
    run = coil.compile(program)
    for wrong in (torch.randn(4, 3).double(), torch.ones(4, 3, dtype=torch.int32), torch.randn(5, 3), torch.randn(4)):
        with pytest.raises(coil.RunError):
            run(wrong)
    with pytest.raises((TypeError, coil.RunError)):
        run(3.0)
    with pytest.raises(ValueError, match="CPU"):
        run(torch.empty(4, 3, device="meta"))
    assert run(torch.randn(4, 3)).shape == (4, 2)


def test_numbers_and_none_as_inputs():
    run = compiled(lambda x, n, flag, extra: x * n if flag else x + 1)
    for arguments in ((2, True, None), (2.5, True, None), (3, False, "word"), (2**40, True, None)):
        torch.testing.assert_close(run(torch.ones(2), *arguments), torch.ones(2) * arguments[0] if arguments[1] else torch.ones(2) + 1)


def test_integer_too_large_for_64_bits():
    right_or_refused(lambda x, n: x + n, torch.ones(2, dtype=torch.int64), 2**70)


@pytest.mark.parametrize("grad", [False, True])
def test_replaced_parameter(grad):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    run = compiled(model)
    with torch.set_grad_enabled(grad):
        run(x)
        model.weight = nn.Parameter(torch.randn(2, 3))
        torch.testing.assert_close(run(x), model(x))
        model.weight.data = torch.randn(2, 3)
        torch.testing.assert_close(run(x), model(x))
        model.weight.data.mul_(2)
        torch.testing.assert_close(run(x), model(x))
        model.weight = nn.Parameter(torch.randn(5, 3))
        model.bias = nn.Parameter(torch.randn(5))
        torch.testing.assert_close(run(x), model(x))
        model.double()
        torch.testing.assert_close(run(x.double()), model(x.double()))


def test_parameter_moved_to_meta():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    run = compiled(model)
    run(x)
    model.to("meta")
    with pytest.raises(Exception, match="meta|device"):
        run(x)
    model.to_empty(device="cpu")
    with torch.no_grad():
        model.weight.fill_(1)
        model.bias.zero_()
    torch.testing.assert_close(run(x), model(x))


def test_an_error_leaves_inputs_as_they_were():
    def f(x, i):
        x.add_(1)
        return x[i]

    run = compiled(f)
    x = torch.zeros(3)
    with pytest.raises(coil.RunError, match="out of range"):
        run(x, torch.tensor([5]))
    assert torch.equal(x, torch.zeros(3))
    assert torch.equal(run(x, torch.tensor([1])), torch.ones(1))


@pytest.mark.parametrize("function", [
    lambda x: x.add_(1),
    lambda x: x.fill_(3.0)[1:],
    lambda x: (x.t().mul_(2), x[0], x * 3),
    lambda x: (x[:, 1:].copy_(x[:, :-1] * 2), x.view(-1)),
])
@pytest.mark.parametrize("target", ["cpp", "interp"])
def test_results_that_alias_a_written_input(function, target):
    x, y = torch.randn(3, 3), None
    y = x.clone()
    found = compiled(function, options={"target": target})(x)
    expected = function(y)
    torch.testing.assert_close(x, y)
    for f, e in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(expected)):
        torch.testing.assert_close(f, e)
        if e.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
            assert f.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            assert (f.storage_offset(), f.stride()) == (e.storage_offset(), e.stride())


def test_input_written_between_forward_and_backward():
    run = compiled(lambda x, w: (x * w).exp())
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    y = run(x, w)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_overlapping_memory():
    x = torch.arange(5.0).as_strided((3, 3), (1, 1))
    assert torch.equal(compiled(lambda x: x * 2)(x), x * 2)
    base = torch.ones(1).expand(4)
    right_or_refused(lambda x: x.add_(1), base)


def test_tensor_without_memory():
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    with pytest.raises(coil.RunError, match="has no memory"):
        compiled(lambda x: x * 2)(x)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import torch

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    def f(x):
        outs = []
        for i in range(24):
            outs.append((x * (i + 1)).sin().softmax(-1).cumsum(0).sum(-1) + torch.tanh(x @ x).amax(-1) * i)
        return sum(outs)

    run = torch.compile(f, backend="coil")
    x = torch.randn(17, 17)
    parent = os.getpid()

    def interrupt():
        # Once the C++ compiler runs, as a terminal does it: to the whole group.
        deadline = time.time() + 200
        while time.time() < deadline:
            kids = open(f"/proc/{parent}/task/{parent}/children").read().split()
            for task in os.listdir(f"/proc/{parent}/task"):
                kids += open(f"/proc/{parent}/task/{task}/children").read().split()
            if kids:
                break
            time.sleep(0.005)
        time.sleep(float(sys.argv[1]))
        os.killpg(os.getpgid(0), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        run(x)
        print("finished")
    except KeyboardInterrupt:
        print("interrupted")
    thread.join()
    try:
        time.sleep(0.1)
    except KeyboardInterrupt:
        pass
    torch._dynamo.reset()
    torch.testing.assert_close(run(x), f(x), rtol=1e-4, atol=1e-4)
    print("right")
"""


@pytest.mark.parametrize("delay", ["0", "0.3"])
def test_interrupt_while_compiling(tmp_path, delay):
    """Ctrl-C is a KeyboardInterrupt; the process and the cache folder are of use afterwards."""
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    environment = dict(os.environ, COIL_CACHE_DIR=str(tmp_path / "cache"))
    for expected in (["interrupted", "right"], ["finished", "right"]):
        if expected[0] == "finished":  # the cache has it all: no compiler runs
            script.write_text(textwrap.dedent(INTERRUPTED).replace("thread.start()", "pass").replace("thread.join()", "pass"))
        done = subprocess.run(
            [sys.executable, str(script), delay], env=environment, capture_output=True, text=True,
            timeout=600, start_new_session=True)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.split() == expected, done.stdout + done.stderr[-2000:]


def test_a_compiler_that_fails_is_one_clear_error(tmp_path):
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(RuntimeError) as caught:
        compiled(lambda x: x.sin() * 3.25, options={"cxx": str(broken), "cache": False})(torch.ones(3))
    assert str(broken) in str(caught.value)
    torch._dynamo.reset()
    assert torch.equal(compiled(lambda x: x + 3.25)(torch.ones(3)), torch.full((3,), 4.25))
