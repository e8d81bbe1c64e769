#!/usr/bin/env python3
"""Twenty steps of training of each model of tests/python/training_cases.py: docs/training.md.

    python scripts/training_table.py [MODEL...]
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

HEAD = """# Training

torch {version}; {steps} steps of each model of `tests/python/training_cases.py` with `torch.compile(backend="coil")`, the
model in one graph and the optimizer's step compiled too. A curve's distance is the rms of the differences to the
losses of the same training in float64, relative to the first loss; eager's is the largest of {orders} orders of the rows of
a batch, which change nothing but the order of sums. Of the gradients of the first step, the parameter that is
furthest from float64 beside eager is given, relative to the largest gradient. coil's distances are at most twice
eager's, as `tests/python/test_training.py` demands. Written by `scripts/training_table.py`.

| model | loss, first and last | eager's curve | coil's curve | ratio | gradient | eager | coil |
| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |"""


def main():
    import torch
    import training_cases

    rows = []
    for name in sys.argv[1:] or training_cases.CASES:
        found = training_cases.measure(name)
        losses = found.exact.losses
        start = losses[0].item()
        rows.append(
            f"| {name} | {start:.3f} to {losses[-1].item():.3f} | {found.eager_loss / start:.1e} | "
            f"{found.coil_loss / start:.1e} | {found.coil_loss / found.eager_loss:.2f} | `{found.gradient}` | "
            f"{found.eager_gradient:.1e} | {found.coil_gradient:.1e} |")
        print(rows[-1], flush=True)
    head = HEAD.format(
        version=torch.__version__.split("+")[0], steps=training_cases.STEPS, orders=training_cases.ORDERS)
    if not sys.argv[1:]:
        (ROOT / "docs/training.md").write_text("\n".join([head, *rows]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
