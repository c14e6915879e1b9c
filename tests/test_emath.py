"""numpy.emath: real numbers outside of a function's domain become complex ones, on traced values as on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import assert_close

import ftrans as ft

INSIDE = {name: np.array([0.3, 0.8]) for name in ("arccos", "arcsin", "arctanh", "log", "log10", "log2", "sqrt")}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("sign", [1.0, -4.0])
def test_functions_of_one_operand(name: str, sign: float) -> None:
    function, x = getattr(np.emath, name), sign * INSIDE[name]
    assert_close(ft.jvp(function, (x,), (x,))[0], function(x))
    assert_close(getattr(ft.numpy.emath, name)(x), function(x))

    def size(x: Any) -> Any:
        return np.sum(np.abs(function(x)) ** 2)

    ft.testing.check_grads(size, x, order=2)
    assert_close(ft.jit(ft.grad(size))(x), ft.grad(size)(x))
    assert_close(ft.vmap(ft.grad(size))(x), ft.grad(size)(x))


def test_functions_of_two_operands() -> None:
    x = np.array([2.0, -3.0])
    for f in (
        lambda x: np.emath.logn(x[0], x),
        lambda x: np.emath.power(x, 1.5),
        lambda x: np.emath.power(x, np.array([-2, 2])),
        lambda x: np.emath.power(2.0, x),
    ):
        assert_close(ft.jvp(f, (x,), (x,))[0], f(x))
        ft.testing.check_grads(lambda x, f=f: np.sum(np.abs(f(x)) ** 2), x, order=2)


def test_whole_numbers_become_double_precision() -> None:
    assert (
        ft.jvp(lambda x: np.emath.sqrt(np.argsort(x) - 1) * x, (np.ones(2),), (np.ones(2),))[0].dtype == np.complex128
    )
