"""The collections of outside_suites.py: the names of a suite's cases, and how one runs."""

import copy
import functools
import pathlib
import sys

import torch
from torch.utils import _pytree

from nearness import distance, flat_tensors, reason_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))
DTYPE = torch.float32
PLAIN = (bool, int, float, str, type(None))


class EagerFails(Exception):
    """The program fails without a compiler."""


def difference(found, expected, exact=None):
    """What differs between two trees of results, in words, or ""; `exact` is the same in float64."""
    if len(_pytree.tree_leaves(found)) != len(_pytree.tree_leaves(expected)):
        return "another number of results"
    for f, e in zip(_pytree.tree_leaves(found), _pytree.tree_leaves(expected)):
        if isinstance(f, torch.Tensor) != isinstance(e, torch.Tensor) or isinstance(e, PLAIN) and f != e:
            return f"{f!r} instead of {e!r}"
    found, expected = flat_tensors(found), flat_tensors(expected)
    for k, (f, e) in enumerate(zip(found, expected)):
        if (f.shape, f.dtype) != (e.shape, e.dtype):
            return f"{tuple(f.shape)} of {f.dtype} instead of {tuple(e.shape)} of {e.dtype}"
        try:
            torch.testing.assert_close(f, e, equal_nan=True)
        except AssertionError as problem:
            x = exact[k] if exact is not None and k < len(exact) else None
            if x is None or x.shape != e.shape or distance(f, x) > 2 * distance(e, x) + 1e-12:
                return "wrong numbers: " + " ".join(str(problem).split())[:160]
    return ""


def judged(run, model, backend):
    """`run(model, wrap)` gives results; compares those of the compiled model with its own."""
    try:
        expected = run(copy.deepcopy(model), lambda m: m)
    except Exception as problem:
        raise EagerFails(reason_of(problem)) from None
    found = run(copy.deepcopy(model), lambda m: torch.compile(m, backend=backend))
    return difference(found, expected)


class Export:
    @staticmethod
    @functools.lru_cache(maxsize=None)
    def cases():
        from torch._export.db.examples import all_examples

        return all_examples()

    def names(self):
        return sorted(self.cases())

    def run(self, name, backend):
        case = self.cases()[name]

        def run(model, wrap):
            torch.manual_seed(0)
            args, words = copy.deepcopy((case.example_args, case.example_kwargs))
            with torch.no_grad():
                return wrap(model)(*args, **words)

        return judged(run, case.model, backend)


class Hops:
    """Through the harness of the op database."""

    def __init__(self, backward):
        self.backward = backward

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def ops():
        from torch.testing._internal.hop_db import hop_db

        import op_coverage

        return {op_coverage.name_of(op): op for op in hop_db}

    def names(self):
        return [n for n, op in self.ops().items() if DTYPE in op.dtypes and (op.supports_autograd or not self.backward)]

    def run(self, name, backend):
        import op_coverage

        task = {"op": name, "dtype": "float32", "backend": backend, "full": True, "backward": self.backward,
                "fullgraph": True}
        return op_coverage.run_pair(self.ops(), task)["reason"]


