#!/usr/bin/env python3
"""Exports the models of zoo.py, and records what torch says of them in float32 and in float64.

usage: export_models.py [FOLDER [MODEL...]]     (default: build/models, all models)
Writes MODEL.pt2 and MODEL.{inputs,eager,double}.npz, five calls each. What is there already and was
made by this script and this torch stays.
"""

import hashlib
import pathlib
import sys
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import exporting  # noqa: E402
import zoo  # noqa: E402

FOLDER = HERE.parent.parent / "build" / "models"
SEEDS = range(5)


def stamp():
    """Changes with anything that the exported files depend on."""
    sources = [HERE / "zoo.py", HERE / "export_models.py", HERE.parent / "python" / "exporting.py"]
    text = torch.__version__.encode() + b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(text).hexdigest()


def as_double(values):
    return tuple(v.double() if v.is_floating_point() else v for v in values)


def record(model, calls, prefix):
    arrays = {}
    with torch.no_grad():
        for n, call in enumerate(calls, 1):
            values = call if prefix == "in" else model(*call)
            arrays |= exporting.as_arrays(prefix, values, f"_call{n}" if n > 1 else "")
    return arrays


def make(name, folder):
    build, inputs = zoo.MODELS[name]
    torch.manual_seed(0)
    model = build().eval()
    calls = [inputs(torch.Generator().manual_seed(seed)) for seed in SEEDS]
    exporting.save(model, folder / f"{name}.pt2", calls[0])
    exporting.write_npz(folder / f"{name}.inputs.npz", record(None, calls, "in"))
    exporting.write_npz(folder / f"{name}.eager.npz", record(model, calls, "out"))
    model.double()
    exporting.write_npz(folder / f"{name}.double.npz", record(model, [as_double(c) for c in calls], "out"))


def ensure(name, folder=FOLDER):
    """The path of the model's .pt2, which is made if it is not there."""
    mark = folder / f"{name}.stamp"
    if not mark.is_file() or mark.read_text() != stamp():
        folder.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(name, folder)
        mark.write_text(stamp())
    return folder / f"{name}.pt2"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name in sys.argv[2:] or zoo.MODELS:
        print(ensure(name, folder), flush=True)


if __name__ == "__main__":
    main()
