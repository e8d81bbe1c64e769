"""From an FX graph of AOT Autograd to something that can be called."""

import dataclasses
import re
import time
from collections.abc import Callable

import torch

from coil import fallback, hops, literals, randomness, regions
from coil.bounds import drop_false_bounds
from coil.errors import CompileError, UnsupportedError
from coil.fx import Document
from coil.session import session

# Where coil's rules, which follow what eager does, and torch's fake run differ.
DIFFERENCE = re.compile(r"(\S+) = .*: coil finds (\w+)\[")
FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


class Dtypes:
    """Dtypes of values that a forward graph keeps for its backward graph, where torch's fake run states others
    than eager and coil have: statistics of a batch norm of half floats with float32 weights."""

    def __init__(self):
        self.by_name = {}

    def learn(self, program):
        for text in program.type_differences:
            found = DIFFERENCE.match(text)
            if found and found[2] in FLOATS:
                self.by_name[found[1]] = FLOATS[found[2]]

    def apply(self, module):
        for node in module.graph.find_nodes(op="placeholder"):
            dtype = self.by_name.get(node.name)
            if dtype is not None and node.meta["val"].dtype != dtype:
                node.meta["val"] = node.meta["val"].to(dtype)


@dataclasses.dataclass
class Extras:
    """What a compilation takes beside the graph and its options."""

    report: Callable | None = None  # called with a GraphReport of each part
    frozen: dict = dataclasses.field(default_factory=dict)  # tensors of placeholders, by name
    dtypes: Dtypes = dataclasses.field(default_factory=Dtypes)


def compile_graph(module, options, report=None, dtypes=None):
    """Compiles a functional ATen graph; the result takes its placeholders' values as one list.
    `report` is called with a GraphReport of each part; `dtypes` goes from a forward graph to its
    backward graph."""
    extras = Extras(report, dtypes=dtypes or Dtypes())
    extras.dtypes.apply(module)
    draws = prepare(module, options)
    run = compile_prepared(module, options, extras)
    run = with_key(run) if draws else run
    run._boxed_call = True  # AOT Autograd calls it with one list, which is emptied
    return run


def prepare(module, options):
    """Writes what coil has not in terms of what it has. Whether the graph has got one placeholder
    more, the key of its random numbers."""
    hops.expand(module)
    literals.lift(module)
    drop_false_bounds(module)
    if not options.flag("fallback_random"):
        randomness.give_keys(module)
    return randomness.as_placeholder(module)


def with_key(run):
    def drawing(args):
        args.append(randomness.new_key())
        return run(args)

    return drawing


def compile_prepared(module, options, extras):
    """Compiles a prepared graph: the result does not take the placeholders that are frozen."""
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    given = {n for n in calls if fallback.always_eager(n, options)}
    eager = set(given)
    may_fall_back = options.get("fallback", "error") == "allow"
    if may_fall_back:
        eager.update(n for n in calls if not fallback.is_supported(module, n))
    while True:
        try:
            run = compile_parts(module, options, eager, extras)
            break
        except CompileError as problem:
            more = fallback.culprits(module, problem) - eager if may_fall_back else set()
            if not more:
                raise
            eager |= more
    if eager - given:
        fallback.note([n for n in calls if n in eager - given])
    return run


def compile_parts(module, options, eager, extras):
    report, frozen = extras.report, extras.frozen
    if not eager:
        imported = Imported(module, options, frozen)
        if imported.program.missing:
            raise UnsupportedError(imported.program.missing)
        extras.dtypes.learn(imported.program)
        return imported.compile(report)
    parts = regions.split(module, eager)
    imported = [None if p.is_eager else Imported(p.module, options, frozen) for p in parts]
    missing = merged([row for i in imported if i is not None for row in i.program.missing])
    if missing:
        raise UnsupportedError(missing)
    functions = []
    for part, one in zip(parts, imported):
        if part.is_eager:
            functions.append(eagerly(part.module))
        else:
            extras.dtypes.learn(one.program)
            part.inputs = [n for n in part.inputs if n.name not in frozen]
            functions.append(one.compile(report))
    return regions.Sequence(module, parts, functions, frozen)


def merged(rows):
    """Rows of missing ops (name, first place, uses), each op once."""
    found = {}
    for op, place, count in rows:
        first, before = found.get(op, (place, 0))
        found[op] = (first, before + count)
    return [(op, place, count) for op, (place, count) in found.items()]


def eagerly(module):
    def run(args):
        return [plain(result) for result in module(*args)]

    return run


class Imported:
    """A graph that C++ has read."""

    def __init__(self, module, options, frozen):
        self.module, self.options = module, options
        start = time.perf_counter()
        self.document = Document(module, frozen)
        written = time.perf_counter()
        text, document = self.document.text(), self.document
        self.session = session(options)
        shared = list(document.frozen.values())
        self.program = self.session.import_graph(text, document.constants, shared)
        read = time.perf_counter()
        self.stages = [("write", 1e3 * (written - start)), ("import", 1e3 * (read - written))]

    def compile(self, report):
        compiled = self.session.compile(self.program, self.options._table, self.document.passed)
        if report is not None:
            from coil.api import GraphReport

            ops = len(self.document.graph["nodes"])
            report(GraphReport(ops, self.program, compiled, self.stages + compiled.stage_times))
        return with_plain_inputs(compiled, self.module, self.document.frozen)


def plain(value):
    """A tensor whose memory holds its values: not one that says "conjugated" or "negated"."""
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value


def with_plain_inputs(compiled, module, frozen=()):
    """Which inputs are conjugated or negated when read is fixed: Dynamo's guards see to it."""
    inputs = [n for n in module.graph.find_nodes(op="placeholder") if n.name not in frozen]
    lazy = [i for i, node in enumerate(inputs) if is_lazy(node.meta.get("val"))]
    if not lazy:
        return compiled
    written = {n.args[0] for n in module.graph.nodes if n.target is torch.ops.aten.copy_.default}
    for i in lazy:
        if inputs[i] in written:
            raise CompileError(f"'{inputs[i]}' is a conjugated or negated view that is written to")

    def run(args):
        for i in lazy:
            args[i] = plain(args[i])
        return compiled(args)

    return run


def is_lazy(value):
    return isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg())
