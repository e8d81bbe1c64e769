"""What a suite lists, and sources of input values."""

import dataclasses
from typing import Any, Callable

import torch
from torch import nn


@dataclasses.dataclass
class Program:
    name: str
    build: Callable[[], nn.Module]
    calls: list  # of args, or of (args, kwargs) as a list of two
    dynamic: Any = None


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def of_function(name, function, calls, dynamic=None):
    """A program without weights. `dynamic` is one entry an argument."""
    return Program(name, lambda: Function(function), calls, None if dynamic is None else (dynamic,))


class Values:
    """Seeded random tensors."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, dtype=torch.float32):
        return torch.randn(*shape, generator=self.generator).to(dtype)

    def ints(self, low, high, *shape, dtype=torch.int64):
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)

    def bools(self, *shape):
        return torch.rand(*shape, generator=self.generator) < 0.5
