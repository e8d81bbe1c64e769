"""Random numbers under torch.compile(backend="coil"): reproducible, the same forward and backward, and
of the right distribution."""

import math

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

N = 20000


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function, **options):
    return torch.compile(function, backend="coil", fullgraph=True, options=options or None)


def seeded(run, *args, seed=7):
    torch.manual_seed(seed)
    return run(*args)


# Reproducible.


def draws(x):
    return (
        torch.rand(5, 7), torch.randn(6), torch.randint(0, 100, (9,)), torch.randperm(11), F.dropout(x, 0.5),
        torch.bernoulli(torch.full((8,), 0.5)), torch.empty(4).exponential_(), torch.rand_like(x),
    )


def test_manual_seed_governs():
    run, x = compiled(draws), torch.ones(3, 4)
    first, again = seeded(run, x), seeded(run, x)
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    other = seeded(run, x, seed=8)
    assert not torch.equal(first[0], other[0]) and not torch.equal(first[1], other[1])


def test_calls_differ():
    run, x = compiled(draws), torch.ones(3, 4)
    first, second = seeded(run, x), run(x)
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[3], second[3])


def test_ops_of_one_call_differ():
    a, b = compiled(lambda: (torch.rand(50), torch.rand(50)))()
    assert not torch.equal(a, b)


def test_key_is_two_numbers_of_torchs_generator():
    run = compiled(lambda: torch.rand(3))
    seeded(run)
    found = torch.rand(1)
    torch.manual_seed(7)
    torch.empty(2, dtype=torch.int64).random_()
    assert torch.equal(found, torch.rand(1))


def test_graphs_without_draws_leave_the_generator_alone():
    run = compiled(lambda x: F.dropout(x, 0.5, False) + 1)
    before = torch.get_rng_state()
    run(torch.ones(3))
    assert torch.equal(before, torch.get_rng_state())


def test_compiled_again_from_nothing_gives_the_same():
    x = torch.ones(3, 4)
    first = seeded(compiled(draws), x)
    torch._dynamo.reset()
    again = seeded(compiled(draws), x)
    assert all(torch.equal(a, b) for a, b in zip(first, again))


# Independent of how the program is run.


@pytest.mark.parametrize("options", [
    {"isa": "plain"}, {"isa": "avx2"}, {"fuse": False}, {"threads": 1}, {"threads": 3}, {"target": "interp"},
])
def test_bits_do_not_depend_on_how_it_is_run(options):
    def f(x):
        y = F.dropout(x.transpose(0, 1) * 2, 0.3)
        return y, (y + torch.rand(41, 33)).sum(1), torch.randint(-5, 1000, (3, 100), dtype=torch.int32)

    x = torch.ones(33, 41)
    expected = seeded(compiled(f), x)
    torch._dynamo.reset()
    found = seeded(compiled(f, **options), x)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[2], expected[2])
    torch.testing.assert_close(found[1], expected[1])


def test_bits_do_not_depend_on_layout():
    run = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(2, 3, 5, 4)
    expected = seeded(run, x)
    found = seeded(run, x.to(memory_format=torch.channels_last))
    assert torch.equal(found, expected) and found.is_contiguous(memory_format=torch.channels_last)


def test_a_longer_row_begins_as_the_shorter_one():
    run = torch.compile(lambda n: torch.rand(n), backend="coil", dynamic=True)
    assert torch.equal(seeded(run, 100)[:37], seeded(run, 37))


# Forward and backward.


def test_backward_drops_what_forward_dropped():
    run = compiled(lambda x: F.dropout(x.sin(), 0.5).exp())
    x = torch.randn(1000, requires_grad=True)
    y = run(x)
    y.sum().backward()
    kept = x.grad != 0
    assert 400 < kept.sum() < 600
    torch.testing.assert_close(y[kept], (x.sin() * 2).exp()[kept])
    torch.testing.assert_close(y[~kept], torch.ones(int((~kept).sum())))
    torch.testing.assert_close(x.grad[kept], (2 * x.cos() * y)[kept])


@pytest.mark.parametrize("reentrant", [False])
def test_checkpointed_region_draws_again_what_it_drew(reentrant):
    def part(x, w):
        return F.dropout((x @ w).tanh(), 0.5) @ w

    def f(x, w):
        return checkpoint(part, x, w, use_reentrant=reentrant)

    x, w = torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True)
    y = seeded(compiled(f), x, w)
    y.sum().backward()
    kept_whole = torch.linalg.solve(w.T.double(), y.double().T).T  # y = dropped @ w
    dropped = kept_whole * 1.0
    scores = (x @ w).tanh().double()
    mask = (dropped.abs() > scores.abs()).double() * 2
    torch.testing.assert_close(dropped, scores * mask, rtol=1e-2, atol=1e-2)
    inner = torch.ones(16, 16).double() @ w.double().T * mask * (1 - scores**2)
    torch.testing.assert_close(x.grad.double(), inner @ w.double().T, rtol=1e-3, atol=1e-3)


