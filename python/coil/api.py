"""coil without torch.compile's front end: exported programs and files, and reports."""

import os
import tempfile
import time

import torch
from torch.utils import _pytree

from coil import _coil
from coil.compiler import plain
from coil.options import Options
from coil.session import session


class CompiledModel:
    """A compiled program. Called like the module that was exported, if `compile` got the program
    itself; a file's takes the flat inputs in `input_names` and gives a list."""

    def __init__(self, compiled, in_spec=None, out_spec=None):
        self._compiled = compiled
        self._in_spec, self._out_spec = in_spec, out_spec

    @property
    def input_names(self):
        """The flat inputs, in order."""
        return self._compiled.input_names

    def __call__(self, *args, **kwargs):
        if self._in_spec is None:
            if kwargs:
                raise TypeError("a file's inputs have no keywords; input_names gives their order")
            return self._compiled([plain(a) for a in args])
        flat, spec = _pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise TypeError(f"the arguments are arranged as {spec}, the program takes {self._in_spec}")
        return _pytree.tree_unflatten(self._compiled([plain(a) for a in flat]), self._out_spec)


def load(path, options=None):
    """Compiles a .pt2 file, or one of coil's texts."""
    chosen = options if isinstance(options, Options) else Options(options)
    program = _coil.load(os.fspath(path))
    program.set_random_seed(int(chosen.get("seed", "0")))
    return CompiledModel(session(chosen).compile(program, chosen._table))


def compile(program, options=None):
    """Compiles a torch.export.ExportedProgram, or the file at a path. The program is copied: what
    becomes of its parameters later does not matter."""
    if isinstance(program, (str, os.PathLike)):
        return load(program, options)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        torch.export.save(program, path)
        loaded = load(path, options)
    spec = program.call_spec
    return CompiledModel(loaded._compiled, spec.in_spec, spec.out_spec)


class GraphReport:
    """What became of one graph: `ops` of torch that it had, coil's `text` of it, `kernels`, the
    generated `sources`, and `stage_ms`, milliseconds by stage."""

    def __init__(self, ops, program, compiled, stage_ms):
        self.ops, self.stage_ms = ops, stage_ms
        self.text = program.text()
        self.type_differences = program.type_differences
        self.kernels, self.sources = compiled.kernel_names, compiled.sources

    def __str__(self):
        lines = [f"{self.ops} ops, {len(self.kernels)} kernels: {', '.join(self.kernels)}"]
        lines += [f"  {name:12} {ms:9.2f} ms" for name, ms in self.stage_ms]
        return "\n".join(lines)


class Report(list):
    """A GraphReport of each graph, in the order in which they were compiled. `fallbacks` counts the
    ops that torch runs; `timing`, where it was asked for, says where the first call's time went, in
    milliseconds by name."""

    def __init__(self):
        super().__init__()
        self.seconds = 0.0  # the whole first call
        self.fallbacks = {}
        self.timing = {}

    def __str__(self):
        lines = [f"{len(self)} graphs, {self.seconds:.2f} s for the first call"]
        lines += [f"  {name:24} {ms:9.2f} ms" for name, ms in self.timing.items()]
        lines += [f"  {count}x {op} is run by torch" for op, count in self.fallbacks.items()]
        return "\n".join([*lines, *(f"graph {i}: {graph}" for i, graph in enumerate(self))])


class Clock:
    """Sums of milliseconds by name."""

    def __init__(self):
        self.ms = {}

    def timed(self, name, function):
        def run(*args, **kwargs):
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.ms[name] = self.ms.get(name, 0.0) + 1e3 * (time.perf_counter() - start)

        return run


def explain(function, *args, options=None, dynamic=None, timing=False, **kwargs):
    """Compiles `function` (or a module) afresh, calls it once, and says what became of it. Caches are
    left alone, unless the options say otherwise: a program from the cache has no kernels to show."""
    from coil import backend

    report, clock = Report(), Clock()
    given = options._values if isinstance(options, Options) else options or {}
    chosen = Options({"cache": False, **given})
    before = counted_fallbacks()

    def reporting(gm, example_inputs):
        watch = backend.Watch(report.append, clock if timing else None)
        compiled = backend.compile_both(gm, example_inputs, chosen, watch)
        return clock.timed("calls", compiled)

    torch._dynamo.reset()
    start = time.perf_counter()
    whole = torch.compile(function, backend=clock.timed("backend", reporting), dynamic=dynamic)
    whole(*args, **kwargs)
    report.seconds = time.perf_counter() - start
    after = counted_fallbacks()
    report.fallbacks = {op: n - before.get(op, 0) for op, n in after.items() if n != before.get(op, 0)}
    if timing:
        report.timing = stages_of(1e3 * report.seconds, clock.ms, report)
    return report


def counted_fallbacks():
    prefix = "fallback "
    counts = torch._dynamo.utils.counters["coil"]
    return {k.removeprefix(prefix): n for k, n in counts.items() if k.startswith(prefix)}


def stages_of(total, spent, graphs):
    """Where a call that compiles spends its time. `compile` is the C++ compiler, or the look-up of
    its objects. Graphs that are compiled when they are called (frozen weights) are part of no call."""
    backend, calls, coil_ms = (spent.get(name, 0.0) for name in ("backend", "calls", "coil"))
    stages = {"dynamo": total - backend - calls, "aot": backend - coil_ms}
    own = 0.0
    for graph in graphs:
        for name, ms in graph.stage_ms:
            stages[name] = stages.get(name, 0.0) + ms
            own += ms
    # What is left of coil's part, and what the calls did not spend on compiling frozen graphs.
    inside = max(own - coil_ms, 0.0)
    stages["other"] = max(coil_ms - own, 0.0)
    stages["run"] = calls - inside
    return stages
