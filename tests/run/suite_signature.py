"""Arguments and results of every kind."""

import torch
from program import Program, Values, of_function
from torch import nn


class Keywords(nn.Module):
    def forward(self, x, *, scale, shift=None):
        y = x * scale
        return y if shift is None else y + shift


class NestedOutputs(nn.Module):
    def forward(self, x):
        return {"b": x + 1, "a": [x.sum(), (x * 2, {"deep": x.amax(1)})]}


class NestedInputs(nn.Module):
    def forward(self, pair, table):
        return pair[0] - pair[1], table["y"] * table["x"]


def none_outputs(x):
    return x + 1, None, x.sum(), None


def number_outputs(x):
    return x.relu(), 7, x.shape[0] * 2, 2.5, True


def size_outputs(x):
    return x.shape[0], x.sum(), x.shape[0] + x.shape[1], x.numel()


def integer_input(x, n):
    return x * n, x + n // 2, torch.full((2,), n)


def float_input(x, f):
    return x * f


def constant_outputs(x):
    return torch.ones(3), torch.arange(4), x - x.shape[1]


def unused_input(x, y):
    return x.cos()


def no_inputs():
    return torch.arange(6).view(2, 3) * 2.5


def programs():
    v = Values(109)
    yield Program("keywords", Keywords, [
        [(v.normal(3, 4),), {"scale": v.normal(4), "shift": v.normal(3, 1)}]])
    yield Program("keyword_left_out", Keywords, [[(v.normal(3, 4),), {"scale": v.normal(4)}]])
    yield Program("nested_outputs", NestedOutputs, [(v.normal(3, 4),)])
    yield Program("nested_inputs", NestedInputs, [((v.normal(3), v.normal(3)), {"x": v.normal(2), "y": v.normal(2)})])
    yield of_function("none_outputs", none_outputs, [(v.normal(3),)])
    yield of_function("number_outputs", number_outputs, [(v.normal(3, 2),)])
    auto = torch.export.Dim.AUTO
    yield of_function("size_outputs", size_outputs, [(v.normal(3, 2),), (v.normal(5, 4),)], ({0: auto, 1: auto},))
    yield of_function("integer_input", integer_input, [(v.normal(3), 6), (v.normal(3), 3)], (None, auto))
    yield of_function("float_input", float_input, [(v.normal(3), 0.75)])
    yield of_function("constant_outputs", constant_outputs, [(v.normal(2, 3),)])
    yield of_function("unused_input", unused_input, [(v.normal(4), v.normal(2))])
    yield of_function("no_inputs", no_inputs, [()])
