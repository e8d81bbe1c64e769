"""Frozen weights: in inference, parameters and buffers as constants of the program.

What depends on them alone (folded norms, packed weights) is computed once. The memory is the
parameters' own. Whether they still are what they were is seen at each call, from the tensor's address
and its version, which torch counts up with each write: after a change, the program is made again from
the new values. (A write past that count, through `.data` or another library's view of the memory, is
as invisible here as it is to autograd: torch._dynamo.reset() after it.)
"""

import threading

import torch
from torch._guards import TracingContext

from coil import compiler, fallback
from coil.errors import UnsupportedError
from coil.fx import DTYPES

COPY = torch.ops.aten.copy_.default


def compile_frozen(module, options, report=None):
    """As compile_graph, of a graph without gradients."""
    draws = compiler.prepare(module, options)
    places = freezable(module)
    if not places:
        run = compiler.compile_prepared(module, options, compiler.Extras(report))
    else:
        check_ops(module, options)
        run = Frozen(module, options, report, places)
    run = compiler.with_key(run) if draws else run

    def boxed(args):
        return run(args)

    boxed._boxed_call = True
    return boxed


def check_ops(module, options):
    """Missing ops are an error when the graph is compiled, though its weights are known only when
    it is called."""
    eager = any(fallback.always_eager(n, options) for n in module.graph.nodes if n.op == "call_function")
    if eager or options.get("fallback", "error") == "allow":
        return
    missing = compiler.Imported(module, options, {}).program.missing
    if missing:
        raise UnsupportedError(missing)


def freezable(module):
    """Positions of the placeholders that are parameters or buffers, which nothing writes to and no
    result shares memory with."""
    places = module.graph.find_nodes(op="placeholder")
    context = TracingContext.try_get()
    meta = context.fw_metadata if context is not None else None
    static = set(meta.static_input_indices or ()) if meta is not None else set()
    written = {n.args[0] for n in module.graph.nodes if n.target is COPY}
    results = torch.utils._pytree.tree_leaves(module.graph.output_node().args)
    shared = {storage_of(r) for r in results if isinstance(r, torch.fx.Node)}
    return [
        i
        for i, node in enumerate(places)
        if i in static and node not in written and is_weight(node.meta.get("val"))
        and storage_of(node) not in shared
    ]


def storage_of(node):
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def is_weight(value):
    return (
        isinstance(value, torch.Tensor) and value.dtype in DTYPES and value.layout is torch.strided
        and all(isinstance(s, int) for s in (*value.shape, *value.stride()))
        and not value.is_conj() and not value.is_neg()
    )


class Frozen:
    """A graph that is compiled when its weights are there, and again after they changed."""

    def __init__(self, module, options, report, places):
        self.module, self.options, self.report = module, options, report
        self.places = places
        self.names = [n.name for n in module.graph.find_nodes(op="placeholder")]
        self.made = None  # (marks of the weights, which of them are frozen, the program)
        self.lock = threading.Lock()

    def __call__(self, args):
        made = self.made
        if made is None or made[0] != [mark(args[i]) for i in made[1]]:
            made = self.make(args)
        frozen = set(made[1])
        rest = [a for i, a in enumerate(args) if i not in frozen]
        args.clear()
        return made[2](rest)

    def make(self, args):
        with self.lock:
            # What has no version cannot be watched: it stays an input.
            watched = [i for i in self.places if not args[i].is_inference()]
            marks = [mark(args[i]) for i in watched]
            if self.made is not None and self.made[:2] == (marks, watched):
                return self.made
            weights = {self.names[i]: args[i].detach() for i in watched}
            run = compiler.compile_prepared(
                self.module, self.options, compiler.Extras(self.report, weights)
            )
            self.made = (marks, watched, run)
            return self.made


def mark(tensor):
    """Differs where the memory, or what was written to it, does."""
    return (tensor.data_ptr(), tensor._version)
