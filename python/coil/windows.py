"""Window functions (hann_window and its kin), which torch's core table leaves whole, or not, from one release to
the next: elements of a line, rounded at each step as eager rounds, factors too."""

import math

import torch

aten = torch.ops.aten


class Line:
    """The numbers 0, 1, ... and the last one of a whole wave."""

    def __init__(self, length, last, dtype, device):
        self.numbers, self.last = torch.arange(length, dtype=dtype, device=device), last

    def factor(self, value):
        return torch.full((), value, dtype=self.numbers.dtype, device=self.numbers.device)

    def times(self, value):
        return self.numbers * self.factor(value / self.last)


def bartlett(line):
    x = line.times(2)
    rising = torch.arange(x.shape[0], device=x.device) <= line.last // 2
    return torch.where(rising, x, 2 - x)


def blackman(line):
    x = line.times(math.pi)
    return (x * 4).cos() * line.factor(0.08) - (x * 2).cos() * 0.5 + line.factor(0.42)


def hann(line):
    return hamming(line, 0.5, 0.5)


def hamming(line, alpha=0.54, beta=0.46):
    return line.times(2 * math.pi).cos() * line.factor(-beta) + line.factor(alpha)


def kaiser(line, beta=12.0):
    x = line.times(2) - 1
    return torch.i0(beta * (1 - x * x).clamp_min(0).sqrt()) / torch.i0(line.factor(beta))


def window(form):
    def made(length, periodic=True, *more, dtype=None, layout=None, device=None, pin_memory=None):
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if length < 2:
            return torch.ones(length, dtype=dtype, device=device)
        # Eager rounds a window of Bessel functions once.
        inner = torch.float32 if form is kaiser and dtype.itemsize == 2 else dtype
        line = Line(length, length if periodic else length - 1, inner, device)
        return form(line, *more).to(dtype)

    return made


def windows():
    """(op, function) of all of them."""
    for form in (bartlett, blackman, hann, hamming, kaiser):
        packet = getattr(aten, f"{form.__name__}_window")
        for overload in packet.overloads():
            if not overload.endswith("out"):
                yield getattr(packet, overload), window(form)
