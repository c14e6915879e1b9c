"""Dataclasses as arguments and results: all that an object holds is there again when it has been taken apart."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import ftrans as ft
from ftrans.base.tree import flatten


@dataclass
class Plain:
    w: Any

    @property
    def twice(self) -> Any:
        return 2.0 * self.w


@dataclass
class SetLater(Plain):
    """Attributes that are no fields: numbers, and what is none."""

    def __post_init__(self) -> None:
        self.area = self.w * 2.0
        self.size = 3
        self.indices = np.array([0, 1])
        self.name, self.labels, self.act = "x", ["a", "b"], np.tanh


@dataclass(frozen=True)
class Frozen:
    w: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.w * 2.0)


class Base:
    __slots__ = ("area",)


@dataclass(slots=True)
class Slots(Base):
    w: Any

    def __post_init__(self) -> None:
        self.area = self.w * 2.0


@dataclass
class Initial(Plain):
    factor: InitVar[float]
    kind: ClassVar[Any] = "class variable"
    made: Any = field(init=False, default=None)

    def __post_init__(self, factor: float) -> None:
        self.made = self.w * factor


@dataclass
class Cached(Plain):
    @functools.cached_property
    def square(self) -> Any:
        return self.w**2


class Sub(SetLater):
    def __init__(self, w: Any) -> None:
        super().__init__(w)
        self.more = {"a": np.array([1.0, 2.0])}


class Doubled:
    """A descriptor, which keeps its value under another name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        return 1.0 if instance is None else getattr(instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self.name, value)


@dataclass
class Described:
    w: Any = Doubled()


def used(x: Any) -> Any:
    """A number that depends on every attribute of `SetLater`."""
    assert x.name == "x"
    assert x.labels == ["a", "b"]
    assert isinstance(x.size, int)
    return np.sum(x.act(x.area[x.indices]) * x.w * x.size)


X = np.array([0.3, 0.7])

# (an object, a function of it, what its gradient holds)
CASES: dict[str, tuple[Any, Callable[[Any], Any], dict[str, Any]]] = {
    "post_init": (
        SetLater(X),
        used,
        {"w": 3 * np.tanh(2 * X), "area": 3 * X / np.cosh(2 * X) ** 2, "indices": [0, 0], "size": 3, "name": "x"},
    ),
    "frozen": (Frozen(X), lambda p: np.sum(p.w * p.area), {"w": 2 * X, "area": X}),
    "slots": (Slots(X), lambda p: np.sum(p.w * p.area), {"w": 2 * X, "area": X}),
    "init": (Initial(X, 3.0), lambda p: np.sum(p.w * p.made), {"w": 3 * X, "made": X}),
    "cached": (Cached(X), lambda p: np.sum(p.square), {"w": 2 * X}),
    "subclass": (Sub(X), lambda p: used(p) + np.sum(p.w * p.more["a"]), {"w": 3 * np.tanh(2 * X) + [1, 2]}),
    "descriptor": (Described(X), lambda p: np.sum(p.w**2), {"w": 2 * X}),
    "inherited": (SetLater(X), lambda p: np.sum(p.twice), {"w": [2, 2], "area": [0, 0]}),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    x, f, expected = CASES[name]
    if name == "cached":
        # What was computed from the numbers of now is not taken for something that does not change.
        np.testing.assert_array_equal(x.square, X**2)
    value, gradient = ft.value_and_grad(f)(x)
    assert value == pytest.approx(f(x))
    assert type(gradient) is type(x)
    for attribute, slope in expected.items():
        found = getattr(gradient, attribute)
        if isinstance(slope, str | int):
            assert found == slope
        else:
            np.testing.assert_allclose(found, slope, rtol=1e-12)
    compiled = ft.jit(ft.grad(f))(x)
    np.testing.assert_allclose(compiled.w, gradient.w)
    along = sum(np.sum(a * b) for a, b in zip(flatten(gradient)[0], flatten(x)[0], strict=True))
    np.testing.assert_allclose(ft.jvp(f, (x,), (x,))[1], along)


@pytest.mark.parametrize("transform", [ft.jit, ft.vmap, lambda f: lambda x: ft.vjp(f, x)[0]])
@pytest.mark.parametrize("make", [SetLater, Frozen, Slots, Sub, lambda x: Initial(x, 3.0)])
def test_results(transform: Any, make: Any) -> None:
    found, expected = transform(lambda x: make(x + 1.0))(X), make(X + 1.0)
    assert type(found) is type(expected)
    for name in ("w", "area", "made"):
        if hasattr(expected, name):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
    if isinstance(expected, SetLater):
        assert (found.name, found.size, found.act) == ("x", 3, np.tanh)


def test_an_attribute_that_changes_is_seen_by_jit() -> None:
    jitted = ft.jit(lambda p: p.w * len(p.labels) * p.size)
    x = SetLater(np.float64(2.0))
    assert jitted(x) == 12.0
    x.labels.append("c")
    assert jitted(x) == 18.0
    x.size = 1
    assert jitted(x) == 6.0
    x.size = True
    assert jitted(x) == 6.0


def test_what_a_result_computes_anew() -> None:
    """A cached property of a result follows from its fields, not from the traced values that it was asked with."""

    def f(x: Any) -> Any:
        made = Cached(x)
        return made, made.square

    made, square = ft.jit(f)(3.0)
    assert made.square == square == 9.0


def test_loops_carry_attributes() -> None:
    carry, _ = ft.scan(lambda c, x: (SetLater(c.w * x), c.area), SetLater(1.0), np.array([2.0, 3.0]))
    assert (carry.w, carry.area, carry.name) == (6.0, 12.0, "x")


def test_what_holds_itself() -> None:
    x = SetLater(X)
    x.name = x  # type: ignore[assignment]
    with pytest.raises(RecursionError, match=r"SetLater holds itself(.|\n)*test_dataclasses.py"):
        ft.grad(lambda p: np.sum(p.w))(x)
