#!/usr/bin/env python3
"""Writes src/ops/aten_schemas.inc: the schema of every ATen overload of the installed torch.

Two files of a torch installation state them: native_functions.yaml of torchgen holds what people
wrote, RegistrationDeclarations.h also what torchgen derived from that (functional forms of in-place
ops and the like). Overloads that write to an `out` argument are left out.

Run it with the Python that has torch:  python scripts/make_schemas.py
"""

import importlib.util
import json
import pathlib
import re

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/ops/aten_schemas.inc"


def package_dir(package):
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"make_schemas.py: this Python has no package '{package}'; install torch")
    return pathlib.Path(spec.origin).parent


def written_schemas():
    path = package_dir("torchgen") / "packaged/ATen/native/native_functions.yaml"
    for line in path.read_text().splitlines():
        if line.startswith("- func: "):
            yield line.removeprefix("- func: ").strip()


def derived_schemas():
    path = package_dir("torch") / "include/ATen/RegistrationDeclarations.h"
    for line in path.read_text().splitlines():
        _, comment, facts = line.partition("; // {")
        if comment:
            yield json.loads("{" + facts)["schema"].removeprefix("aten::")


def is_out_variant(schema):
    """Whether a keyword-only argument is written."""
    arguments = schema.split(" -> ")[0]
    return re.search(r"\*, .*Tensor\([a-z]!\)", arguments) is not None


def torch_version():
    text = (package_dir("torch") / "version.py").read_text()
    return re.search(r"__version__ = '([0-9.]+)", text).group(1)


def main():
    rows = {}
    for schema in [*written_schemas(), *derived_schemas()]:
        if not is_out_variant(schema):
            rows.setdefault(schema.split("(")[0], schema)
    lines = [
        f"// Made by scripts/make_schemas.py from torch {torch_version()}; sorted by full name.",
        "// clang-format off",
        *(f"R({json.dumps(rows[name])})" for name in sorted(rows)),
    ]
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{OUTPUT}: {len(rows)} schemas")


if __name__ == "__main__":
    main()
