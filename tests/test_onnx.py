"""ONNX models of functions and derivatives, run by onnxruntime.  The packages are no part of the test environment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import scipy.special
from checks import assert_close

import ftrans as ft
from ftrans import nn
from ftrans.storage import onnx as module

pytest.importorskip("jax2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
# jax2onnx and what it brings warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3))
X = RNG.standard_normal(3)
IMAGE = RNG.standard_normal((2, 1, 8, 8)).astype(np.float32)


def run(model: Any, *args: Any) -> list[Any]:
    """The results of a model for arrays in the order of its inputs."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return list(session.run(None, dict(zip(names, args, strict=True))))


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)
    ).eval()


def slope_of(model: Any) -> Any:
    return ft.grad(lambda x: np.sin(model(x)).sum())


ROWS: list[tuple[str, Callable[[], Callable[..., Any]], tuple[Any, ...]]] = [
    ("network", network, (IMAGE,)),
    ("gradient of a network", lambda: slope_of(network()), (IMAGE,)),
    ("hessian", lambda: ft.hessian(lambda x: np.exp(np.sin(A @ x)).sum()), (X,)),
    ("solve", lambda: lambda a: np.linalg.solve(a, a[0]), (A,)),
    ("cumsum", lambda: ft.grad(lambda x: np.cumsum(np.sin(x)).prod()), (X,)),
    ("sort", lambda: np.sort, (X,)),
    ("scan", lambda: lambda x: ft.scan(lambda c, a: (np.tanh(c + a), c), x, np.ones(4))[1], (1.0,)),
    ("while", lambda: lambda x: ft.while_loop(lambda c: c < 10, lambda c: c * 1.5, x, 20), (1.0,)),
    ("layer norm", lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Softmax(-1)), (np.float32(A),)),
]


@pytest.mark.parametrize(("name", "make", "args"), ROWS, ids=[row[0] for row in ROWS])
def test_models_compute_what_the_function_does(name: str, make: Any, args: tuple[Any, ...]) -> None:
    f = make()
    (found,) = run(ft.to_onnx(f, *args), *map(np.asarray, args))
    expected = np.asarray(f(*args))
    assert found.dtype == expected.dtype
    assert_close(found, expected, looseness=100)


def test_inputs_and_outputs_have_the_names_of_containers(tmp_path: Path) -> None:
    def energy(p: dict[str, Any], x: Any) -> Any:
        return {"energy": (np.sin(A @ p["a"]) * p["b"]).sum(), "x": [x * 2]}

    model = ft.to_onnx(energy, {"b": 2.0, "a": X}, X, path=tmp_path / "energy.onnx")
    assert [i.name for i in model.graph.input] == ["argument_0.a", "argument_0.b", "argument_1"]
    assert [o.name for o in model.graph.output] == ["result.energy", "result.x.0"]
    assert (tmp_path / "energy.onnx").read_bytes() == model.SerializeToString()


def test_the_batch_has_any_size() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    f = ft.grad(lambda x: model(x).sum())
    converted = ft.to_onnx(f, np.float32(X), batch=0)
    for size in (1, 5):
        rows = RNG.standard_normal((size, 3)).astype(np.float32)
        assert_close(run(converted, rows)[0], ft.vmap(f)(rows), looseness=10)


@pytest.mark.parametrize("local", [None, False, True])
def test_the_setting_of_64_bits_stays(local: bool | None) -> None:
    def of_all() -> bool:
        with ThreadPoolExecutor(1) as other:
            return bool(other.submit(lambda: jax.config.jax_enable_x64).result())

    before = of_all()
    with nullcontext() if local is None else jax.enable_x64(local):
        seen = jax.config.jax_enable_x64
        ft.to_onnx(np.sin, np.float32(X))
        assert jax.config.jax_enable_x64 == seen
        assert of_all() == before


def test_what_does_not_convert_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"to_onnx of lambda: kv is computed by[\s\S]*test_onnx\.py.*kv\("):
        ft.to_onnx(lambda x: scipy.special.kv(1.5, x), 1.0)
    with pytest.raises(NotImplementedError, match=r"(jax2onnx cannot convert|onnxruntime cannot run)[\s\S]*ft\.export"):
        ft.to_onnx(lambda a: np.linalg.svd(a), A)


def test_a_model_with_other_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run_model = module._run
    monkeypatch.setattr(module, "_run", lambda *args: [x + 1e-3 for x in run_model(*args)])
    with pytest.raises(ValueError, match=r"gives other values than the function, for result of[\s\S]*test_onnx\.py"):
        ft.to_onnx(np.sin, X)
