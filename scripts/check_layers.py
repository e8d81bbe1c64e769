#!/usr/bin/env python3
"""Checks the rules of the source tree that a compiler does not.

Layers: a folder includes only itself and folders above it in the list below. Headers are light and
guarded, files stay short, and each folder opens with a short README. Prints one line for each breach,
`file:line: what`, and a last line with counts; the exit status is 1 if there is a breach.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the bottom up: a layer may include itself and all that stand before it.
LAYERS = [
    "include/coil",
    "src/base",
    "src/runtime",
    "src/sym",
    "src/ops",
    "src/graph",
    "src/import",
    "src/passes",
    "src/loop",
    "src/lower",
    "src/candidates",
    "src/schedule",
    "src/kernel",
    "src/plan",
    "src/target/interp",
    "src/target/cpp",
    "src/target/llvm",
    "src/target/cuda",
    "src/target/triton",
    "src/target/halide",
    "src/target/rocm",
    "src/templates",
    "src/extern",
    "src/driver",
    "tools/coil",
    "python/coil",
]

# Folders that a compiled model links see less than their place in the list would allow.
NARROWER = {
    "src/templates/cpu": ("include/coil", "src/base", "src/runtime", "src/target/cpp/prelude",
                          "src/templates"),
    "src/extern/kernels": ("include/coil", "src/base", "src/runtime", "src/extern"),
}

# Slow or heavy to include: allowed in .cpp files only.
HEAVY = re.compile(r"<(iostream|regex|filesystem|nlohmann/(?!json_fwd).*|CLI/.*|llvm/.*)>")

MAX_LINES = 600
LONG_FILES = re.compile(r"(\.def|\.inc)$|^src/templates/|^src/target/cpp/prelude/|^tests/")
MAX_README_LINES = 15
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))')
SOURCES = {".h", ".hpp", ".cpp", ".def", ".inc"}


def layer_of(path):
    """The layer that holds a path relative to the root, or None."""
    for layer in LAYERS:
        if path == layer or path.startswith(layer + "/"):
            return layer
    return None


def included_path(name, includer):
    """The path relative to the root that an #include names, or None if it is not ours."""
    candidates = [f"src/{name}", f"include/{name}", f"{pathlib.PurePath(includer).parent}/{name}", name]
    for candidate in candidates:
        if (ROOT / candidate).is_file():
            return candidate
    return None


def check_include(path, number, name):
    target = included_path(name, path)
    if target is None:
        # A generated header, or a broken include, which the compiler reports.
        return
    here, there = layer_of(path), layer_of(target)
    if here is None or there is None:
        return
    for folder, allowed in NARROWER.items():
        if path.startswith(folder + "/") and not target.startswith(tuple(a + "/" for a in allowed)):
            yield f"{path}:{number}: {folder} may include only {', '.join(allowed)}, not {target}"
            return
    if LAYERS.index(there) > LAYERS.index(here):
        yield f"{path}:{number}: {here} includes {there}, which is above it"


def check_source(path):
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    suffix = pathlib.PurePath(path).suffix
    header = suffix in (".h", ".hpp")
    is_c = path.startswith("include/") and suffix == ".h"  # a C header guards itself in C's way
    if header and not is_c and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield f"{path}:1: a header needs #pragma once"
    if len(lines) > MAX_LINES and not LONG_FILES.search(path):
        yield f"{path}:{MAX_LINES + 1}: {len(lines)} lines; split what is above {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, angled = match.groups()
        if quoted:
            yield from check_include(path, number, quoted)
        elif header and HEAVY.fullmatch(angled) and not path.startswith("tests/"):
            yield f"{path}:{number}: {angled} belongs in a .cpp file"


def check_readmes():
    """Each folder that is a layer, so far as it exists, and each named folder below src/."""
    for layer in LAYERS:
        if not layer.startswith("src/") or not (ROOT / layer).is_dir():
            continue
        page = ROOT / layer / "README.md"
        if not page.is_file():
            yield f"{layer}: has no README.md"
            continue
        count = len(page.read_text().splitlines())
        if not 0 < count <= MAX_README_LINES:
            yield f"{layer}/README.md: {count} lines; it has 1 to {MAX_README_LINES}"


def check_known_folders():
    for folder in sorted((ROOT / "src").glob("*/")) + sorted((ROOT / "src/target").glob("*/")):
        path = folder.relative_to(ROOT).as_posix()
        if not folder.is_dir() or path == "src/target" or layer_of(path):
            continue
        yield f"{path}: is not a layer; LAYERS in scripts/check_layers.py lists them"


def main():
    files = []
    for top in ("include", "src", "tools", "python", "tests", "bench"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                files.append(path.relative_to(ROOT).as_posix())
    breaches = []
    for path in files:
        breaches += check_source(path)
    breaches += check_readmes()
    breaches += check_known_folders()
    for breach in breaches:
        print(breach)
    print(f"lint: {len(files)} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
