"""Arguments that a function assigns to: the arrays of the caller stay as they are, whatever calls the function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import ftrans as ft

X = np.array([1.0, 2.0, 3.0])


def scribbles(x: Any, y: Any, *, extra: Any = None) -> Any:
    """A number; all arguments are written to."""
    x[0] = 2.0
    y[0] *= 5.0
    y.T[1] = 7.0
    if extra is not None:
        extra["weights"][0][1] += 1.0
        return np.sum(x * x * y) + np.sum(extra["weights"][0])
    return np.sum(x * x * y)


MODES: list[Callable[..., Any]] = [
    lambda x, y, e: ft.grad(scribbles)(x, y, extra=e),
    lambda x, y, e: ft.grad(scribbles, argnums=(0, 1))(x, y, extra=e),
    lambda x, y, e: ft.grad(scribbles, argnums=1)(x, y, extra=e),
    lambda x, y, e: ft.value_and_grad(scribbles)(x, y, extra=e),
    lambda x, y, e: ft.grad(lambda *args, **kw: (scribbles(*args, **kw), args), has_aux=True)(x, y, extra=e),
    lambda x, y, e: ft.jacobian(scribbles)(x, y, extra=e),
    lambda x, y, e: ft.hessian(scribbles)(x, y, extra=e),
    lambda x, y, e: ft.jvp(scribbles, (x, y), (x, y)),
    lambda x, y, e: ft.vjp(scribbles, x, y),
    lambda x, y, e: ft.linearize(scribbles, x, y),
    lambda x, y, e: ft.vmap(scribbles, in_axes=(0, None))(x * np.ones((2, 1)), y),
    lambda x, y, e: ft.vmap(lambda x, y, e: scribbles(x, y, extra=e), in_axes=(0, None, None))(np.stack([x]), y, e),
    lambda x, y, e: ft.jit(scribbles)(x, y, extra=e),
    lambda x, y, e: ft.jit(ft.grad(scribbles))(x, y, extra=e),
    lambda x, y, e: ft.cond(True, scribbles, lambda x, y: 0.0, x, y),
    lambda x, y, e: ft.switch(0, [scribbles], x, y),
]


@pytest.mark.parametrize("mode", range(len(MODES)))
@pytest.mark.parametrize("order", ["contiguous", "strided"])
def test_the_arrays_of_the_caller_stay(mode: int, order: str) -> None:
    y = np.ones(3) if order == "contiguous" else np.ones(6)[::-2]
    extra = {"weights": [np.ones(3), 4.0]}
    x = X.copy()
    MODES[mode](x, y, extra)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, np.ones(3))
    np.testing.assert_array_equal(extra["weights"][0], np.ones(3))


def test_the_function_sees_what_it_wrote() -> None:
    np.testing.assert_array_equal(ft.grad(scribbles, argnums=1)(X.copy(), np.ones(3)), [20.0, 0.0, 9.0])
    np.testing.assert_array_equal(ft.grad(scribbles)(X.copy(), np.ones(3)), [0.0, 28.0, 6.0])


def halves(x: Any, p: Any) -> Any:
    p *= 0.5
    return x - p


# (a function that is called outside of any trace with an array that it may not change, what it gives)
DIRECT: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda p: ft.root(halves, np.zeros(2), p), [0.5, 0.5]),
    (lambda p: ft.fixed_point(lambda x, p: 0.0 * x + halves(0.0, p), np.zeros(2), p), [-0.5, -0.5]),
    (lambda p: ft.argmin(lambda x, p: np.sum(halves(x, p) ** 2), np.zeros(2), p), [0.5, 0.5]),
    (
        lambda p: ft.argmin(lambda x, p: np.sum(x**2), np.zeros(2), p, constraints=lambda x, p: np.sum(halves(x, p))),
        [0.5, 0.5],
    ),
    (lambda p: ft.checkpoint(halves)(1.0, p), [0.5, 0.5]),
    (lambda p: ft.jit(lambda x: ft.checkpoint(halves)(x, p))(1.0), [0.5, 0.5]),
    (lambda p: ft.custom_jvp(halves)(1.0, p), [0.5, 0.5]),
    (lambda p: ft.custom_vjp(halves)(1.0, p=p), [0.5, 0.5]),
    (lambda p: ft.checkpoint(lambda x, p: p)(1.0, p).__setitem__(0, 3.0), None),
]


@pytest.mark.parametrize("index", range(len(DIRECT)))
def test_functions_that_are_not_traced_leave_the_arrays_of_the_caller(index: int) -> None:
    call, expected = DIRECT[index]
    p = np.ones(2)
    result = call(p)
    assert p.tolist() == [1.0, 1.0]
    if expected is not None:
        np.testing.assert_allclose(result, expected, atol=1e-6)


class Noted(np.ndarray):
    """An array with a note."""

    note = ""

    def __array_finalize__(self, other: Any) -> None:
        self.note = getattr(other, "note", "")


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("step", [1, 2])
def test_classes_of_arrays_are_kept_or_refused(step: int) -> None:
    noted = np.arange(16.0).reshape(4, 4).view(Noted)[::step, ::step]
    noted.note = "metres"
    seen: list[Any] = []
    ft.grad(lambda x, y: (seen.append(y), x)[1])(1.0, noted)
    assert type(seen[0]) is Noted
    assert seen[0].note == "metres"
    assert seen[0].strides == noted.strides
    array = np.arange(16.0).reshape(4, 4)[::step, ::step]
    for other, why in ((np.asmatrix(array), "multiply|products of matrices"), (np.ma.masked_less(array, 5), "mask")):
        for given in (other, [other]):
            with pytest.raises(TypeError, match=why):
                ft.grad(lambda x, m: np.sum(m) * x)(1.0, given)
        with pytest.raises(TypeError, match=why):
            ft.cond(True, lambda m: np.sum(m * m), lambda m: 0.0, other)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Options:
    scale: Any
    name: str = ""


@pytest.mark.parametrize(
    "container", [[X], (X,), {"a": X}, Pair(X, 1), Options(X), [Pair({"a": [Options(X)]}, None)]], ids=str
)
def test_arrays_in_containers(container: Any) -> None:
    def inner(c: Any) -> Any:
        while not isinstance(c, np.ndarray):
            c = c.scale if isinstance(c, Options) else next(iter(c.values() if isinstance(c, dict) else c))
        return c

    def f(x: Any, c: Any) -> Any:
        assert type(c) is type(container)
        array = inner(c)
        array[0] = 10.0
        return np.sum(x) * array[0]

    assert ft.grad(f)(2.0, container) == 10.0
    np.testing.assert_array_equal(X, [1.0, 2.0, 3.0])


def test_what_holds_no_arrays_is_handed_on() -> None:
    seen: list[Any] = [1, "a"]
    settings = {"seen": seen}

    def f(x: Any, other: Any, settings: Any = None) -> Any:
        assert other is seen
        assert settings["seen"] is seen
        return x * 2.0

    assert ft.grad(f)(1.0, seen, settings=settings) == 2.0


def test_large_arrays_are_lent_for_reading() -> None:
    large = np.ones(10_000)

    def writes(x: Any, y: Any) -> Any:
        y[0] = 5.0
        return np.sum(x * y)

    with pytest.raises(ValueError, match="read-only") as caught:
        ft.grad(writes)(large, large)
    assert "x = x.copy()" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="read-only") as caught:
        ft.cond(True, writes, writes, large, large)
    assert "x = x.copy()" in caught.value.__notes__[0]
    assert large[0] == 1.0
    assert large.flags.writeable
    # What is returned of it can be written to.
    _, (whole, part) = ft.grad(lambda x, y: (np.sum(x * y), (y, y[1:])), has_aux=True)(large, large)
    whole[0] = part[0] = 3.0
    assert large.sum() == large.size
    assert not np.shares_memory(whole, part)


def test_a_copy_lies_in_memory_as_the_array_did() -> None:
    def f(x: Any, y: Any) -> Any:
        y.ravel()[0] = 5.0
        return np.sum(x * y)

    for y in (np.ones((2, 2)), np.ones((2, 2), order="F"), np.ones((4, 4))[::2, ::-2]):
        expected = np.ones((2, 2))
        expected[0, 0] = 5.0 if y.flags.c_contiguous else 1.0
        np.testing.assert_array_equal(ft.grad(f)(np.ones((2, 2)), y), expected)


def test_arrays_that_are_closed_over_change_as_in_numpy() -> None:
    state = np.zeros(3)

    def f(x: Any) -> Any:
        before = x * state
        state[0] += 1.0
        return np.sum(before + 2.0 * x * state)

    np.testing.assert_array_equal(ft.grad(f)(X), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(ft.grad(f)(X), [5.0, 0.0, 0.0])
    assert state[0] == 2.0


def test_a_compiled_function_follows_the_strides_of_its_arguments() -> None:
    traces: list[int] = []

    @ft.jit
    def f(x: Any) -> Any:
        traces.append(1)
        x.ravel()[0] = 5.0
        return x

    matrix = np.ones((2, 2))
    for x, first in ((matrix, 5.0), (np.asfortranarray(matrix), 1.0), (matrix, 5.0), (np.asfortranarray(matrix), 1.0)):
        assert f(x)[0, 0] == first
    assert len(traces) == 2


def test_arrays_of_objects_do_not_outlive_an_assignment() -> None:
    def stale(x: Any) -> Any:
        y = x * 1.0
        elements = np.asarray(y)
        y[0] = 5.0
        return np.sum(elements)

    with pytest.raises(ValueError, match=r"np\.asarray of a traced array.*ftrans\.numpy\.asarray"):
        ft.grad(stale)(X)

    def required(x: Any) -> Any:
        return np.sum(np.require(x * 1.0, requirements="W"))

    with pytest.raises(TypeError, match=r"ftrans\.numpy\.require"):
        ft.grad(required)(X)

    def in_order(x: Any) -> Any:
        y = x.T * 1.0
        np.asfortranarray(y)[0, 0] = 5.0
        return np.sum(y)

    # NumPy's array lies in this order, so that it would be the same array.
    with pytest.raises(ValueError, match="read-only"):
        ft.grad(in_order)(np.ones((2, 3)))


def test_numbers_cannot_be_assigned_to() -> None:
    def f(x: Any) -> Any:
        total = np.sum(x)
        total[...] = 1.0
        return total

    with pytest.raises(TypeError, match=r"assignment to a number.*ftrans\.numpy\.array"):
        ft.grad(f)(X)

    def of_array(x: Any) -> Any:
        alias = x
        x += 1.0
        return alias * alias

    # An array without axes is changed in place, a number is not.
    assert ft.grad(of_array)(np.array(2.0)) == 6.0
    assert ft.grad(of_array)(np.float64(2.0)) == 4.0
    compiled = ft.jit(of_array)
    assert compiled(np.array(2.0)) == 9.0
    assert compiled(np.float64(2.0)) == 4.0
