"""Whole models: coil's outputs are at most twice as far from float64 as those of eager torch.

Measured for every output and each of five inputs: the root mean square of the errors, and the largest.
One millionth of the output's own root mean square is allowed on top.
"""

import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import export_models  # noqa: E402
import zoo  # noqa: E402

COIL = pathlib.Path(os.environ.get("COIL", HERE.parent.parent / "build" / "coil"))
FACTOR, SLACK = 2.0, 1e-6
TIMEOUT_S = 600


def run_coil(model, folder):
    """(outputs by name, seconds): all calls in one process, nothing cached before."""
    out = folder / "out.npz"
    start = time.monotonic()
    done = subprocess.run(
        [str(COIL), "run", str(model), "--inputs", str(model.with_suffix(".inputs.npz")), "--outputs", str(out)],
        env={**os.environ, "COIL_CACHE_DIR": str(folder / "cache")}, capture_output=True, text=True, timeout=TIMEOUT_S)
    seconds = time.monotonic() - start
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return dict(np.load(out)), seconds


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def largest(values):
    return float(np.max(np.abs(values)))


@pytest.mark.parametrize("name", zoo.MODELS)
def test_error_against_double(name, tmp_path, report_row):
    model = export_models.ensure(name)
    found, seconds = run_coil(model, tmp_path)
    eager, double = (dict(np.load(model.with_suffix(f".{kind}.npz"))) for kind in ("eager", "double"))
    assert found.keys() == double.keys() == eager.keys()

    failures, worst = [], {}
    for key, truth in double.items():
        assert found[key].shape == truth.shape and found[key].dtype == np.float32
        size = rms(truth)
        assert size > 0 and np.isfinite(size), f"{key}: torch's own output is of no use"
        for measure in (rms, largest):
            ours, theirs = measure(found[key] - truth), measure(eager[key] - truth)
            if not ours <= FACTOR * theirs + SLACK * size:  # also where ours is NaN
                failures.append(f"{key}: {measure.__name__} error {ours:.3g}, eager's {theirs:.3g}, rms {size:.3g}")
            row = (ours / (theirs + SLACK * size), theirs / size, ours / size)
            worst[measure] = max(worst.get(measure, row), row)
    report_row(name, worst[rms], worst[largest], seconds)
    assert not failures, "\n".join(failures)
