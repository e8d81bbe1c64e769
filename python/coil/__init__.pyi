import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from coil._coil import CoilError as CoilError
from coil._coil import CompileError as CompileError
from coil._coil import RunError as RunError

_Value = str | int | bool

class OptionError(CoilError, ValueError): ...

class UnsupportedError(CompileError):
    ops: list[tuple[str, str, int]]
    def __init__(self, ops: list[tuple[str, str, int]]) -> None: ...

class FallbackWarning(UserWarning): ...

class Options:
    def __init__(self, values: Mapping[str, _Value] | None = None, **more: _Value) -> None: ...
    def set(self, key: str, value: _Value) -> None: ...
    def get(self, key: str, fallback: str | None = None) -> str | None: ...
    def flag(self, key: str) -> bool: ...
    @staticmethod
    def help() -> str: ...

class CompiledModel:
    @property
    def input_names(self) -> list[str]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class GraphReport:
    ops: int
    text: str
    type_differences: list[str]
    kernels: list[str]
    sources: list[str]
    stage_ms: list[tuple[str, float]]

class Report(list[GraphReport]):
    seconds: float
    fallbacks: dict[str, int]
    timing: dict[str, float]

def compile(
    program: torch.export.ExportedProgram | str | os.PathLike[str],
    options: Options | Mapping[str, _Value] | None = None,
) -> CompiledModel: ...
def load(path: str | os.PathLike[str], options: Options | Mapping[str, _Value] | None = None) -> CompiledModel: ...
def explain(
    function: Callable[..., Any],
    *args: Any,
    options: Options | Mapping[str, _Value] | None = None,
    dynamic: bool | None = None,
    timing: bool = False,
    **kwargs: Any,
) -> Report: ...
