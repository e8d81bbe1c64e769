"""Options of a compilation: those of coil's own table, and those of the package, which stand here."""

import difflib
import re

from coil import _coil
from coil.errors import CompileError, OptionError

# Modes of torch.compile. On a CPU, the way that coil compiles does not depend on them.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

# Options of the package: values and default, and what they are for. Those with Inductor's names mean
# what they mean there.
PACKAGE = {
    "fallback": (("error", "allow"), "error", "ops that coil has not: an error, or torch runs them"),
    "fallback_random": (("off", "on"), "off", "random numbers are torch's own, as eager draws them"),
    "freezing": (("off", "on"), "off", "without gradients, parameters are constants"),
    "seed": ((), "0", "of a file's or exported program's random numbers"),
}
# Inductor's names for what an option of coil's does: name, value there to (name, value) here.
SYNONYMS = {
    "implicit_fallbacks": {True: ("fallback", "allow"), False: ("fallback", "error")},
    "fx_graph_cache": {True: ("cache", "on"), False: ("cache", "off")},
}


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
        if key in SYNONYMS:
            key, value = self.translated(key, value)
        text = value
        if isinstance(value, bool):
            text = "on" if value else "off"
        elif isinstance(value, int):
            text = str(value)
        elif not isinstance(value, str):
            raise OptionError(f"option {key} is a text, an int or a bool, found {value!r}")
        if key in PACKAGE:
            allowed = PACKAGE[key][0]
            if allowed and text not in allowed:
                raise OptionError(f"option {key} cannot be '{text}'; it is one of: {' '.join(allowed)}")
            if not allowed and not text.isdecimal():
                raise OptionError(f"option {key} cannot be '{text}'; it is a whole number, 0 or more")
        else:
            self.set_in_table(key, text)
        self._values[key] = text

    def set_in_table(self, key, text):
        names = re.findall(r"^\s*([\w.]+)=", _coil.Options.help(), re.MULTILINE)
        if key not in names:
            near = difflib.get_close_matches(key, [*names, *PACKAGE, *SYNONYMS], 1, 0.5)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise OptionError(f"unknown option '{key}'{hint}")
        try:
            self._table.set(key, text)
        except CompileError as problem:
            raise OptionError(str(problem)) from None

    @staticmethod
    def translated(key, value):
        known = SYNONYMS[key]
        if value not in known:
            raise OptionError(f"option {key} cannot be {value!r}; it is one of: {', '.join(map(repr, known))}")
        return known[value]

    def get(self, key, fallback=None):
        """The text of an option that was set."""
        return self._values.get(key, fallback)

    def flag(self, key):
        """Whether an option of the package is on."""
        return self._values.get(key, PACKAGE[key][1]) == "on"

    @staticmethod
    def help():
        rows = [
            f"  {key + '=' + ('|'.join(values) or 'N'):34} {text} (default {default})\n"
            for key, (values, default, text) in PACKAGE.items()
        ]
        return _coil.Options.help() + "".join(rows)

    def __repr__(self):
        return f"Options({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


def from_torch(mode, options):
    """The options that torch.compile(mode=, options=) asks for."""
    if mode is not None and mode not in MODES:
        raise OptionError(f"there is no mode '{mode}'; there are: {', '.join(MODES)}")
    chosen = options if isinstance(options, Options) else Options(options)
    if chosen.get("seed") is not None:
        raise OptionError("seed is an option of exported programs; here torch.manual_seed governs")
    return chosen
