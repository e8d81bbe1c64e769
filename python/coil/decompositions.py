"""Which ops torch writes in terms of others before coil sees the graph.

coil decomposes in C++, where it is quicker: only what it lacks, mostly formulas of backward passes, is
left to torch's own core table, and lists of tensors are taken apart here.
"""

import functools

import torch
from torch._decomp import core_aten_decompositions

from coil import _coil
from coil.formulas import formulas, grouped_attention
from coil.window_grads import window_grads


@functools.lru_cache(maxsize=None)
def decompositions():
    """Decompositions of ops that coil has not, by op."""
    table = {op: f for op, f in core_aten_decompositions().items() if not has_op(op)}
    own = {**window_grads(), **formulas()}
    table.update((op, f) for op, f in own.items() if not has_op(op))
    table[torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default] = grouped_attention
    table.update((op, functools.partial(each, packet)) for op, packet in foreach_ops())
    if hasattr(torch.ops.prims, "fma"):  # torch 2.15: addcmul of an optimizer's step
        table[torch.ops.prims.fma.default] = multiply_add
    return table


def has_op(op):
    """Whether coil takes this torch op as it is."""
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten":
        return False
    name = op._schema.name.removeprefix("aten::")
    overload = op._schema.overload_name
    return _coil.has_op(f"{name}.{overload}" if overload else name)


def foreach_ops():
    """Functional ops on lists, each with the op that it is for one tensor."""
    prefix = "aten::_foreach_"
    for full_name in torch._C._dispatch_get_all_op_names():
        name, _, overload = full_name.partition(".")
        if not name.startswith(prefix) or name.endswith("_") or overload.endswith("out"):
            continue
        single = getattr(torch.ops.aten, name.removeprefix(prefix), None)
        if single is not None:
            packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
            yield getattr(packet, overload or "default"), single


def each(single, *args, **kwargs):
    """`single` of the tensors of each list at one place; what is no list goes to all of them."""
    count = next(len(a) for a in args if isinstance(a, (list, tuple)))
    if single in (torch.ops.aten.addcmul, torch.ops.aten.addcdiv) and len(args) == 4:
        args, kwargs = args[:3], {"value": args[3]}

    def at(i, value):
        return value[i] if isinstance(value, (list, tuple)) else value

    return [
        single(*(at(i, a) for a in args), **{k: at(i, v) for k, v in kwargs.items()})
        for i in range(count)
    ]


def multiply_add(a, b, c):
    """Rounded twice, as eager's addcmul is."""
    return a * b + c
