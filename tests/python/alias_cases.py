"""Functions that write to what they were given, and results that share memory; checked by writing to
each result in turn and looking at all others."""

import torch

# name: (function, arguments from a call)
CASES = {}


def case(*shapes, make=None):
    """Arguments are f32 tensors 0, 1, 2, ... of these shapes, or what `make` gives."""
    def add(function):
        def arguments():
            return [torch.arange(float(torch.Size(s).numel())).reshape(s) / 4 for s in shapes]

        CASES[function.__name__] = (function, make or arguments)
        return function

    return add


def base():
    return torch.arange(24.0).reshape(4, 6)


@case((4, 6))
def add_in_place(x):
    x.add_(1)
    return x * 2


@case((4, 6))
def result_is_the_mutated_input(x):
    return x.mul_(3)


@case((4, 6))
def result_is_a_view_of_the_mutated_input(x):
    x.sub_(1)
    return x.t(), x[1:3, ::2], x.view(-1)[5:]


@case((4, 6))
def chain_of_views(x):
    x.t()[2:5].unsqueeze(0).transpose(1, 2)[0, 1].fill_(9)
    return x.sum(0)


@case((4, 6))
def view_is_read_after_the_base_is_written(x):
    row = x[2]
    x.mul_(2)
    return row + 1


@case((4, 6))
def base_is_read_after_a_view_is_written(x):
    before = x + 0
    x[1:, 1:].neg_()
    return before, x.cumsum(1)


@case((4, 6))
def two_views_are_written(x):
    a, b = x[:3], x[1:]
    a += 1
    b *= 2
    return a - b


@case((4, 6))
def rows_in_a_loop(x):
    for i in range(1, 4):
        x[i] += x[i - 1]
    return x


@case((4, 6))
def parts_of_chunk_and_unbind(x):
    left, right = x.chunk(2, 1)
    left.add_(right)
    for k, row in enumerate(x.unbind(0)):
        row.mul_(k)
    return left, right


@case((5, 5))
def diagonal_is_filled(x):
    torch.diagonal(x, 1).fill_(7)
    x.diagonal()[::2].zero_()
    return x.trace()


@case((4, 6))
def selected_by_tensors(x):
    x[torch.tensor([0, 2]), torch.tensor([1, 5])] = 50.0
    x[:, torch.tensor([3])] += 1
    return x


@case((4, 6))
def selected_by_a_mask(x):
    x[x > 3] = -1
    x[:, 2].masked_fill_(x[:, 0] < 0, 4)
    return x.sum()


@case((4, 6))
def steps_and_negative_places(x):
    x[-1, ::3] = x[0, :2]
    x[..., -2] = 0
    return x[-2:]


@case((4, 6), (4, 6))
def swapped(x, y):
    z = x.clone()
    x.copy_(y)
    y.copy_(z)
    return z


@case((4, 6), (6,))
def broadcast_into_place(x, y):
    x += y
    x.copy_(y)
    x[0].copy_(y * 2)
    return x.mean()


@case((4, 6), (4, 6))
def out_argument(x, y):
    torch.add(x, 1, out=y)
    return y.sum()


@case((4, 6))
def out_argument_is_the_input(x):
    torch.exp(x, out=x)
    return x[0]


@case((4, 6), (4, 6))
def lists_in_place(x, y):
    torch._foreach_add_([x, y[1:]], 2.0)
    torch._foreach_mul_([x[0], y], [3.0, 4.0])
    return x + y


@case((4, 6))
def scatter_and_index_ops(x):
    x.scatter_(1, torch.tensor([[0, 3], [2, 1]]), 8.0)
    x.index_add_(0, torch.tensor([1, 1, 3]), torch.ones(3, 6))
    x[:2].index_copy_(1, torch.tensor([4]), torch.zeros(2, 1))
    return x


@case((4, 6))
def outputs_alias_each_other(x):
    y = x.exp()
    return y, y.t(), y[1], y.detach(), y.view(2, 12)


@case((4, 6))
def outputs_of_one_computation_do_not_alias(x):
    return x + 1, x + 1, (x + 1).t()


@case((4, 6))
def the_same_output_twice(x):
    y = x * 2
    return y, y, x, x


@case((4, 6))
def views_of_an_input(x):
    return x.t(), x[1], x.view(3, 8), x.expand(2, 4, 6)[0], x.unfold(1, 3, 2), x.as_strided((2, 2), (6, 1), 3)


@case((4, 6))
def contiguous_may_alias(x):
    return x.contiguous(), x.t().contiguous(), x.reshape(24), x.t().reshape(24), x.to(torch.float32), x.float()


@case((4, 6))
def intermediate_written_through_a_view(x):
    y = x * 2
    z = y.t()
    z[1:].add_(10)
    y[:, 0] = 0
    return y, z


@case((4, 6))
def clone_does_not_alias(x):
    y = x.clone()
    y[0] = 100
    z = x.detach()
    z[1] = 200
    return y, x.sum()


@case((4, 6))
def data_is_written(x):
    x.data.add_(1)
    x.data[0].zero_()
    return x * 1


