"""Traced values that meet objects of other libraries: units, parameters of fits, and what only looks like an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

import ftrans as ft

X = np.array([1.0, 2.0, 3.0])


class Length(NDArrayOperatorsMixin):
    """A number with a scale, which computes by NumPy's protocols, as libraries for units do."""

    def __init__(self, number: Any, scale: float) -> None:
        self.number, self.scale = number, scale

    shape = property(lambda self: np.shape(self.number))
    dtype = property(lambda self: np.result_type(self.number))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("its scale is lost")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return Length(getattr(ufunc, method)(*map(in_metres, inputs), **kwargs), 1.0)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Length(function([in_metres(x) for x in args[0]], *args[1:], **kwargs), 1.0)


def in_metres(x: Any) -> Any:
    return x.number * x.scale if isinstance(x, Length) else x


class Parameter:
    """What a fit varies: an object that is taken for its number, by operators of its own."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(float(self.number))

    def __eq__(self, other: Any) -> Any:
        return self.number == other

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> Any:
        return self.number < other

    def __add__(self, other: Any) -> Any:
        return self.number + other

    def __rmul__(self, other: Any) -> Any:
        return other * self.number


class Converted:
    """An object that NumPy makes an array of, without operators."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(2.0)


def on_the_left(x: Any) -> Any:
    return (x * Length(3.0, 1000.0)).number.sum()


def on_the_right(x: Any) -> Any:
    return (Length(x, 0.001) + np.sin(x) * Length(np.arange(1.0, 4.0), 1000.0)).number @ np.arange(3.0)


def by_functions(x: Any) -> Any:
    whole = np.concatenate([x, Length(x, 1000.0)])
    return np.sum(np.multiply(x, Length(x, 10.0)).number) + np.sum(whole.number**2)


def of_a_parameter(x: Any) -> Any:
    return np.sum(x * Parameter(2.0) + (Parameter(x) + x) * x)


@pytest.mark.parametrize("f", [on_the_left, on_the_right, by_functions, of_a_parameter])
def test_other_objects_compute_with_traced_values_by_their_own_operators(f: Callable[[Any], Any]) -> None:
    x = np.array([0.3, 1.2, -0.7])
    steps = 1e-6 * np.eye(3)
    expected = np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])
    for grad in (ft.grad(f), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(grad(x), expected, rtol=1e-7)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.stack([x, x]))[1], expected, rtol=1e-7)
    curvature = np.array([(ft.grad(f)(x + step) - ft.grad(f)(x - step)) / 2e-6 for step in steps])
    np.testing.assert_allclose(ft.hessian(f)(x), curvature, rtol=1e-7, atol=1e-3)


class Boxed(NDArrayOperatorsMixin):
    """An array in a box, from which NumPy can take it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    shape = property(lambda self: np.shape(self.array))
    dtype = property(lambda self: np.result_type(self.array))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return Boxed(getattr(ufunc, method)(*map(unboxed, inputs), **kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Boxed(function(*map(unboxed, args), **kwargs))


def unboxed(x: Any) -> Any:
    return x.array if isinstance(x, Boxed) else x


@pytest.mark.parametrize(
    "f", [lambda x: np.sum(Boxed(X) * x), lambda x: np.sum(x * Boxed(X)), lambda x: {"a": np.dot(Boxed(X), x)}]
)
def test_results_in_the_containers_of_others_are_differentiated(f: Callable[[Any], Any]) -> None:
    def only(result: Any) -> Any:
        return result["a"] if isinstance(result, dict) else result

    assert only(ft.jacobian(f)(X)).tolist() == X.tolist()
    assert only(ft.jvp(f, (X,), (2 * X,))[1]) == 2 * X @ X
    assert only(ft.jit(f)(X)) == X @ X
    assert only(ft.vmap(f)(np.stack([X, 2 * X]))).tolist() == [X @ X, 2 * X @ X]
    if not isinstance(f(X), dict):
        for grad in (ft.grad(f), ft.jit(ft.grad(f)), lambda x: ft.value_and_grad(f)(x)[1]):
            assert grad(X).tolist() == X.tolist()


def test_comparisons_are_those_of_the_other_object() -> None:
    parameter = Parameter(2.0)
    assert ft.grad(lambda x: x if x > parameter else 3 * x)(1.0) == 3.0
    assert ft.grad(lambda x: 5 * x if x == parameter else x)(2.0) == 5.0


@pytest.mark.parametrize("f", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x * (x == y)])
def test_an_object_without_operators_is_not_taken_for_something_else(f: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)Converted.*test_foreign_operands\.py:\d+"):
        ft.grad(lambda x: f(x, Converted()))(2.0)


@ft.patch
def by_methods_of_float(x: Any) -> Any:
    product, power = float.__mul__, float.__rpow__
    kind = functools.partial(dict, kind=float)()["kind"]
    assert isinstance(1.0, kind)
    return product(2.0, x) + power(x, 2.0) + float.__abs__(x) + float.__mul__(3.0, 2.0)


def test_methods_of_float_are_operators_and_partial_hands_classes_on() -> None:
    x = 1.5
    assert by_methods_of_float(x) == 2 * x + 2.0**x + abs(x) + 6.0
    np.testing.assert_allclose(ft.grad(by_methods_of_float)(x), 3.0 + 2.0**x * np.log(2.0), rtol=1e-14)
