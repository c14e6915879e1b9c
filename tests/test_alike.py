"""Calls of a compiled function like one before: what tells them apart, against functions that remember nothing."""

from __future__ import annotations

import gc
import random
import weakref
from collections import OrderedDict, namedtuple
from typing import Any

import jax
import numpy as np
import optree
import pytest

import ftrans as ft
from ftrans import nn
from ftrans.api import jitted
from ftrans.api.alike import Alike
from ftrans.base import tree

Pair = namedtuple("Pair", "first second")


def describe(*args: Any) -> Any:
    """All that a traced function can see of its arguments."""
    leaves, structure = tree.flatten(args)
    seen = [(x.shape, str(x.dtype), x.weak) for x in leaves]
    described.append((str(structure), seen))
    return [2 * x for x in leaves]


described: list[Any] = []

LEAVES = [
    lambda: 1.5,
    lambda: 2,
    lambda: True,
    lambda: 1j,
    lambda: np.float64(0.5),
    lambda: np.float32(0.5),
    lambda: np.array(0.5),
    lambda: np.arange(3.0),
    lambda: np.arange(4.0),
    lambda: np.arange(3),
    lambda: np.arange(3.0, dtype=np.float32),
    lambda: np.arange(3.0).astype(">f8"),
    lambda: np.arange(6.0)[::2],
    lambda: jax.numpy.arange(3.0),
    lambda: jax.numpy.arange(3),
]
CONTAINERS = [
    lambda x, y: (x, y),
    lambda x, y: ([x, y],),
    lambda x, y: ((x, y),),
    lambda x, y: (Pair(x, y),),
    lambda x, y: ({"a": x, "b": y},),
    lambda x, y: ({"b": y, "a": x},),
    lambda x, y: ({"a": x, "c": y},),
    lambda x, y: ({"it's": [x, {"n": None}]}, y),
    lambda x, y: (x, None, y),
    lambda x, y: (x, [], y),
    lambda x, y: ({1: x, 2: y},),
    lambda x, y: ({True: x, 2: y},),
    lambda x, y: (OrderedDict(b=x, a=y),),
]


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_give_what_functions_give_that_remember_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(jitted, "_MOST_REMEMBERED", 10_000)
    remembering = ft.jit(describe)
    kinds = [(choose.choice(CONTAINERS), choose.choice(LEAVES), choose.choice(LEAVES)) for _ in range(8)]
    first = choose.choice(CONTAINERS)
    kinds += [(first, choose.choice(LEAVES), LEAVES[7]) for _ in range(4)]
    traced: dict[int, Any] = {}
    for _ in range(30):
        number = choose.randrange(len(kinds))
        container, x, y = kinds[number]
        args = container(x(), y())
        described.clear()
        out = remembering(*args)
        if described:
            traced[number] = described[-1]
        described.clear()
        same(out, ft.jit(describe)(*args))
        # Where it was not traced, it had been for a call that looks the same to it.
        assert traced.get(number, described[-1]) == described[-1]


def test_a_call_like_the_last_is_neither_traced_nor_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ft.jit(lambda d, x: d["w"] * x + d["b"])
    arguments = {"w": np.ones(3), "b": np.zeros(3)}, 2.0
    f(*arguments)
    monkeypatch.setattr(optree, "tree_flatten", None)
    np.testing.assert_array_equal(f({"b": np.ones(3), "w": np.ones(3)}, 3.0), np.full(3, 4.0))


def test_other_shapes_and_byte_orders() -> None:
    f = ft.jit(lambda x: 2 * x)
    x = np.arange(3.0)
    for _ in range(3):
        for other in (x, x[:2], x.astype(np.float32), x.astype(">f8"), x.astype(int), x.astype(">f8")):
            out = f(other)
            np.testing.assert_array_equal(out, 2 * other)
            assert out.dtype == other.dtype.newbyteorder("=")