@case(make=lambda: [torch.arange(12).reshape(3, 4)])
def integers_in_place(x):
    x[1:] += 5
    x.bitwise_and_(6)
    x.t()[0] //= 2
    return x


@case(make=lambda: [torch.arange(12).reshape(3, 4) % 2 == 0])
def bools_in_place(x):
    x[0].logical_not_()
    x |= x.roll(1, 1)
    return x.sum()


@case(make=lambda: [torch.arange(6.0).to(torch.complex64).reshape(2, 3)])
def parts_of_complex_numbers(x):
    torch.view_as_real(x)[..., 1] = 3
    x.real.mul_(2)
    return x * 1j


@case((4, 6))
def other_dtype_of_the_same_memory(x):
    x.view(torch.int32).bitwise_and_(0x7FFFF000)
    return x


@case((4, 6))
def dtype_of_the_place_holds(x):
    x.add_(torch.ones(6, dtype=torch.float64))
    y = torch.zeros(6, dtype=torch.int64)
    y.add_(3)
    return x, y


@case(make=lambda: [base().t()])
def transposed_argument(x):
    x[1].add_(1)
    return x.contiguous(), x * 2


@case(make=lambda: [base()[:, ::2]])
def argument_with_gaps(x):
    x.mul_(2)
    return x, x.sum(1)


@case(make=lambda: [base()[1:], base()[2]])
def arguments_with_offsets(x, y):
    x[0] += y[:6]
    return x[1:]


@case(make=lambda: (lambda b: [b[:3], b[1:]])(base()))
def overlapping_arguments(x, y):
    x.add_(1)
    y[0] *= 2
    return x + y


@case(make=lambda: (lambda b: [b, b])(base()))
def one_tensor_twice(x, y):
    x.add_(1)
    return y * 2, y


@case(make=lambda: (lambda b: [b, b.t()[1:]])(base()))
def argument_and_a_view_of_it(x, y):
    y.neg_()
    return x.sum(0), y


@case(make=lambda: [torch.zeros(0, 3), torch.ones(1, 1)])
def empty_and_single(x, y):
    x.add_(1)
    x[:, 1].fill_(2)
    y.squeeze(0).add_(1)
    return x.sum(0), y


@case((4, 6))
def shape_changes_in_place(x):
    y = x + 1
    y.unsqueeze_(0).transpose_(1, 2)
    y.squeeze_()
    y.t_()
    return y


@case((4, 6))
def written_twice_in_one_place(x):
    x[0] = 1
    x[0:2] = 2
    x[0, 3:] = x[1, :3] + x[0, :3]
    return x


@case((4, 6))
def read_between_writes(x):
    a = x.sum()
    x.add_(1)
    b = x.sum()
    x.zero_()
    return a, b, x.sum()


@case((4, 6))
def branch_on_a_tensor(x):
    y = torch.cond(x.sum() > 0, lambda z: z.clone(), lambda z: z * -1, (x,))
    y.add_(1)
    return y, x


@case((4, 6))
def in_nested_containers(x):
    y = {"a": [x.add_(1), (x[0], x.t())], "b": x * 2}
    y["b"][0] = y["a"][1][0]
    return y


@case((4, 6))
def set_by_where_and_clamp(x):
    x.clamp_(1, 4)
    x[1:] = torch.where(x[1:] > 2, x[:-1], x[1:])
    return x


@case((8,))
def overlapping_windows_are_read(x):
    windows = x.unfold(0, 3, 1)
    y = windows.sum(1)
    x[:6] += y
    return windows, y


@case((4, 6))
def sorted_in_place(x):
    x.copy_(x.flip(1).sort(1)[0])
    x[:, 1:].cumsum_(1)
    return x


def outcome(function, arguments):
    """What the function gives, and what all tensors are after each result was written to in turn."""
    result = function(*arguments)
    leaves = [t for t in torch.utils._pytree.tree_leaves((result, arguments)) if isinstance(t, torch.Tensor)]
    out = [(str(t.dtype), tuple(t.shape), places(t), t.clone()) for t in leaves]
    for k, tensor in enumerate(leaves):
        try:
            tensor.fill_(k % 2 if tensor.dtype == torch.bool else 100 + k)
        except RuntimeError as problem:  # several elements at one place
            out.append(str(problem).splitlines()[0])
        out += [t.clone() for t in leaves]
    return out


def places(tensor):
    """Strides that count: a dim of one element, or of a tensor without any, has any stride."""
    return tuple(s for n, s in zip(tensor.shape, tensor.stride()) if n > 1 and tensor.numel())


def difference(found, expected):
    """What differs between two outcomes, in words, or ""."""
    if len(found) != len(expected):
        return f"{len(found)} parts instead of {len(expected)}"
    for f, e in zip(found, expected):
        if isinstance(e, tuple):
            if f[:3] != e[:3]:
                return f"{f[:3]} instead of {e[:3]}"
            f, e = f[3], e[3]
        if isinstance(e, str):
            if f != e:
                return f"{f} instead of {e}"
        elif not torch.equal(f, e) and not torch.allclose(f, e, rtol=1e-6, equal_nan=True):
            return "other values: memory is shared where eager does not, or the reverse"
    return ""
