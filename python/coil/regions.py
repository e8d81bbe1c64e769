"""A graph in parts: what coil compiles, and what torch runs.

Each node has a level: coil's parts are the even ones, torch's the odd ones, and a node stands on the
lowest level of its own kind that is not below those of its operands. So there are as few parts as a
chain of dependences asks for. Writes to inputs come last.
"""

import operator

import torch
from torch.fx import Graph, GraphModule, Node

from coil.randomness import is_seeded

COPY = torch.ops.aten.copy_.default


class Part:
    """Nodes of one level as a graph of its own; `inputs` and `outputs` are nodes of the whole graph."""

    def __init__(self, level, module, inputs, outputs):
        self.is_eager = level % 2 == 1
        self.module, self.inputs, self.outputs = module, inputs, outputs


def split(module, eager):
    """The parts in order, where the nodes in `eager` are torch's."""
    levels = levels_of(module, eager)
    return [cut(module, levels, level) for level in sorted(set(levels.values()))]


def has_order(node):
    """Whether torch's nodes of this kind keep the program's order: they move a generator, or have no
    result, so that they are there for what they do."""
    return is_seeded(node.target) or isinstance(node.meta.get("val"), type(None))


def levels_of(module, eager):
    levels = {}
    newest = 1  # the level of the last node of torch's that has an order
    nodes = [n for n in module.graph.nodes if n.op == "call_function"]
    for node in nodes:
        if is_part(node):
            levels[node] = levels[node.args[0]]
            continue
        level = max((levels[n] for n in node.all_input_nodes if n in levels), default=0)
        if node in eager and has_order(node):
            level = max(level, newest)
        if level % 2 != (node in eager):
            level += 1
        if node in eager and has_order(node):
            newest = level
        levels[node] = level
    last = max(levels.values(), default=0)
    last += last % 2
    for node in nodes:
        if is_last(node, levels, last):
            levels[node] = last
    return levels


def is_part(node):
    """x[i] of a node with several results."""
    of = node.args[0] if node.target is operator.getitem else None
    if not isinstance(of, Node) or of.op != "call_function":
        return False
    # Ops that keep a generator's state do not say what they give.
    return "val" not in of.meta or isinstance(of.meta["val"], (tuple, list))


def is_last(node, levels, last):
    if node.target is COPY:
        return True
    return any(n.target is COPY and levels.get(n) == last for n in node.all_input_nodes)


def cut(module, levels, level):
    nodes = [n for n in module.graph.nodes if levels.get(n) == level]
    inside = set(nodes)
    sizes = [n for n in module.graph.find_nodes(op="placeholder") if is_size(n)]
    used = dict.fromkeys(i for n in nodes for i in n.all_input_nodes if i not in inside)
    inputs = list(dict.fromkeys(sizes + [n for n in used if n.op != "get_attr"]))
    outputs = [n for n in nodes if any(u not in inside for u in n.users)]
    graph = Graph()
    env = {}
    for node in inputs:
        env[node] = graph.placeholder(node.name)
        env[node].meta = dict(node.meta)
    for node in used:
        if node.op == "get_attr":
            env[node] = graph.node_copy(node)
    for node in nodes:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output(tuple(env[n] for n in outputs))
    return Part(level, GraphModule(module, graph), inputs, outputs)


def is_size(node):
    """A placeholder of a dynamic size, which shapes may name."""
    return isinstance(node.meta.get("val"), torch.SymInt)


class Sequence:
    """The parts of a graph, run in order. `functions` take a list, which they may empty."""

    def __init__(self, module, parts, functions, frozen=()):
        self.frozen = {}
        self.places = []
        for node in module.graph.find_nodes(op="placeholder"):
            if node.name in frozen:
                self.frozen[node] = frozen[node.name]
            else:
                self.places.append(node)
        self.steps = list(zip(parts, functions, strict=True))
        results = module.graph.output_node().args[0]
        self.results = results if isinstance(results, (tuple, list)) else (results,)
        self.dead = self.find_dead()

    def find_dead(self):
        """By step: the values that nothing after it needs."""
        needed = {n for n in self.results if isinstance(n, Node)}
        dead = []
        for part, _ in reversed(self.steps):
            known = dict.fromkeys([*part.inputs, *part.outputs])
            dead.append([n for n in known if n not in needed])
            needed.update(part.inputs)
        return dead[::-1]

    def __call__(self, args):
        values = dict(self.frozen)
        values.update(zip(self.places, args, strict=True))
        args.clear()
        for (part, run), dead in zip(self.steps, self.dead):
            results = run([values[n] for n in part.inputs])
            values.update(zip(part.outputs, results, strict=True))
            for node in dead:
                values.pop(node, None)
        return [values[r] if isinstance(r, Node) else r for r in self.results]
