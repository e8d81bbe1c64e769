"""How near results are to others, and failures as short texts."""

import math
import re


def flat_tensors(tree):
    import torch
    from torch.utils import _pytree

    return [x for x in _pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def distance(a, b):
    """The root mean square of the differences, where `b` is finite."""
    import torch

    wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    b = b.to(wide)
    difference = (a.to(wide) - b)[torch.isfinite(b)].abs()
    return math.sqrt(difference.square().mean().item()) if difference.numel() else 0.0


def reason_of(problem):
    """A failure as a short text; equal reasons give equal texts."""
    inner = getattr(problem, "inner_exception", None) or problem
    ops = getattr(inner, "ops", None)
    if ops is not None:
        return "missing: " + ", ".join(sorted(op for op, _, _ in ops))
    lines = [line for line in str(inner).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    text = re.sub(r"^node [^(:]*(\([^)]*\))?: ", "", text)
    return f"{type(inner).__name__}: {text[:160]}"
