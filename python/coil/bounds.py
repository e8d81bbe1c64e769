"""Bounds of sizes from data that torch's fake run states and that do not hold."""

import math
import operator

import torch

aten = torch.ops.aten


def falsely_bounded(module):
    """torch bounds what masked_select finds by the elements of self, and asserts it, though a mask that repeats
    self selects more: such nodes, and how many elements self has."""
    for node in module.graph.find_nodes(op="call_function", target=aten.masked_select.default):
        shapes = [arg.meta["val"].shape for arg in node.args]
        elements = shapes[0].numel()
        known = all(isinstance(size, int) for shape in shapes for size in shape)
        if not known or math.prod(torch.broadcast_shapes(*shapes)) > elements:
            yield node, elements


def unbounded_symbols(module):
    """The symbols of their sizes."""
    sizes = [node.meta["val"].shape[0] for node, _ in falsely_bounded(module)]
    return {size.node.expr for size in sizes if isinstance(size, torch.SymInt)}


def drop_false_bounds(module):
    """Takes out the assertions."""
    for node, elements in falsely_bounded(module):
        for size in list(node.users):
            if size.target is aten.sym_size.int:
                drop_bounds(module.graph, size, elements)


def drop_bounds(graph, size, bound):
    """The assertions that `size` is at most `bound`."""
    for test in list(size.users):
        if test.target is not operator.le or test.args[0] is not size or test.args[1] != bound:
            continue
        for check in list(test.users):
            if check.target is aten._assert_scalar.default:
                graph.erase_node(check)
        if not test.users:
            graph.erase_node(test)
