"""Whole models with dynamic sizes: one compile serves them all."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import coil.backend  # noqa: E402


class Counter:
    """coil, and how many graphs it got."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, example_inputs):
        self.graphs += 1
        return coil.backend.coil(gm, example_inputs)


@pytest.fixture
def counter():
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Counter()


def rms(values):
    return values.double().square().mean().sqrt().item()


def assert_as_near(found, expected, exact):
    """At most twice as far from float64 as eager."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert rms(found - exact) <= 2 * rms(expected - exact) + 1e-6 * rms(exact)


def bert(dropout=0.0):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=211, num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4,
        max_position_embeddings=64, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return transformers.BertModel(config)


SIZES = [(2, 8), (3, 16), (5, 7), (2, 31), (9, 2), (4, 64), (7, 13), (2, 2), (16, 5), (3, 33)]


def batch(rows, length):
    """Words, and which of them count: at least one of each row."""
    ids = torch.randint(0, 211, (rows, length))
    mask = (torch.arange(length) < torch.randint(1, length + 1, (rows, 1))).long()
    for t in (ids, mask):
        torch._dynamo.mark_dynamic(t, 0)
        torch._dynamo.mark_dynamic(t, 1)
    return ids, mask


def test_bert_of_ten_sizes(counter):
    model = bert().eval()
    wide = bert().eval().double()
    wide.load_state_dict(model.state_dict())
    run = torch.compile(model, backend=counter, fullgraph=True)
    with torch.no_grad():
        for size in SIZES:
            ids, mask = batch(*size)
            assert_as_near(run(ids, mask)[0], model(ids, mask)[0], wide(ids, mask)[0])
    assert counter.graphs == 1


def test_bert_trains_with_ten_sizes(counter):
    model = bert()
    run = torch.compile(model, backend=counter, fullgraph=True)
    for size in SIZES:
        ids, mask = batch(*size)

        def gradients(function, model=model):
            model.zero_grad()
            function(ids, mask)[0].square().mean().backward()
            return [p.grad.clone() for p in model.parameters() if p.grad is not None]

        found, expected = gradients(run), gradients(model)
        wide = gradients(model.double())
        model.float()
        # A parameter that the result does not need has no gradient in eager, and zeros here.
        found = [f for f in found if f.any() or len(found) == len(expected)]
        for f, e, x in zip(found, expected, wide, strict=True):
            assert rms(f - x) <= 3 * rms(e - x) + 1e-6 * rms(x) + 1e-9
    assert counter.graphs == 1


class Decoder(nn.Module):
    """Layers of attention that get the keys and values of the words before."""

    def __init__(self, layers=2, size=32, heads=4):
        super().__init__()
        self.embed, self.heads = nn.Embedding(97, size), heads
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(layers))
        self.inputs = nn.ModuleList(nn.Linear(size, 3 * size) for _ in range(layers))
        self.outputs = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))

    def forward(self, ids, past):
        x, kept = self.embed(ids), []
        for k, (norm, inputs, outputs) in enumerate(zip(self.norms, self.inputs, self.outputs)):
            q, key, value = inputs(norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            if past is not None:
                key, value = torch.cat([past[k][0], key], 2), torch.cat([past[k][1], value], 2)
            kept.append((key, value))
            y = F.scaled_dot_product_attention(q, key, value)
            x = x + outputs(y.transpose(1, 2).flatten(2))
        return x @ self.embed.weight.t(), kept


def test_growing_cache(counter):
    """A word at a time: the cache grows by one, and after the first dynamic compile nothing is compiled."""
    model = Decoder().eval()
    run = torch.compile(model, backend=counter, fullgraph=True)
    ids = torch.randint(0, 97, (2, 1))
    with torch.no_grad():
        mine, eager = run(ids, None)[1], model(ids, None)[1]
        for step in range(24):
            scores, mine = run(ids, mine)
            expected, eager = model(ids, eager)
            torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)
            assert mine[0][0].shape[2] == step + 2
            ids = expected[:, -1:].argmax(-1)
            if step == 3:
                settled = counter.graphs
    # Without a cache, with one of a fixed length, with one of any length: the length 1 has a graph of its own.
    assert counter.graphs == settled <= 4


def test_cache_written_in_place(counter):
    """A cache of the full length, of which each step writes a column and reads what was written."""
    def step(cache, word, place):
        cache.index_copy_(1, place, word)
        visible = torch.arange(cache.shape[1]) <= place
        scores = (word @ cache.transpose(1, 2)).masked_fill(~visible, float("-inf"))
        return scores.softmax(-1) @ cache

    run = torch.compile(step, backend=counter, fullgraph=True)
    mine, eager = torch.zeros(2, 16, 8), torch.zeros(2, 16, 8)
    for k in range(16):
        word, place = torch.randn(2, 1, 8), torch.tensor([k])
        torch.testing.assert_close(run(mine, word, place), step(eager, word, place))
        assert torch.equal(mine, eager)
    assert counter.graphs == 1


def test_slices_of_a_cache_with_a_length(counter):
    """The length is an int of the program: a size, not a value to compile for."""
    def step(cache, word, length):
        cache[:, length:length + 1] = word
        past = cache[:, : length + 1]
        return (word @ past.transpose(1, 2)).softmax(-1) @ past

    run = torch.compile(step, backend=counter, fullgraph=True, dynamic=True)
    mine, eager = torch.zeros(2, 16, 8), torch.zeros(2, 16, 8)
    for k in range(2, 14):
        word = torch.randn(2, 1, 8)
        torch.testing.assert_close(run(mine, word, k), step(eager, word, k))
        assert torch.equal(mine, eager)
    assert counter.graphs == 1


def test_cache_of_transformers(counter):
    """GPT-2 with the DynamicCache of transformers."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=97, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config).eval()
    run = torch.compile(model, backend=counter)
    prompt = torch.randint(0, 97, (2, 5))
    with torch.no_grad():
        mine = run(prompt, past_key_values=transformers.DynamicCache(), use_cache=True)
        eager = model(prompt, past_key_values=transformers.DynamicCache(), use_cache=True)
        for step in range(12):
            torch.testing.assert_close(mine.logits, eager.logits, rtol=1e-4, atol=1e-4)
            ids = eager.logits[:, -1:].argmax(-1)
            mine = run(ids, past_key_values=mine.past_key_values, use_cache=True)
            eager = model(ids, past_key_values=eager.past_key_values, use_cache=True)
            if step == 3:
                settled = counter.graphs
    assert counter.graphs == settled


def test_images_of_any_size(counter):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).eval()
    run = torch.compile(model, backend=counter, fullgraph=True)
    with torch.no_grad():
        for rows, height, width in ((2, 32, 48), (3, 17, 9), (5, 64, 33), (2, 8, 100)):
            x = torch.randn(rows, 3, height, width)
            for dim in (0, 2, 3):
                torch._dynamo.mark_dynamic(x, dim)
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert counter.graphs == 1
