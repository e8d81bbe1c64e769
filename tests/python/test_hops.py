"""Higher-order ops under torch.compile(backend="coil"): control flow, effects, attention with functions
of the user's, and those of torch's own list."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch.nn import functional as F  # noqa: E402
from torch.utils import _pytree  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, **more):
    return torch.compile(function, backend="coil", fullgraph=True, **more)


def eager(function, *args):
    try:
        return function(*args)
    except ValueError as problem:
        if "need to be on CUDA" not in str(problem):
            raise
        pytest.skip("this torch takes combine_mode='pointwise' on a GPU alone")


def check(function, *args, **more):
    expected = eager(function, *args)
    found = compiled(function, **more)(*args)
    close(found, expected)


def close(found, expected):
    found, expected = _pytree.tree_leaves(found), _pytree.tree_leaves(expected)
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5)


def check_gradients(function, *args, **more):
    """Of all float arguments, with the sum of squares as the loss."""
    leaves = [a for a in _pytree.tree_leaves(args) if isinstance(a, torch.Tensor) and a.requires_grad]

    def gradients(run):
        loss = sum((r * r).sum() for r in _pytree.tree_leaves(run(*args)))
        return torch.autograd.grad(loss, leaves)

    expected = gradients(function)
    close(gradients(compiled(function, **more)), expected)


# Control flow.


def test_cond():
    f = lambda x: torch.cond(x.sum() > 0, lambda x: (x.sin(), x * 2), lambda x: (x.cos(), x + 1), (x,))  # noqa: E731
    check(f, torch.ones(3))
    check(f, -torch.ones(3))


def test_cond_on_a_size():
    f = lambda x: torch.cond(x.shape[0] > 4, lambda x: x.sin(), lambda x: x * 3, (x,))  # noqa: E731
    run = torch.compile(f, backend="coil", dynamic=True)
    for n in (2, 9):
        close(run(torch.ones(n)), f(torch.ones(n)))


def test_cond_with_numbers_and_closures():
    w = torch.randn(3, 3)

    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x @ w, lambda x: x - w.sum(), (x,))

    check(f, torch.ones(2, 3))
    check(f, -torch.ones(2, 3))


def test_gradient_of_cond():
    f = lambda x, w: torch.cond(x.sum() > 0, lambda x, w: (x * w).sin(), lambda x, w: x + w * w, (x, w))  # noqa: E731
    for sign in (1, -1):
        x = (sign * torch.rand(4)).requires_grad_()
        check_gradients(f, x, torch.rand(4, requires_grad=True))


def test_nested_cond():
    def f(x):
        inner = lambda x: torch.cond(x[0] > 2, lambda x: x * 10, lambda x: x - 1, (x,))  # noqa: E731
        return torch.cond(x.sum() > 0, inner, lambda x: x.abs(), (x,))

    for value in (3.0, 1.0, -1.0):
        check(f, torch.full((3,), value))


def test_while_loop():
    def f(n, x):
        return torch.while_loop(lambda n, x: n < 5, lambda n, x: (n + 1, x * 2 + n), (n, x))

    check(f, torch.tensor(0), torch.ones(3))
    check(f, torch.tensor(9), torch.ones(3))


def with_literals(x):
    return x * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(0.5)


def in_while(x):
    from torch._higher_order_ops import while_loop

    weights = lambda i, x: (i < torch.tensor([3, 4]).sum())  # noqa: E731
    return while_loop(weights, lambda i, x: (i + 1, with_literals(x) / 2), (torch.tensor(2), x))


def in_scan_within_cond(x):
    from torch._higher_order_ops import scan

    def rows(x):
        return scan(lambda c, row: (c + with_literals(row), c * 2), torch.zeros(3), x, dim=0)[1]

    return torch.cond(x.sum() > 0, rows, lambda x: x + torch.tensor([4.0, 5.0, 6.0]), (x,))


LITERALS = {
    "cond": lambda x: torch.cond(x.sum() > 0, with_literals, lambda x: x - torch.tensor(1.0), (x,)),
    "while_loop": in_while,
    "map": lambda x: torch._higher_order_ops.map(lambda row: with_literals(row), x),
    "nested": in_scan_within_cond,
}


@pytest.mark.parametrize("op", LITERALS)
def test_tensors_that_a_body_holds(op):
    x = torch.rand(4, 3)
    check(LITERALS[op], x)
    check(LITERALS[op], -x)


def test_scan():
    from torch._higher_order_ops import scan

    def f(init, xs):
        return scan(lambda carry, x: ((carry @ x).tanh(), carry * 2), init, xs, dim=0)

    check(f, torch.randn(3, 3), torch.randn(6, 3, 3))


def test_scan_reversed_over_another_dim():
    from torch._higher_order_ops import scan

    def f(init, xs):
        return scan(lambda carry, x: (carry + x, carry * x), init, xs, dim=1, reverse=True)

    check(f, torch.randn(4), torch.randn(4, 5))


def in_cond(carry, x):
    return torch.cond(x.sum() > 0, lambda c, x: c + x.flip(0), lambda c, x: c - x, (carry, x)), carry.clone()


def in_loop(carry, x):
    start = torch.zeros((), dtype=torch.int64)
    _, last = torch.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, x * 0.5 + k), (start, x))
    return carry + last, carry.clone()


def in_scan(carry, x):
    from torch._higher_order_ops import scan

    last, rows = scan(lambda c, row: (c + row, c * row), carry[0].clone(), x, dim=0)
    return carry + last, rows


WHOLE_SLICES = {
    "cond": in_cond,
    "while_loop": in_loop,
    "scan": in_scan,
    "result": lambda c, x: (c + 1, x.clone()),
    "sort": lambda c, x: (c + 1, x.sort(0)[0]),
    "product": lambda c, x: (c @ x.t(), c.clone()),
    "start of a scatter": lambda c, x: (c + 1, x.index_add(0, torch.arange(3) % 2, c)),
}


@pytest.mark.parametrize("use", WHOLE_SLICES)
def test_scan_that_uses_a_slice_whole(use):
    from torch._higher_order_ops import scan

    check(lambda init, xs: scan(WHOLE_SLICES[use], init, xs, dim=0), torch.rand(3, 3), torch.randn(4, 3, 3))


def test_gradient_of_scan():
    from torch._higher_order_ops import scan

    f = lambda init, xs: scan(lambda c, x: (c * x, c + x), init, xs, dim=0)  # noqa: E731
    check_gradients(f, torch.rand(3, requires_grad=True), torch.rand(4, 3, requires_grad=True))


@pytest.mark.parametrize("mode", ["pointwise", "generic"])
@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_associative_scan(mode, length):
    from torch._higher_order_ops.associative_scan import associative_scan

    f = lambda x: associative_scan(lambda a, b: a * b + a + b, x, dim=0, combine_mode=mode)  # noqa: E731
    check(f, torch.rand(length, 3))


def test_associative_scan_of_pairs():
    from torch._higher_order_ops.associative_scan import associative_scan

    def combine(p, q):  # of affine maps
        return p[0] * q[0], q[0] * p[1] + q[1]

    f = lambda a, b: associative_scan(combine, (a, b), dim=1, combine_mode="pointwise")  # noqa: E731
    check(f, torch.rand(2, 9), torch.rand(2, 9))


def test_associative_scan_of_a_length_that_varies():
    from torch._higher_order_ops.associative_scan import associative_scan

    linear = lambda x: associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="pointwise")  # noqa: E731
    run = torch.compile(linear, backend="coil", dynamic=True)
    for n in (3, 5, 12):
        x = torch.rand(n, 2)
        eager(linear, x)
        close(run(x), x.cumsum(0))


def test_map():
    from functorch.experimental.control_flow import map

    check(lambda xs, y: map(lambda x, y: x.sin() * y, xs, y), torch.randn(4, 3), torch.randn(3))


def test_gradient_of_map():
    from functorch.experimental.control_flow import map

    f = lambda xs, y: map(lambda x, y: x.sin() * y, xs, y)  # noqa: E731
    check_gradients(f, torch.rand(4, 3, requires_grad=True), torch.rand(3, requires_grad=True))


def test_switch():
    switch = pytest.importorskip("torch._higher_order_ops.switch").switch

    def f(i, x):
        return switch(i, (lambda x: x.sin(), lambda x: x * 2, lambda x: x.abs() + 1), (x,))

    for i in (0, 1, 2):
        check(f, torch.tensor(i), torch.randn(3))


# Wrappers.


def test_invoke_subgraph():
    @torch.compiler.nested_compile_region
    def layer(x, w):
        return (x @ w).relu()

    f = lambda x, w: layer(layer(x, w), w)  # noqa: E731
    check(f, torch.randn(3, 4), torch.randn(4, 4))
    torch._dynamo.reset()
    check_gradients(f, torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))


def test_invoke_subgraph_with_random_numbers():
    @torch.compiler.nested_compile_region
    def layer(x):
        return F.dropout(x, 0.5) * 3

    run = compiled(lambda x: (layer(x), layer(x)))
    a, b = run(torch.ones(200))
    assert set(a.tolist()) == {0.0, 6.0} and not torch.equal(a, b)


def test_checkpoint():
    f = lambda x, w: checkpoint(lambda x, w: (x @ w).sin().exp(), x, w, use_reentrant=False)  # noqa: E731
    check_gradients(f, torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))


def test_gradient_of_a_quantised_call():
    from torch._higher_order_ops import InvokeQuant

    def product(x, y):
        return (torch.sin(x) * y,)

    def f(x, y):
        return InvokeQuant()(product, x, y)[0] * 2.0

    check_gradients(f, torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True))


def test_autograd_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            return gradient * x * x * 3

    check_gradients(lambda x: Cube.apply(x).sin(), torch.rand(5, requires_grad=True))


def test_out_dtype():
    from torch._higher_order_ops.out_dtype import out_dtype

    a, b = torch.randint(-100, 100, (3, 40), dtype=torch.int8), torch.randint(-100, 100, (40, 5), dtype=torch.int8)
    f = lambda a, b: out_dtype(torch.ops.aten.mm.default, torch.int32, a, b)  # noqa: E731
    assert torch.equal(compiled(f)(a, b), a.int() @ b.int())


# Effects.


def test_print(capfd):
    pytest.importorskip("torch._higher_order_ops.print")

    def f(x):
        torch._higher_order_ops.print("sum {s}", s=x.sum())
        y = x * 2
        torch._higher_order_ops.print("then {n}", n=7)
        return y + 1

    close(compiled(f)(torch.ones(3)), torch.full((3,), 3.0))
    printed = capfd.readouterr().out
    assert printed.index("sum") < printed.index("then 7") and "3" in printed


SEEN = []


@torch.library.custom_op("coiltests::record", mutates_args=())
def record(x: torch.Tensor, what: int) -> torch.Tensor:
    SEEN.append((what, x.sum().item()))
    return x.clone()


@record.register_fake
def _(x, what):
    return torch.empty_like(x)


def test_effects_keep_their_order():
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    _register_effectful_op(torch.ops.coiltests.record.default, _EffectType.ORDERED)

    def f(x):
        record(x + 1, 1)
        y = record(x * 2, 2)
        record(x, 3)
        return y.exp()

    SEEN.clear()
    x = torch.zeros(2)
    close(compiled(f)(x), torch.ones(2))
    assert SEEN == [(1, 2.0), (2, 0.0), (3, 0.0)]


def test_assert_on_data():
    def f(x):
        torch._assert_async((x > 0).all(), "all must be positive")
        return x.log()

    run = compiled(f)
    close(run(torch.ones(3)), torch.zeros(3))
    with pytest.raises(RuntimeError, match="all must be positive"):
        run(-torch.ones(3))


# Attention with functions of the user's.


def attention(score_mod=None, mask_mod=None, **more):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def f(q, k, v):
        mask = None
        if mask_mod is not None:
            mask = create_block_mask(mask_mod, None, None, q.shape[2], k.shape[2], device="cpu", BLOCK_SIZE=16)
        return flex_attention(q, k, v, score_mod=score_mod, block_mask=mask, **more)

    return f


def dense(q, k, v, score=lambda s: s, keep=None, scale=None):
    s = score(q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5))
    if keep is not None:
        s = s.masked_fill(~keep, float("-inf"))
    return s.softmax(-1).nan_to_num(0.0) @ v


def qkv(**more):
    return [torch.randn(2, 2, 32, 16, **more) for _ in range(3)]


def test_flex_attention():
    q, k, v = qkv()
    close(compiled(attention())(q, k, v), dense(q, k, v))


def test_flex_attention_with_a_score():
    q, k, v = qkv()
    slopes = torch.tensor([0.5, 0.25])
    score_mod = lambda s, b, h, i, j: s + slopes[h] * (j - i)  # noqa: E731
    distance = torch.arange(32) - torch.arange(32)[:, None]
    expected = dense(q, k, v, lambda s: s + slopes[:, None, None] * distance, scale=0.3)
    close(compiled(attention(score_mod, scale=0.3))(q, k, v), expected)


def test_flex_attention_with_a_mask():
    q, k, v = qkv()
    mask_mod = lambda b, h, i, j: (i >= j) & (i - j < 8)  # noqa: E731
    i, j = torch.arange(32)[:, None], torch.arange(32)
    close(compiled(attention(mask_mod=mask_mod))(q, k, v), dense(q, k, v, keep=(i >= j) & (i - j < 8)))


# Torch's own list.


def listed():
    hop_db = pytest.importorskip("torch.testing._internal.hop_db").hop_db
    return {f"{info.name}.{info.variant_test_name}": info for info in hop_db}


# An error by default; torch runs them where it may.
REFUSED = {"auto_functionalize.simple", "while_loop_stack_output.simple"}


@pytest.mark.parametrize("name", sorted(listed()))
def test_torchs_list(name):
    info = listed()[name]
    samples = list(info.sample_inputs("cpu", torch.float32, requires_grad=False))
    assert samples
    for sample in samples:
        args = (sample.input, *sample.args)
        try:
            expected = torch.compile(info.op, backend="aot_eager")(*_pytree.tree_map(copied, args))
        except Exception as problem:
            pytest.skip(f"aot_eager refuses it: {type(problem).__name__}")
        options = None
        if name in REFUSED:
            torch._dynamo.reset()
            with pytest.raises(RuntimeError, match="not supported"):
                torch.compile(info.op, backend="coil")(*_pytree.tree_map(copied, args))
            options = {"fallback": "allow"}
        torch._dynamo.reset()
        close(torch.compile(info.op, backend="coil", options=options)(*_pytree.tree_map(copied, args)), expected)


def copied(value):
    return value.clone() if isinstance(value, torch.Tensor) else value
