"""Weights with the names and layouts of other models: loaded all or not at all, and written back as they were."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftrans import nn


class Block(nn.Module):
    """Attention with one stacked projection, and a layer whose weight it shares with nothing."""

    def __init__(self) -> None:
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.fc = nn.Linear(4, 6)


class Model(nn.Module):
    """Two blocks between an embedding and a head that are tied."""

    def __init__(self) -> None:
        self.tokens = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.tokens.weight


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers that all differ."""
    return (np.arange(np.prod(shape)) + 100 * len(shape)).reshape(shape).astype(np.float32)


def theirs() -> dict[str, Any]:
    """A state dict with other names, separate projections, and transposed matrices."""
    found: dict[str, Any] = {"wte.weight": numbers(5, 4), "lm_head.weight": numbers(5, 4)}
    for i in range(2):
        for name in "vqk":
            found |= {f"h.{i}.attn.{name}.weight": numbers(4, 4) + ord(name) + i, f"h.{i}.attn.{name}.bias": numbers(4)}
        found |= {f"h.{i}.attn.out.weight": numbers(4, 4) - i, f"h.{i}.attn.out.bias": numbers(4)}
        found |= {f"h.{i}.mlp.weight": numbers(4, 6) + i, f"h.{i}.mlp.bias": numbers(6), f"h.{i}.mask": numbers(2)}
    found |= {"ln.weight": numbers(4), "ln.bias": numbers(4), "ln.running_mean": numbers(4)}
    return found | {"ln.running_var": numbers(4), "ln.num_batches_tracked": np.array(7)}


PATTERNS = [
    (r"^h\.(\d+)\.attn\.out", r"blocks.\1.attention.out_proj"),
    *[(rf"^h\.(\d+)\.attn\.{x}\.(.*)", rf"blocks.\1.attention.in_proj_\2[{i}/3]") for i, x in enumerate("qkv")],
    (r"^h\.(\d+)\.mlp", r"blocks.\1.fc"),
    (r"\.mask$", None),
    ("^ln", "norm"),
    ("^wte", "tokens"),
    ("^lm_head", "head"),
]


def by_function(name: str) -> str | None:
    for pattern, replacement in PATTERNS:
        if replacement is None and re.search(pattern, name):
            return None
        name = name if replacement is None else re.sub(pattern, replacement, name)
    return name


NAMES: dict[str, str | None] = {"ln": "norm", "wte": "tokens", "lm_head": "head"}
for i in range(2):
    NAMES |= {f"h.{i}.attn.out": f"blocks.{i}.attention.out_proj", f"h.{i}.mlp": f"blocks.{i}.fc", f"h.{i}.mask": None}
    for part, x in enumerate("qkv"):
        for name in ("weight", "bias"):
            NAMES[f"h.{i}.attn.{x}.{name}"] = f"blocks.{i}.attention.in_proj_{name}[{part}/3]"

RENAMINGS = {"patterns": PATTERNS, "function": by_function, "names": NAMES}
TRANSPOSE = r"mlp\.weight"


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, x in found.items():
        assert x.dtype == expected[name].dtype
        np.testing.assert_array_equal(x, expected[name], err_msg=name)


@pytest.mark.parametrize("rename", RENAMINGS.values(), ids=RENAMINGS)
def test_there_and_back(rename: Any, tmp_path: Path) -> None:
    given = theirs()
    model = nn.from_torch(given, Model(), rename, transpose=TRANSPOSE)
    block = model.blocks[1]
    np.testing.assert_array_equal(block.fc.weight.value, given["h.1.mlp.weight"].T)
    np.testing.assert_array_equal(block.attention.in_proj_weight.value[4:8], given["h.1.attn.k.weight"])
    np.testing.assert_array_equal(block.attention.in_proj_bias.value[8:], given["h.1.attn.v.bias"])
    assert model.norm.num_batches_tracked.value == 7
    assert model.head.weight is model.tokens.weight
    back = nn.to_torch(model, rename, transpose=[TRANSPOSE], like=given, numpy=True)
    same(back, given)
    nn.save(tmp_path / "theirs.safetensors", back)
    again = nn.from_torch(tmp_path / "theirs.safetensors", Model(), rename, transpose=TRANSPOSE)
    same(again.state_dict(), model.state_dict())


def test_a_dictionary_is_read_backwards() -> None:
    given = theirs()
    model = nn.from_torch(given, Model(), NAMES, transpose=TRANSPOSE)
    back = nn.to_torch(model, NAMES, transpose=TRANSPOSE, numpy=True)
    same(back, {name: x for name, x in given.items() if not name.endswith("mask")})
    assert nn.to_torch(model, numpy=True).keys() == model.state_dict().keys()
    with pytest.raises(ValueError, match=r"found backwards only where rename is a dictionary.*like=module\.state_dict"):
        nn.to_torch(model, PATTERNS, numpy=True)
    with pytest.raises(ValueError, match="rename has two names for 'tokens', 'wte' and 'lm_head'"):
        nn.to_torch(model, {"wte": "tokens", "lm_head": "tokens"}, numpy=True)


