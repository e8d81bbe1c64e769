"""A Python function as a fuzz_program.Program: the ATen ops that it calls, as torch dispatches them, less
those that the backend leaves to torch's own decompositions."""

import torch
from fuzz_program import Program, Ref, Source, Step, results_of
from torch.utils._python_dispatch import TorchDispatchMode

from coil.decompositions import decompositions


def whole(x):
    count = x.untyped_storage().nbytes() // x.element_size()
    memory = x.detach().as_strided((count,), (1,), 0).clone()
    return Source(memory, tuple(x.shape), tuple(x.stride()), x.storage_offset())


class Recorder(TorchDispatchMode):
    """Notes each op; tensors that come from nowhere are inputs."""

    def __init__(self, inputs):
        super().__init__()
        self.inputs = [whole(x) for x in inputs]
        self.steps, self.count = [], 0
        self.places = {id(x): Ref(~i) for i, x in enumerate(inputs)}
        self.alive = list(inputs)

    def place(self, x):
        if isinstance(x, torch.Tensor):
            if id(x) not in self.places:
                self.places[id(x)] = Ref(~len(self.inputs))
                self.inputs.append(whole(x))
                self.alive.append(x)
            return self.places[id(x)]
        if isinstance(x, (list, tuple)):
            return [self.place(y) for y in x]
        return x

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in decompositions():
            with self:
                made = decompositions()[func](*args, **kwargs)
            if made is not NotImplemented:
                return made
        placed = [self.place(a) for a in args], {k: self.place(v) for k, v in kwargs.items()}
        made = func(*args, **kwargs)
        results = results_of(made)
        name = func.name().removeprefix("aten::")
        self.steps.append(Step(name if "." in name else name + ".default", *placed, len(results)))
        for r in results:
            self.places[id(r)] = Ref(self.count)
            self.alive.append(r)
            self.count += 1
        return made


def record(function, inputs):
    """The program of function(*inputs) with its tensor results, or None if it has none."""
    inputs = [whole(x).tensor() for x in inputs]
    recorder = Recorder(inputs)
    with torch.no_grad(), recorder:
        results = results_of(function(*inputs))
    return Program(recorder.inputs, recorder.steps, [recorder.place(r) for r in results])
