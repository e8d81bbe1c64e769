"""What coil raises."""

from coil._coil import CoilError, CompileError, RunError

__all__ = [
    "CoilError",
    "CompileError",
    "FallbackWarning",
    "OptionError",
    "RunError",
    "UnsupportedError",
]


class OptionError(CoilError, ValueError):
    """An option that coil has not, or a value that it does not take."""


class UnsupportedError(CompileError):
    """Ops that coil has not. `ops` holds a row (name, first place in the user's code, uses) of each."""

    def __init__(self, ops):
        self.ops = list(ops)
        rows = []
        for op, place, count in self.ops:
            name = op if "::" in op or op.startswith("/") else "aten." + op
            rows.append(f"{name} ({count}x{', first at ' + place if place else ''})")
        verb = "op is" if len(rows) == 1 else "ops are"
        super().__init__(f"{len(rows)} {verb} not supported: {', '.join(rows)}")


class FallbackWarning(UserWarning):
    """Ops that torch runs inside of a compiled graph, where options={"fallback": "allow"} lets it."""