def test_what_does_not_match_is_listed_and_nothing_is_loaded() -> None:
    given = theirs()
    del given["ln.bias"], given["h.0.attn.k.bias"]
    given |= {"extra": numbers(1), "lm_head.weight": numbers(5, 4) + 1, "h.1.attn.out.bias": numbers(3)}
    given["h.1.mlp.weight"] = numbers(6, 4)
    given["h.1.attn.q.weight"] = numbers(2, 4)
    model = Model()
    before = model.state_dict()
    with pytest.raises(ValueError, match="from_torch of Model was given entries that do not match") as error:
        nn.from_torch(given, model, PATTERNS, transpose=(TRANSPOSE, "ln.weight"))
    text = str(error.value)
    for part in (
        "missing: norm.bias\n",
        "unexpected: extra\n",
        "tokens.weight (from wte.weight) and head.weight (from lm_head.weight) are the same cell",
        "blocks.1.attention.out_proj.bias (from h.1.attn.out.bias): the module has f32[4]",
        "blocks.1.fc.weight (from h.1.mlp.weight): the module has f32[6,4]",
        "blocks.0.attention.in_proj_bias needs the parts 0 to 2 of 3, given were [0, 2]",
        "blocks.1.attention.in_proj_weight has parts of the shapes (2, 4), (4, 4), (4, 4)",
        "ln.weight has the shape (4,), and only matrices are transposed",
    ):
        assert part in text, (part, text)
    same(model.state_dict(), before)
    with pytest.raises(ValueError, match=r"lm_head.weight is renamed to tokens.weight, but wte.weight has another"):
        nn.from_torch(given, model, {"wte": "tokens", "lm_head": "tokens"})
    with pytest.raises(ValueError, match=r"b is renamed to a\[1/3\], but a is a\[0/2\]"):
        nn.from_torch({"a": numbers(2), "b": numbers(2)}, model, {"a": "a[0/2]", "b": "a[1/3]"})
    # A new head, and what the old one had, are left alone.
    given = theirs()
    del given["ln.bias"]
    nn.from_torch(given | {"extra": numbers(1)}, model, PATTERNS, transpose=TRANSPOSE, strict=False)
    np.testing.assert_array_equal(model.norm.bias.value, before["norm.bias"])


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_all_or_nothing_is_loaded(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    model, count = nn.Linear(2, 2), 0
    before, new = model.state_dict(), {"weight": numbers(2, 2), "bias": numbers(2)}
    place = type(model.bias)._placed

    def disturbed(cell: Any, value: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2 and error is MemoryError:
            raise MemoryError
        if count == 2:
            signal.raise_signal(signal.SIGINT)
        return place(cell, value)

    monkeypatch.setattr(type(model.bias), "_placed", disturbed)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(error):
            model.load_state_dict(new)
    finally:
        signal.signal(signal.SIGINT, handler)
    # An interrupt waits until all is loaded.
    same(model.state_dict(), before if error is MemoryError else new)


def test_files_of_an_index(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    for name, x in model.state_dict().items():
        nn.save(tmp_path / f"{name}.safetensors", {name: x})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in model.state_dict()}}))
    same(nn.from_torch(index, nn.Linear(3, 2)).state_dict(), model.state_dict())
    index.write_text("{}")
    with pytest.raises(ValueError, match="is no index of safetensors files"):
        nn.load(index)
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        nn.load(tmp_path / "other.json")
    (tmp_path / "weights.bin").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"files of torch are read by torch\.load\(path, weights_only=True\)"):
        nn.from_torch(tmp_path / "weights.bin", model)


def test_wrong_names_of_what_is_wanted() -> None:
    model = nn.Linear(3, 2)
    with pytest.raises(ValueError, match="to_torch of Linear was given names that do not match") as error:
        nn.to_torch(model, {"w": "weight", "c": "bias[2/2]"}, like={"w": numbers(3, 3), "c": None, "x": 1}, numpy=True)
    for part in (
        "x is x in the model, which has no such path",
        "w has the shape (3, 3), that of the model (2, 3)",
        "bias has names for bias[2/2] alone",
        "c is bias[2/2] in the model, where the array of shape (2,) has no such part",
    ):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="bias has no name"):
        nn.to_torch(model, like=["weight"], numpy=True)
    for like in ("weight", model, 3):
        with pytest.raises(TypeError, match="like is a dictionary or a list of names"):
            nn.to_torch(model, like=like, numpy=True)


A = {"a": numbers(1)}
WRONG = [
    ((nn.Linear(1, 1), nn.Linear(1, 1)), {}, TypeError, r"not of type Linear; write module\.state_dict\(\)"),
    ((abs, nn.Linear(1, 1)), {}, TypeError, r"becomes one of arrays by ft\.from_torch"),
    ((3, nn.Linear(1, 1)), {}, TypeError, r"nn\.load\(path\) gives one"),
    (({}, {}), {}, TypeError, r"nn\.from_torch loads into"),
    ((A, nn.Linear(1, 1)), {"rename": 3}, TypeError, "rename is a dictionary of names"),
    ((A, nn.Linear(1, 1)), {"rename": ["ab"]}, TypeError, "rename is a dictionary of names"),
    ((A, nn.Linear(1, 1)), {"rename": [("(", "")]}, ValueError, r"rename has '\(', which is no regular"),
    ((A, nn.Linear(1, 1)), {"rename": len}, TypeError, "rename must return the path of 'a'"),
    ((A, nn.Linear(1, 1)), {"transpose": True}, TypeError, "transpose is a regular expression"),
    ((A, nn.Linear(1, 1)), {"transpose": "*"}, ValueError, r"transpose has '\*', which is no regular"),
    (({"a": np.array(["x"])}, nn.Linear(1, 1)), {}, TypeError, "a"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "options", "error", "text"), WRONG, ids=[row[3] for row in WRONG])
def test_wrong_arguments(args: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        nn.from_torch(*args, **options)
