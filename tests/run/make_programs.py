#!/usr/bin/env python3
"""Exports the programs of this folder with torch 2.15: PROGRAM.pt2 and PROGRAM.npz beside it.

usage: make_programs.py [WORD...]     only programs whose folder/name holds one of the words

Each suite_NAME.py lists programs, which go to the folder NAME. `coil check` and `coil run --expect` then
need no torch (scripts/run_cases.py run).
"""

import copy
import importlib
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import exporting  # noqa: E402

SUITES = ("alias", "control", "data_sizes", "dtypes", "indexing", "layers", "linalg", "numbers", "signature",
          "sizes", "state")


def make(program, folder):
    torch.manual_seed(11)
    model = program.build().eval()
    path = folder / f"{program.name}.pt2"
    calls = [(args, {}) if isinstance(args, tuple) else args for args in program.calls]
    exporting.save(copy.deepcopy(model), path, *calls[0], program.dynamic)
    arrays = exporting.record_calls(model, path, copy.deepcopy(calls))
    exporting.write_npz(path.with_suffix(".npz"), arrays)
    return path.stat().st_size


def main():
    words, failed = sys.argv[1:], 0
    for suite in SUITES:
        for program in importlib.import_module(f"suite_{suite}").programs():
            title = f"{suite}/{program.name}"
            if words and not any(word in title for word in words):
                continue
            try:
                print(f"{title}: {make(program, HERE / suite)} bytes", flush=True)
            except Exception as problem:  # one program must not hide the others
                failed += 1
                print(f"{title}: NOT MADE: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
