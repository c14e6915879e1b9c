"""Weights of GPT-2, BERT, ResNet-18 and ViT, as transformers and timm have them, in models of ftrans.

A model has the layers of `ftrans.nn`, and a table of names says where the weights of the other library belong; the same
table leads back. A file of weights, such as `model.safetensors` of GPT-2, is continued by

    python examples/pretrained.py model.safetensors --heads 12 --tokens 464 3280 318

Without a file, it writes one of a small GPT-2 with random weights, in the form of transformers, and reads it back.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ftrans import nn
from ftrans.nn import functional as F


def gelu_of_tanh(x):
    return F.gelu(x, approximate="tanh")


class GPT2(nn.Module):
    def __init__(self, vocabulary=50257, context=1024, width=768, layers=12, heads=12):
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.1, activation=gelu_of_tanh, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def new_cache(self, batch_size, max_length):
        return self.blocks.new_cache(batch_size, max_length)

    def forward(self, tokens, caches=None):
        """Logits of the next token at each place of tokens[batch, length], which go on where the caches end."""
        place = np.arange(tokens.shape[1])
        if caches is not None:
            place = place + caches[0].length
        x = self.tokens(tokens) + self.places(place)
        return self.head(self.blocks(x, is_causal=True, cache=caches))


# Names of the state dict of transformers, and what they are here. Its layers Conv1D have transposed weights.
GPT2_NAMES = [
    (r"^transformer\.", ""),
    (r"\.attn\.(masked_)?bias$", None),
    (r"^wte", "tokens"),
    (r"^wpe", "places"),
    (r"^ln_f", "blocks.norm"),
    (r"^lm_head", "head"),
    (r"^h\.", "blocks.layers."),
    (r"ln_(\d)", r"norm\1"),
    (r"attn\.c_attn\.", "self_attn.in_proj_"),
    (r"attn\.c_proj", "self_attn.out_proj"),
    (r"mlp\.c_fc", "linear1"),
    (r"mlp\.c_proj", "linear2"),
]
GPT2_TRANSPOSED = r"\.c_(attn|proj|fc)\.weight$"


class BERT(nn.Module):
    """With the head that fills in masked words."""

    def __init__(self, vocabulary=30522, context=512, width=768, layers=12, heads=12, hidden=3072, eps=1e-12):
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps)
        layer = nn.TransformerEncoderLayer(
            width, heads, hidden, dropout=0.1, activation="gelu", layer_norm_eps=eps, batch_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers)
        self.transform = nn.Linear(width, width)
        self.head_norm = nn.LayerNorm(width, eps)
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, segments=None, is_padding=None):
        """Logits of the word at each place of tokens[batch, length]."""
        segments = np.zeros_like(tokens) if segments is None else segments
        x = self.tokens(tokens) + self.segments(segments) + self.places(np.arange(tokens.shape[1]))
        x = self.blocks(self.norm(x), src_key_padding_mask=is_padding)
        return self.head(self.head_norm(F.gelu(self.transform(x))))


# Queries, keys and values are one stacked parameter here; old files call weight and bias of a normalization otherwise.
BERT_NAMES = [
    (r"^(bert\.pooler|cls\.seq_relationship)\.|position_ids$", None),
    (r"LayerNorm\.gamma$", "LayerNorm.weight"),
    (r"LayerNorm\.beta$", "LayerNorm.bias"),
    (r"^bert\.embeddings\.word_embeddings", "tokens"),
    (r"^bert\.embeddings\.position_embeddings", "places"),
    (r"^bert\.embeddings\.token_type_embeddings", "segments"),
    (r"^bert\.embeddings\.LayerNorm", "norm"),
    (r"^bert\.encoder\.layer", "blocks.layers"),
    (r"attention\.self\.query\.(weight|bias)", r"self_attn.in_proj_\1[0/3]"),
    (r"attention\.self\.key\.(weight|bias)", r"self_attn.in_proj_\1[1/3]"),
    (r"attention\.self\.value\.(weight|bias)", r"self_attn.in_proj_\1[2/3]"),
    (r"attention\.output\.dense", "self_attn.out_proj"),
    (r"attention\.output\.LayerNorm", "norm1"),
    (r"intermediate\.dense", "linear1"),
    (r"output\.dense", "linear2"),
    (r"output\.LayerNorm", "norm2"),
    (r"^cls\.predictions\.transform\.dense", "transform"),
    (r"^cls\.predictions\.transform\.LayerNorm", "head_norm"),
    (r"^cls\.predictions\.(decoder\.)?", "head."),
]


class Residual(nn.Module):
    """Two convolutions, added to what they are given."""

    def __init__(self, channels, width, stride):
        self.branch = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip
        self.shortcut = nn.Identity()
        if stride > 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(self.branch(x) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-18, for images[batch, 3, height, width]."""

    def __init__(self, classes=1000, widths=(64, 128, 256, 512), depth=2):
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)
        )
        self.stages, channels = nn.ModuleList(), 64
        for i, width in enumerate(widths):
            blocks = [Residual(width if j else channels, width, 2 if i and not j else 1) for j in range(depth)]
            self.stages.append(nn.Sequential(*blocks))
            channels = width
        self.head = nn.Linear(channels, classes)

    def forward(self, images):
        x = self.stem(images)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(axis=(2, 3)))


