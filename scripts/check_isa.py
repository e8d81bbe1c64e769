#!/usr/bin/env python3
"""check_isa.py BUILD_FOLDER: looks for weak symbols that would mix instruction sets.

Sources named *.isa.cpp are compiled once per instruction set. If such an object holds a weak symbol
(an inline function or template of a shared header) outside its own namespace, the linker may keep that
copy for the whole program, and it would trap on a machine without the instruction set.
"""

import pathlib
import subprocess
import sys


def weak_symbols(path):
    out = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True, check=True)
    for line in out.stdout.splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in "WVu":
            yield parts[2]


def main():
    build = pathlib.Path(sys.argv[1])
    objects = sorted(build.glob("CMakeFiles/coil_isa_*.dir/**/*.o"))
    breaches = 0
    for path in objects:
        folder = next(p for p in path.parts if p.startswith("coil_isa_"))
        isa = folder.removeprefix("coil_isa_").removesuffix(".dir")
        if isa == "plain":
            continue  # runs everywhere
        for symbol in weak_symbols(path):
            if f"{isa}::" in symbol or symbol.startswith("DW.ref."):
                continue
            print(f"{path.name} for {isa} holds the shared weak symbol {symbol}")
            breaches += 1
    print(f"isa: {len(objects)} objects, {breaches} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
