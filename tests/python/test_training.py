"""Training through torch.compile(backend="coil"): curves of the loss, gradients, and the ways of training
that change the graphs: autocast, accumulation, checkpointing, clipping, compiled optimizers."""

import copy
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import training_cases  # noqa: E402
from training_cases import CASES, rms  # noqa: E402

# A loss is a float32 that was rounded.
ROUNDING = 1e-7


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function):
    return torch.compile(function, backend="coil")


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps(name):
    if name in ("resnet18", "vit_tiny"):
        pytest.importorskip("torchvision")
    if name in ("bert_small", "gpt2_small"):
        pytest.importorskip("transformers")
    torch._dynamo.utils.counters.clear()
    found = training_cases.measure(name)
    assert torch._dynamo.utils.counters["aot_autograd"]["ok"] >= 2  # the model, the optimizer's step
    losses = found.exact.losses
    assert losses[-4:].mean() < 0.98 * losses[:4].mean(), "the case does not train"
    assert found.coil_loss <= 2 * found.eager_loss + ROUNDING * rms(losses)
    assert found.gradient_ratio <= 1, f"{found.gradient}: {found.coil_gradient:.3g}, eager's {found.eager_gradient:.3g}"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class Blocks(nn.Module):
    """`keep` says how a block is run."""

    def __init__(self, keep=lambda block, x: block(x)):
        super().__init__()
        self.blocks, self.head, self.keep = nn.ModuleList(Block() for _ in range(3)), nn.Linear(16, 5), keep

    def forward(self, x, classes):
        for block in self.blocks:
            x = self.keep(block, x)
        return F.cross_entropy(self.head(x).flatten(0, 1), classes.flatten())


def batch():
    return torch.randn(6, 7, 16), torch.randint(0, 5, (6, 7))


def gradients(model):
    return {name: p.grad.double() for name, p in model.named_parameters()}


def assert_gradients(found, eager, exact, factor=2):
    assert found.keys() == eager.keys() == exact.keys()
    total = max(rms(g) for g in exact.values())
    for name, truth in exact.items():
        theirs, ours = rms(eager[name] - truth), rms(found[name] - truth)
        assert ours <= factor * theirs + 1e-6 * rms(truth) + 1e-8 * total, (name, ours, theirs)


def backwards(model, run, batches):
    for x, classes in batches:
        (run(x, classes) / len(batches)).backward()
    return gradients(model)


def three_ways(model, batches, wrap=compiled):
    """Gradients by coil, by eager and in float64."""
    mine, wide = copy.deepcopy(model), copy.deepcopy(model).double()
    exact = backwards(wide, wide, [(x.double(), c) for x, c in batches])
    return backwards(mine, wrap(mine), batches), backwards(model, model, batches), exact


def test_gradients_accumulate():
    assert_gradients(*three_ways(Blocks(), [batch() for _ in range(3)]))


def test_autocast():
    def autocast(function):
        def run(x, classes):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return function(x, classes)

        return run

    model, batches = Blocks(), [batch()]
    mine, wide = copy.deepcopy(model), copy.deepcopy(model).double()
    exact = backwards(wide, wide, [(x.double(), c) for x, c in batches])
    eager = backwards(model, autocast(model), batches)
    assert max(rms(eager[k] - exact[k]) / rms(exact[k]) for k in exact if rms(exact[k]) > 1e-6) > 1e-3
    assert_gradients(backwards(mine, compiled(autocast(mine)), batches), eager, exact)


def test_autocast_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(),
                          nn.Linear(144, 5))

    def step(model, run, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=x.dtype == torch.float32):
            loss = run(x).float().square().mean()
        loss.backward()
        return gradients(model)

    x = torch.randn(4, 3, 8, 8)
    mine, wide = copy.deepcopy(model), copy.deepcopy(model).double()
    exact = step(wide, lambda x: wide(x), x.double())
    assert_gradients(step(mine, compiled(mine), x), step(model, model, x), exact, factor=3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_weights(dtype):
    model, (x, classes) = Blocks().to(dtype), batch()
    mine, wide = copy.deepcopy(model), copy.deepcopy(model).double()
    x = x.to(dtype)
    exact = backwards(wide, wide, [(x.double(), classes)])
    found, eager = backwards(mine, compiled(mine), [(x, classes)]), backwards(model, model, [(x, classes)])
    assert_gradients(found, eager, exact, factor=3)


def test_checkpointing():
    def keep(block, x):
        return checkpoint(block, x, use_reentrant=False)

    torch._dynamo.utils.counters.clear()
    assert_gradients(*three_ways(Blocks(keep), [batch()]))
    assert not torch._dynamo.utils.counters["graph_break"]


def test_checkpointing_saves_less():
    """What the forward graph hands to the backward graph is smaller."""
    def saved_bytes(model):
        sizes = []

        def counting(gm, inputs):
            def forward(module, _):
                outputs = module.graph.output_node().args[0]
                placed = {n for n in outputs if isinstance(n, torch.fx.Node) and n.op != "placeholder"}
                sizes.append(sum(n.meta["val"].numel() * n.meta["val"].element_size() for n in placed))
                return torch._functorch.aot_autograd.make_boxed_func(module.forward)

            return torch._dynamo.backends.common.aot_autograd(
                fw_compiler=forward, bw_compiler=lambda m, _: torch._functorch.aot_autograd.make_boxed_func(m.forward),
                partition_fn=torch._functorch.partitioners.min_cut_rematerialization_partition)(gm, inputs)

        torch.compile(model, backend=counting)(*batch()).backward()
        return sizes[0]

    assert saved_bytes(Blocks(lambda b, x: checkpoint(b, x, use_reentrant=False))) < 0.5 * saved_bytes(Blocks())


def test_clipped_steps():
    """Clipping and the step in one graph."""
    def trained(wrap):
        torch.manual_seed(0)
        model = Blocks()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)

        def update():
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            return norm

        step, norms = wrap(update), []
        for _ in range(3):
            model(*batch()).backward()
            norms.append(step())
            optimizer.zero_grad()
        return norms, list(model.parameters())

    for found, expected in zip(trained(compiled), trained(lambda f: f)):
        for f, e in zip(found, expected):
            torch.testing.assert_close(f, e, rtol=2e-4, atol=2e-5)


def test_step_size_of_a_schedule():
    """A learning rate that is a tensor changes without a further compile."""
    def trained(wrap):
        weights = [nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(5))]
        optimizer = torch.optim.Adam(weights, lr=torch.tensor(0.1))
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        step = wrap(optimizer.step)
        for n in range(5):
            for w in weights:
                w.grad = torch.full_like(w, n - 1.5)
            step()
            schedule.step()
        return weights

    torch._dynamo.utils.counters.clear()
    found = trained(compiled)
    # The first step makes the optimizer's state, the second finds it there.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2
    for f, e in zip(found, trained(lambda f: f)):
        torch.testing.assert_close(f, e)


def test_frozen_layers_have_no_gradient():
    model = Blocks()
    model.blocks[0].requires_grad_(False)
    mine = copy.deepcopy(model)
    x, classes = batch()
    compiled(mine)(x, classes).backward()
    model(x, classes).backward()
    for (name, p), q in zip(mine.named_parameters(), model.parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-6)


def test_second_backward_adds():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    loss = compiled(model)(x).square().sum()
    loss.backward(retain_graph=True)
    once = model.weight.grad.clone()
    loss.backward()
    torch.testing.assert_close(model.weight.grad, 2 * once)
