"""Indices, shapes and assignments that cannot be: errors that say why, where, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft
import ftrans.numpy as fnp

X = np.array([0.6, -1.1, 0.4, 2.0])
WHERE = re.compile(r"test_in_place_mistakes\.py:\d+")


# What NumPy refuses with the same words: a function of a vector of 4.
SAME_WORDS: list[Callable[[Any], Any]] = [
    lambda x: x[7],
    lambda x: x[-5],
    lambda x: x.reshape(2, 2)[0, 3],
    lambda x: x.__setitem__(9, 1.0),
    lambda x: x[[0, 9]],
    lambda x: x.reshape(2, 2)[[0, 1], [0, -3]],
    lambda x: np.take(x, 9),
    lambda x: x[0, 0],
    lambda x: x[np.array([True, False])],
    lambda x: x.reshape(2, 2)[:, [True, False, True]],
]


@pytest.mark.parametrize("function", SAME_WORDS)
@pytest.mark.parametrize("transformed", [ft.trace, lambda f: ft.jit(lambda x: np.sum(f(x)))], ids=["trace", "jit"])
def test_an_index_out_of_range_is_numpys_error(function: Callable[[Any], Any], transformed: Any) -> None:
    with pytest.raises(IndexError) as of_numpy:
        function(X.copy())
    with pytest.raises(IndexError, match=re.escape(str(of_numpy.value))) as ours:
        transformed(function)(X)
    assert WHERE.search(str(ours.value))


TRACED_INDICES: list[Callable[[Any, Any], Any]] = [
    lambda x, i: x[i],
    lambda x, i: np.take(x, i),
    lambda x, i: x.reshape(2, 2)[1, i],
    lambda x, i: x[np.stack([i, i])],
    lambda x, i: (x.__setitem__(i, 1.0), x)[1],
]


@pytest.mark.parametrize("function", TRACED_INDICES)
def test_a_traced_index_out_of_range_is_an_error_where_numpy_runs(function: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(IndexError, match="out of bounds") as error:
        ft.jacobian(lambda x: function(x, np.argmax(x) + 2))(X)
    assert WHERE.search("".join(error.value.__notes__))


def test_compiled_a_traced_index_out_of_range_is_the_nearest_one() -> None:
    def read(x: Any, i: Any) -> Any:
        return x[i]

    def write(x: Any, i: Any) -> Any:
        x[i] = 7.0
        return x

    def add(x: Any, i: Any) -> Any:
        np.add.at(x, i, 1.0)
        return x

    places = np.array([-9, -4, 3, 40])
    nearest = np.array([0, 0, 3, 3])
    assert_close(ft.jit(read)(X, places), X[nearest])
    for i, n in zip(places, nearest, strict=True):
        assert_close(ft.jit(read)(X, i), X[n])
        expected = X.copy()
        expected[n] = 7.0
        assert_close(ft.jit(write)(X, i), expected)
        assert_close(ft.jit(ft.grad(lambda x, i: read(x, i) ** 2))(X, i), 2 * X * (np.arange(4) == n))
        assert_close(ft.jit(ft.grad(lambda x, i: np.sum(write(x, i) ** 2)))(X, i), 2 * X * (np.arange(4) != n))
    assert_close(ft.jit(add)(X, places), X + np.array([2.0, 0, 0, 2.0]))


# Data-dependent shapes: what asks for them.
SHAPES: dict[str, Callable[[Any], Any]] = {
    "mask": lambda x: np.sum(x[x > 0] ** 2),
    "nonzero": lambda x: np.sum(x[np.nonzero(x > 0)]),
    "where": lambda x: np.sum(x[np.where(x > 0)]),
    "flatnonzero": lambda x: np.sum(x[np.flatnonzero(x > 0)]),
    "argwhere": lambda x: np.sum(x[np.argwhere(x > 0)]),
    "unique": lambda x: np.sum(np.unique(x) ** 2),
    "compress": lambda x: np.sum(np.compress(x > 0, x)),
    "extract": lambda x: np.sum(np.extract(x > 0, x)),
    "delete": lambda x: np.sum(np.delete(x, x > 0)),
    "assigned": lambda x: np.sum(assigned_one_by_one(x) * x),
}


def assigned_one_by_one(x: Any) -> Any:
    y = x.copy()
    y[y > 0] = np.array([1.0, 2.0, 3.0])
    return y


@pytest.mark.parametrize("function", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_that_depend_on_values(function: Callable[[Any], Any]) -> None:
    along = np.array([0.3, -0.2, 0.5, 0.1])
    difference = (function(X + 1e-6 * along) - function(X - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(ft.grad(function)(X) @ along, difference, rtol=1e-6)
    for compiled in (ft.jit(function), ft.jit(ft.grad(function))):
        with pytest.raises(TypeError, match=r"(?s)a shape depends on.*one shape.*np\.where\(mask") as error:
            compiled(X)
        assert WHERE.search(str(error.value))


def test_masks_that_keep_the_shape_are_compiled() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[y > 1] *= 0.5
        y[y < 0] = 0.0
        np.place(y, x > 0.9, x[0])
        return np.sum(y, where=x > 0.5) + np.sum(np.where(x > 0, x, 0.0))

    assert_close(ft.jit(ft.grad(f))(X), ft.grad(f)(X))
    assert_close(ft.jit(ft.grad(f))(-X), ft.grad(f)(-X))


# Arrays that are none of the trace's

TABLE = np.arange(4.0)


def test_traced_values_do_not_go_into_numpys_arrays() -> None:
    def assigned(x: Any) -> Any:
        out = np.zeros(3)
        out[0] = x[0]
        return out

    def row_assigned(x: Any) -> Any:
        out = np.zeros((2, 4))
        out[1] = x
        return out

    def captured(x: Any) -> Any:
        TABLE[0] = x[0]
        return np.sum(TABLE)

    def assigned_in_line(x: Any) -> Any:
        out = np.zeros(3)
        out.flat[0] = x[0]
        return out

    for function in (assigned, row_assigned, captured, assigned_in_line):
        with pytest.raises(TypeError, match=r"plain NumPy array.*ftrans\.numpy\.zeros") as error:
            ft.jacobian(function)(X)
        assert WHERE.search(str(error.value))

    def added(x: Any) -> Any:
        nonlocal_table = TABLE
        nonlocal_table += x
        return nonlocal_table

    with pytest.raises(TypeError, match=r"(?s)np\.add.*np\.zeros_like.*ftrans\.numpy\.zeros.*nonlocal_table \+= x"):
        ft.jacobian(added)(X)
    with pytest.raises(TypeError, match=r"out|np\.add"):
        ft.jacobian(lambda x: np.add(x, 1.0, out=TABLE))(X)
    np.testing.assert_array_equal(TABLE, np.arange(4.0))


def test_values_of_enclosing_functions_are_not_assigned_to() -> None:
    def f(x: Any) -> Any:
        y = x * 2

        def body(i: Any, carry: Any) -> Any:
            y[i] = carry
            return carry + 1

        return ft.fori_loop(0, 3, body, x[0])

    with pytest.raises(ValueError, match=r"enclosing function.*\n.*y\[i\] = carry"):
        ft.grad(f)(X)


OUTPUTS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: np.add(x, 1, out=np.zeros_like(x, dtype=int)), TypeError, "Cannot cast ufunc 'add'.*same_kind.*astype"),
    (lambda x: np.cumsum(x, out=np.zeros_like(x, dtype=int)), TypeError, "Cannot cast ufunc"),
    (lambda x: np.add(x, 1, out=np.zeros_like(x[:2])), ValueError, "non-broadcastable output operand"),
    (lambda x: np.sum(x.reshape(2, 2), 0, out=np.zeros_like(x)), ValueError, "non-broadcastable output operand"),
    (lambda x: np.dot(x.reshape(2, 2), x[:2], out=np.zeros_like(x)), ValueError, "non-broadcastable output operand"),
]


@pytest.mark.parametrize(("function", "error", "message"), OUTPUTS)
def test_wrong_outputs(function: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ft.trace(function)(X)
    assert WHERE.search(str(caught.value))


def test_masked_arrays_do_not_lose_their_masks() -> None:
    masked = np.ma.masked_array(X, mask=[False, True, False, False])
    for call in (
        lambda: ft.grad(lambda x: np.sum(x**2))(masked),
        lambda: ft.jit(lambda x: np.sum(x**2))(masked),
        lambda: ft.grad(lambda x: np.sum(x * masked))(X),
        lambda: ft.vmap(lambda x: x)(masked),
    ):
        with pytest.raises(TypeError, match=r"masked array.*would lose its mask.*x\.filled\(0\.0\).*where=~mask"):
            call()


# What np.asarray and np.array make of traced values


def test_an_array_of_objects_is_no_view_of_a_traced_value() -> None:
    def written(x: Any) -> Any:
        y = np.asarray(x)
        y *= 2.0
        return np.sum(x)

    with pytest.raises(ValueError, match="read-only"):
        ft.grad(written)(X)

    def copied(x: Any) -> Any:
        y = np.array(x)
        y *= 2.0
        return np.sum(y * x) + np.sum(np.asarray(x) ** 2)

    assert_close(ft.grad(copied)(X), 6 * X)


def rotation(t: Any) -> Any:
    return np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])


def filled(x: Any) -> Any:
    out = np.empty(3, dtype=object)
    for i in range(3):
        out[i] = np.sin(x[i]) * (i + 1)
    return out


WEIGHTS = np.arange(1.0, 10.0).reshape(3, 3)
ON_OBJECTS: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: np.sum((rotation(x[0]) @ x[:2]) ** 3),
    "matrices": lambda x: np.sum(rotation(x[0]) @ rotation(x[1]) * WEIGHTS[:2, :2]),
    "element": lambda x: rotation(x[0])[0, 1] * 3 + np.sum(rotation(x[1])[1]),
    "T": lambda x: np.sum(rotation(x[0]).T @ np.array([1.0, 2.0]) * x[1]),
    "dot": lambda x: rotation(x[0]).dot(x[:2]) @ np.array([1.0, 3.0]),
    "sum": lambda x: np.sum(filled(x)) * filled(x).sum(),
    "vector": lambda x: filled(x) @ WEIGHTS[0],
    "stack": lambda x: np.sum(np.stack([filled(x), x[:3]]) * WEIGHTS[:2]),
    "concatenate": lambda x: np.sum(np.concatenate([filled(x), x]) ** 2),
    "norm": lambda x: np.linalg.norm(filled(x)),
    "slice": lambda x: np.sum(filled(x)[1:] ** 2),
    "reshape": lambda x: np.sum(filled(x).reshape(3, 1) * WEIGHTS),
    "with array": lambda x: np.sum((filled(x) + np.ones(3)) ** 2 - np.ones(3) * filled(x)),
    "with traced": lambda x: x[:3] @ filled(x) + np.sum((x[:3] - filled(x)) ** 2),
    "compare": lambda x: np.sum(np.where(filled(x) > 0.5, filled(x), 0.0)),
    "max": lambda x: np.max(filled(x)) + filled(x).max(),
    "cumsum": lambda x: np.sum(np.cumsum(filled(x)) * WEIGHTS[0]),
    "prod": lambda x: np.prod(filled(x)),
    "einsum": lambda x: np.einsum("i,i->", filled(x), x[:3]),
    "appended": lambda x: np.sum(np.array([x[i] ** 2 for i in range(3)]) * WEIGHTS[0]),
    "block": lambda x: np.sum(np.block([[rotation(x[0]), np.zeros((2, 1))], [np.ones((1, 3))]]) * WEIGHTS),
}


@pytest.mark.parametrize("function", ON_OBJECTS.values(), ids=ON_OBJECTS.keys())
def test_arrays_of_objects_that_hold_traced_values(function: Callable[[Any], Any]) -> None:
    along = np.array([0.3, -0.2, 0.5, 0.1])
    difference = (function(X + 1e-6 * along) - function(X - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(ft.grad(function)(X) @ along, difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.linalg.det(rotation(x[0])),
        lambda x: np.mean(filled(x)),
        lambda x: sum(np.nditer(x)),
    ],
)
def test_what_numpy_cannot_do_with_objects_names_the_way_out(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"ftrans\.numpy\.array\(\[\.\.\.\]\)") as error:
        ft.grad(function)(X)
    assert WHERE.search(str(error.value))


# Views by other names


def test_sliding_windows_are_read() -> None:
    windows = np.lib.stride_tricks.sliding_window_view
    matrix = np.random.default_rng(0).normal(size=(4, 5))
    for options in ({"window_shape": 2, "axis": 1}, {"window_shape": (2, 3)}, {"window_shape": (2, 2), "axis": (1, 0)}):
        expected = windows(matrix, **options)
        weights = np.random.default_rng(1).normal(size=expected.shape)
        found = ft.jacobian(lambda x: np.sum(weights * windows(x, **options) ** 2))(matrix)  # noqa: B023
        by_hand = ft.grad(lambda x: sum(w * v**2 for w, v in zip(weights.flat, pieces(x), strict=True)))  # noqa: B023
        places = windows(np.arange(matrix.size).reshape(matrix.shape), **options).ravel()

        def pieces(x: Any) -> Any:
            return [x.flat[int(i)] for i in places]  # noqa: B023

        assert_close(ft.trace(lambda x: windows(x, **options))(matrix)(matrix)[0], expected)  # noqa: B023
        assert_close(found, by_hand(matrix))
    with pytest.raises(ValueError, match="read-only"):
        ft.trace(lambda x: windows(x, 2).__setitem__(0, 1.0))(X)


def test_traced_integers_select_views() -> None:
    def f(x: Any, i: Any) -> Any:
        y = x * 1.0
        row = y[i]
        row *= 2.0
        part = y[i, 1:]
        part += row[0]
        y[:, i][0] = 7.0
        y[i, i] += 1.0
        corner = y[0, None]
        corner[0, 1] = 3.0
        return y

    matrix = np.random.default_rng(0).normal(size=(3, 3))
    expected = f(matrix, 2)
    assert_close(ft.trace(f)(matrix, np.int64(2))(matrix, np.int64(2))[0], expected)
    # An index that is an array, if only without axes, makes a copy.
    copied = f(matrix, np.array(2))
    assert_close(ft.trace(f)(matrix, np.array(2))(matrix, np.array(2))[0], copied)
    assert_close(ft.jit(f)(matrix, np.array(2)), copied)
    assert_close(ft.jit(f)(matrix, 2), expected)
    assert_close(ft.jit(f)(matrix, -1), expected)


def test_views_of_the_bytes_are_refused() -> None:
    assert_close(ft.grad(lambda x: np.sum(x.view() ** 2))(X), 2 * X)
    with pytest.raises(TypeError, match=r"no bytes.*\.astype"):
        ft.grad(lambda x: np.sum(x.view(np.int64)))(X)
    assert fnp.zeros(2).view().shape == (2,)
