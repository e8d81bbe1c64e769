"""Ops on lists of tensors through torch.compile(backend="coil"): the _foreach_ ops of torch's op
database, gradient scaling, fused steps of optimizers; prims; decompositions of custom ops."""

import copy

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from beside_torch import what_torch_lacks  # noqa: E402
from torch.testing._internal import common_methods_invocations as op_db  # noqa: E402

FOREACH = [
    *op_db.foreach_unary_op_db, *op_db.foreach_binary_op_db, *op_db.foreach_pointwise_op_db,
    *op_db.foreach_reduce_op_db, *op_db.foreach_other_op_db,
]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def flat(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def assert_near(found, expected):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6, equal_nan=True)


def overloads_with_samples(name, dtype):
    """(overload, arguments) of the functional forms of an op: two short lists."""
    packet = getattr(torch.ops.aten, name)

    def tensors(n=2):
        return [(torch.rand(2, k + 1) + 0.3).to(dtype) for k in range(n)]

    for overload in packet.overloads():
        if overload.endswith("out"):
            continue
        op, args = getattr(packet, overload), []
        for arg in op._schema.arguments:
            kind = str(arg.type)
            if name == "_foreach_mm" and kind == "List[Tensor]":
                args.append([torch.rand(2, 2).to(dtype) for _ in range(2)])
            elif kind == "List[Tensor]":
                args.append(tensors())
            elif kind == "Tensor":  # one number for all, or one for each
                args.append(torch.tensor([0.5, 2.0] if name[9:] in ("addcmul", "addcdiv") else 2.0).to(dtype))
            elif kind in ("List[number]",):
                args.append([2, 3])
            elif kind == "number" and not arg.has_default_value():
                args.append(2)
        yield op, args


@pytest.mark.parametrize("info", FOREACH, ids=lambda info: info.name)
def test_foreach(info):
    for dtype in (torch.float32, torch.bfloat16):
        found_one = False
        for op, args in overloads_with_samples(info.name, dtype):
            if op._schema.arguments[0].alias_info is not None:
                continue
            torch._dynamo.reset()
            expected = flat(op(*copy.deepcopy(args)))
            try:
                found = flat(torch.compile(lambda a: op(*a), backend="coil")(args))
            except Exception as problem:
                if what_torch_lacks(problem, lambda a: op(*a), [args]):
                    continue
                raise
            assert len(found) == len(expected)
            for f, e in zip(found, expected):
                assert (f.shape, f.dtype) == (e.shape, e.dtype)
                torch.testing.assert_close(f, e, equal_nan=True)
            found_one = True
        assert found_one


def test_gradient_scaling():
    aten = torch.ops.aten
    for bad in (1.0, float("inf"), float("nan")):
        grads = [torch.tensor([2.0, bad]), torch.ones(3)]

        def run(grads, found):
            aten._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.25))
            return grads, found

        mine = copy.deepcopy(grads)
        expected = flat(run(grads, torch.zeros(1)))
        assert_near(flat(torch.compile(run, backend="coil")(mine, torch.zeros(1))), expected)
    for found_inf in (0.0, 1.0):
        for tracker in (0, 4):

            def run(scale, tracker):
                return torch._amp_update_scale_(
                    scale, tracker, torch.tensor(found_inf), 2.0, 0.5, 5
                ), tracker

            def args():
                return torch.tensor(8.0), torch.tensor(tracker, dtype=torch.int32)

            assert_near(flat(torch.compile(run, backend="coil")(*args())), flat(run(*args())))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
        ("Adam", {"lr": 0.01}),
        ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.01, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ],
)
def test_fused_steps(kind, settings):
    ours = torch.nn.Linear(3, 4)
    theirs = copy.deepcopy(ours)
    x = torch.rand(5, 3)

    def train(model, wrap):
        optimizer = getattr(torch.optim, kind)(model.parameters(), fused=True, **settings)
        step = wrap(optimizer.step)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            step()

    train(theirs, lambda step: step)
    train(ours, lambda step: torch.compile(step, backend="coil"))
    assert_near(list(ours.parameters()), list(theirs.parameters()))


