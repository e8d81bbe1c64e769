"""Ops on lists of tensors, in terms of ops on one tensor: the _foreach_ ops, gradient scaling and the
fused steps of optimizers.

Each is the functional form that AOT Autograd makes of an op that writes its arguments.
"""

import functools

import torch

aten = torch.ops.aten


def list_ops():
    """(op, function) of all of them."""
    yield from foreach_ops()
    yield aten._amp_foreach_non_finite_check_and_unscale.default, unscale
    yield aten._amp_update_scale.default, update_scale
    for packet, step in (
        (aten._fused_sgd, sgd),
        (aten._fused_adam, functools.partial(adam, decoupled=False)),
        (aten._fused_adamw, functools.partial(adam, decoupled=True)),
        (aten._fused_adagrad, adagrad),
    ):
        for overload in ("default", "tensor_lr"):
            if overload in packet.overloads():
                yield getattr(packet, overload), step


# _foreach_ ops.


def foreach_ops():
    """Functional ops on lists, each with the op that it is for one tensor."""
    prefix = "aten::_foreach_"
    for full_name in torch._C._dispatch_get_all_op_names():
        name, _, overload = full_name.partition(".")
        if not name.startswith(prefix) or name.endswith("_") or overload.endswith("out"):
            continue
        short = name.removeprefix(prefix)
        single = OTHER_NAMES.get(short) or getattr(aten, short, None)
        if single is not None:
            packet = getattr(aten, name.removeprefix("aten::"))
            yield getattr(packet, overload or "default"), functools.partial(each, single)


def each(single, *args, **kwargs):
    """`single` of the items of each list (or line of numbers) at one place; what is neither goes to
    all of them."""
    count = next(len(a) for a in args if isinstance(a, (list, tuple)))

    def at(i, value):
        is_line = isinstance(value, torch.Tensor) and value.ndim == 1
        return value[i] if is_line or isinstance(value, (list, tuple)) else value

    return [
        single(*(at(i, a) for a in args), **{k: at(i, v) for k, v in kwargs.items()})
        for i in range(count)
    ]


def either(of_tensor, of_number):
    """An op whose second operand is a tensor or a number."""

    def single(self, other):
        return (of_tensor if isinstance(other, torch.Tensor) else of_number)(self, other)

    return single


def norm(self, ord=2, dtype=None):
    return aten.linalg_vector_norm(self, ord, None, False, dtype=dtype)


def powsum(self, ord=2, dtype=None):
    return aten.sum(aten.pow(aten.abs(self), ord), dtype=dtype)


def with_value(op, combine):
    """addcmul and addcdiv take their factor by name, and as a number only."""

    def single(self, tensor1, tensor2, value=1):
        if not isinstance(value, torch.Tensor):
            return op(self, tensor1, tensor2, value=value)
        product = combine(value * wide(tensor1), wide(tensor2))
        return (wide(self) + product).to(self.dtype)

    return single


# What an op is for one tensor, where it is not the op of its own name.
OTHER_NAMES = {
    "addcdiv": with_value(aten.addcdiv, aten.div),
    "addcmul": with_value(aten.addcmul, aten.mul),
    "maximum": either(aten.maximum, aten.clamp_min),
    "minimum": either(aten.minimum, aten.clamp_max),
    "norm": norm,
    "powsum": powsum,
    "zero": aten.zeros_like,
}


# Gradient scaling.


def unscale(grads, found_inf, inv_scale):
    """Gradients times `inv_scale`; found_inf becomes 1 where one of them is not finite."""
    for grad in grads:
        finite = torch.isfinite(grad).all()
        found_inf = torch.where(finite, found_inf, torch.ones_like(found_inf))
    return [grad * inv_scale.to(grad.dtype) for grad in grads], found_inf


def update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, interval):
    """The scale shrinks after an overflow, and grows after `interval` steps without one."""
    overflow = found_inf != 0
    steps = growth_tracker + 1
    full = steps == interval
    grown = scale * growth_factor
    grown = torch.where(full & torch.isfinite(grown), grown, scale)
    zero = torch.zeros_like(steps)
    return (
        torch.where(overflow, scale * backoff_factor, grown),
        torch.where(overflow | full, zero, steps),
    )


# Fused steps of optimizers. Where `found_inf` is not 0 all stays as it was; else scaled gradients are
# given back without the scale. Narrow floats are computed in float32 and rounded once.


def wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


class Step:
    """What the steps of all optimizers have in common."""

    def __init__(self, maximize, grad_scale, found_inf):
        self.maximize, self.grad_scale, self.found_inf = maximize, grad_scale, found_inf

    def gradient(self, grad):
        return grad if self.grad_scale is None else grad / self.grad_scale.to(grad.dtype)

    def run(self, step, *tensors):
        """`step` of a parameter, its gradient and more gives what these become but the gradient."""
        param, grad, *more = map(wide, tensors)
        grad = self.gradient(grad)
        new_param, *new_more = step(param, -grad if self.maximize else grad, *more)
        return [
            new.to(old.dtype)
            if self.found_inf is None
            else torch.where(self.found_inf != 0, old, new.to(old.dtype))
            for new, old in zip((new_param, grad, *new_more), tensors)
        ]

    def run_all(self, step, *lists):
        """A list for each result."""
        rows = [self.run(step, *tensors) for tensors in zip(*lists)]
        return [[row[i] for row in rows] for i in range(len(lists))]


def sgd(
    params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize,
    is_first_step, grad_scale=None, found_inf=None,
):  # fmt: skip
    def step(param, d, *buffer):
        if weight_decay != 0:
            d = d + param * weight_decay
        if momentum == 0:
            return [param - lr * d]
        kept = d if is_first_step else buffer[0] * momentum + d * (1 - dampening)
        return param - lr * (d + kept * momentum if nesterov else kept), kept

    used = [params, grads] if momentum == 0 else [params, grads, buffers]
    results = Step(maximize, grad_scale, found_inf).run_all(step, *used)
    return tuple(results) if momentum != 0 else (*results, list(buffers))


def adam(
    params, grads, means, squares, largest, steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad,
    maximize, grad_scale=None, found_inf=None, decoupled,
):  # fmt: skip
    def step(param, d, mean, square, count, *most):
        count = count.double()  # 1 - beta2 has few digits in float32
        if weight_decay != 0 and decoupled:
            param = param - lr * weight_decay * param
        elif weight_decay != 0:
            d = d + param * weight_decay
        mean = torch.lerp(mean, d, 1 - beta1)
        square = beta2 * square + (1 - beta2) * d * d
        most = [torch.maximum(m, square) for m in most]
        spread = (most[0] if amsgrad else square).sqrt()
        spread = spread / (1 - beta2**count).sqrt().to(spread.dtype) + eps
        rate = (lr / (1 - beta1**count)).to(param.dtype)
        return param - rate * mean / spread, mean, square, count, *most

    used = [params, grads, means, squares, steps] + ([largest] if amsgrad else [])
    results = Step(maximize, grad_scale, found_inf).run_all(step, *used)
    return (*results[:4], results[5] if amsgrad else list(largest))


def adagrad(
    params, grads, sums, steps, *, lr, lr_decay, weight_decay, eps, maximize, grad_scale=None,
    found_inf=None,
):  # fmt: skip
    def step(param, d, total, count):
        if weight_decay != 0:
            d = d + param * weight_decay
        rate = (lr / (1 + (count.double() - 1) * lr_decay)).to(param.dtype)
        total = total + d * d
        return param - rate * d / (total.sqrt() + eps), total, count

    return tuple(Step(maximize, grad_scale, found_inf).run_all(step, params, grads, sums, steps))
