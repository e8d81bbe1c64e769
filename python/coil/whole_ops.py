"""Ops that torch writes in terms of others while AOT Autograd traces, before any table of decompositions is
asked, though coil has them and eager computes something else: images of bytes, which eager resamples in fixed
point."""

import contextlib

import torch
from torch._decomp.decompositions import upsample_compute_output_size

aten = torch.ops.aten
KEYS = [torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd]
OPS = [aten.upsample_bilinear2d, aten.upsample_bicubic2d]


@contextlib.contextmanager
def kept_whole():
    """While this holds, these ops of bytes come to the graph as they are."""
    before = []
    try:
        for packet in OPS:
            for op, make in ((packet.default, whole), (packet.vec, whole_of_factors)):
                for key in KEYS:
                    if key in op.py_kernels:
                        before.append((op, key, op.py_kernels[key]))
                        set_kernel(op, key, make(packet.default, op.py_kernels[key]))
        yield
    finally:
        for op, key, kernel in before:
            set_kernel(op, key, kernel)


def set_kernel(op, key, kernel):
    op.py_kernels[key] = kernel
    op._dispatch_cache.clear()


def whole(op, otherwise):
    def call(image, *args, **kwargs):
        if image.dtype != torch.uint8:
            return otherwise(image, *args, **kwargs)
        with torch._C._AutoDispatchBelowAutograd():
            return op(image, *args, **kwargs)

    return call


def whole_of_factors(op, otherwise):
    def call(image, output_size, align_corners, scale_factors):
        if image.dtype != torch.uint8:
            return otherwise(image, output_size, align_corners, scale_factors)
        size = upsample_compute_output_size(image.size(), output_size, scale_factors)
        return op(image, size, align_corners, *(scale_factors or (None, None)))

    return call
