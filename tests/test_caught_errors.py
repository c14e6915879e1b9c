"""Errors of ftrans that traced code catches: it would go on another way than with plain numbers, so the trace fails."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest

import ftrans as ft


def by_math(x):
    try:
        return math.sin(x)
    except Exception:
        return 0.0 * x


def by_suppress(x):
    with contextlib.suppress(TypeError):
        return np.array([x, x], float)[0]
    return x


def by_write(x):
    out = np.zeros(2)
    try:
        out[0] = x
    except Exception:
        out[0] = 1.0
    return out.sum() * x


def by_other_error(x):
    try:
        try:
            return float(x)
        except TypeError as error:
            raise ValueError("no number") from error
    except ValueError:
        return x


def by_inner_trace(x):
    try:
        return ft.grad(lambda y: math.cos(y))(x)
    except TypeError:
        return x


def by_loop(x):
    try:
        return ft.fori_loop(0, 3, lambda i, c: c if c > 0 else 2 * c, x)
    except Exception:
        return x


def by_inner_trace_that_catches(x):
    try:
        return ft.grad(by_math)(x)
    except TypeError:
        return x


def by_two(x):
    try:
        return math.sin(x)
    except TypeError:
        try:
            return [1.0, 2.0][x]
        except TypeError:
            return x


CAUGHT = [by_math, by_suppress, by_write, by_other_error, by_inner_trace, by_loop, by_inner_trace_that_catches, by_two]


@pytest.mark.parametrize("f", CAUGHT, ids=lambda f: f.__name__)
def test_an_error_that_plain_numbers_do_not_give_is_raised_again(f: Any) -> None:
    for transformed in (ft.grad(f), ft.jit(f), ft.vmap(f)):
        with pytest.raises(TypeError, match="caught an error that plain numbers do not give"):
            transformed(np.ones(2) if transformed.__name__.startswith("vmap") else 1.5)


def test_what_is_said_names_the_line_and_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"return math.sin\(x\)(.|\n)*write np.sin\(x\)"):
        ft.grad(by_math)(1.5)


def as_index(x):
    try:
        return [1.0, 2.0][x]
    except TypeError:
        return 3.0 * x


def as_one_number(x):
    try:
        return float(np.stack([x, x]))
    except TypeError:
        return 3.0 * x


def as_message(x):
    try:
        raise ValueError("x is too large")
    except ValueError:
        return 3.0 * x


@pytest.mark.parametrize("f", [as_index, as_one_number, as_message], ids=lambda f: f.__name__)
def test_errors_that_plain_numbers_give_too_are_caught_as_ever(f: Any) -> None:
    assert f(np.float64(2.0)) == 6.0
    assert ft.grad(f)(2.0) == 3.0
    assert ft.jit(f)(2.0) == 6.0


def test_vmap_runs_by_values_what_catches_the_error_of_a_branch() -> None:
    def f(x):
        try:
            return x * x if x > 0 else -x
        except TypeError:
            return 0.0 * x

    np.testing.assert_array_equal(ft.vmap(f)(np.array([2.0, -3.0])), [4.0, 3.0])


def test_numpy_asks_for_numbers_on_purpose() -> None:
    def f(x):
        assert np.iterable(x)
        assert not np.allclose([x[0], x[1]], 5.0)
        return np.array2string(x) and x.sum()

    np.testing.assert_array_equal(ft.grad(f)(np.array([1.0, 2.0])), [1.0, 1.0])
