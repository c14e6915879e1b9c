"""examples/pretrained.py: weights under the names of transformers and timm give the logits that these compute."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pretrained_models import FILE, PAIRS, logits_of, weights

from ftrans import nn

STORED = json.loads(FILE.read_text())


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "examples"))
    return importlib.import_module("pretrained")


def table_of(example: Any, name: str) -> tuple[Any, Any]:
    names, transposed = PAIRS[name].names
    return getattr(example, names), getattr(example, transposed) if transposed else ()


@pytest.mark.parametrize("name", PAIRS)
def test_logits(example: ModuleType, name: str, tmp_path: Path) -> None:
    given, (rename, transpose) = weights(STORED[name]["shapes"]), table_of(example, name)
    file = tmp_path / "model.safetensors"
    nn.save(file, given)
    model = nn.from_torch(file, PAIRS[name].ours(example), rename, transpose=transpose).eval()
    found = logits_of(nn.jit(PAIRS[name].call)(model))
    np.testing.assert_allclose(found, STORED[name]["logits"], rtol=1e-5, atol=1e-5)
    back = nn.to_torch(model, rename, transpose=transpose, like=list(given), numpy=True)
    assert back.keys() == given.keys()
    for path, x in back.items():
        np.testing.assert_array_equal(x, given[path], err_msg=path)


def test_names_of_old_files(example: ModuleType) -> None:
    given = weights(STORED["GPT2"]["shapes"])
    old = {name.removeprefix("transformer."): x for name, x in given.items() if name != "lm_head.weight"}
    old["h.0.attn.bias"] = np.tri(24)[None, None]
    models = [example.gpt2_from(arrays, heads=2) for arrays in (given, old)]
    np.testing.assert_array_equal(*map(PAIRS["GPT2"].call, models))

    given = weights(STORED["BERT"]["shapes"])
    changed = {"weight": "gamma", "bias": "beta"}
    old = {f"{a}LayerNorm.{changed[b]}" if "LayerNorm" in n else n: x for n, x in given.items()
           for a, _, b in [n.partition("LayerNorm.")]}  # fmt: skip
    old |= {"bert.pooler.dense.weight": np.zeros(1), "bert.embeddings.position_ids": np.arange(24)}
    model = nn.from_torch(old, PAIRS["BERT"].ours(example), example.BERT_NAMES).eval()
    found = logits_of(PAIRS["BERT"].call(model))
    np.testing.assert_allclose(found, STORED["BERT"]["logits"], rtol=1e-5, atol=1e-5)
