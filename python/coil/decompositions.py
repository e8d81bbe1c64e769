"""Which ops torch writes in terms of others before coil sees the graph.

coil decomposes in C++, where it is quicker: only what it lacks, mostly formulas of backward passes, is
left to torch's own core table.
"""

import functools

import torch
from torch._decomp import core_aten_decompositions

from coil import _coil


@functools.lru_cache(maxsize=None)
def decompositions():
    """torch's decompositions of ops that coil has not, by op."""
    return {op: f for op, f in core_aten_decompositions().items() if not has_op(op)}


def has_op(op):
    """Whether coil takes this torch op as it is."""
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return False
    name = op._schema.name.removeprefix("aten::")
    overload = op._schema.overload_name
    return _coil.has_op(f"{name}.{overload}" if overload else name)
