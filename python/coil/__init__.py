"""coil: a tensor compiler for PyTorch.

    torch.compile(model, backend="coil")

needs no import of this package: torch finds it by its entry point.
"""

from coil.api import compile, explain, load
from coil.errors import (
    CoilError,
    CompileError,
    FallbackWarning,
    OptionError,
    RunError,
    UnsupportedError,
)
from coil.options import Options

__all__ = [
    "CoilError",
    "CompileError",
    "FallbackWarning",
    "OptionError",
    "Options",
    "RunError",
    "UnsupportedError",
    "compile",
    "explain",
    "load",
]
