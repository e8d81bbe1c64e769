"""Small programs of ATen ops as data: inputs, steps, results. They run in eager PyTorch, become one FX
graph, and print as a Python script that needs torch alone."""

import dataclasses
import operator
import types

import torch
from torch import fx

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


class Ref(int):
    """A tensor of the program: from 0 on the results of the steps, lists flattened; ~0, ~1, ... inputs."""

    def __repr__(self):
        return f"x{~self}" if self < 0 else f"t{int(self)}"

    def of(self, inputs, results):
        return inputs[~self] if self < 0 else results[self]


@dataclasses.dataclass
class Source:
    """An input: a window of a memory of its own, which is a tensor of one dim."""

    memory: torch.Tensor
    shape: tuple
    strides: tuple
    offset: int = 0

    def tensor(self, wide=False):
        memory = self.memory.clone()
        if wide:
            memory = memory.to(WIDE.get(memory.dtype, memory.dtype))
        return memory.as_strided(self.shape, self.strides, self.offset)

    @staticmethod
    def of(tensor):
        """The tensor's values in its own layout."""
        span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
        if tensor.numel() == 0:
            return Source(torch.empty(0, dtype=tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()))
        memory = tensor.detach().as_strided((span,), (1,)).clone()
        return Source(memory, tuple(tensor.shape), tuple(tensor.stride()))


@dataclasses.dataclass
class Step:
    op: str  # "add.Tensor", "relu.default"
    args: list  # positional, by schema; tensors are Refs
    kwargs: dict
    results: int  # tensors that it makes

    @property
    def overload(self):
        return overload(self.op)

    def refs(self):
        found = []
        map_refs((self.args, self.kwargs), found.append)
        return found


@dataclasses.dataclass
class Program:
    inputs: list  # of Source
    steps: list
    outputs: list  # of Refs


def overload(name):
    packet, _, which = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), which or "default")


def map_refs(tree, function):
    """The tree with each Ref replaced."""
    if isinstance(tree, Ref):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_refs(x, function) for x in tree)
    if isinstance(tree, dict):
        return {k: map_refs(v, function) for k, v in tree.items()}
    return tree


def results_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in results_of(part)]
    return []


