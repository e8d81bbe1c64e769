"""Which nodes torch runs inside of a compiled graph, and why."""

import re
import warnings

import torch
from torch._dynamo.utils import counters
from torch.fx import GraphModule

from coil.decompositions import has_op
from coil.errors import CompileError, FallbackWarning, UnsupportedError
from coil.fx import DTYPES, target_name
from coil.randomness import is_random, is_seeded, sub_graphs
from coil.regions import is_part

# What has an effect besides its results, by nature or by name: torch runs it, in order.
EFFECTS = ("with_effects", "print", "call_torchbind")
CHECKS = {
    torch.ops.aten._assert_async.default,
    torch.ops.aten._assert_async.msg,
    torch.ops.aten._functional_assert_async.msg,
    torch.ops.aten._print.default,
}
CONTROL = ("cond", "while_loop", "scan", "map_impl")
SIZES = {
    torch.ops.aten.sym_size.int,
    torch.ops.aten.sym_stride.int,
    torch.ops.aten.sym_numel.default,
    torch.ops.aten.sym_storage_offset.default,
    torch.ops.prims.convert_element_type.default,
}


def is_hop(node):
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def always_eager(node, options):
    """Whether torch runs the node even where nothing may fall back."""
    if is_hop(node):
        if options.flag("fallback_random") and "rng_state" in str(node.target):
            return True
        return str(node.target) in EFFECTS
    if options.flag("fallback_random") and is_seeded(node.target) and is_random(node):
        return True
    return node.target in CHECKS


def is_supported(module, node):
    """Whether coil has the node's op, and its operands and results are of kinds that it takes."""
    values = [n.meta.get("val") for n in [node, *node.all_input_nodes]]
    tensors = [v for v in torch.utils._pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]
    if not all(map(is_plain_tensor, tensors)):
        return False
    if is_hop(node):
        return str(node.target) in CONTROL and all(
            is_supported(graph, n)
            for graph in sub_graphs(module, node)
            for n in graph.graph.nodes
            if n.op == "call_function"
        )
    if not isinstance(node.target, torch._ops.OpOverload):
        return True  # keyed, x[i] and what Python computes of sizes
    return node.target in SIZES or has_op(node.target)


def is_plain_tensor(value):
    return (
        value.layout is torch.strided and value.device.type == "cpu" and value.dtype in DTYPES
        and not value.is_quantized
    )


def culprits(module, problem):
    """Nodes that an error is about."""
    nodes = [n for n in module.graph.nodes if n.op == "call_function"]
    if isinstance(problem, UnsupportedError):
        ops = {op for op, _, _ in problem.ops}
        return {n for n in nodes if not ops.isdisjoint(names_of(module, n))}
    # "node relu_3 (model.py:12): ..."; what a decomposition made is called after its node.
    found = set()
    for name in re.findall(r"(?:^|\bnode )(\w+)(?: \([^)]*\))?: ", str(problem), re.MULTILINE):
        fitting = [n for n in nodes if name == n.name or name.startswith(n.name + "_")]
        if fitting:
            node = max(fitting, key=lambda n: len(n.name))
            found.add(node.args[0] if is_part(node) else node)  # a part is its whole's
    return found


def names_of(module, node):
    """Names under which coil knows the op of a node, and those of its sub-graphs."""
    name = target_name(node)
    for prefix in ("torch.ops.aten.", "torch.ops."):
        if name.startswith(prefix):
            name = name.removeprefix(prefix).removesuffix(".default")
            break
    found = {name, name.replace(".", "::", 1), "/" + name}
    for graph in sub_graphs(module, node):
        for inner in graph.graph.nodes:
            if inner.op == "call_function":
                found |= names_of(graph, inner)
    return found


def op_name(node):
    return target_name(node).removeprefix("torch.ops.")


_warned = set()


def note(nodes):
    """Counts ops that fall back, and warns once of each."""
    names = [op_name(n) for n in nodes]
    for name in names:
        counters["coil"][f"fallback {name}"] += 1
    new = sorted(set(names) - _warned)
    if new:
        _warned.update(new)
        warnings.warn(f"coil leaves to torch: {', '.join(new)}", FallbackWarning, stacklevel=2)