def test_fused_step_with_scaled_gradients():
    def run(scale, found_inf, params, grads, means, squares, largest, steps):
        torch._fused_adam_(
            params, grads, means, squares, largest, steps, lr=0.1, beta1=0.9, beta2=0.99,
            weight_decay=0.1, eps=1e-8, amsgrad=True, maximize=False,
            grad_scale=scale, found_inf=found_inf,
        )  # fmt: skip

    for found_inf in (0.0, 1.0):
        lists = [[torch.rand(3), torch.rand(2, 2)] for _ in range(5)]
        lists.append([torch.tensor(2.0), torch.tensor(3.0)])
        mine = copy.deepcopy(lists)
        run(torch.tensor(4.0), torch.tensor(found_inf), *lists)
        compiled = torch.compile(run, backend="coil")
        compiled(torch.tensor(4.0), torch.tensor(found_inf), *mine)
        assert_near(flat(mine), flat(lists))


def test_prims():
    prims = torch.ops.prims
    library = torch.library.Library("coil_prims", "FRAGMENT")  # noqa: TOR901
    library.define("broadcast(Tensor x) -> Tensor")
    library.impl("broadcast", lambda x: x.expand(2, 3).clone(), "CPU")
    library.impl("broadcast", lambda x: x.new_empty(2, 3), "Meta")
    op = torch.ops.coil_prims.broadcast.default

    # Views among the prims come from decompositions only.
    @torch._decomp.register_decomposition(op)
    def broadcast(x):
        row = prims.squeeze(prims.split_dim(x, 0, 1), [0])
        return prims.clone(prims.transpose(prims.broadcast_in_dim(row, [3, 2], [0]), [1, 0]))

    def run(x, y):
        wide = op(y)
        steps = prims.iota(3, start=1, step=2, dtype=torch.int64, device="cpu", requires_grad=False)
        return (
            prims.add(x, wide), prims.convert_element_type(x, torch.float64), steps,
            prims.where(prims.gt(x, wide), x, wide), prims.sum(x, [1]), prims.amax(x, [0]),
            prims.rev(x, [0]), prims.device_put(x, torch.device("cpu")), prims.rsqrt(x),
            prims.pow(x, wide),
        )  # fmt: skip

    args = torch.rand(2, 3) + 0.5, torch.rand(3)
    assert_near(flat(torch.compile(run, backend="coil")(*args)), flat(run(*args)))


def test_custom_op_with_a_decomposition():
    library = torch.library.Library("coil_list_ops", "FRAGMENT")  # noqa: TOR901
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", lambda x: torch.empty_like(x), "Meta")
    op = torch.ops.coil_list_ops.twice.default
    with pytest.raises(Exception, match="twice"):
        torch.compile(lambda x: op(x) + 1, backend="coil")(torch.rand(3))
    torch._dynamo.reset()
    torch._decomp.register_decomposition(op)(lambda x: x + x)
    x = torch.rand(3)
    assert torch.equal(torch.compile(lambda x: op(x) + 1, backend="coil")(x), x * 2 + 1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_chunked_linear_cross_entropy(reduction):
    functional = torch.nn.functional
    if not hasattr(functional, "linear_cross_entropy"):
        pytest.skip("this torch has no linear_cross_entropy")
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    classes = torch.tensor([1, 0, -100, 3, 2])
    for target, weight in ((classes, None), (classes, torch.rand(4)), (torch.rand(5, 4), None)):

        def run(x, w, b):
            loss = functional.linear_cross_entropy(
                x, w, target, linear_bias=b, weight=weight, reduction=reduction, options=options
            )
            loss.backward(torch.ones_like(loss))
            return loss.detach()

        args = [torch.rand(s, requires_grad=True) for s in ((5, 3), (4, 3), (4,))]
        mine = copy.deepcopy(args)
        expected = [run(*args)] + [a.grad for a in args]
        torch._dynamo.reset()

        def forward(x, w, b):
            return functional.linear_cross_entropy(
                x, w, target, linear_bias=b, weight=weight, reduction=reduction, options=options
            )

        loss = torch.compile(forward, backend="coil")(*mine)
        loss.backward(torch.ones_like(loss))
        assert_near([loss.detach()] + [a.grad for a in mine], expected)