def test_branches() -> None:
    f = ft.jit(lambda d: d["x"] * 2 if d["x"].sum() > 0 else -d["x"])
    for _ in range(3):
        for x in (np.ones(2), -np.ones(2), np.ones(3), -np.ones(3)):
            np.testing.assert_array_equal(f({"x": x}), 2 * x if x.sum() > 0 else -x)


def test_keywords_and_static_arguments() -> None:
    f = ft.jit(lambda x, n=1, *, scale=1.0: x * n * scale, static_argnames="n")
    x = np.arange(3.0)
    for n in (1, 2, 1.0, 3):
        np.testing.assert_array_equal(f(x, n), x * n)
        np.testing.assert_array_equal(f(x, n=n, scale=2.0), 2.0 * x * n)
    g = ft.jit(lambda x, scale=1.0: x * scale)
    for _ in range(2):
        np.testing.assert_array_equal(g(x), x)
        np.testing.assert_array_equal(g(x, scale=3.0), 3 * x)


def test_errors_after_calls_that_worked() -> None:
    f = ft.jit(lambda x: x["a"] + 1)
    f({"a": np.ones(2)})
    with pytest.raises(TypeError, match="jit takes arrays"):
        f({"a": "text"})
    with pytest.raises(TypeError, match="object"):
        f({"a": np.array([1, None])})
    with pytest.raises(KeyError):
        f({"b": np.ones(2)})
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    with pytest.raises(RecursionError, match="holds itself"):
        f(holds_itself)


def test_inside_of_transformations() -> None:
    f = ft.jit(lambda d: (d["x"] ** 2).sum())
    x = np.arange(3.0)
    f({"x": x})
    np.testing.assert_array_equal(ft.grad(f)({"x": x})["x"], 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)({"x": jax.numpy.ones((2, 3))}), [3.0, 3.0])
    tensor = ft.autograd.tensor(x, requires_grad=True)
    f({"x": tensor}).backward()
    np.testing.assert_array_equal(tensor.grad.numpy(), 2 * x)


def test_what_cannot_be_told_quickly() -> None:
    deep: Any = np.ones(2)
    for _ in range(40):
        deep = [deep]
    assert Alike.to((deep,), [deep]) is None
    f = ft.jit(lambda x: 2 * tree.flatten(x)[0][0])
    for _ in range(2):
        np.testing.assert_array_equal(f(deep), [2.0, 2.0])


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.weight = nn.Parameter(np.ones(2))
        self.calls = nn.Buffer(np.array(0))

    def forward(self, x: Any) -> Any:
        self.calls.value = self.calls + 1
        return self.weight * x * self.factor


@pytest.mark.filterwarnings("ignore:nn.jit traces:RuntimeWarning")
@pytest.mark.parametrize("contained", [False, True])
def test_modules(contained: bool) -> None:
    f = nn.jit(lambda given: given["model"](given["x"])) if contained else nn.jit(lambda model, x: model(x))

    def call(model: Scale, x: Any) -> Any:
        return f({"x": x, "model": model}) if contained else f(model, x)

    models = [Scale(2.0), Scale(3.0), Scale(2.0)]
    for number, model in enumerate([*models, *models[::-1], *models]):
        np.testing.assert_array_equal(call(model, np.ones(2)), np.full(2, model.factor))
        assert model.calls.numpy() == 1 + number // 3
    first = models[0]
    first.factor = 5.0
    np.testing.assert_array_equal(call(first, np.ones(2)), [5.0, 5.0])
    first.weight.value = np.full(2, 0.5, np.float32)
    assert call(first, np.ones(2, np.float32)).dtype == np.float32
    first.weight = nn.Parameter(np.full(2, 2.0))
    np.testing.assert_array_equal(call(first, np.ones(2)), [10.0, 10.0])
    assert isinstance(call(first, jax.numpy.ones(2)), jax.Array)
    assert isinstance(call(first, np.ones(2)), np.ndarray)
    held = weakref.ref(first)
    del first, models, model
    gc.collect()
    assert held() is None


def test_a_function_of_modules_that_is_given_none() -> None:
    f = nn.jit(lambda x: {"out": 2 * x})
    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones(2))["out"], [2.0, 2.0])