def widened(tree):
    if isinstance(tree, torch.dtype):
        return WIDE.get(tree, tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(widened(x) for x in tree)
    if isinstance(tree, dict):
        return {k: widened(v) for k, v in tree.items()}
    return tree


@dataclasses.dataclass
class Ran:
    inputs: list  # afterwards
    results: list  # all, writes show
    outputs: list


def replay(program, wide=False, call=None, inputs=None):
    """Runs the program in eager PyTorch. `call(step, args, kwargs)` takes the place of the op."""
    inputs = inputs or [s.tensor(wide) for s in program.inputs]
    results = []
    for step in program.steps:
        args, kwargs = map_refs((step.args, step.kwargs), lambda r: r.of(inputs, results))
        if wide:
            args, kwargs = widened(args), widened(kwargs)
        made = results_of(call(step, args, kwargs) if call else step.overload(*args, **kwargs))
        if len(made) != step.results:
            raise RuntimeError(f"{step.op} makes {len(made)} tensors, not {step.results}")
        results += made
    return Ran(inputs, results, [r.of(inputs, results) for r in program.outputs])


def only(program, kept_steps):
    """The program of these steps alone, and the inputs that they or the outputs use; None where one
    uses what is gone."""
    numbers, steps, at = {}, [], 0
    used = set(program.outputs)
    for i, step in enumerate(program.steps):
        if i in kept_steps:
            used.update(step.refs())
            for j in range(step.results):
                numbers[Ref(at + j)] = Ref(len(numbers))
            steps.append(step)
        at += step.results
    inputs = [i for i in range(len(program.inputs)) if Ref(~i) in used]
    numbers.update({Ref(~i): Ref(~k) for k, i in enumerate(inputs)})
    if not used <= numbers.keys():
        return None
    moved = [
        Step(s.op, *map_refs((s.args, s.kwargs), lambda r: numbers[r]), s.results) for s in steps]
    return Program([program.inputs[i] for i in inputs], moved, [numbers[r] for r in program.outputs])


# As an FX graph.


class Merged:
    """Programs side by side in one FX graph, whose parts do not touch. Inputs and outputs are theirs
    one after the other."""

    def __init__(self, programs):
        self.programs = programs
        self.graph = fx.Graph()
        inputs = [[s.tensor() for s in p.inputs] for p in programs]
        places = [self.add_inputs(row, k) for k, row in enumerate(inputs)]
        outputs = []
        for k, program in enumerate(programs):
            outputs += self.add_steps(program, inputs[k], places[k], k)
        self.graph.output(tuple(outputs))

    @property
    def module(self):
        return types.SimpleNamespace(graph=self.graph)

    def add_inputs(self, tensors, k):
        nodes = []
        for i, tensor in enumerate(tensors):
            node = self.graph.placeholder(f"p{k}_x{i}")
            node.meta["val"] = tensor.detach()
            nodes.append(node)
        return nodes

    def add_steps(self, program, tensors, inputs, k):
        """The nodes of the outputs; `inputs` are those of the tensors."""
        nodes = []

        def call(step, args, kwargs):
            made = step.overload(*args, **kwargs)
            places = map_refs((step.args, step.kwargs), lambda r: r.of(inputs, nodes))
            node = self.graph.create_node(
                "call_function", step.overload, tuple(places[0]), places[1], f"p{k}_t{len(nodes)}")
            self.add_results(nodes, node, made)
            return made

        replay(program, call=call, inputs=tensors)
        return [r.of(inputs, nodes) for r in program.outputs]

    def add_results(self, nodes, node, made):
        if isinstance(made, torch.Tensor):
            node.meta["val"] = made.detach()
            nodes.append(node)
        elif isinstance(made, (list, tuple)):
            node.meta["val"] = tuple(m.detach() for m in made)
            for i, part in enumerate(made):
                item = self.graph.call_function(operator.getitem, (node, i))
                item.meta["val"] = part.detach()
                nodes.append(item)


# As a script.


def number_text(value):
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)


def memory_text(memory):
    if memory.is_complex():
        values = memory.tolist()
        return "[" + ", ".join(f"complex({number_text(v.real)}, {number_text(v.imag)})" for v in values) + "]"
    return "[" + ", ".join(number_text(v) for v in memory.tolist()) + "]"


def source_text(name, source):
    dtype = str(source.memory.dtype)
    head = f"torch.tensor({memory_text(source.memory)}, dtype={dtype})"
    plain = Source.of(source.tensor())
    contiguous = torch.empty(source.shape, device="meta").stride()
    if source.offset == 0 and tuple(contiguous) == tuple(source.strides):
        if plain.memory.numel() == source.memory.numel():
            return f"{name} = {head}" + ("" if len(source.shape) == 1 else f".view({tuple(source.shape)})")
    return f"{name} = {head}.as_strided({tuple(source.shape)}, {tuple(source.strides)}, {source.offset})"


def arg_text(value):
    if isinstance(value, Ref):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(arg_text(v) for v in value) + "]"
    return number_text(value)


def script(program):
    """Python that makes the inputs, and a function of them."""
    lines = [source_text(repr(Ref(~i)), s) for i, s in enumerate(program.inputs)]
    names = ", ".join(repr(Ref(~i)) for i in range(len(program.inputs)))
    lines += [f"def f({names}):"]
    at = 0
    for step in program.steps:
        args = [arg_text(a) for a in step.args]
        args += [f"{k}={arg_text(v)}" for k, v in step.kwargs.items()]
        returns = step.overload._schema.returns
        is_list = len(returns) > 1 or str(returns[0].type) != "Tensor"
        left = ", ".join(repr(Ref(at + i)) for i in range(step.results))
        lines.append(f"    {left}{',' if is_list else ''} = aten.{step.op}({', '.join(args)})")
        at += step.results
    lines.append(f"    return {', '.join(repr(r) for r in program.outputs)}")
    return "\n".join(lines)
