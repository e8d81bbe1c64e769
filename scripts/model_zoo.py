"""Models of torchvision, timm and transformers with random weights, small enough to compile by the hundred."""

import copy
import os

# Nothing here goes to the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

IMAGE = 224
WORDS, TOKENS = 200, 16
# Those that take another size.
IMAGES = {
    "tv.inception_v3": 299, "tv.swin_v2_t": 256, "timm.crossvit_9_240": 240, "timm.halonet26t": 256,
    "timm.lambda_resnet26t": 256, "timm.sebotnet33ts_256": 256, "timm.mobilevit_xxs": 256, "timm.mobilevitv2_050": 256,
}
TORCHVISION = """
    alexnet vgg11_bn resnet18 resnext50_32x4d densenet121 inception_v3 googlenet mobilenet_v2 mobilenet_v3_small
    efficientnet_b0 efficientnet_v2_s regnet_y_400mf shufflenet_v2_x1_0 squeezenet1_0 mnasnet0_5 vit_b_32 swin_t
    swin_v2_t convnext_tiny maxvit_t""".split()
SEGMENTATION = "fcn_resnet50 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large".split()
TIMM = """
    beit_base_patch16_224 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32 crossvit_9_240 cspdarknet53
    deit_tiny_patch16_224 dla34 dpn68 edgenext_xx_small efficientformer_l1 eva02_tiny_patch14_224 fastvit_t8
    focalnet_tiny_srf gcvit_xxtiny ghostnet_100 gmlp_s16_224 halonet26t hgnet_tiny hiera_tiny_224 hrnet_w18_small
    inception_next_tiny levit_128s lambda_resnet26t mambaout_femto mixer_s16_224 mobileone_s0 mobilevit_xxs
    mobilevitv2_050 mvitv2_tiny nfnet_f0 nf_resnet50 pit_ti_224 poolformer_s12 pvt_v2_b0 repvgg_a0 resmlp_12_224
    rexnet_100 sebotnet33ts_256 selecsls42 sequencer2d_s skresnet18 tf_efficientnet_b0 tiny_vit_5m_224
    tnt_s_patch16_224 tresnet_m twins_pcpvt_small visformer_tiny volo_d1_224 xcit_nano_12_p16_224 starnet_s1
    repghostnet_050""".split()
# Deep ones, made shallower: equal blocks show nothing new.
TIMM_SETTINGS = {
    "beit_base_patch16_224": {"depth": 3}, "cait_xxs24_224": {"depth": 4},
    "eva02_tiny_patch14_224": {"depth": 4}, "sequencer2d_s": {"layers": (1, 1, 1, 1)}, "tnt_s_patch16_224": {"depth": 4},
}
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": WORDS,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": WORDS}
BART = {
    "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": WORDS, "max_position_embeddings": 64,
}
VISION = {**SMALL, "image_size": 32, "patch_size": 8}
EXPERTS = {"moe_intermediate_size": 64, "shared_expert_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2}
TRANSFORMERS = {
    "bert": SMALL, "roberta": SMALL, "albert": {**SMALL, "embedding_size": 32},
    "distilbert": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": WORDS},
    "electra": {**SMALL, "embedding_size": 32},
    "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "opt": {**SMALL, "ffn_dim": 128, "word_embed_proj_dim": 64}, "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": WORDS},
    "gpt_neox": SMALL, "llama": GROUPED, "mistral": GROUPED, "qwen2": GROUPED, "qwen3": {**GROUPED, "head_dim": 16},
    "gemma": {**GROUPED, "head_dim": 16}, "gemma2": {**GROUPED, "head_dim": 16}, "phi": GROUPED, "phi3": GROUPED,
    "bloom": {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": WORDS}, "mamba": {**SMALL, "state_size": 8},
    "t5": T5, "bart": BART, "xlnet": {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128, "vocab_size": WORDS},
    "mixtral": {**GROUPED, "num_local_experts": 4}, "qwen2_moe": {**GROUPED, **EXPERTS}, "olmo2": GROUPED, "granite": GROUPED,
    "starcoder2": GROUPED, "cohere": GROUPED, "modernbert": {**SMALL, "cls_token_id": 1, "sep_token_id": 2},
    "rwkv": {**SMALL, "attention_hidden_size": 64, "context_length": 64}, "clip_vision_model": VISION, "vit": VISION,
    "dinov2": VISION, "siglip_vision_model": VISION,
}


# Large graphs, which take longest.
LARGE = """
    hf.rwkv timm.coat_tiny tv.maxvit_t tv.swin_v2_t timm.cait_xxs24_224 timm.mvitv2_tiny timm.tnt_s_patch16_224
    tv.swin_t timm.volo_d1_224 timm.crossvit_9_240 timm.convit_tiny timm.xcit_nano_12_p16_224 timm.sequencer2d_s""".split()


def names():
    """The large ones first, so that no worker begins one when all others are done."""
    all_names = [
        *(f"tv.{n}" for n in TORCHVISION + SEGMENTATION), *(f"timm.{n}" for n in TIMM), *(f"hf.{n}" for n in TRANSFORMERS)]
    return sorted(all_names, key=lambda name: name not in LARGE)


def torchvision_model(name):
    import torchvision

    folder = torchvision.models.segmentation if name in SEGMENTATION else torchvision.models
    settings = {"weights_backbone": None} if name in SEGMENTATION else {}
    settings |= {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return getattr(folder, name)(weights=None, **settings)


def timm_model(name):
    import timm

    return timm.create_model(name, pretrained=False, **TIMM_SETTINGS.get(name, {}))


def transformers_model(name):
    import transformers

    return transformers.AutoModel.from_config(transformers.AutoConfig.for_model(name, **TRANSFORMERS[name]))


def tensors_of(result):
    """The outputs that count: not a cache, which holds no results of its own."""
    if isinstance(result, torch.Tensor):
        return [result]
    if hasattr(result, "items"):
        return [v for v in result.values() if isinstance(v, torch.Tensor)]
    return [v for v in result if isinstance(v, torch.Tensor)]


def inputs(name):
    """Keyword arguments of a call."""
    kind, _, short = name.partition(".")
    if kind != "hf":
        size = IMAGES.get(name, IMAGE)
        return {"x": torch.randn(1, 3, size, size)}
    if TRANSFORMERS[short] is VISION:
        return {"pixel_values": torch.randn(1, 3, 32, 32)}
    ids = torch.randint(3, WORDS, (1, TOKENS))
    return {"input_ids": ids, "decoder_input_ids": ids.flip(1)} if short == "t5" else {"input_ids": ids}


class Called(torch.nn.Module):
    """A model whose result is a list of tensors, whatever its first argument is called."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x=None, **words):
        return tensors_of(self.model(x) if x is not None else self.model(**words))


def in_double(model):
    """A copy in float64. torch has no grouped product of these: experts are one batch each there."""
    exact = copy.deepcopy(model).double()
    for module in exact.modules():  # what a model keeps beside its buffers
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.double())
    if hasattr(exact.model, "set_experts_implementation"):
        exact.model.set_experts_implementation("batched_mm")
    return exact


def build(name):
    kind, _, short = name.partition(".")
    makers = {"tv": torchvision_model, "timm": timm_model, "hf": transformers_model}
    model = makers[kind](short)
    for weight in model.parameters():
        if weight.ndim > 1 and not weight.any():  # nothing would come through
            torch.nn.init.normal_(weight, std=0.02)
    return Called(model).eval()
