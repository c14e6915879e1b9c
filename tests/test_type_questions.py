"""Questions about types: traced values answer them as the values of the plain call do."""

from __future__ import annotations

import array
import collections.abc
import ctypes
import decimal
import fractions
import json
import math
import numbers
import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
import ftrans.numpy as fnp

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
    "an array without axes": lambda x: fnp.array(x[0, 1]),
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

ABSTRACT = (
    collections.abc.Iterable, collections.abc.Sized, collections.abc.Sequence, collections.abc.Hashable,
    collections.abc.Collection, collections.abc.Container, collections.abc.Callable, collections.abc.Mapping,
    collections.abc.Iterator, collections.abc.Reversible,
)  # fmt: skip

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    **{f"isinstance {cls.__name__}": lambda y, cls=cls: isinstance(y, cls) for cls in (*CLASSES, *ABSTRACT)},
    "class": lambda y: y.__class__,
    "isscalar": np.isscalar,
    "ndim": np.ndim,
    "shape": np.shape,
    "size": np.size,
    "iterable": np.iterable,
    "has a length": lambda y: hasattr(y, "__len__"),
    "has elements": lambda y: hasattr(y, "__iter__"),
    "gives its elements": lambda y: getattr(y, "__iter__", None) is not None,
    "result_type": lambda y: np.result_type(y, np.float32),
    "can_cast": lambda y: np.can_cast(np.result_type(y), np.float32),
    "isrealobj": np.isrealobj,
    "iscomplexobj": np.iscomplexobj,
    "callable": callable,
    "kind": lambda y: y.dtype.kind if isinstance(y, np.ndarray | np.generic) else None,
    "issubdtype": lambda y: np.issubdtype(np.result_type(y), np.floating),
    "list or tuple": lambda y: type(y) in (list, tuple),
    "length": lambda y: len(y) if np.iterable(y) else raises(TypeError, lambda: len(y)),
    "elements": lambda y: len(list(y)) if np.iterable(y) else raises(TypeError, lambda: iter(y)),
}


def raises(error: type[Exception], call: Callable[[], Any]) -> bool:
    """Whether a call raises an error."""
    try:
        call()
    except error:
        return True
    return False


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
    for make in (lambda x: x, np.sin, lambda x: np.multiply(x, 2.0), np.positive, lambda x: x * 2.0, lambda x: -x):
        assert answers_while_traced(transformation, make, x) == answers(make(x))


def test_integers_are_indices() -> None:
    assert ft.grad(lambda x: x[operator.index(np.argmax(x))] ** 2)(np.array([0.5, 1.5])).tolist() == [0.0, 3.0]
    with pytest.raises(TypeError, match="no integer"):
        ft.grad(lambda x: operator.index(x[0]))(np.array([0.5, 1.5]))


def test_selected_elements_are_an_array() -> None:
    def f(x: Any) -> Any:
        assert isinstance(x[x > 0], np.ndarray)
        assert not isinstance(x[x > 0], float | tuple)
        return np.sum(x[x > 0])

    assert ft.grad(f)(X[0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [np.ndarray, np.float64, float, np.floating, int, np.generic])
@pytest.mark.parametrize("compare", [lambda x, kind: type(x) == kind, lambda x, kind: type(x) in (str, kind)])  # noqa: E721
def test_types_that_cannot_be_compared_truly(kind: type, compare: Callable[[Any, type], bool]) -> None:
    with pytest.raises(TypeError, match=r"(?s)isinstance\(x, .*test_type_questions.py"):
        ft.grad(lambda x: x if compare(x, kind) else x * 2)(1.5)


def test_types_of_traced_values_are_equal() -> None:
    def f(x: Any) -> Any:
        assert type(x) == type(x * 2)  # noqa: E721
        assert type(x) != str  # noqa: E721
        assert len({type(x), type(x), float}) == 2
        return x

    ft.grad(f)(1.5)


def test_a_number_that_is_asked_for_its_elements_in_other_ways() -> None:
    def f(x: Any) -> Any:
        with pytest.raises(TypeError, match="0-d"):
            print("__iter__", iter(x))
        with pytest.raises(TypeError, match="unsized"):
            print("__len__", len(x))
        with pytest.raises(TypeError):
            (_,) = x
        with pytest.raises(AttributeError):
            x.__iter__  # noqa: B018
        return x

    ft.grad(f)(1.5)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: ctypes.c_double(x),
        lambda x: struct.pack("d", x),
        lambda x: array.array("d", [x]),
        lambda x: json.dumps([x]),
        lambda x: json.dumps([x], indent=1),
        lambda x: math.sin(x),
        lambda x: memoryview(x),
        lambda x: operator.mod("%.3f", x),
        lambda x: float.__add__(x, 1.0),
        lambda x: np.ndarray.sum(x),
        lambda x: np.frombuffer(x),
        lambda x: decimal.Decimal(x),
        lambda x: fractions.Fraction(x),
    ],
)
def test_code_that_reads_the_memory_of_numbers_and_arrays_fails(read: Callable[[Any], Any]) -> None:
    for x in (1.5, np.array([1.5])):
        with pytest.raises((TypeError, AttributeError, ValueError, BufferError)):
            ft.grad(lambda x: (read(x), x.sum())[1] if isinstance(x, np.ndarray) else (read(x), x)[1])(x)
