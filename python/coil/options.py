"""Options of a compilation, with the defaults of coil's option table."""

from coil import _coil
from coil.errors import CompileError, OptionError

# Modes of torch.compile. On a CPU, the way that coil compiles does not depend on them.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Options:
    """Values of options by name; `Options.help()` lists all. An unknown name is an OptionError that
    gives the nearest one.

        coil.Options(threads=2, target="interp")
    """

    def __init__(self, values=None, **more):
        self._values = {}
        self._table = _coil.Options()
        for key, value in {**(values or {}), **more}.items():
            self.set(key, value)

    def set(self, key, value):
        text = value
        if isinstance(value, bool):
            text = "on" if value else "off"
        elif isinstance(value, int):
            text = str(value)
        elif not isinstance(value, str):
            raise OptionError(f"option {key} is a text, an int or a bool, found {value!r}")
        try:
            self._table.set(key, text)
        except CompileError as problem:
            raise OptionError(str(problem)) from None
        self._values[key] = text

    def get(self, key, fallback=None):
        """The text of an option that was set."""
        return self._values.get(key, fallback)

    @staticmethod
    def help():
        return _coil.Options.help()

    def __repr__(self):
        return f"Options({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


def from_torch(mode, options):
    """The options that torch.compile(mode=, options=) asks for."""
    if mode is not None and mode not in MODES:
        raise OptionError(f"there is no mode '{mode}'; there are: {', '.join(MODES)}")
    return options if isinstance(options, Options) else Options(options)
