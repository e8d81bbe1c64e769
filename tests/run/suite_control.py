"""cond, while_loop and scan."""

import torch
from program import Values, of_function
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop


def cond_with_weights(x, w):
    return torch.cond(x.mean() > 0, lambda a, b: (a @ b, a.sum()), lambda a, b: (a @ b.t(), a.amax()), (x, w))


def cond_nested(x):
    def small(t):
        return torch.cond(t.sum() > 0, lambda u: u * 2, lambda u: u - 10, (t,))

    return torch.cond(x.abs().amax() < 1, small, lambda t: t / t.abs().amax(), (x,)) + 1


def cond_on_integer(n, x):
    return torch.cond((n > 3).all(), lambda t: t.cumsum(0), lambda t: t.flip(0).clone(), (x,))


def halve_until_small(x):
    steps = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda n, t: t.abs().sum() > 1, lambda n, t: (n + 1, t / 2), (steps, x))


def power_iteration(matrix, vector):
    def body(n, v):
        w = matrix @ v
        return n - 1, w / w.norm()

    return while_loop(lambda n, v: n > 0, body, (torch.tensor(6), vector))


def nested_loops(x):
    def outer(i, t):
        _, inner = while_loop(lambda j, u: j < 3, lambda j, u: (j + 1, u * 1.5 - 0.25), (i * 0, t))
        return i + 1, inner + i

    return while_loop(lambda i, t: i < 2, outer, (torch.zeros((), dtype=torch.int64), x))


def running_sum(start, xs):
    return scan(lambda carry, x: (carry + x, carry * x), start, xs)


def linear_recurrence(start, xs, gates):
    def step(carry, inputs):
        x, g = inputs
        h = torch.tanh(carry * g + x)
        return h, (h * 2, g - h)

    return scan(step, start, (xs, gates))


def scan_from_the_end(start, xs):
    return scan(lambda c, x: (c * 0.5 + x, c + 0.0), start, xs, reverse=True)


def programs():
    v = Values(103)
    yield of_function("cond_with_weights", cond_with_weights, [
        (v.normal(3, 3) + 1, v.normal(3, 3)), (v.normal(3, 3) - 1, v.normal(3, 3))])
    yield of_function("cond_nested", cond_nested, [
        (torch.full((4,), 0.5),), (torch.full((4,), -0.5),), (torch.tensor([1.0, -4.0, 2.0, 0.0]),)])
    yield of_function("cond_on_integer", cond_on_integer, [
        (torch.tensor([4, 5]), v.normal(5, 2)), (torch.tensor([4, 3]), v.normal(5, 2))])
    yield of_function("halve_until_small", halve_until_small, [
        (torch.full((5,), 3.0),), (torch.zeros(5),), (torch.arange(5.0) * 100,)])
    yield of_function("power_iteration", power_iteration, [(v.normal(4, 4) + 2 * torch.eye(4), v.normal(4))])
    yield of_function("nested_loops", nested_loops, [(v.normal(2, 3),)])
    yield of_function("running_sum", running_sum, [(v.normal(4), v.normal(6, 4))])
    yield of_function("linear_recurrence", linear_recurrence, [(v.normal(3), v.normal(5, 3), v.normal(5, 3))])
    yield of_function("scan_from_the_end", scan_from_the_end, [(v.normal(3), v.normal(5, 3))])
