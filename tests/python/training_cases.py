"""Small models in training: how each is made and fed, and what twenty steps of it give.

A case is trained in float64, in eager float32 and by coil, with the same weights and batches. How far eager
float32 is from float64 depends on the order of its sums: the same batches with their rows in other orders
show by how much, since no loss here depends on the order of rows.
"""

import contextlib
import dataclasses
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 20
ORDERS = 3  # of the rows of a batch; the first is the batch's own
WORDS = 211


class Classifier(nn.Module):
    """The loss of a model that gives scores of classes, in its last dim."""

    def __init__(self, model, scores=lambda result: result):
        super().__init__()
        self.model, self.scores = model, scores

    def forward(self, x, classes):
        return F.cross_entropy(self.scores(self.model(x)).flatten(0, -2), classes.flatten())


def resnet18():
    import torchvision

    return Classifier(torchvision.models.resnet18(num_classes=10))


def vit_tiny():
    import torchvision

    model = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=3, hidden_dim=48, mlp_dim=96, num_classes=10)
    nn.init.normal_(model.heads.head.weight, std=0.1)  # zero at first, which would hide the others' gradients
    return Classifier(model)


def bert_small():
    import transformers

    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Classifier(transformers.BertForMaskedLM(config), lambda result: result.logits)


def gpt2_small():
    import transformers

    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=32, n_embd=96, n_layer=2, n_head=12, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=None, eos_token_id=None, use_cache=False)
    return Classifier(transformers.GPT2LMHeadModel(config), lambda result: result.logits)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.lstm = nn.LSTM(24, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 10)

    def forward(self, ids):
        return self.head(self.lstm(self.embed(ids))[0])


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.SiLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = double_conv(3, 8), double_conv(8, 16), double_conv(16, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.fourth, self.fifth = double_conv(32, 16), double_conv(24, 8)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        c = self.third(F.avg_pool2d(b, 2))
        d = self.fourth(torch.cat([self.up(c), b], 1))
        wide = F.interpolate(d, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.fifth(torch.cat([wide, a], 1))).movedim(1, -1)


class Vae(nn.Module):
    """A variational autoencoder with its noise as an argument; the loss is the bound of Kingma and
    Welling, Auto-Encoding Variational Bayes (2014)."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ELU(), nn.Flatten())
        self.mean, self.log_variance = nn.Linear(256, 6), nn.Linear(256, 6)
        self.start = nn.Linear(6, 256)
        self.decoder = nn.Sequential(
            nn.Softplus(), nn.Upsample(scale_factor=2), nn.Conv2d(16, 8, 3, padding=1), nn.Tanh(),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1))

    def forward(self, images, noise):
        features = self.encoder(images)
        mean, log_variance = self.mean(features), self.log_variance(features)
        code = mean + noise * torch.exp(log_variance / 2)
        found = self.decoder(self.start(code).unflatten(1, (16, 4, 4)))
        likeness = F.binary_cross_entropy_with_logits(found, images, reduction="none").sum((1, 2, 3)).mean()
        divergence = (log_variance.exp() + mean.square() - 1 - log_variance).sum(1).mean() / 2
        return likeness + divergence


def pictures(rows, channels, size):
    """Of two scales, in 0..1, and a class for each pixel."""
    coarse = F.interpolate(torch.randn(rows, channels, 4, 4), size=size)
    x = (coarse + 0.3 * torch.randn(rows, channels, size, size)).sigmoid()
    return x, (3.99 * x.mean(1)).long()


def labelled(rows, channels, size):
    return pictures(rows, channels, size)[0], torch.randint(0, 10, (rows,))


def sentences(rows, length):
    """Words, and the next ones, which mostly follow from them."""
    ids = torch.randint(0, WORDS, (rows, length))
    return ids, (3 * ids + 1) % WORDS


def tagged(rows, length):
    ids, following = sentences(rows, length)
    return ids, following % 10


@dataclasses.dataclass(frozen=True)
class Case:
    build: Callable[[], nn.Module]  # a module whose result is the loss
    batch: Callable[[], tuple]  # its arguments; rows in the first dim
    optimizer: Callable


def sgd(parameters):
    # Small: the statistics of few images make a chaos of the curve soon.
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, weight_decay=1e-4)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=2e-3)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-2, foreach=True)


def rmsprop(parameters):
    return torch.optim.RMSprop(parameters, lr=5e-4, foreach=True)


CASES = {
    "resnet18": Case(resnet18, lambda: labelled(8, 3, 32), sgd),
    "vit_tiny": Case(vit_tiny, lambda: labelled(8, 3, 32), adamw),
    "bert_small": Case(bert_small, lambda: sentences(8, 16), adamw),
    "gpt2_small": Case(gpt2_small, lambda: sentences(8, 16), adamw),
    "lstm": Case(lambda: Classifier(Tagger()), lambda: tagged(8, 6), adam),
    "unet": Case(lambda: Classifier(UNet()), lambda: pictures(4, 3, 16), rmsprop),
    "vae": Case(Vae, lambda: (pictures(8, 1, 16)[0], torch.randn(8, 6)), adam),
}


@dataclasses.dataclass
class Curve:
    losses: torch.Tensor  # f64[STEPS]
    gradients: dict  # of the first step, by parameter


@contextlib.contextmanager
def same_process():
    """Dynamo looks into recurrent layers here; the caller's settings and random numbers come back."""
    with torch._dynamo.config.patch(allow_rnn=True), torch.random.fork_rng(devices=[]):
        yield


@dataclasses.dataclass(frozen=True)
class Way:
    """How a case is trained."""

    dtype: torch.dtype = torch.float32
    order: int = 0  # of the rows of a batch
    model: Callable = lambda model: model  # what becomes of the model
    step: Callable = lambda step: step  # and of the optimizer's step


def graph_of_step(step):
    """The step as Dynamo writes it, run by eager: its corrections are tensors of float32, which the step
    alone would keep in double."""
    return torch.compile(step, backend="eager")


def train(case, way):
    """Twenty steps, compiled anew."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = case.build().train()
    batches = [case.batch() for _ in range(4)]
    model = model.to(way.dtype)
    optimizer = case.optimizer(model.parameters())
    run, step = way.model(model), way.step(optimizer.step)
    losses, gradients = [], {}
    for n in range(STEPS):
        loss = run(*arranged(batches[n % len(batches)], way))
        optimizer.zero_grad()
        loss.backward()
        if n == 0:
            gradients = {k: p.grad.double() for k, p in model.named_parameters() if p.grad is not None}
        step()
        losses.append(loss.item())
    return Curve(torch.tensor(losses, dtype=torch.float64), gradients)


def arranged(batch, way):
    rows, random = len(batch[0]), torch.Generator().manual_seed(way.order)
    places = torch.randperm(rows, generator=random) if way.order else torch.arange(rows)
    return [(t.to(way.dtype) if t.is_floating_point() else t)[places] for t in batch]


def rms(values):
    return values.square().mean().sqrt().item()


@dataclasses.dataclass
class Result:
    """Distances to float64: of the curve of losses, and of the gradient that is the furthest off."""

    exact: Curve
    losses: Curve
    eager_loss: float  # rms over the steps, the largest of the orders
    coil_loss: float
    eager_gradient: float  # of `gradient`, relative to its size
    coil_gradient: float
    gradient: str
    gradient_ratio: float


def measure(name, backend="coil"):
    """A Result of the case."""
    def whole(model):
        return torch.compile(model, backend=backend, fullgraph=True)

    case = CASES[name]
    with same_process():
        exact = train(case, Way(torch.float64))
        eager = [train(case, Way(order=order, step=graph_of_step)) for order in range(ORDERS)]
        found = train(case, Way(model=whole, step=lambda step: torch.compile(step, backend=backend)))
    assert found.gradients.keys() == exact.gradients.keys()
    worst = (-1.0, 0.0, 0.0, "")
    total = max(rms(g) for g in exact.gradients.values())
    for key, truth in exact.gradients.items():
        theirs = max(rms(e.gradients[key] - truth) for e in eager)
        ours = rms(found.gradients[key] - truth)
        # A gradient that is zero in theory (of a bias before a norm) is noise: an ulp of the largest at the most.
        is_zero = rms(truth) < 1e-12 * total
        slack = 1e-6 * rms(truth) + (torch.finfo(torch.float32).eps if is_zero else 1e-8) * total
        worst = max(worst, (ours / (2 * theirs + slack), theirs / total, ours / total, key))
    return Result(
        exact=exact, losses=found, eager_loss=max(rms(e.losses - exact.losses) for e in eager),
        coil_loss=rms(found.losses - exact.losses), eager_gradient=worst[1], coil_gradient=worst[2],
        gradient=worst[3], gradient_ratio=worst[0])
