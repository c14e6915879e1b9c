"""Constants that forward code keeps in attributes while it is traced, and what it may not keep there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from training import compiled_once

import ftrans as ft
from ftrans import nn

X = np.arange(6.0).reshape(2, 3)
MASK = np.tril(np.ones((3, 3)))
TRACES: list[int] = []


@pytest.fixture(autouse=True, scope="module")
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with compiled_once(tmp_path_factory.mktemp("compiled")):
        yield


class Masked(nn.Module):
    """Multiplies by a matrix that it makes when it is called first."""

    def __init__(self, keep: Callable[[Any, Any], Any] | None = None) -> None:
        self.w = nn.Parameter(np.ones((3, 3)))
        self.mask: Any = None
        self.masks: dict[int, Any] = {}
        self.keep = keep

    def forward(self, x: Any) -> Any:
        TRACES.append(1)
        if self.keep is not None:
            self.keep(self, x)
        elif self.mask is None:
            self.mask = np.tril(np.ones((3, 3)))
        return x @ (self.w * (MASK if self.mask is None else self.mask))


def total(model: Any, x: Any) -> Any:
    return (model(x) ** 2).sum()


RUNS: dict[str, Callable[[], Callable[..., Any]]] = {
    "plain": lambda: total,
    "compiled": lambda: nn.jit(total),
    "gradient": lambda: nn.grad(total),
    "compiled gradient": lambda: nn.jit(lambda m, x: nn.grad(total)(m, x)),
    "vmap": lambda: nn.vmap(lambda m, x: m(x), in_axes=(None, 0)),
    "checkpoint": lambda: lambda m, x: nn.checkpoint(m)(x),
    "scan": lambda: lambda m, x: nn.scan(nn.ModuleList([m, m]), x),
    "functional_call": lambda: lambda m, x: nn.functional_call(m, nn.state_of(m), x)[0],
    "gradient of the argument": lambda: lambda m, x: ft.grad(lambda x: total(m, x))(x),
    "tensors": lambda: lambda m, x: total(m, ft.autograd.tensor(x)).detach().numpy(),
}


def values(result: Any) -> Any:
    return result["w"] if isinstance(result, dict) else np.asarray(result)


@pytest.mark.parametrize("name", RUNS)
def test_a_constant_kept_in_forward_is_that_of_each_call(name: str) -> None:
    known = Masked()
    known.mask = MASK
    expected = values(RUNS[name]()(known, X))
    model, run = Masked(), RUNS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (X, X, X, X[:1], X):
            found = values(run(model, x))
            if x is X:
                np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(model.mask, MASK)


def test_a_compiled_function_is_traced_once_more_and_no_more() -> None:
    model, run = Masked(), nn.jit(total)
    TRACES.clear()
    for _ in range(5):
        run(model, X)
    assert len(TRACES) == 2
    # Others of the same structure share the programs, with and without their constant.
    other = Masked()
    for _ in range(3):
        np.testing.assert_allclose(run(other, X), total(Masked(), X))
    assert len(TRACES) == 2 + 3


KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "the same again": lambda m, x: setattr(m, "mask", np.tril(np.ones((3, 3)))),
    "a new attribute": lambda m, x: setattr(m, "fresh", np.ones(2)),
    "a tuple": lambda m, x: setattr(m, "tables", (np.arange(3), np.ones(2))),
    "in a dictionary": lambda m, x: m.masks.setdefault(x.shape[-1], np.tril(np.ones((3, 3)))),
}


@pytest.mark.parametrize("run", ["compiled", "gradient", "compiled gradient"])
@pytest.mark.parametrize("name", KEPT)
def test_what_may_be_kept(name: str, run: str) -> None:
    model, f = Masked(KEPT[name]), RUNS[run]()
    expected = values(RUNS[run]()(Masked(lambda m, x: None), X))
    for _ in range(3):
        np.testing.assert_allclose(values(f(model, X)), expected)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "traced": lambda m, x: setattr(m, "last", x * m.w[0]),
    "traced in a tuple": lambda m, x: setattr(m, "last", (1.0, x * m.w[0])),
    "number": lambda m, x: setattr(m, "size", x.shape[-1]),
    "counted": lambda m, x: setattr(m, "size", getattr(m, "size", 0) + 1),
    "another array": lambda m, x: setattr(m, "mask", np.zeros(3) if m.mask is None else m.mask + 1),
    "list": lambda m, x: setattr(m, "kept", [1]),
    "function": lambda m, x: setattr(m, "kept", np.sin),
    "module": lambda m, x: setattr(m, "kept", nn.ReLU()),
    "parameter": lambda m, x: setattr(m, "kept", nn.Parameter(np.ones(2))),
}


@pytest.mark.parametrize("run", ["compiled", "gradient", "compiled gradient"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_may_not_be_kept(name: str, run: str) -> None:
    model, f = Masked(REFUSED[name]), RUNS[run]()
    model.mask = np.zeros((3, 3)) if name == "another array" else None
    with pytest.raises(TypeError, match=r"was assigned .* make it a Buffer"):
        [f(model, X) for _ in range(2)]


def test_lists_that_grow_are_refused() -> None:
    model = Masked()
    model.seen: list[Any] = []
    model.keep = lambda m, x: m.seen.append(np.ones(2))
    with pytest.raises(TypeError, match="changed attributes of modules that are not cells"):
        nn.jit(total)(model, X)


def test_a_cached_property_may_be_a_constant() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            self.w = nn.Parameter(np.ones(3))

        @functools.cached_property
        def table(self) -> Any:
            return np.arange(3.0)

        def forward(self, x: Any) -> Any:
            return x * self.w * self.table

    model, run = Cached(), nn.jit(total)
    for _ in range(2):
        np.testing.assert_allclose(run(model, X), ((X * np.arange(3.0)) ** 2).sum())


def test_layers_of_a_scan_keep_the_same_constant() -> None:
    layers = nn.ModuleList([Masked(), Masked(), Masked()])
    first = nn.scan(layers, X)
    assert all(np.array_equal(layer.mask, MASK) for layer in layers)
    np.testing.assert_allclose(nn.scan(layers, X), first)
    np.testing.assert_allclose(first, X @ MASK @ MASK @ MASK)
