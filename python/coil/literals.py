"""Tensors that the bodies of control flow hold, as `torch.tensor([1., 2.])` in a loop, become operands: coil's
sub-graphs know what they are given, and nothing else."""

import torch
from torch.fx.graph_module import _get_attr

from coil.hops import is_graph

# Their operands are the last argument, and the last placeholders of each of their graphs.
CONTROL_FLOW = ("cond", "while_loop", "scan", "map_impl")


def lift(module):
    """Does so in `module`, whose own literals stay. Each node has graphs of its own: tracing makes them."""
    changed = False
    for node in list(module.graph.nodes):
        if node.op == "call_function" and str(node.target) in CONTROL_FLOW:
            changed |= lift_from(module, node)
    if changed:
        module.recompile()


def lift_from(module, node):
    """Whether a graph of the node's held a tensor."""
    graphs = [a for a in node.args if isinstance(a, torch.fx.Node) and is_graph(module, a)]
    bodies = list(dict.fromkeys(_get_attr(module, g.target) for g in graphs))
    operands = []
    for body in bodies:
        lift(body)
        for literal in tensors_of(body):
            value = _get_attr(body, literal.target)
            operands.append(operand_of(module, node, f"_{node.name}_{len(operands)}", value))
            for other in bodies:
                place = new_placeholder(other, literal.name, value)
                if other is body:
                    literal.replace_all_uses_with(place)
            body.graph.erase_node(literal)
    if operands:
        for body in bodies:
            body.recompile()
        node.args = (*node.args[:-1], (*node.args[-1], *operands))
    return bool(operands)


def tensors_of(body):
    return [n for n in body.graph.find_nodes(op="get_attr") if isinstance(_get_attr(body, n.target), torch.Tensor)]


def operand_of(module, node, name, value):
    module.register_buffer(name, value)
    with module.graph.inserting_before(node):
        return module.graph.get_attr(name)


def new_placeholder(body, name, value):
    """One after those that are there."""
    places = body.graph.find_nodes(op="placeholder")
    graph = body.graph
    with graph.inserting_after(places[-1]) if places else graph.inserting_before(next(iter(graph.nodes))):
        place = graph.placeholder(f"{name}_given")
    place.meta["val"] = value
    return place
