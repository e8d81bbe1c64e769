"""Which ops torch writes in terms of others before coil sees the graph.

coil decomposes in C++, where it is quicker: only what it lacks, mostly formulas of backward passes, is
left to torch's own core table. Lists of tensors are taken apart, prims become the ops of ATen that
they stand for, and a custom op with a decomposition of its own is replaced by that.
"""

import functools

import torch
from torch._decomp import core_aten_decompositions, global_decomposition_table

from coil import _coil
from coil.chunked_loss import chunked_loss_ops
from coil.formulas import formulas, grouped_attention
from coil.list_ops import list_ops
from coil.older_torch import other_ways
from coil.windows import windows


def decompositions():
    """Decompositions of ops that coil has not, by op."""
    table = {**torch_ops(), **custom_ops()}
    if hasattr(torch.ops.prims, "fma"):  # torch 2.15 adds it late: addcmul of an optimizer's step
        table[torch.ops.prims.fma.default] = multiply_add
    return table


@functools.lru_cache(maxsize=None)
def torch_ops():
    table = {op: f for op, f in core_aten_decompositions().items() if not has_op(op)}
    table.update((op, f) for op, f in formulas().items() if not has_op(op))
    table.update(windows())
    table.update(other_ways())
    table.update(list_ops())
    table.update(prims())
    table.update(chunked_loss_ops())
    table[torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default] = grouped_attention
    return table


def custom_ops():
    """What users registered, at any time, for ops of their own."""
    table = global_decomposition_table["post_autograd"]
    return {
        op: f
        for op, f in table.items()
        if isinstance(op, torch._ops.OpOverload) and op.namespace not in ("aten", "prims")
    }


def has_op(op):
    """Whether coil takes this torch op as it is."""
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return False
    name = op._schema.name.removeprefix("aten::")
    overload = op._schema.overload_name
    return _coil.has_op(f"{name}.{overload}" if overload else name)


# Casts, which coil's importer reads, and what has effects.
OTHER_PRIMS = {"convert_element_type", "copy_to", "resize", "_make_token", "_sink_tokens"}


def prims():
    """The ops of torch's own refs, each with what it is in terms of ATen."""
    for name in dir(torch.ops.prims):
        packet = getattr(torch.ops.prims, name)
        if hasattr(packet, "impl_aten") and name not in OTHER_PRIMS:
            yield packet.default, packet.impl_aten


def multiply_add(a, b, c):
    """Rounded twice, as eager's addcmul is."""
    return a * b + c
