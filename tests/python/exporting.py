"""Saves programs as .pt2 with their inputs and eager outputs, as tests/fixtures does.

Arrays are in0.., out0.. for the first call and in0_call2.., out0_call2.. for the next ones; bfloat16 is
stored as its bits under inN_bf16 and outN_bf16. Outputs are numbered as torch flattens them; an output
that is None keeps its number and has no array.
"""

import copy
import re

import numpy as np
import torch
from torch.utils import _pytree as pytree


def as_arrays(prefix, values, suffix=""):
    """Tensors and numbers as named arrays. What is neither (None, text) has no array."""
    arrays = {}
    for i, value in enumerate(pytree.tree_leaves(values)):
        if value is None or isinstance(value, str):
            continue
        if isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        # A copy: a later call may write to what this one got or gave.
        tensor = torch.as_tensor(value).detach().resolve_conj().clone(memory_format=torch.contiguous_format)
        bits = tensor.dtype == torch.bfloat16
        array = tensor.view(torch.uint16).numpy() if bits else tensor.numpy()
        arrays[f"{prefix}{i}{'_bf16' if bits else ''}{suffix}"] = array
    return arrays


def without_folders(exported):
    """Keeps file names in the recorded stack traces but drops the exporting machine's folders."""
    for module in exported.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.meta.get("stack_trace"):
                node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "', node.meta["stack_trace"])
    return exported


def save(model, path, args, kwargs=None, dynamic_shapes=None):
    """Exports `model` to `path`. Inputs that the model writes to are left alone."""
    args, kwargs = copy.deepcopy((args, kwargs or {}))
    exported = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file holds example inputs unless told otherwise, which nobody reads.
    exported.example_inputs = None
    torch.export.save(without_folders(exported), path)


def record_calls(model, path, calls):
    """Runs every call in eager and through the saved file, which must agree, and returns the arrays.

    The file is loaded back so that its own guards run on every call.
    """
    replay = torch.export.load(path).module()
    arrays = {}
    with torch.no_grad():
        for n, (args, kwargs) in enumerate(calls, 1):
            suffix = f"_call{n}" if n > 1 else ""
            arrays |= as_arrays("in", (args, kwargs), suffix)
            again = copy.deepcopy((args, kwargs))
            result = model(*args, **kwargs)
            torch.testing.assert_close(replay(*again[0], **again[1]), result, equal_nan=True)
            arrays |= as_arrays("out", result, suffix)
    return arrays


def write_npz(path, arrays):
    """A compressed .npz with fixed times, so that the same arrays give the same bytes."""
    np.savez_compressed(path, **arrays)
