"""The models of examples/pretrained.py beside those of transformers and timm, and logits of these as stored figures.

    python tests/pretrained_models.py

writes `pretrained_models.json` where transformers and timm are installed: the names and shapes of their state dicts,
and logits for weights that names and shapes determine.  `test_pretrained.py` compares the example with that file, and
`test_pretrained_torch.py` with the libraries.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).parent / "pretrained_models.json"

TOKENS = np.random.RandomState(0).randint(0, 31, (2, 7))
SEGMENTS = (np.arange(7) > 3).astype(int) + np.zeros((2, 1), int)
PADDING = np.arange(7) >= np.array([[7], [5]])
IMAGES = np.random.RandomState(1).standard_normal((2, 3, 32, 32)).astype(np.float32)
# Parameters that are the same in the other library.
TIED = {
    "lm_head.weight": "transformer.wte.weight",
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class Pair(NamedTuple):
    """A model here and there.

    Attributes:
        ours: makes the model of the example, given its module.
        theirs: makes that of the other library.
        names: the names of the table and of the transposed weights in the example, or None.
        call: the logits of our model, as an array.
        call_theirs: those of the other.
    """

    ours: Callable[[Any], Any]
    theirs: Callable[[], Any]
    names: tuple[str, str | None]
    call: Callable[[Any], Any]
    call_theirs: Callable[[Any], Any]


def _gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=31, n_positions=24, n_embd=16, n_layer=2, n_head=2))


def _bert() -> Any:
    from transformers import BertConfig, BertForMaskedLM

    sizes = {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return BertForMaskedLM(BertConfig(**sizes, intermediate_size=24, max_position_embeddings=24))


def _resnet() -> Any:
    from timm.models.resnet import BasicBlock, ResNet

    return ResNet(BasicBlock, [2, 2, 2, 2], num_classes=5, channels=(8, 12, 16, 24))


def _vit() -> Any:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(img_size=32, patch_size=8, embed_dim=16, depth=2, num_heads=2, num_classes=5)


def _tensor(x: Any) -> Any:
    import torch

    return torch.from_numpy(np.array(x))


PAIRS = {
    "GPT2": Pair(
        lambda example: example.GPT2(31, 24, 16, 2, 2), _gpt2, ("GPT2_NAMES", "GPT2_TRANSPOSED"),
        lambda model: model(TOKENS), lambda model: model(_tensor(TOKENS)).logits,
    ),
    "BERT": Pair(
        lambda example: example.BERT(31, 24, 16, 2, 2, 24), _bert, ("BERT_NAMES", None),
        # What is computed for padding itself means nothing.
        lambda model: model(TOKENS, SEGMENTS, PADDING)[:, :5],
        lambda model: model(_tensor(TOKENS), _tensor(~PADDING), _tensor(SEGMENTS)).logits[:, :5],
    ),
    "ResNet": Pair(
        lambda example: example.ResNet(5, (8, 12, 16, 24)), _resnet, ("RESNET_NAMES", None),
        lambda model: model(IMAGES), lambda model: model(_tensor(IMAGES)),
    ),
    "ViT": Pair(
        lambda example: example.ViT(32, 8, 16, 2, 2, 5), _vit, ("VIT_NAMES", None),
        lambda model: model(IMAGES), lambda model: model(_tensor(IMAGES)),
    ),
}  # fmt: skip


def weights(shapes: dict[str, list[int]]) -> dict[str, Any]:
    """Weights that names and shapes determine."""
    return {name: _weight(TIED.get(name, name), tuple(shape)) for name, shape in shapes.items()}


def _weight(name: str, shape: tuple[int, ...]) -> Any:
    if name.endswith("num_batches_tracked"):
        return np.array(3)
    numbers = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("running_var"):
        return 0.5 + np.abs(numbers)
    if len(shape) > 1:
        return numbers / np.float32(np.sqrt(np.prod(shape[1:])))
    return 0.1 * numbers + np.float32(name.endswith("weight"))


def logits_of(logits: Any) -> Any:
    """The logits that are stored."""
    return np.asarray(logits)[:, -1] if np.ndim(logits) == 3 else np.asarray(logits)


def shapes_of(theirs: Any) -> dict[str, list[int]]:
    return {name: list(x.shape) for name, x in theirs.state_dict().items()}


def loaded(name: str) -> tuple[Any, dict[str, Any]]:
    """A model of the other library with these weights, in evaluation mode."""
    theirs = PAIRS[name].theirs().eval()
    given = weights(shapes_of(theirs))
    theirs.load_state_dict({path: _tensor(x) for path, x in given.items()})
    return theirs, given


def main() -> None:
    found = {}
    for name, pair in PAIRS.items():
        theirs, _ = loaded(name)
        logits = logits_of(pair.call_theirs(theirs).detach().numpy())
        found[name] = {"shapes": shapes_of(theirs), "logits": np.round(logits.astype(float), 6).tolist()}
    parts = [f'{json.dumps(name)}: {{"shapes": {{\n' for name in found]
    text = ""
    for head, entry in zip(parts, found.values(), strict=True):
        shapes = ",\n".join(f"{json.dumps(path)}: {shape}" for path, shape in entry["shapes"].items())
        rows = ",\n".join(json.dumps(row) for row in entry["logits"])
        text += (",\n" if text else "") + head + shapes + '},\n"logits": [\n' + rows + "]}"
    FILE.write_text("{" + text + "}\n")


if __name__ == "__main__":
    sys.exit(main())
