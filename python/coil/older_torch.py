"""What some releases of torch compute in another way than the ones that coil's own rules follow. Each is asked of
the torch that is here, never told from its version."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten
F8 = torch.float8_e4m3fn
F8_ENDS = 464.0  # half a step past the largest value, 448: a tie, which is rounded down


def other_ways():
    """(op, function) of what this torch does otherwise."""
    with _disable_current_modes():  # the questions are for eager torch
        if torch.arange(0.5, 5, 1.5, dtype=torch.int64).numel() == 5:
            for overload in ("default", "start", "start_step"):
                yield getattr(aten.arange, overload), arange_of_whole_numbers
        if torch.tensor([500.0]).to(F8).float().isnan().item():
            yield aten._to_copy.default, cast_that_overflows
            yield aten.copy.default, copy_that_overflows


def arange_of_whole_numbers(*line, dtype=None, **more):
    """A range of 64-bit integers whose ends and step lose their fractions before its elements are counted."""
    if dtype is not torch.int64 or not any(isinstance(x, float) for x in line):
        return NotImplemented
    return torch.arange(*map(int, line), dtype=dtype, device=more.get("device"))


def overflowed(x):
    """`x`, with NaN where an 8-bit float without infinity would have to be larger than its largest."""
    x = x.float()
    return torch.where(x.abs() > F8_ENDS, torch.full_like(x, torch.nan).copysign(x), x)


def cast_that_overflows(x, *, dtype=None, memory_format=None, **_):
    if dtype is not F8 or x.dtype is F8:
        return NotImplemented
    x = overflowed(x)
    if memory_format is not None:
        x = x.to(memory_format=memory_format)
    return torch.ops.prims.convert_element_type.default(x, dtype)


def copy_that_overflows(to, x, non_blocking=False):
    if to.dtype is not F8 or x.dtype is F8:
        return NotImplemented
    return aten.copy.default(to, cast_that_overflows(x, dtype=F8))