def test_eager_checkpoint_around_a_compiled_function():
    drop = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(500, requires_grad=True)
    y = checkpoint(lambda x: drop(x) * 3, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(y.detach(), x.grad)


def test_two_steps_use_different_masks():
    run = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(200, requires_grad=True)
    masks = []
    for _ in range(2):
        x.grad = None
        y = run(x)
        y.sum().backward()
        assert torch.equal(y.detach(), x.grad)
        masks.append(x.grad.clone())
    assert not torch.equal(*masks)


def test_training_with_dropout_lowers_the_loss():
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    run = torch.compile(model, backend="coil")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(128, 8)
    losses = []
    for _ in range(30):
        loss = (run(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_random_numbers_in_cond():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: F.dropout(x, 0.5), lambda x: x + torch.rand(100), (x,))

    run = compiled(f)
    y = seeded(run, torch.ones(100))
    assert set(y.tolist()) == {0.0, 2.0} and torch.equal(y, seeded(run, torch.ones(100)))
    z = seeded(run, -torch.ones(100))
    assert (z >= -1).all() and (z < 0).all() and z.unique().numel() > 90


def test_random_numbers_in_a_loop_are_an_error():
    def f(x):
        return torch.while_loop(lambda x: x.sum() < 5, lambda x: (x + torch.rand(3),), (x,))

    with pytest.raises(RuntimeError, match="random numbers inside of a loop"):
        compiled(f)(torch.zeros(3))


# Distributions.


def assert_moments(values, mean, deviation):
    """Within five standard errors."""
    values = values.double().flatten()
    n = values.numel()
    assert abs(values.mean().item() - mean) < 5 * deviation / math.sqrt(n)
    fourth = (values - mean).pow(4).mean().item()
    error = math.sqrt(max(fourth - deviation**4, 0.0) / n)
    assert abs((values - mean).square().mean().item() - deviation**2) < 5 * error + 1e-9


def assert_distribution(values, cdf):
    """The test of Kolmogorov and Smirnov: a right one fails once in about 10^6 times."""
    ordered = values.double().flatten().sort().values
    n = ordered.numel()
    steps = torch.arange(1, n + 1, dtype=torch.float64) / n
    wanted = cdf(ordered)
    distance = torch.maximum((steps - wanted).abs(), (steps - 1 / n - wanted).abs()).max().item()
    assert distance * math.sqrt(n) < 2.7


def normal_cdf(mean, deviation):
    return lambda x: torch.special.ndtr((x - mean) / deviation)


CONTINUOUS = [
    ("rand", lambda x: torch.rand(N), lambda x: x.clamp(0, 1)),
    ("rand_like", torch.rand_like, lambda x: x.clamp(0, 1)),
    ("randn", lambda x: torch.randn(N), normal_cdf(0, 1)),
    ("randn_like", torch.randn_like, normal_cdf(0, 1)),
    ("uniform_", lambda x: x.clone().uniform_(-3, 5), lambda x: ((x + 3) / 8).clamp(0, 1)),
    ("normal_", lambda x: x.clone().normal_(2, 0.5), normal_cdf(2, 0.5)),
    ("normal", lambda x: torch.normal(-1.0, 3.0, (N,)), normal_cdf(-1, 3)),
    ("normal of tensors", lambda x: torch.normal(x, x + 2), normal_cdf(1, 3)),
    ("normal with a mean", lambda x: torch.normal(x, 3.0), normal_cdf(1, 3)),
    ("normal with a deviation", lambda x: torch.normal(2.0, x), normal_cdf(2, 1)),
    ("exponential_", lambda x: x.clone().exponential_(1.5), lambda x: 1 - torch.exp(-1.5 * x)),
    ("cauchy_", lambda x: x.clone().cauchy_(1, 2), lambda x: 0.5 + torch.atan((x - 1) / 2) / math.pi),
    ("log_normal_", lambda x: x.clone().log_normal_(0.5, 0.3), lambda x: torch.special.ndtr((x.log() - 0.5) / 0.3)),
]


@pytest.mark.parametrize("name, function, cdf", CONTINUOUS, ids=[c[0] for c in CONTINUOUS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_continuous(name, function, cdf, dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        values = compiled(function)(torch.ones(N, dtype=dtype))
    finally:
        torch.set_default_dtype(before)
    assert values.dtype == dtype and values.shape == (N,)
    assert_distribution(values, cdf)
    # Neighbours do not know of each other.
    ranks = cdf(values.double()) - 0.5
    assert abs((ranks[:-1] * ranks[1:]).mean().item() * 12) < 5 / math.sqrt(N)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats(dtype):
    uniform, normal = compiled(lambda: (torch.rand(N, dtype=dtype), torch.randn(N, dtype=dtype)))()
    assert uniform.dtype == normal.dtype == dtype
    assert uniform.min() >= 0 and uniform.max() < 1
    assert_moments(uniform, 0.5 if dtype == torch.float16 else 0.5 - 2**-9, math.sqrt(1 / 12))
    assert_moments(normal, 0, 1)


def frequencies(values, low, high):
    return torch.bincount((values.long() - low).flatten(), minlength=high - low).double()


def assert_uniform(values, low, high):
    """Chi squared: within six deviations of its mean."""
    assert values.min() >= low and values.max() < high
    counts = frequencies(values, low, high)
    expected = values.numel() / (high - low)
    chi = ((counts - expected).square() / expected).sum().item()
    degrees = high - low - 1
    assert abs(chi - degrees) < 6 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("function", [
    lambda x: torch.randint(0, 10, (N,)),
    lambda x: torch.randint(10, (N,), dtype=torch.int8),
    lambda x: torch.randint_like(x, 0, 10),
    lambda x: torch.randint(0, 10, (N,), dtype=torch.float32),
    lambda x: torch.ops.aten.random(x, 0, 10),  # Dynamo does not trace random_
    lambda x: torch.ops.aten.random(x, 10),
    lambda x: torch.randint(2**40, 2**40 + 10, (N,)) - 2**40,
    lambda x: torch.randint(-4, 6, (N,)) + 4,
])
def test_integers(function):
    assert_uniform(compiled(function)(torch.zeros(N, dtype=torch.int64)), 0, 10)


@pytest.mark.parametrize("dtype, largest", [
    (torch.uint8, 255), (torch.int8, 127), (torch.int32, 2**31 - 1), (torch.int64, 2**63 - 1),
    (torch.float32, 2**24), (torch.bool, 1),
])
def test_random_fills_the_range(dtype, largest):
    values = compiled(lambda x: torch.ops.aten.random(x))(torch.zeros(N, dtype=dtype))
    assert values.min() >= 0 and values.double().max() <= largest
    assert abs(values.double().mean().item() / largest - 0.5) < 5 * math.sqrt(1 / 12 / N) * (2 if largest == 1 else 1)


def test_wide_ranges_of_integers():
    values = compiled(lambda: torch.randint(-(2**61), 2**61, (N,)))()
    assert_distribution(values.double() / 2**62 + 0.5, lambda x: x.clamp(0, 1))


def test_bernoulli():
    p = torch.linspace(0, 1, 11).repeat(N // 10, 1)
    for values in compiled(lambda p: (torch.bernoulli(p), p.clone().bernoulli_(p)))(p):
        assert set(values.unique().tolist()) == {0.0, 1.0}
        assert (values.mean(0) - p[0]).abs().max() < 5 * 0.5 / math.sqrt(N // 10)
        assert values[:, 0].max() == 0 and values[:, -1].min() == 1
    values = compiled(lambda x: x.bernoulli_(0.2))(torch.zeros(N, dtype=torch.int32))
    assert_moments(values, 0.2, 0.4)


def test_geometric():
    values = compiled(lambda x: x.geometric_(0.3))(torch.zeros(N))
    assert values.min() == 1
    assert_moments(values, 1 / 0.3, math.sqrt(0.7) / 0.3)
    counts = frequencies(values, 1, 200)[:5]
    expected = N * 0.3 * 0.7 ** torch.arange(5)
    assert ((counts - expected).abs() < 5 * expected.sqrt()).all()


def test_randperm():
    run = compiled(lambda: torch.randperm(1000))
    first, second = run(), run()
    assert torch.equal(first.sort().values, torch.arange(1000)) and not torch.equal(first, second)
    small = compiled(lambda: torch.randperm(3))
    counts = {}
    for _ in range(600):
        order = tuple(small().tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and all(abs(c - 100) < 60 for c in counts.values())


def test_multinomial():
    weights = torch.tensor([[1.0, 0.0, 3.0, 4.0], [2.0, 2.0, 0.0, 0.0]])
    many = compiled(lambda w: torch.multinomial(w, N, replacement=True))(weights)
    for row, expected in zip(many, weights / weights.sum(1, keepdim=True)):
        assert ((frequencies(row, 0, 4) / N - expected).abs() < 5 * 0.5 / math.sqrt(N)).all()
    few = compiled(lambda w: torch.multinomial(w, 2))(weights.repeat(N // 2, 1))
    assert (few[:, 0] != few[:, 1]).all()
    assert set(few[1::2].flatten().tolist()) == {0, 1} and 1 not in few[0::2].unique().tolist()
    first = frequencies(few[0::2, 0], 0, 4) / (N // 2)
    assert ((first - weights[0] / 8).abs() < 5 * 0.5 / math.sqrt(N // 2)).all()


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_dropout(p):
    y = compiled(lambda x: F.dropout(x, p))(torch.ones(N))
    kept = y != 0
    assert abs(kept.double().mean().item() - (1 - p)) <= 5 * math.sqrt(p * (1 - p) / N)
    if p < 1:
        torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - p)))


def test_dropout_of_channels():
    for drop in (F.dropout2d, F.dropout3d, F.feature_alpha_dropout):
        x = torch.ones(40, 50, 3, 3) if drop is not F.dropout3d else torch.ones(40, 50, 3, 3, 2)
        y = compiled(lambda x: drop(x, 0.5, True))(x).flatten(2)
        assert (y == y[:, :, :1]).all()
        assert abs((y[:, :, 0] == y.max()).double().mean().item() - 0.5) < 5 * 0.5 / math.sqrt(2000)


def test_alpha_dropout_keeps_mean_and_deviation():
    y = compiled(lambda x: F.alpha_dropout(x, 0.3, True))(torch.randn(N))
    assert abs(y.mean().item()) < 0.05 and abs(y.std().item() - 1) < 0.05


def test_rrelu():
    x = torch.randn(N, requires_grad=True)
    y = compiled(lambda x: F.rrelu(x, 0.1, 0.4, True))(x)
    y.sum().backward()
    negative = x < 0
    slope = (y / x).detach()
    torch.testing.assert_close(slope, x.grad)
    assert torch.equal(slope[~negative], torch.ones(int((~negative).sum())))
    assert_distribution(slope[negative], lambda s: ((s - 0.1) / 0.3).clamp(0, 1))


def test_attention_with_dropout():
    q, k, v = torch.randn(2, 3, 20, 8), torch.randn(2, 3, 30, 8), torch.eye(30).expand(2, 3, 30, 30)
    run = compiled(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25))
    dropped = run(q, k, v)  # of the identity: the weights themselves
    weights = F.scaled_dot_product_attention(q, k, v)
    kept = dropped != 0
    assert abs(kept.double().mean().item() - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 3600)
    torch.testing.assert_close(dropped[kept], weights[kept] / 0.75)
    assert torch.equal(seeded(run, q, k, v), seeded(run, q, k, v))


def test_gradient_of_attention_with_dropout():
    q, k, v = (torch.randn(1, 2, 6, 4, requires_grad=True) for _ in range(3))
    run = compiled(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    direction = torch.randn(1, 2, 6, 4)
    (seeded(run, q, k, v) * direction).sum().backward()
    step = 1e-2
    with torch.no_grad():
        # The same key, so the same mask; without gradients the graph is another, but not its numbers.
        up = (seeded(run, q, k, v + step * direction) * direction).sum()
        down = (seeded(run, q, k, v - step * direction) * direction).sum()
    torch.testing.assert_close((up - down) / (2 * step), (v.grad * direction).sum(), rtol=1e-2, atol=1e-2)


# Eager's own numbers.


def test_fallback_random_is_eagers():
    run, x = compiled(draws, fallback_random=True), torch.ones(3, 4)
    for a, b in zip(seeded(run, x), seeded(draws, x)):
        assert torch.equal(a, b)
    assert torch.equal(torch.rand(1), (seeded(draws, x), torch.rand(1))[1])


def assert_trains_with_eager_numbers(f):
    x = torch.randn(300, requires_grad=True)
    y = seeded(compiled(f, fallback_random=True), x)
    y.sum().backward()
    gradient, x.grad = x.grad, None
    expected = seeded(f, x)
    expected.sum().backward()
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(gradient, x.grad)


def test_fallback_random_trains():
    f = lambda x: F.dropout(x.sin(), 0.5) * 3  # noqa: E731
    assert_trains_with_eager_numbers(f)


def test_fallback_random_with_checkpoint():
    def f(x):
        return checkpoint(lambda x: F.dropout(x.sin(), 0.5).cos(), x, use_reentrant=False)

    assert_trains_with_eager_numbers(f)


# Exported programs.


class Noisy(nn.Module):
    def forward(self, x):
        y = F.dropout(x, 0.5, True)
        return y + torch.rand(x.shape), torch.randn(4)


def exported():
    return torch.export.export(Noisy(), (torch.ones(50),))


def test_exported_program_draws_anew_at_each_call():
    first, second = coil.compile(exported()), coil.compile(exported())
    a, b, c = first(torch.ones(50)), first(torch.ones(50)), second(torch.ones(50))
    assert torch.equal(a[0], c[0]) and torch.equal(a[1], c[1])
    assert not torch.equal(a[0], b[0]) and not torch.equal(a[1], b[1])
    assert not torch.equal(coil.compile(exported(), {"seed": 5})(torch.ones(50))[0], a[0])
