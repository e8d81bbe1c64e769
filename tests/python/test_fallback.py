"""options={"fallback": "allow"}: torch runs what coil has not. Frozen weights. Options. Reports."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch import nn  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters["coil"].clear()
    torch.manual_seed(0)


def compiled(function, **options):
    return torch.compile(function, backend="coil", fullgraph=True, options=options or None)


def allowed(function, **options):
    return compiled(function, fallback="allow", **options)


@torch.library.custom_op("coiltests::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@triple.register_fake
def _(x):
    return torch.empty_like(x)


triple.register_autograd(lambda context, gradient: gradient * 3)


@torch.library.custom_op("coiltests::fill_with", mutates_args=("x",))
def fill_with(x: torch.Tensor, value: float) -> None:
    x.fill_(value)


@fill_with.register_fake
def _(x, value):
    return None


@torch.library.custom_op("coiltests::wave", mutates_args=())
def wave(x: torch.Tensor) -> torch.Tensor:
    """An op that coil has not."""
    return torch.special.airy_ai(x)


@wave.register_fake
def _(x):
    return torch.empty_like(x)


def waves(x):
    return wave(x * 2) + x.exp().sum()


def counted():
    return {k.removeprefix("fallback "): n for k, n in counters["coil"].items()}


def test_the_default_is_an_error():
    with pytest.raises(RuntimeError, match=r"coiltests\W+wave"):
        compiled(waves)(torch.rand(3))


def test_torch_runs_what_is_missing():
    x = torch.rand(5)
    torch.testing.assert_close(allowed(waves)(x), waves(x))
    assert counted() == {"coiltests.wave.default": 1}


def test_it_is_said_once():
    from coil import fallback

    fallback._warned.clear()
    with pytest.warns(coil.FallbackWarning, match=r"coiltests\W+wave"):
        allowed(waves)(torch.rand(3))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        allowed(waves)(torch.rand(4))


def test_parts_are_few():
    """What does not depend on each other shares a part, whatever the order in the program."""
    def f(x, y):
        a = wave(x + 1)
        b = y.exp() * 2
        c = wave(b)
        return a + c, b + 1

    report = coil.explain(f, torch.rand(4), torch.rand(4), options={"fallback": "allow"})
    assert len(report) == 2  # before and after one part of torch's
    assert report.fallbacks == {"coiltests.wave.default": 2}
    assert "wave" in str(report)


def test_gradients():
    x = torch.rand(5, requires_grad=True)
    f = lambda x: (triple(x.sin()) * x).sum()  # noqa: E731
    allowed(f)(x).backward()
    found, x.grad = x.grad, None
    f(x).backward()
    torch.testing.assert_close(found, x.grad)


def test_custom_op():
    f = lambda x: triple(x + 1).relu()  # noqa: E731
    with pytest.raises(RuntimeError, match="coiltests::triple"):
        compiled(f)(torch.randn(3))
    torch._dynamo.reset()
    x = torch.randn(3)
    torch.testing.assert_close(allowed(f)(x), f(x))


def test_custom_op_that_writes():
    def f(x):
        y = x * 2
        fill_with(y[1:], 7.0)
        fill_with(x, 1.0)
        return y + x

    with pytest.raises(RuntimeError, match="coiltests::fill_with"):
        compiled(f)(torch.randn(3))
    torch._dynamo.reset()
    x, z = torch.arange(4.0), torch.arange(4.0)
    torch.testing.assert_close(allowed(f)(x), f(z))
    torch.testing.assert_close(x, z)


def test_mutated_inputs_and_views():
    def f(x, y):
        x.add_(wave(y))
        return x.t(), x[0] * 2

    a, b = torch.rand(3, 3), torch.rand(3, 3)
    c = a.clone()
    for found, expected in zip(allowed(f)(a, b), f(c, b)):
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(a, c)


def test_dynamic_sizes():
    def f(x):
        y = wave(x.repeat(2, 1) + x.shape[0])
        return y.sum(1), y.new_zeros(y.shape[0] * 2)

    run = torch.compile(f, backend="coil", dynamic=True, options={"fallback": "allow"})
    for n in (2, 5, 9):
        for found, expected in zip(run(torch.ones(n, 3)), f(torch.ones(n, 3))):
            torch.testing.assert_close(found, expected)


def test_a_chain_has_a_part_for_each_link():
    def f(x):
        y = wave(x + 1)
        return (wave(y * 2) + 1).sum()

    x = torch.rand(8)
    assert len(coil.explain(f, x, options={"fallback": "allow"})) == 3
    torch.testing.assert_close(allowed(f)(x), f(x))


# Frozen weights.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(self.norm(self.conv(x)).relu().mean((2, 3)))


def net():
    model = Net().eval()
    with torch.no_grad():
        model.norm.running_mean.normal_()
        model.norm.running_var.uniform_(0.5, 2)
    return model


def frozen(model, x):
    """A compiled model with frozen weights, after a first call."""
    run = compiled(model, freezing=True)
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x))
    return run


def check(run, model, x):
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x))


def test_weights_are_constants():
    model, x = net(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        plain = coil.explain(model, x)
        report = coil.explain(model, x, options={"freezing": True})
    assert "const %" not in plain[0].text and report[0].text.count("const %") >= 8
    check(compiled(model, freezing=True), model, x)


@pytest.mark.parametrize("change", [
    lambda m: m.conv.weight.mul_(2),
    lambda m: setattr(m.linear, "weight", nn.Parameter(torch.randn(4, 8))),
    lambda m: setattr(m.linear.weight, "data", torch.randn(4, 8)),
    lambda m: m.norm.running_var.add_(3),
    lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}),
], ids=["in place", "replaced", "data replaced", "buffer", "state_dict"])
def test_a_changed_weight_is_seen(change):
    model, x = net(), torch.randn(2, 3, 8, 8)
    run = frozen(model, x)
    for _ in range(2):
        with torch.no_grad():
            change(model)
        check(run, model, x)
        check(run, model, x)


def test_weights_that_the_program_writes_or_returns_stay_inputs():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, x):
            self.count.add_(1)
            return x * self.weight + self.count, self.weight.view(3, 1)

    model, x = Counting(), torch.randn(3)
    other = copy.deepcopy(model)
    run = compiled(model, freezing=True)
    for _ in range(3):
        with torch.no_grad():
            found, expected = run(x), other(x)
        torch.testing.assert_close(found[0], expected[0])
    assert found[1].untyped_storage().data_ptr() == model.weight.untyped_storage().data_ptr()
    assert torch.equal(model.count, torch.full((3,), 3.0))


def test_freezing_leaves_training_alone():
    model, x = net().train(), torch.randn(4, 3, 8, 8)
    other = copy.deepcopy(model)
    run = compiled(model, freezing=True)
    for _ in range(2):
        for m, r in ((model, run), (other, other)):
            r(x).square().sum().backward()
            with torch.no_grad():
                for p in m.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None
    for p, q in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)


def test_frozen_in_inference_mode():
    with torch.inference_mode():
        model = net()  # its weights have no version: they stay inputs
        x = torch.randn(2, 3, 8, 8)
        run = compiled(model, freezing=True)
        torch.testing.assert_close(run(x), model(x))
        model.linear.weight.mul_(2)
        torch.testing.assert_close(run(x), model(x))


def test_frozen_with_fallback():
    model = net()
    f = lambda x: wave(model(x) + model.linear.bias)  # noqa: E731
    run, x = allowed(f, freezing=True), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(run(x), f(x))
        model.linear.bias.add_(1)
        torch.testing.assert_close(run(x), f(x))


def test_frozen_graphs_name_missing_ops_when_compiled():
    with torch.no_grad(), pytest.raises(RuntimeError, match="wave"):
        compiled(lambda x: wave(x), freezing=True)(torch.rand(3))


# Options.


def test_inductors_names():
    assert coil.Options(implicit_fallbacks=True).get("fallback") == "allow"
    assert coil.Options(fx_graph_cache=False).get("cache") == "off"
    for wrong, near in (("freezin", "freezing"), ("fallback_rand", "fallback_random"), ("thread", "threads")):
        with pytest.raises(coil.OptionError, match=f"'{near}'"):
            coil.Options({wrong: 1})
    with pytest.raises(coil.OptionError, match="error allow"):
        coil.Options(fallback="maybe")
    with pytest.raises(RuntimeError, match="manual_seed"):
        compiled(lambda x: x + 1, seed=3)(torch.ones(2))
    assert "freezing=off|on" in coil.Options.help()


# Reports.


def test_timing():
    report = coil.explain(lambda x: (x.exp() + 1).sum(-1), torch.randn(4, 5), timing=True)
    assert {"dynamo", "aot", "write", "import", "lower", "schedule", "compile", "run"} <= report.timing.keys()
    assert all(ms >= 0 for ms in report.timing.values())
    assert abs(sum(report.timing.values()) / 1e3 - report.seconds) < 0.05 * report.seconds + 0.01
    assert "dynamo" in str(report)
    assert coil.explain(lambda x: x + 1, torch.ones(2)).timing == {}


def test_sizes_from_data_cross_parts():
    def f(x):
        picked = x[x > 0]
        y = wave(picked * 2)
        return y.exp() + 1, y.sum()

    run = torch.compile(f, backend="coil", options={"fallback": "allow"})
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for x in (torch.tensor([1.0, -1.0, 2.0]), torch.tensor([0.5, 1.0, 2.0])):
            for found, expected in zip(run(x), f(x)):
                torch.testing.assert_close(found, expected)
