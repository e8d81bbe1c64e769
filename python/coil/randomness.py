"""Random numbers: how an op gets what its draws depend on.

coil's generator is a function of a key (two 64-bit words), of an op's number and of an element's
position, so that it does not matter where, when and how often an op is run. Each call of a compiled
graph that draws takes its key from torch's default CPU generator, as

    torch.empty(2, dtype=torch.int64).random_()

does: torch.manual_seed governs the numbers, and the next call gets others. The key of a forward pass
is saved for its backward pass, where an op that is computed again draws the same numbers.
"""

import torch
from torch._functorch.partitioners import must_recompute
from torch.utils.checkpoint import CheckpointPolicy

from coil import _coil, hops
from coil.decompositions import has_op
from coil.errors import CompileError


def program_key():
    """The target of the node that is the key of a call."""
    raise RuntimeError("program_key stands for an input that compile_graph adds")


def keyed(op, key, number, *args, **kwargs):
    """The target of a node that is `op` with a key and a number."""
    raise RuntimeError("keyed is compiled, never run")


def drawless(op, *args, **kwargs):
    """The target of a node that is `op`, which torch's tags call random and coil does not."""
    raise RuntimeError("drawless stands for an op while a graph is partitioned")


def new_key():
    """Two words of torch's default CPU generator, which moves on."""
    return torch.empty(2, dtype=torch.int64).random_()


def is_seeded(op):
    """Whether torch's generator decides what an op does."""
    return isinstance(op, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in op.tags


def is_random(node):
    """Whether coil makes the random numbers of a node."""
    op = node.target
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return False
    name = op._schema.name.removeprefix("aten::")
    overload = op._schema.overload_name
    return _coil.is_random(f"{name}.{overload}" if overload else name)


def give_keys(module):
    """Gives every random op a key and a number. Done before forward and backward are parted."""
    for node in list(module.graph.nodes):
        if str(node.target) == "invoke_subgraph" and has_random_parts(module, node):
            hops.expand_node(module, node)
    counter = Numbers(module)
    nodes = [n for n in module.graph.nodes if is_random(n) or has_random_parts(module, n)]
    if not nodes:
        return
    key = next((n for n in module.graph.nodes if n.target is program_key), None)
    if key is None:
        key = add_key(module, nodes[0])
    for node in nodes:
        if is_random(node):
            give_key(node, key, counter)
        else:
            hand_in(module, node, key, counter)


def hide_drawless(module):
    """What is computed again and draws nothing in coil (attention, which older releases of torch tag as random): the
    partitioner has no generator's state to save for it."""
    for node in module.graph.nodes:
        if is_seeded(node.target) and has_op(node.target) and not is_random(node) and must_recompute(node):
            node.args, node.target = (node.target, *node.args), drawless


def show_drawless(module):
    for node in module.graph.find_nodes(op="call_function", target=drawless):
        node.target, node.args = node.args[0], node.args[1:]
    module.recompile()


class Numbers:
    """Numbers of ops, each one once in a program."""

    def __init__(self, module):
        used = [n.args[2] for n in module.graph.nodes if n.target is keyed]
        self.next = max(used, default=-1) + 1

    def take(self):
        self.next += 1
        return self.next - 1


def give_key(node, key, numbers):
    node.args = (node.target, key, numbers.take(), *node.args)
    node.target = keyed


def add_key(module, user):
    """A node at the head of the graph; it is saved, never made again."""
    graph = module.graph
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        key = graph.call_function(program_key)
    key.meta["val"] = fake_key(user)
    key.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return key


def fake_key(user):
    values = torch.utils._pytree.tree_leaves(user.meta.get("val"))
    mode = torch._guards.detect_fake_mode([v for v in values if isinstance(v, torch.Tensor)])
    if mode is None:
        return torch.empty(2, dtype=torch.int64)
    with mode:
        return torch.empty(2, dtype=torch.int64)


# Control flow: the key goes in as one operand more.

LOOPS = ("while_loop", "while_loop_stack_output", "scan", "map_impl", "associative_scan")


def sub_graphs(module, node):
    """Graphs among the arguments of a node, by the node that names them."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return []
    named = [a for a in node.args if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
    found = [(a, torch.fx.graph_module._get_attr(module, a.target)) for a in named]
    return [graph for _, graph in found if isinstance(graph, torch.fx.GraphModule)]


def has_random_parts(module, node):
    return any(
        is_random(n) or has_random_parts(graph, n)
        for graph in sub_graphs(module, node)
        for n in graph.graph.nodes
    )


def hand_in(module, node, key, numbers):
    name = str(node.target)
    if name != "cond":
        what = "a loop's body" if name in LOOPS else f"the graph of {name}"
        raise CompileError(f"{node}: random numbers inside of {what} are not supported")
    for graph in sub_graphs(module, node):
        inner_key = add_operand(graph, key)
        for inner in list(graph.graph.nodes):
            if is_random(inner):
                give_key(inner, inner_key, numbers)
            elif has_random_parts(graph, inner):
                hand_in(graph, inner, inner_key, numbers)
        graph.recompile()
    predicate, yes, no, operands = node.args
    node.args = (predicate, yes, no, (*operands, key))


def add_operand(module, key):
    graph = module.graph
    places = graph.find_nodes(op="placeholder")
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        made = graph.placeholder(f"random_key_{len(places)}")
    made.meta["val"] = key.meta["val"]
    return made


def as_placeholder(module):
    """Makes the key of a graph an input behind the others. Whether there is one."""
    graph = module.graph
    keys = graph.find_nodes(op="call_function", target=program_key)
    if not keys:
        return False
    first = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(first):
        made = graph.placeholder("random_key")
    made.meta = dict(keys[0].meta)
    for key in keys:
        key.replace_all_uses_with(made)
        graph.erase_node(key)
    return True
