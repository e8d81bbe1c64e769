#!/usr/bin/env python3
"""The rows of the bench: what each program is, and its export.

usage: bench/rows.py [--folder build/bench] [ROW or GROUP ...]      (default: all rows; --list names them)

A row is exported as NAME.pt2, with NAME.inputs.npz and NAME.eager.npz for `coil` and for checks of the peers.
Weights are random with a fixed seed; nothing is downloaded. Float32, batch 1 unless a shape says otherwise:
images of 224x224, texts of 128 tokens. What is there already and was made by this torch and this file stays.
"""

import argparse
import hashlib
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests" / "python")]
import exporting  # noqa: E402
import zoo  # noqa: E402

FOLDER = ROOT / "build" / "bench"
TOKENS = 128


class Function(nn.Module):
    """A module without weights around a function of tensors."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


def normals(*shapes):
    return lambda g: tuple(torch.randn(shape, generator=g) for shape in shapes)


def kernel(function, *shapes):
    """A row without weights: how it is made, and its inputs from a generator."""
    return lambda: Function(function), normals(*shapes)


def gelu_chain(a, b, c):
    return F.gelu(a + b) * torch.tanh(c) + torch.exp(-c.abs())


def batch_norm_in_training(x, weight, bias, mean, variance):
    """Statistics of the batch; the running ones are written in place, as nn.BatchNorm2d does."""
    return F.batch_norm(x, mean, variance, weight, bias, training=True)


def norm_statistics(g):
    x, weight, bias, mean, variance = normals((32, 64, 56, 56), (64,), (64,), (64,), (64,))(g)
    return x, weight, bias, mean, variance.abs()


def targets(g, words=32000):
    return torch.randn(512, words, generator=g), torch.randint(0, words, (512,), generator=g)


class LayerNormGelu(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.norm.weight, mean=1, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)

    def forward(self, x):
        return F.gelu(self.norm(x))


class LayerNormAdd(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = LayerNormGelu().norm

    def forward(self, x, y):
        return self.norm(x + y)


def backward_of(model, inputs):
    """The backward graph that AOTAutograd splits off for a compiler, in core ATen ops, and its inputs."""
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    seen = {}

    def kept(graph, _):
        def run(args):
            seen["graph"], seen["inputs"] = graph, tuple(a.detach().clone() for a in args)
            return graph(*args)
        run._boxed_call = True  # pylint: disable=protected-access
        return run

    weights = {name: w.detach().requires_grad_() for name, w in model.named_parameters()}
    traced = aot_function(lambda weights, *values: torch.func.functional_call(model, weights, values),
                          fw_compiler=kept, bw_compiler=kept, partition_fn=min_cut_rematerialization_partition,
                          decompositions=torch._decomp.core_aten_decompositions())  # pylint: disable=protected-access
    out = traced(weights, *(v.detach().requires_grad_() for v in inputs))
    out.backward(torch.randn(out.shape, generator=torch.Generator().manual_seed(1)))
    return seen["graph"], seen["inputs"]  # of the last graph that ran: the backward one


class ConvNormRelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(64)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def vision(name):
    """A torchvision classifier with the statistics of its batch norms set, as training would."""
    def build():
        import torchvision

        model = getattr(torchvision.models, name)()
        if name == "vit_b_16":  # torchvision starts the head at zero, which would hide every error
            nn.init.normal_(model.heads.head.weight, std=0.02)
        return zoo.calibrate(model) if any(isinstance(m, nn.BatchNorm2d) for m in model.modules()) else model
    return build, lambda g: (zoo.images(g),)


class Bert(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        from transformers import BertConfig, BertModel

        self.bert = BertModel(BertConfig(num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
                                         intermediate_size=4 * width), add_pooling_layer=False)

    def forward(self, ids, mask):
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None))

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


class LlamaSmall(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=8, hidden_size=768, num_attention_heads=12,
                                                  intermediate_size=2048, vocab_size=32000))

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


def encoder_layer():
    return nn.TransformerEncoderLayer(512, 8, dim_feedforward=2048, activation="gelu", batch_first=True)


KERNELS = {
    "softmax_4k_1k": kernel(lambda x: torch.softmax(x, -1), (4096, 1024)),
    "layernorm_add": (LayerNormAdd, normals((4096, 768), (4096, 768))),
    "gelu_chain": kernel(gelu_chain, (1024, 2048), (1024, 2048), (1024, 2048)),
    "transpose_add": kernel(lambda a, b: a.t() + 2 * b, (2048, 2048), (2048, 2048)),
    "colsum": kernel(lambda x: (x * 0.5).sum(0), (8192, 1024)),
    "maxpool": kernel(lambda x: F.max_pool2d(F.relu(x), 3, 2), (8, 64, 112, 112)),
    "linear_gelu": (lambda: nn.Sequential(nn.Linear(768, 3072), nn.GELU()), normals((128, 768))),
    "cross_entropy": (lambda: Function(F.cross_entropy), targets),
    "attention": kernel(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                        *3 * [(1, 12, 512, 64)]),
}

MODELS = {name: vision(name) for name in
          ("resnet18", "resnet50", "mobilenet_v3_large", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny",
           "vit_b_16", "swin_t")} | {
    "bert_base": (lambda: Bert(12, 768, 12), zoo.sentence),
    "minilm": (lambda: Bert(6, 384, 12), zoo.sentence),
    "gpt2": (Gpt2, lambda g: (torch.randint(0, 50257, (1, TOKENS), generator=g),)),
    "llama_small": (LlamaSmall, lambda g: (torch.randint(0, 32000, (1, TOKENS), generator=g),)),
}

# Small programs whose kernels bench/counts.py counts, beside the rows above.
PARTS = {
    "layernorm_gelu": (LayerNormGelu, normals((4096, 768))),
    "layernorm_gelu_backward": None,  # backward_of(layernorm_gelu), see build()
    "batch_norm_training": (lambda: Function(batch_norm_in_training), norm_statistics),
    "conv_norm_relu": (lambda: zoo.calibrate(ConvNormRelu()), lambda g: (zoo.images(g),)),
    "encoder_layer": (encoder_layer, normals((1, TOKENS, 512))),
}

GROUPS = {"kernels": list(KERNELS), "models": list(MODELS), "parts": list(PARTS)}
ROWS = KERNELS | MODELS | PARTS


def build(name):
    """(model in inference mode, inputs of one call)."""
    torch.manual_seed(0)
    if name == "layernorm_gelu_backward":
        return backward_of(*build("layernorm_gelu"))
    make, inputs = ROWS[name]
    return make().eval().requires_grad_(False), inputs(torch.Generator().manual_seed(0))


def chosen(names):
    """Row names, with groups replaced by what they hold; all rows where nothing is named."""
    out = []
    for name in names or GROUPS:
        out += GROUPS.get(name, [name])
    unknown = [name for name in out if name not in ROWS]
    if unknown:
        raise SystemExit(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}, and groups "
                         f"{', '.join(GROUPS)}")
    return out


def stamp():
    """Changes with whatever the exported files depend on."""
    sources = [pathlib.Path(__file__), pathlib.Path(zoo.__file__), pathlib.Path(exporting.__file__)]
    text = torch.__version__.encode() + b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(text).hexdigest()


def ensure(name, folder=FOLDER):
    """The path of the row's .pt2, which is made if it is not there."""
    path, mark = folder / f"{name}.pt2", folder / f"{name}.stamp"
    if path.is_file() and mark.is_file() and mark.read_text() == stamp():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    model, inputs = build(name)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        exporting.write_npz(folder / f"{name}.inputs.npz", exporting.as_arrays("in", inputs))
        exporting.save(model, path, inputs)
        exporting.write_npz(folder / f"{name}.eager.npz", exporting.as_arrays("out", model(*inputs)))
    mark.write_text(stamp())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    names = chosen(arguments.rows)
    for name in names:
        print(name if arguments.list else ensure(name, arguments.folder), flush=True)


if __name__ == "__main__":
    main()
