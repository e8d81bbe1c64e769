"""Publicly reported defects of other tensor compilers as programs of coil's tests: the registry."""

import dataclasses
import inspect
from typing import Any, Callable

import torch

ROWS, REFUSALS, WAITING = [], [], []
SIZES = (1, 15, 16, 17)


@dataclasses.dataclass
class Row:
    """A function and its inputs. `inputs` with a parameter n is run at other sizes, too."""

    report: str  # "pytorch#93815"
    function: Callable
    inputs: Callable
    right: Any = None  # of the results, at the size that was reported: what they must be
    sizes: tuple = SIZES
    big: int = 0  # a size at which threads share the work
    front: bool = False  # through torch.compile, not as recorded ops
    is_open: bool = False  # eager's own result is not defined: the ways agree, that is all
    refusal: str = ""  # what coil says as long as it cannot do this; the row counts as waiting

    @property
    def is_sized(self):
        return bool(inspect.signature(self.inputs).parameters)

    def made(self, n=None):
        """Inputs; the given size without n."""
        torch.manual_seed(sum(map(ord, self.report)))
        return list(self.inputs() if n is None else self.inputs(n))


def row(report, function, inputs=lambda: [], right=None, **more):
    ROWS.append(Row(report, function, inputs, right, **more))


def refused(report, function, inputs=lambda: [], match=""):
    """Eager PyTorch raises, and so does coil, at the compilation or at the call."""
    REFUSALS.append(Row(report, function, inputs, match))


def waiting(report, why):
    WAITING.append((report, why))


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def rand(*shape, dtype=torch.float32):
    return torch.rand(*shape, dtype=torch.float64).to(dtype)


def ints(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def tensor(values, dtype=None):
    return torch.tensor(values, dtype=dtype)


def gradients(function, *inputs):
    """Of the sum of the results with regard to each floating input."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    with torch.enable_grad():
        result = function(*leaves)
        return torch.autograd.grad(result.sum(), [x for x in leaves if x.requires_grad])
