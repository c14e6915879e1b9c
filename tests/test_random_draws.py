"""Random numbers drawn while a function is compiled are constants: a warning says so, at the user's line."""

from __future__ import annotations

import functools
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import normal

import ftrans as ft
from ftrans import nn

X = np.ones(3)
shared = np.random.default_rng(0)
legacy = np.random.RandomState(0)
seeded = random.Random(0)


def noisy(x: Any) -> Any:
    return x * shared.normal(size=3)  # a helper


def with_default(x: Any, rng: Any = np.random.default_rng(1)) -> Any:  # noqa: B008 - what is tested
    return x * rng.normal(size=3)


class Model:
    """An object with a generator."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def cost(self, x: Any) -> Any:
        return np.sum(self.changed(x))

    def changed(self, x: Any) -> Any:
        return x + self.rng.normal(size=3)


class Layer(nn.Module):
    """A module with a generator."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(np.ones(3))
        self.rng = np.random.default_rng(0)

    def forward(self, x: Any) -> Any:
        return np.sum(self.weight * x * self.rng.normal(size=3))


model = Model()

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "global": (lambda x: np.sum(x * np.random.normal(size=3)), "np.random.normal"),
    "imported name": (lambda x: x * normal(size=3), "normal(size=3)"),
    "random of Python": (lambda x: x * random.random(), "random.random()"),
    "generator of the module": (lambda x: x * shared.normal(size=3), "shared.normal"),
    "legacy generator": (lambda x: x * legacy.normal(size=3), "legacy.normal"),
    "generator of Python": (lambda x: x * seeded.random(), "seeded.random"),
    "helper": (lambda x: noisy(noisy(x)), "# a helper"),
    "default": (with_default, "rng.normal(size=3)"),
    "method": (Model().cost, "self.rng.normal"),
    "object of the module": (lambda x: model.cost(x), "self.rng.normal"),
    "partial function": (functools.partial(lambda f, x: np.sum(f(x)), noisy), "# a helper"),
    "transformed function": (ft.grad(lambda x: np.sum(noisy(x))), "# a helper"),
    "closure": ((lambda rng: lambda x: x * rng.normal())(np.random.default_rng(2)), "rng.normal()"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_draws_in_compiled_functions_warn_at_the_line(name: str) -> None:
    f, code = FUNCTIONS[name]
    with pytest.warns(RuntimeWarning, match="every later call uses the same random numbers from") as caught:
        ft.jit(f)(X)
    (warning,) = caught
    assert warning.filename == __file__
    with open(__file__) as file:
        assert code in file.readlines()[warning.lineno - 1]


def test_modules_that_draw_warn() -> None:
    layer = Layer()
    with pytest.warns(RuntimeWarning, match="random numbers from rng"):
        nn.jit(lambda model, x: model(x))(layer, X)
    with pytest.warns(RuntimeWarning, match="random numbers from rng"):
        nn.jit(nn.grad(lambda model, x: model(x)))(layer, X)


def test_each_trace_warns_once() -> None:
    f = ft.jit(lambda x: x * np.random.normal())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(X)
        f(X)
        assert len(caught) == 1
        f(np.ones(4))
        assert len(caught) == 2


def test_draws_of_other_threads_do_not_warn() -> None:
    asked, drawn, is_done = threading.Event(), threading.Event(), threading.Event()

    def load() -> None:
        asked.wait(60)
        np.random.normal()
        drawn.set()
        is_done.wait(60)

    def f(x: Any) -> Any:
        asked.set()
        drawn.wait(60)
        return 2 * x

    thread = threading.Thread(target=load)
    thread.start()
    try:
        ft.jit(f)(X)
    finally:
        is_done.set()
        thread.join()


def test_what_is_drawn_outside_or_anew_does_not_warn() -> None:
    fixed = shared.normal(size=3)
    ft.jit(lambda x: x * fixed)(X)
    ft.jit(lambda x: x * np.random.default_rng(0).normal(size=3))(X)
    ft.jit(lambda x, key: x * nn.random.normal(key, (3,)))(X, nn.random.key(0))
    ft.grad(lambda x: np.sum(noisy(x)))(X)
    ft.vmap(noisy)(np.ones((2, 3)))