RESNET_NAMES = [
    *[(rf"^layer{i + 1}\.", f"stages.{i}.") for i in range(4)],
    (r"^conv1", "stem.0"),
    (r"^bn1", "stem.1"),
    *[(rf"\.{name}\.", f".branch.{i}.") for name, i in (("conv1", 0), ("bn1", 1), ("conv2", 3), ("bn2", 4))],
    (r"downsample", "shortcut"),
    (r"^fc", "head"),
]


class ViT(nn.Module):
    """A vision transformer for square images[batch, 3, size, size]."""

    def __init__(self, size=224, patch=16, width=768, layers=12, heads=12, classes=1000):
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(np.zeros((1, 1, width), np.float32))
        self.places = nn.Parameter(np.zeros((1, (size // patch) ** 2 + 1, width), np.float32))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", layer_norm_eps=1e-6, batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.blocks = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width, 1e-6))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images)
        x = np.swapaxes(x.reshape(*x.shape[:2], -1), 1, 2)
        first = np.broadcast_to(self.first, (len(x), 1, x.shape[2]))
        x = self.blocks(np.concatenate([first, x], axis=1) + self.places)
        return self.head(x[:, 0])


VIT_NAMES = [
    (r"^cls_token", "first"),
    (r"^pos_embed", "places"),
    (r"^patch_embed\.proj", "patches"),
    (r"^norm\.", "blocks.norm."),
    (r"^blocks\.(\d+)", r"blocks.layers.\1"),
    (r"attn\.qkv\.", "self_attn.in_proj_"),
    (r"attn\.proj", "self_attn.out_proj"),
    (r"mlp\.fc(\d)", r"linear\1"),
]


def gpt2_from(weights, heads):
    """A GPT-2 with the weights of a state dict, whose shapes say how large it is."""
    names = [name.removeprefix("transformer.") for name in weights]
    arrays = dict(zip(names, weights.values(), strict=True))
    layers = len({name.split(".")[1] for name in names if name.startswith("h.")})
    (vocabulary, width), context = arrays["wte.weight"].shape, len(arrays["wpe.weight"])
    model = GPT2(vocabulary, context, width, layers, heads)
    return nn.from_torch(weights, model, GPT2_NAMES, transpose=GPT2_TRANSPOSED).eval()


def names_of_gpt2(layers):
    """The names that transformers has for a GPT-2."""
    found = [f"transformer.{name}.weight" for name in ("wte", "wpe", "ln_f")] + ["transformer.ln_f.bias"]
    for i in range(layers):
        for name in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
            found += [f"transformer.h.{i}.{name}.{part}" for part in ("weight", "bias")]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", help="weights of GPT-2 in the form of transformers")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--count", type=int, default=20)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        file = args.file
        if file is None:
            nn.manual_seed(0)
            small = GPT2(vocabulary=100, context=64, width=32, layers=2, heads=args.heads).eval()
            file = Path(folder) / "model.safetensors"
            nn.save(file, nn.to_torch(small, GPT2_NAMES, transpose=GPT2_TRANSPOSED, like=names_of_gpt2(2), numpy=True))
        model = gpt2_from(nn.load(file), args.heads)
        if args.file is None:
            tokens = np.arange(12).reshape(2, 6)
            print("largest difference of logits:", np.abs(model(tokens) - small(tokens)).max())
    print("tokens:", *nn.generate(model, args.tokens, args.count, temperature=0))


if __name__ == "__main__":
    main()
