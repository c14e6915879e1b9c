"""Questions about types: traced values answer them as the values of the plain call do."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft

# What Python code computes from its argument, an array of two axes, and an array of the same values or a number.
VALUES: dict[str, Callable[[Any], Any]] = {
    "the array": lambda x: x,
    "a row": lambda x: x[0],
    "a number of it": lambda x: x[0, 0],
    "a part": lambda x: x[0:1],
    "a sum": lambda x: np.sum(x),
    "a mean": lambda x: x.mean(),
    "a ufunc of a number": lambda x: np.sin(x[0, 1]),
    "a product of numbers": lambda x: x[0, 1] * 2.0,
    "a copy of a number": lambda x: x[0, 1].copy(),
    "an array without axes": lambda x: np.array(x[0, 1]),
    "a reshaped number": lambda x: x[0, 0:1].reshape(()),
    "an element of a copy": lambda x: x.reshape(-1)[1],
    "a comparison": lambda x: x < 1.0,
    "a comparison of a number": lambda x: x[0, 0] < 1.0,
    "a place": lambda x: np.argmax(x),
    "places": lambda x: np.argsort(x[0]),
    "a complex array": lambda x: x * 1j,
    "a complex number": lambda x: x[0, 0] * 1j,
    "single precision": lambda x: x.astype(np.float32),
    "a number in single precision": lambda x: x[0, 0].astype(np.float32),
}

CLASSES = (
    np.ndarray, np.generic, np.number, np.inexact, np.floating, np.float64, np.float32, np.integer, np.int64, np.bool_,
    np.complexfloating, np.complex128, float, int, bool, complex, str, list, tuple, numbers.Number, numbers.Complex,
    numbers.Real, numbers.Rational, numbers.Integral,
)  # fmt: skip

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    **{f"isinstance {cls.__name__}": lambda y, cls=cls: isinstance(y, cls) for cls in CLASSES},
    "class": lambda y: y.__class__,
    "isscalar": np.isscalar,
}

X = np.array([[0.5, 1.5], [2.5, -1.0]])


def answers(y: Any) -> dict[str, Any]:
    """What a value says of itself, by question."""
    return {name: ask(y) for name, ask in QUESTIONS.items()}


TRACED: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "grad": lambda f, x: ft.grad(f)(x),
    "jit": lambda f, x: ft.jit(f)(x),
    "jvp": lambda f, x: ft.jvp(f, (x,), (x,)),
    "hessian": lambda f, x: ft.hessian(f)(x),
    "vmap": lambda f, x: ft.vmap(f)(np.stack([x, x])),
}


def answers_while_traced(transformation: str, make: Callable[[Any], Any], x: Any) -> dict[str, Any]:
    """What a value says of itself in a function that is being transformed."""
    found: list[dict[str, Any]] = []

    def f(x: Any) -> Any:
        found.append(answers(make(x)))
        return np.sum(x * x)

    TRACED[transformation](f, x)
    return found[-1]


@pytest.mark.parametrize("transformation", TRACED)
def test_answers_are_those_of_the_plain_call(transformation: str) -> None:
    for name, make in VALUES.items():
        assert answers_while_traced(transformation, make, X) == answers(make(X)), name


@pytest.mark.parametrize("transformation", ["grad", "jit", "jvp", "hessian"])
@pytest.mark.parametrize("x", [1.2, np.float64(1.2), np.float32(1.2), np.array(1.2)], ids=repr)
def test_numbers_are_what_they_were(transformation: str, x: Any) -> None:
    assert answers_while_traced(transformation, lambda x: x, x) == answers(x)