class Modules:
    def __init__(self, training):
        self.training = training

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def infos():
        from torch.testing._internal.common_modules import module_db

        return {info.name: info for info in module_db if DTYPE in info.dtypes}

    def names(self):
        return list(self.infos())

    def inputs(self, name, dtype):
        torch.manual_seed(0)
        info = self.infos()[name]
        return info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=self.training, training=self.training)

    def run(self, name, backend):
        for k, given in enumerate(self.inputs(name, DTYPE)):
            torch._dynamo.reset()
            reason = self.run_input(name, given, k, backend)
            if reason:
                return reason
        return ""

    def run_input(self, name, given, k, backend):
        try:
            expected = self.step(name, given, lambda m: m)
        except Exception as problem:
            raise EagerFails(reason_of(problem)) from None
        found = self.step(name, given, lambda m: torch.compile(m, backend=backend))
        reason = difference(found, expected)
        if reason.startswith("wrong numbers"):
            wide = list(self.inputs(name, torch.float64))[k]
            with torch.random.fork_rng(devices=[]):
                exact = flat_tensors(self.step(name, self.same_values(wide, given), lambda m: m.double()))
            return difference(found, expected, exact)
        return reason

    @staticmethod
    def same_values(wide, given):
        """`wide` with the values of `given` in its tensors."""
        values = iter(flat_tensors((given.forward_input.args, given.forward_input.kwargs)))

        def valued(w):
            return next(values).detach().to(w.dtype).requires_grad_(w.requires_grad)

        inputs = wide.forward_input
        inputs.args, inputs.kwargs = _pytree.tree_map_only(torch.Tensor, valued, (inputs.args, inputs.kwargs))
        return wide

    def step(self, name, given, wrap):
        """Results, in training also gradients of parameters and inputs, and buffers."""
        torch.manual_seed(0)
        module = self.infos()[name].module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
        module = module.to(DTYPE).train(self.training)
        args, words = _pytree.tree_map_only(
            torch.Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad),
            (given.forward_input.args, given.forward_input.kwargs))
        wrapped = wrap(module)
        torch.manual_seed(0)
        result = wrapped(*args, **words)
        if not self.training:
            return result
        wanted = [t for t in flat_tensors(result) if t.requires_grad]
        random = torch.Generator().manual_seed(1)
        seeds = [torch.randn(t.shape, generator=random, dtype=torch.float64).to(t.dtype) for t in wanted]
        leaves = [*module.parameters(), *(t for t in flat_tensors((args, words)) if t.requires_grad)]
        grads = torch.autograd.grad(wanted, leaves, seeds, allow_unused=True) if wanted and leaves else []
        grads = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, grads)]
        return _pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, (result, grads, list(module.buffers())))


class Optimizers:
    @staticmethod
    @functools.lru_cache(maxsize=None)
    def cases():
        from torch.testing._internal.common_optimizers import optim_db

        out = {}
        for info in optim_db:
            for k, given in enumerate(info.optim_inputs_func(device="cpu")):
                out[f"{info.optim_cls.__name__} {k} {given.desc}"] = (info, given)
        return out

    def names(self):
        return list(self.cases())

    def run(self, name, backend):
        info, given = self.cases()[name]
        if info.step_requires_closure:
            return self.judge(info, given, backend, closure=True)
        return self.judge(info, given, backend, closure=False)

    def judge(self, info, given, backend, closure):
        def trained(wrap, dtype):
            torch.manual_seed(0)
            weights = [torch.nn.Parameter(torch.randn(s, dtype=DTYPE).to(dtype)) for s in ((5, 3), (7, 4), (2, 2))]
            settings = copy.deepcopy(given.kwargs)
            optimizer = info.optim_cls(weights, **settings)
            step = wrap(optimizer.step)
            for _ in range(3):
                for w in weights:
                    w.grad = torch.randn(w.shape, dtype=DTYPE).to(dtype)
                step(lambda: sum(w.square().sum() for w in weights)) if closure else step()
            return [w.detach() for w in weights]

        try:
            expected = trained(lambda f: f, DTYPE)
        except Exception as problem:
            raise EagerFails(reason_of(problem)) from None
        # The step as Dynamo writes it has corrections in float32.
        written = trained(lambda f: torch.compile(f, backend="eager"), DTYPE)
        torch._dynamo.reset()
        found = trained(lambda f: torch.compile(f, backend=backend), DTYPE)
        if difference(found, written) == "":
            return ""
        return difference(found, expected)


class Aliasing:
    def names(self):
        from alias_cases import CASES

        return list(CASES)

    def run(self, name, backend):
        import alias_cases

        function, arguments = alias_cases.CASES[name]
        compiled = torch.compile(function, backend=backend)
        return alias_cases.difference(
            alias_cases.outcome(compiled, arguments()), alias_cases.outcome(function, arguments()))


SUITES = {
    "export": Export(),
    "hops": Hops(backward=False),
    "hops backward": Hops(backward=True),
    "modules eval": Modules(training=False),
    "modules train": Modules(training=True),
    "optimizers": Optimizers(),
    "aliasing": Aliasing(),
}
