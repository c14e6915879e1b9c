"""examples/pretrained.py beside transformers and timm: logits, files in both directions, greedy text."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from pretrained_models import FILE, PAIRS, TOKENS, loaded, logits_of, shapes_of
from test_pretrained import example, table_of

from ftrans import nn

torch = pytest.importorskip("torch")
try:
    importlib.import_module("torchvision")
except (ImportError, RuntimeError):
    # PyPI's does not run beside a torch for CPUs alone.  transformers can do without it, timm cannot.
    sys.modules["torchvision"] = None  # type: ignore[assignment]
pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

__all__ = ["example"]

OF_TIMM = ("ResNet", "ViT")


@pytest.fixture
def timm() -> ModuleType:
    return pytest.importorskip("timm", exc_type=ImportError)


@pytest.mark.parametrize("name", PAIRS)
def test_both_directions(example: ModuleType, name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in OF_TIMM:
        request.getfixturevalue("timm")
    pair, (rename, transpose) = PAIRS[name], table_of(example, name)
    theirs, _ = loaded(name)
    stored = json.loads(FILE.read_text())[name]
    assert shapes_of(theirs) == stored["shapes"]
    with torch.no_grad():
        expected = pair.call_theirs(theirs).numpy()
    np.testing.assert_allclose(logits_of(expected), stored["logits"], rtol=1e-5, atol=1e-5)
    # Tied tensors share memory, which safetensors refuses.
    file = tmp_path / "theirs.safetensors"
    safetensors_torch.save_file({path: x.clone() for path, x in theirs.state_dict().items()}, file)
    for source in (theirs.state_dict(), file):
        model = nn.from_torch(source, pair.ours(example), rename, transpose=transpose).eval()
        np.testing.assert_allclose(pair.call(model), expected, rtol=1e-5, atol=1e-5)
    # The other way, with other weights.
    nn.manual_seed(0)
    model = pair.ours(example).eval()
    back = nn.to_torch(model, rename, transpose=transpose, like=theirs.state_dict())
    file = tmp_path / "ours.safetensors"
    safetensors_torch.save_file(back, file)
    for state in (back, safetensors_torch.load_file(file)):
        theirs = pair.theirs().eval()
        theirs.load_state_dict(state)
        with torch.no_grad():
            expected = pair.call_theirs(theirs).numpy()
        np.testing.assert_allclose(pair.call(model), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("timm")
def test_bfloat16(example: ModuleType) -> None:
    theirs, _ = loaded("ViT")
    state = theirs.bfloat16().state_dict()
    model = nn.from_torch(state, PAIRS["ViT"].ours(example), example.VIT_NAMES)
    assert model.head.weight.dtype == np.float32
    back = nn.to_torch(model.to("bfloat16"), example.VIT_NAMES, like=state)
    for name, x in state.items():
        assert back[name].dtype == torch.bfloat16
        assert torch.equal(back[name], x)


def test_resnet18(example: ModuleType, timm: ModuleType) -> None:
    theirs = timm.create_model("resnet18").eval()
    model = nn.from_torch(theirs.state_dict(), example.ResNet(), example.RESNET_NAMES).eval()
    images = np.random.default_rng(0).normal(size=(1, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(model(images), expected, rtol=1e-5, atol=1e-5)


def test_greedy_text(example: ModuleType) -> None:
    theirs, given = loaded("GPT2")
    model = example.gpt2_from(given, heads=2)
    tokens = torch.from_numpy(TOKENS)
    # No token ends a sequence, and none is padding.
    theirs.generation_config.eos_token_id = None
    text = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=12, do_sample=False)
    np.testing.assert_array_equal(nn.generate(model, TOKENS, 12, temperature=0), text.numpy())
