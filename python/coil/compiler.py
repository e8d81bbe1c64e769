"""From an FX graph of AOT Autograd to something that can be called."""

import re
import time

import torch

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


def compile_graph(module, options, report=None, dtypes=None):
    """Compiles a functional ATen graph; the result takes its placeholders' values as one list.
    `report` is called with a GraphReport; `dtypes` goes from a forward graph to its backward graph."""
    dtypes = dtypes or Dtypes()
    dtypes.apply(module)
    start = time.perf_counter()
    document = Document(module)
    written = time.perf_counter()
    here = session(options)
    program = here.import_graph(document.text(), document.constants)
    read = time.perf_counter()
    if program.missing:
        raise UnsupportedError(program.missing)
    dtypes.learn(program)
    compiled = here.compile(program, options._table, document.passed)
    if report is not None:
        from coil.api import GraphReport

        stages = [("write", 1e3 * (written - start)), ("import", 1e3 * (read - written))]
        ops = len(document.graph["nodes"])
        report(GraphReport(ops, program, compiled, stages + compiled.stage_times))
    compiled = with_plain_inputs(compiled, module)
    compiled._boxed_call = True  # AOT Autograd calls it with one list, which is emptied
    return compiled


def plain(value):
    """A tensor whose memory holds its values: not one that says "conjugated" or "negated"."""
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value


def with_plain_inputs(compiled, module):
    """Which inputs are conjugated or negated when read is fixed: Dynamo's guards see to it."""
    inputs = module.graph.find_nodes(op="placeholder")
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
