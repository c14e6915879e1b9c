"""Arrays of Python objects that NumPy makes of traced arrays: their elements are read when they are used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
import ftrans.numpy as fnp
from ftrans.testing import check_grads

X = np.array([[0.3, -0.2, 0.5], [1.1, 0.7, -0.4]])

USES: dict[str, Callable[[Any], Any]] = {
    "untouched": lambda x: np.sum(fnp.asarray(np.asarray(x)) ** 2),
    "transposed": lambda x: np.sum(fnp.asarray(np.asarray(x).T) ** 2 * np.arange(6.0).reshape(3, 2)),
    "a part": lambda x: np.sum(fnp.asarray(np.asarray(x)[:, 1:]) ** 3),
    "an element twice": lambda x: np.sum(fnp.asarray(np.asarray(x).ravel()[[0, 0, 3]]) ** 2),
    "other elements, too": lambda x: np.sum(fnp.asarray(np.append(np.asarray(x).ravel(), [x[0, 0] * 2, 1.0])) ** 2),
    "elements of two arrays": lambda x: np.sum(fnp.asarray(np.array([*np.asarray(x[0]), *np.asarray(x[1])])) ** 2),
    "arithmetic": lambda x: np.sum(np.asarray(x) * np.asarray(x)[::-1]),
    "an element": lambda x: np.asarray(x)[1, 2] ** 2 * np.array(x)[0, 0],
    "of a view": lambda x: np.sum(fnp.asarray(np.asarray(x.T[1:])) ** 2),
    "without axes": lambda x: np.asarray(np.array(x[0, 0]))[()] ** 2,
}


@pytest.mark.parametrize("f", USES.values(), ids=USES.keys())
def test_derivatives_through_arrays_of_objects(f: Callable[[Any], Any]) -> None:
    check_grads(f, X, order=2)


def test_untouched_arrays_of_objects_cost_no_equations() -> None:
    program = ft.trace(lambda x: fnp.asarray(np.asarray(x)) * 2.0)(X)
    assert program.eqns == ft.trace(lambda x: x * 2.0)(X).eqns or len(program.eqns) == 1


def test_elements_are_those_from_before_an_assignment() -> None:
    def copied(x: Any) -> Any:
        objects = np.array(x)
        x[0, 0] = 5.0
        return objects[0, 0] * x[0, 0]

    def lent(x: Any) -> Any:
        objects = np.asarray(x)
        x[0, 0] = 5.0
        return objects[0, 0]

    def lent_and_stacked(x: Any) -> Any:
        objects = np.asarray(x)
        x[0, 0] = 5.0
        return np.sum(fnp.asarray(objects))

    assert ft.grad(copied)(X)[0, 0] == 5.0
    for f in (lent, lent_and_stacked):
        with pytest.raises(ValueError, match="holds the elements from before"):
            ft.grad(f)(X)


def test_elements_that_are_first_used_in_an_inner_function() -> None:
    def f(x: Any) -> Any:
        objects = np.asarray(x)
        return ft.grad(lambda y: objects[0, 0] * y**2)(x[0, 1]) + ft.cond(
            x[0, 0] > 0, lambda: objects[0, 2], lambda: 1.0
        )

    check_grads(f, X)


def test_elements_do_not_outlive_the_trace() -> None:
    kept: list[Any] = []
    ft.grad(lambda x: kept.append(np.asarray(x)) or x[0, 0])(X)
    with pytest.raises(ft.core.trace.TracerLeak):  # type: ignore[attr-defined]
        ft.grad(lambda y: y * kept[0][0, 0])(1.0)


def test_large_arrays_of_objects_are_warned_of_once() -> None:
    def f(x: Any) -> Any:
        return np.asarray(x)[0] ** 2

    def small(x: Any) -> Any:
        return np.asarray(x[:64])[0] ** 2

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(2):
            ft.grad(small)(np.ones(100))
            ft.grad(f)(np.ones(100))
    (warning,) = found
    assert warning.category is ft.ObjectArrayWarning
    assert "ftrans.numpy.asarray" in str(warning.message)
    assert warning.filename == __file__
