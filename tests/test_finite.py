"""Derivatives at the points where they are easily lost: ties, corners, poles that a choice leaves out, far tails.

A row is a function, a point, its gradient there, its Hessian, and why they are these: a closed form, a value that
mpmath computes, or one of the conventions that docs/semantics.md states.  The rows run un-jitted and compiled, in
groups, because compiling each of them by itself would take minutes.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

import ftrans as ft
from ftrans.core.program import literal
from ftrans.core.types import ArrayType

INF, NAN = math.inf, math.nan
PI = math.pi


class Row(NamedTuple):
    """A function at a point.

    Attributes:
        name: the function and the point, in words.
        f: takes an array, returns one number.
        x: the point.
        gradient: what it is there.
        hessian: what it is there; None where it does not exist.
        why: where the two come from.
    """

    name: str
    f: Callable[[Any], Any]
    x: Any
    gradient: Any
    hessian: Any
    why: str


def exact(f: Callable[[Any], Any], x: float) -> tuple[float, float]:
    """The first and the second derivative of a function, by mpmath."""
    with mpmath.workdps(600):
        return float(mpmath.diff(f, mpmath.mpf(x), 1)), float(mpmath.diff(f, mpmath.mpf(x), 2))


def by_mpmath(name: str, f: Callable[[Any], Any], g: Callable[[Any], Any], *points: float) -> list[Row]:
    """Rows of a function of one number, whose derivatives mpmath computes of its form `g`."""
    return [Row(f"{name} at {x:g}", f, x, *exact(g, x), "mpmath") for x in points]


# What a choice leaves out

CHOICES = [
    Row("where, sqrt", lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), [0.0, -1.0, 4.0],
        [0, 0, 1 / 4], np.diag([0, 0, -1 / 32]), "sqrt is not chosen at 0"),
    Row("where, sqrt of a product", lambda x: np.sum(np.where(x > 0, np.sqrt(3 * x) * x, x)), [0.0, -1.0, 3.0],
        [1, 1, 4.5], np.diag([0, 0, 0.75]), "the other side is x"),
    Row("where, sin(x) / x", lambda x: np.sum(np.where(x != 0, np.sin(x) / x, 1.0)), [0.0, PI],
        [0, -1 / PI], np.diag([0, 2 / PI**2]), "the value at 0 is a constant"),
    Row("where, x log(x)", lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0)), [0.0, 1.0],
        [0, 1], np.diag([0, 1]), "the value at 0 is a constant"),
    Row("nested where", lambda x: np.sum(np.where(x > 2, np.sqrt(x), np.where(x > 0, np.log(x), x**2))),
        [0.0, -1.0, 1.0, 4.0], [0, -2, 1, 1 / 4], np.diag([2, 2, -1, -1 / 32]), "each side by itself"),
    Row("sum of choices", lambda x: np.sum(np.sqrt(np.where(x > 0, x, 0.0) + np.where(x > 1, np.log(x), 0.0))),
        [0.0, -1.0, math.e], [0, 0, (1 + 1 / math.e) / 2 / math.sqrt(math.e + 1)],
        np.diag([0, 0, -math.exp(-2) / 2 / math.sqrt(math.e + 1) - (1 + 1 / math.e) ** 2 / 4 / (math.e + 1) ** 1.5]),
        "nothing is chosen at 0"),
    Row("where, sqrt of a scalar", lambda x: np.sum(np.where(x[0] > 0, np.sqrt(x[0]) * x[1:], x[1:])), [0.0, 2.0, 3.0],
        [0, 1, 1], np.zeros((3, 3)), "the other side does not hold x[0]"),
    Row("where, sum of logarithms", lambda x: np.where(x.min() > 0, np.sum(np.log(x)), x[0]), [0.0, 1.0],
        [1, 0], np.zeros((2, 2)), "the other side is x[0]"),
    Row("where, distances", lambda x: np.sum(np.where(np.eye(2) > 0, 0.0, np.sqrt((x[:, None] - x) ** 2))), [1.0, 3.0],
        [-2, 2], np.zeros((2, 2)), "the distance of a point from itself is not chosen"),
    Row("select", lambda x: np.sum(np.select([x > 1, x > 0], [np.log(x), np.sqrt(x)], -x)), [0.0, 0.25, 2.0],
        [-1, 1, 1 / 2], np.diag([0, -2, -1 / 4]), "each side by itself"),
    Row("maximum, sqrt inside", lambda x: np.sum(np.maximum(np.sqrt(x), 1.0)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "the maximum is the constant"),
    Row("sqrt, maximum inside", lambda x: np.sum(np.sqrt(np.maximum(x, 0.0))), [-1.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "constant around -1"),
    Row("sqrt, clip inside", lambda x: np.sum(np.sqrt(np.clip(x, 0, 9))), [-1.0, 4.0, 10.0],
        [0, 1 / 4, 0], np.diag([0, -1 / 32, 0]), "constant outside of the bounds"),
    Row("max of square roots", lambda x: np.max(np.sqrt(x)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "the maximum is another element"),
    Row("nansum of square roots", lambda x: np.nansum(np.sqrt(x)), [-1.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "NaN counts as a constant"),
    Row("sum of logarithms, where=", lambda x: np.sum(np.log(x), where=x > 0), [0.0, 2.0],
        [0, 1 / 2], np.diag([0, -1 / 4]), "not summed"),
    Row("nan_to_num", lambda x: np.sum(np.nan_to_num(np.log(x))), [-1.0, 2.0],
        [0, 1 / 2], np.diag([0, -1 / 4]), "NaN becomes a constant"),
    Row("where, stacked", lambda x: np.sum(np.where(np.stack([x, x]) > 0, np.stack([np.sqrt(x), np.log(x)]), 0.0)),
        [0.0, 4.0], [0, 1 / 2], np.diag([0, -3 / 32]), "neither is chosen at 0"),
    Row("where, rolled", lambda x: np.sum(np.where(np.roll(x, 1) > 0, np.roll(np.sqrt(x), 1), 0.0)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "sqrt is not chosen at 0"),
    Row("choose", lambda x: np.sum(np.choose((x > 0).astype(int), [-x, np.sqrt(x)])), [0.0, 4.0],
        [-1, 1 / 4], np.diag([0, -1 / 32]), "the other side is -x"),
    Row("power of a choice", lambda x: np.sum(np.where(x > 0, x, 0.0) ** (0.5 + x)), [0.0, 1.0],
        [0, 1.5], np.diag([0, 2.75]), "0 ** y is constant"),
    Row("where, checkpoint", lambda x: np.sum(np.where(x > 0, ft.checkpoint(np.sqrt)(x), 0.0)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "sqrt is not chosen at 0"),
    Row("checkpoint of a choice", lambda x: np.sum(ft.checkpoint(np.sqrt)(np.where(x > 0, x, 0.0))), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "constant around 0"),
    Row("where, jit", lambda x: np.sum(np.where(x > 0, ft.jit(np.sqrt)(x), 0.0)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "sqrt is not chosen at 0"),
    Row("jit of a choice", lambda x: np.sum(ft.jit(np.sqrt)(np.where(x > 0, x, 0.0))), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "constant around 0"),
    Row("jit around a choice", lambda x: np.sum(ft.jit(lambda x: np.where(x > 0, np.sqrt(x), 0.0))(x)), [0.0, 4.0],
        [0, 1 / 4], np.diag([0, -1 / 32]), "sqrt is not chosen at 0"),
    Row("fmax with NaN", lambda x: np.sum(np.fmax(np.log(x), x)), [-1.0, 2.0],
        [1, 1], np.zeros((2, 2)), "NaN loses"),
]  # fmt: skip

STEEP = np.array([0.0, 4.0, 1.0])


def assigned(x: Any, index: Any, value: Any) -> Any:
    """A copy with some elements assigned to."""
    y = x.copy()
    y[index] = value
    return y


def near_pairs(x: Any) -> Any:
    """The reciprocal distances of near points, for each pair once."""
    d = np.sqrt((x[:, None] - x) ** 2)
    return np.sum(np.where(d < 3, 1 / d, 0.0)[np.triu_indices(2, 1)])


# What indices leave out

INDICES = [
    Row("an element", lambda x: np.sqrt(x)[1], STEEP, [0, 1 / 4, 0], np.diag([0, -1 / 32, 0]), "x[0] has no influence"),
    Row("a slice", lambda x: np.sum(np.log(x)[1:]), STEEP, [0, 1 / 4, 1], np.diag([0, -1 / 16, -1]), "the same"),
    Row("indices", lambda x: np.sum((1 / x)[np.array([1, 2, 1])]), STEEP, [0, -1 / 8, -1], np.diag([0, 1 / 16, 2]),
        "the same"),
    Row("where of indices", lambda x: np.sum(np.where(x[::-1] > 0, np.sqrt(x)[np.array([2, 1, 0])], 0.0)),
        [0.0, 4.0, 1.0], [0, 1 / 4, 0.5], np.diag([0, -1 / 32, -1 / 4]), "the last element is not chosen"),
    Row("cross-entropy", lambda x: -np.log(x.reshape(2, 2))[np.arange(2), np.array([1, 0])].sum(), [0.0, 1.0, 0.5, 0.0],
        [0, -1, -2, 0], np.diag([0, 1, 4, 0]), "a probability of 0 for another class"),
    Row("sorted", lambda x: np.sort(np.sqrt(x))[-1], STEEP, [0, 1 / 4, 0], np.diag([0, -1 / 32, 0]), "the largest"),
    Row("partitioned, then cbrt", lambda x: np.cbrt(np.partition(x, 1))[1:].sum(), [0.0, 8.0, 1.0],
        [0, 1 / 12, 1 / 3], np.diag([0, -1 / 144, -2 / 9]), "x[0] has no influence"),
    Row("cbrt, then partitioned", lambda x: np.partition(np.cbrt(x), 1)[1], [0.0, 8.0, 1.0],
        [0, 0, 1 / 3], np.diag([0, 0, -2 / 9]), "x[2]"),
    Row("largest so far", lambda x: np.sum(np.maximum.accumulate(np.sqrt(x))), [4.0, 0.0, 1.0],
        [3 / 4, 0, 0], np.diag([-3 / 32, 0, 0]), "the others never are the largest"),
    Row("largest so far, from an infinite slope on", lambda x: np.sum(np.maximum.accumulate(np.cbrt(x))),
        [0.0, 1.0, 8.0, 27.0], [INF, 1 / 3, 1 / 12, 1 / 27], None, "each is the largest once"),
    Row("smallest so far, from two infinite slopes on", lambda x: np.sum(np.minimum.accumulate(-np.sqrt(x))),
        [0.0, 0.0, 1.0, 4.0], [-INF, -INF, -1 / 2, -1 / 4], None, "each is the smallest once, the first two share"),
    Row("median", lambda x: np.median(np.sqrt(x)), STEEP, [0, 0, 1 / 2], np.diag([0, 0, -1 / 4]), "x[2]"),
    Row("trace", lambda x: np.trace(np.sqrt(x.reshape(2, 2))), [1.0, 0.0, 0.0, 1.0], [0.5, 0, 0, 0.5],
        np.diag([-1 / 4, 0, 0, -1 / 4]), "the diagonal"),
    Row("upper triangle", lambda x: np.sum(np.triu(np.sqrt(x.reshape(2, 2)))), [1.0, 4.0, 0.0, 1.0],
        [0.5, 0.25, 0, 0.5], np.diag([-1 / 4, -1 / 32, 0, -1 / 4]), "the triangle"),
    Row("a slice of gammaln", lambda x: np.sum(ft.scipy.special.gammaln(x)[1:]), [0.0, 1.0],
        [0, -np.euler_gamma], np.diag([0, PI**2 / 6]), "x[0] has no influence"),
    Row("an element assigned", lambda x: np.sum(assigned(np.sqrt(x), 0, 0.0)), STEEP, [0, 1 / 4, 1 / 2],
        np.diag([0, -1 / 32, -1 / 4]), "overwritten"),
    Row("elements assigned", lambda x: np.sum(assigned(np.log(x), np.array([0, 2]), x[1])), STEEP, [0, 2.25, 0],
        np.diag([0, -1 / 16, 0]), "overwritten by x[1]"),
    Row("a bin of weights", lambda x: np.bincount([0, 1, 1, 0], weights=np.sqrt(x))[1], [0.0, 1.0, 4.0, 9.0],
        [0, 1 / 2, 1 / 4, 0], np.diag([0, -1 / 4, -1 / 32, 0]), "x[0] and x[3] are in another bin"),
    Row("elements assigned, then a slice", lambda x: np.sum(assigned(x + 1.0, slice(0, 2), np.log(x[1:]))[1:]),
        [1.0, 0.0, 2.0], [0, 0, 1 / 2 + 1], np.diag([0, 0, -1 / 4]), "log(x[1]) has no influence"),
    Row("sqrt of what is assigned to zeros", lambda x: np.sum(np.sqrt(assigned(ft.numpy.zeros(3), slice(1, 3), x))),
        [4.0, 1.0], [1 / 4, 1 / 2], np.diag([-1 / 32, -1 / 4]), "the zero is a constant"),
    Row("pairs of near points", near_pairs, [1.0, 3.0], [1 / 4, -1 / 4], [[1 / 4, -1 / 4], [-1 / 4, 1 / 4]],
        "a point and itself are near, but no pair"),
    Row("concatenated with zeros", lambda x: np.sum(np.sqrt(np.concatenate([x, np.zeros(2)]))), [4.0], [1 / 4],
        [[-1 / 32]], "the zeros are constants"),
    Row("padded", lambda x: np.sum(np.sqrt(np.pad(x, 1))), [4.0], [1 / 4], [[-1 / 32]], "the padding is constant"),
]  # fmt: skip


# Ties, by convention

TIES = [
    Row("abs at 0", np.abs, 0.0, 0, 0, "convention"),
    Row("max, tied", np.max, [2.0, 2.0, 1.0], [1 / 2, 1 / 2, 0], np.zeros((3, 3)), "convention: shared"),
    Row("min, tied", np.min, [2.0, 1.0, 1.0], [0, 1 / 2, 1 / 2], np.zeros((3, 3)), "convention: shared"),
    Row("maximum, tied", lambda x: np.maximum(x[0], x[1]), [2.0, 2.0], [1 / 2, 1 / 2], np.zeros((2, 2)), "convention"),
    Row("fmin, tied", lambda x: np.fmin(x[0], x[1] ** 2), [1.0, 1.0], [1 / 2, 1], [[0, 0], [0, 1]], "convention"),
    Row("ptp, tied", np.ptp, [2.0, 2.0, 1.0], [1 / 2, 1 / 2, -1], np.zeros((3, 3)), "convention"),
    Row("clip at a bound", lambda x: np.clip(x, 1.0, 2.0), 1.0, 1 / 2, 0, "convention"),
    Row("sort, tied", lambda x: np.sort(x) @ [1.0, 2.0, 3.0], [2.0, 2.0, 1.0], [2, 3, 1], np.zeros((3, 3)),
        "NumPy's order"),
    Row("median, tied", np.median, [2.0, 2.0, 1.0], [1, 0, 0], np.zeros((3, 3)), "NumPy's order"),
    Row("percentile on an element", lambda x: np.percentile(x, 50), [3.0, 2.0, 1.0], [0, 1, 0], np.zeros((3, 3)),
        "it is that element"),
    Row("cummax, tied", lambda x: np.sum(np.maximum.accumulate(x)), [1.0, 1.0], [3 / 2, 1 / 2], np.zeros((2, 2)),
        "convention: shared"),
    Row("remainder at a multiple", lambda x: np.remainder(x[0], x[1]), [6.0, 2.0], [1, -3], np.zeros((2, 2)),
        "convention: from above"),
    Row("heaviside at 0", lambda x: np.heaviside(x[0], x[1]), [0.0, 0.3], [0, 1], np.zeros((2, 2)),
        "the second operand"),
    Row("sign at 0", np.sign, 0.0, 0, 0, "convention"),
    Row("interp at a knot", lambda x: np.interp(x, [0.0, 1.0, 2.0], [0.0, 1.0, 3.0]), 1.0, 2, 0, "from above"),
    Row("interp outside", lambda x: np.interp(x, [0.0, 1.0], [0.0, 1.0]), 3.0, 0, 0, "constant"),
    Row("interp at the end", lambda x: np.interp(x[0], [0.0, x[1]], [0.0, 1.0]), [2.0, 2.0], [1 / 2, -1 / 2],
        [[0, -1 / 4], [-1 / 4, 1 / 2]], "from below"),
    Row("unwrap at a jump", lambda x: np.unwrap(x) @ [1.0, 2.0], [0.0, PI + 1], [1, 2], np.zeros((2, 2)), "a shift"),
    Row("logaddexp of two infinities", lambda x: np.logaddexp(x[0], x[1]), [INF, INF], [1 / 2, 1 / 2], None, "shared"),
]  # fmt: skip

# Lengths

LENGTHS = [
    Row("norm at 0", np.linalg.norm, [0.0, 0.0], [0, 0], np.zeros((2, 2)), "the zero subgradient"),
    Row("norm squared at 0", lambda x: np.linalg.norm(x) ** 2, [0.0, 0.0], [0, 0], 2 * np.eye(2), "x @ x"),
    Row("norms of rows", lambda x: np.sum(np.linalg.norm(x.reshape(2, 2), axis=1)), [0.0, 0.0, 3.0, 4.0],
        [0, 0, 0.6, 0.8], np.pad([[16 / 125, -12 / 125], [-12 / 125, 9 / 125]], ((2, 0), (2, 0))), "row by row"),
    Row("norm of order 1 at 0", lambda x: np.linalg.norm(x, 1), [0.0, 2.0], [0, 1], np.zeros((2, 2)), "abs"),
    Row("norm of order 3 at 0", lambda x: np.linalg.norm(x, 3), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "convention"),
    Row("norm of order inf", lambda x: np.linalg.norm(x, INF), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "abs"),
    Row("hypot at 0", lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "the zero subgradient"),
    Row("hypot squared at 0", lambda x: np.square(np.hypot(x[0], x[1])), [0.0, 0.0], [0, 0], 2 * np.eye(2), "x @ x"),
    Row("arctan2 at 0", lambda x: np.arctan2(x[0], x[1]), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "convention"),
    Row("arctan2 of tiny numbers", lambda x: np.arctan2(x[0], x[1]), [3e-150, 4e-150], [0.16e150, -0.12e150], None,
        "no overflow"),
    Row("abs squared at 0", lambda x: np.abs(x) ** 2, 0.0, 0, 2, "x ** 2"),
    Row("abs times abs at 0", lambda x: (lambda y: y * y)(np.abs(x)), 0.0, 0, 2, "x ** 2"),
    Row("sqrt squared at 0", lambda x: np.sqrt(x) ** 2, 0.0, 1, 0, "x"),
    Row("angle at 0", lambda x: np.angle(x[0] + 1j * x[1]), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "convention"),
    Row("abs of a complex 0", lambda x: np.abs(x[0] + 1j * x[1]), [0.0, 0.0], [0, 0], np.zeros((2, 2)), "as hypot"),
    Row("abs of a complex 0, squared", lambda x: np.abs(x[0] + 1j * x[1]) ** 2, [0.0, 0.0], [0, 0], 2 * np.eye(2),
        "x @ x"),
    Row("std of equal elements", np.std, [1.0, 1.0], [0, 0], np.zeros((2, 2)), "the zero subgradient"),
    Row("std squared of equal elements", lambda x: np.std(x) ** 2, [1.0, 1.0], [0, 0], [[0.5, -0.5], [-0.5, 0.5]],
        "the variance"),
    Row("var of equal elements", np.var, [1.0, 1.0], [0, 0], [[0.5, -0.5], [-0.5, 0.5]], "closed form"),
]  # fmt: skip

# Powers


def power(x: Any) -> Any:
    return x[0] ** x[1]


POWERS = [
    Row("0 ** 0", power, [0.0, 0.0], [0, 0], None, "convention"),
    Row("0 ** 1", power, [0.0, 1.0], [1, 0], None, "closed form"),
    Row("0 ** 2", power, [0.0, 2.0], [0, 0], [[2, 0], [0, 0]], "closed form"),
    Row("0 ** 3", power, [0.0, 3.0], [0, 0], np.zeros((2, 2)), "closed form"),
    Row("0 ** 0.5", lambda x: x**0.5, 0.0, INF, None, "the limit"),
    Row("0 ** -1", lambda x: x ** np.float64(-1.0), 0.0, -INF, None, "the limit"),
    Row("2 ** 0", power, [2.0, 0.0], [0, math.log(2)], [[0, 0.5], [0.5, math.log(2) ** 2]], "closed form"),
    Row("inf ** 0", power, [INF, 0.0], [0, INF], None, "the limit"),
    Row("inf ** -1", power, [INF, -1.0], [0, 0], None, "the limit"),
    Row("-2 ** 3, in the base", lambda x: np.power(x, np.float64(3.0)), -2.0, 12, -12, "closed form"),
    Row("x ** 0", lambda x: x**0, 0.0, 0, 0, "constant"),
    Row("x ** 0.0", lambda x: x**0.0, 0.0, 0, 0, "constant"),
    Row("x ** 1", lambda x: x**1, 0.0, 1, 0, "identity"),
    Row("x ** 2", lambda x: x**2, 0.0, 0, 2, "closed form"),
    Row("x ** 2.0", lambda x: x**2.0, 0.0, 0, 2, "closed form"),
    Row("x ** 1.5", lambda x: x**1.5, 0.0, 0, INF, "the limit"),
    Row("x ** 2.5", lambda x: x**2.5, 0.0, 0, 0, "the limit"),
    Row("float_power", lambda x: np.float_power(x, 2), 0.0, 0, 2, "closed form"),
    Row("0.0 ** y", lambda y: 0.0**y, 2.0, 0, 0, "constant"),
    Row("1.0 ** y", lambda y: 1.0**y, 2.0, 0, 0, "constant"),
    Row("reciprocal at inf", np.reciprocal, INF, 0, 0, "the limit"),
    Row("x / x", lambda x: x / x, 2.0, 0, 0, "constant"),
    Row("square at 0", np.square, 0.0, 0, 2, "closed form"),
]  # fmt: skip

# Products


def prods(*x: float) -> Row:
    """The product of factors: its derivatives are products of the others."""
    n = len(x)
    rest = [[math.prod(v for k, v in enumerate(x) if k not in (i, j)) for j in range(n)] for i in range(n)]
    hessian = np.array(rest) * (1 - np.eye(n))
    return Row(f"prod of {x}", np.prod, list(x), np.diag(rest), hessian, "products of the other factors")


def cumprods(*x: float) -> Row:
    """The sum of the cumulative products."""
    total = [prods(*x[: k + 1]) for k in range(len(x))]
    gradient = sum(np.pad(r.gradient, (0, len(x) - len(r.x))) for r in total)
    hessian = sum(np.pad(r.hessian, (0, len(x) - len(r.x))) for r in total)
    return Row(f"cumprod of {x}", lambda x: np.sum(np.cumprod(x)), list(x), gradient, hessian, "products")


PRODUCTS = [
    *(prods(*x) for x in [(0.0, 3.0, 5.0), (0.0, 3.0, 0.0, 2.0), (0.0, 0.0, 0.0)]),
    *(cumprods(*x) for x in [(2.0, 0.0, 3.0, 5.0), (0.0, 2.0, 0.0, 4.0), (0.0, 0.0, 0.0)]),
    Row("prod along an axis", lambda x: np.sum(np.prod(x.reshape(2, 2), axis=0)), [0.0, 2.0, 3.0, 0.0], [3, 0, 0, 2],
        np.eye(4)[[2, 3, 0, 1]], "products"),
    Row("prod, where=", lambda x: np.prod(x, where=x != 0), [0.0, 2.0, 3.0], [0, 3, 2],
        [[0, 0, 0], [0, 0, 1], [0, 1, 0]], "the 0 is left out"),
    Row("nanprod", np.nanprod, [NAN, 0.0, 3.0], [0, 3, 0], [[0, 0, 0], [0, 0, 1], [0, 1, 0]], "NaN is left out"),
    Row("multiply.reduce", np.multiply.reduce, [0.0, 0.0], [0, 0], [[0, 1], [1, 0]], "products"),
    Row("nansum of NaN", np.nansum, [NAN, NAN], [0, 0], np.zeros((2, 2)), "constant"),
    Row("nanmean", np.nanmean, [NAN, 2.0], [0, 1], np.zeros((2, 2)), "NaN is left out"),
    Row("nanmax", np.nanmax, [NAN, 2.0], [0, 1], np.zeros((2, 2)), "NaN is left out"),
    Row("nanstd of equal elements", np.nanstd, [NAN, 2.0, 2.0], [0, 0, 0], np.zeros((3, 3)), "the zero subgradient"),
    Row("trapezoid", lambda x: np.trapezoid(x, x), [0.0, 0.0], [0, 0], [[-1, 0], [0, 1]], "closed form"),
]  # fmt: skip

# Poles and tails

SINC = [0.0, -(PI**2) / 3]

POLES = [
    Row("sqrt at 0", np.sqrt, 0.0, INF, None, "the limit"),
    Row("cbrt at 0", np.cbrt, 0.0, INF, None, "the limit"),
    Row("arccos at 1", np.arccos, 1.0, -INF, None, "the limit"),
    Row("arcsin at -1", np.arcsin, -1.0, INF, None, "the limit"),
    Row("arctanh at 1", np.arctanh, 1.0, INF, None, "the limit"),
    Row("arccosh at 1", np.arccosh, 1.0, INF, None, "the limit"),
    Row("log at 0", np.log, 0.0, INF, None, "the limit"),
    Row("log1p at -1", np.log1p, -1.0, INF, None, "the limit"),
    Row("reciprocal at 0", np.reciprocal, 0.0, -INF, None, "the limit"),
    Row("percentile before an infinite element", lambda x: np.percentile(1 / x, 60), [0.0, 0.0, 1.0, 2.0],
        [-INF, 0, -0.2, 0], None, "the second and the third in order, by their weights"),
    Row("interp from an infinite slope on", lambda x: np.interp(0.5, np.arange(4.0), np.cbrt(x)), [0.0, 1.0, 2.0, 0.5],
        [INF, 1 / 6, 0, 0], None, "half of each"),
    Row("sinc at 0", np.sinc, 0.0, *SINC, "closed form"),
    Row("logaddexp with -inf", lambda x: np.logaddexp(x[0], x[1]), [-INF, 1.0], [0, 1], None, "the second operand"),
    Row("logaddexp of two -inf", lambda x: np.logaddexp(x[0], x[1]), [-INF, -INF], [0, 0], None, "convention"),
    Row("logaddexp with inf", lambda x: np.logaddexp(x[0], x[1]), [INF, 1.0], [1, 0], None, "the first operand"),
    Row("logaddexp2 with -inf", lambda x: np.logaddexp2(x[0], x[1]), [-INF, 1.0], [0, 1], None, "the second operand"),
    Row("logaddexp.reduce with -inf", np.logaddexp.reduce, [-INF, 1.0, 1.0], [0, 0.5, 0.5], None, "the others"),
    Row("logit at a tiny number", ft.scipy.special.logit, 1e-200, 1e200, -INF, "overflow"),
    Row("exp far out", np.exp, 1000.0, INF, INF, "overflow"),
    Row("exp at -inf", np.exp, -INF, 0, 0, "the limit"),
    Row("arctan at inf", np.arctan, INF, 0, None, "the limit"),
    Row("tanh at inf", np.tanh, INF, 0, 0, "the limit"),
    Row("arcsinh at inf", np.arcsinh, INF, 0, None, "the limit"),
]  # fmt: skip

TAILS = [
    *by_mpmath("expm1", np.expm1, mpmath.expm1, -40.0, 1e-12),
    *by_mpmath("log1p", np.log1p, mpmath.log1p, 1e-12, -1 + 1e-12, 1e200),
    *by_mpmath("log", np.log, mpmath.log, 1e-150, 1e150),
    *by_mpmath("sinc", np.sinc, lambda x: mpmath.sincpi(x), 1e-9, 0.1, 0.159, 0.16, 1.0, 7.3),
    *by_mpmath("arcsinh", np.arcsinh, mpmath.asinh, 1e200, -1e100, 1e-9),
    *by_mpmath("arctan", np.arctan, mpmath.atan, 1e50, 1e-9),
    *by_mpmath("arccosh", np.arccosh, mpmath.acosh, 1e200, 1.0001),
    *by_mpmath("arctanh", np.arctanh, mpmath.atanh, 1 - 1e-9),
    *by_mpmath("arcsin", np.arcsin, mpmath.asin, 1 - 1e-9),
    *by_mpmath("tanh", np.tanh, mpmath.tanh, 5.0, 1e-9),
    *by_mpmath("logaddexp", lambda x: np.logaddexp(0.0, x), lambda x: mpmath.log(1 + mpmath.exp(x)), -50.0, -700.0),
    *by_mpmath("logaddexp2", lambda x: np.logaddexp2(0.0, x), lambda x: mpmath.log(1 + 2**x, 2), -50.0),
    *by_mpmath("hypot", lambda x: np.hypot(x, 1e100), lambda x: mpmath.hypot(x, mpmath.mpf(1e100)), 1e100),
    *by_mpmath("cbrt", np.cbrt, lambda x: mpmath.cbrt(x), 1e-90),
    *by_mpmath("power", lambda x: x**0.3, lambda x: x ** mpmath.mpf(0.3), 1e-100, 1e100),
]

GROUPS = {
    "choices": CHOICES,
    "indices": INDICES,
    "ties": TIES,
    "lengths": LENGTHS,
    "powers": POWERS,
    "products": PRODUCTS,
    "poles": POLES,
    "tails": TAILS,
}


def derivatives(row: Row, x: Any, t: Any) -> list[Any]:
    """The derivatives of a row at `x`, along `t` where forward mode has a direction."""
    f = row.f
    found = [ft.grad(f)(x), ft.jvp(f, (x,), (t,))[1]]
    return found if row.hessian is None else [*found, ft.hessian(f)(x)]


def further_derivatives(row: Row, x: Any, t: Any) -> list[Any]:
    """The second derivatives by other modes."""

    def slope(x: Any) -> Any:
        return ft.jvp(row.f, (x,), (t,))[1]

    return [ft.jacrev(ft.grad(row.f))(x), ft.grad(slope)(x), ft.jvp(slope, (x,), (t,))[1]]


def expected(row: Row, t: Any) -> list[Any]:
    """What they are."""
    gradient = np.asarray(row.gradient, float)
    found = [gradient, along(gradient, t)]
    if row.hessian is not None:
        hessian = np.asarray(row.hessian, float)
        found += [hessian, hessian, along(hessian, t), along(along(hessian, t), t)]
    return found


def along(x: Any, t: Any) -> Any:
    """The product with the direction; what is infinite in it stays that."""
    return np.sum(x * t, axis=-1) if np.ndim(t) else x * t


NAMES = ["grad", "jvp", "forward over reverse", "reverse over reverse", "reverse over forward", "forward over forward"]


def point(row: Row) -> tuple[Any, Any]:
    """The point, and a direction without zeros."""
    x = np.asarray(row.x, float)[()]
    return x, np.random.default_rng(0).uniform(0.5, 1.5, np.shape(x))[()]


def check(row: Row, found: list[Any], t: Any) -> None:
    for name, actual, wanted in zip(NAMES, found, expected(row, t), strict=False):
        scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
        np.testing.assert_allclose(
            actual, wanted, rtol=1e-10, atol=1e-13 * scale, err_msg=f"{row.name}: {name}, which is known from {row.why}"
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", [r for rows in GROUPS.values() for r in rows], ids=lambda r: r.name)
def test_un_jitted(row: Row) -> None:
    x, t = point(row)
    found = derivatives(row, x, t)
    check(row, found if row.hessian is None else [*found, *further_derivatives(row, x, t)], t)


@pytest.mark.parametrize("group", GROUPS)
def test_compiled(group: str) -> None:
    rows = GROUPS[group]
    points = [point(row) for row in rows]
    found = ft.jit(lambda points: [derivatives(row, *p) for row, p in zip(rows, points, strict=True)])(points)
    for row, derived, (_, t) in zip(rows, found, points, strict=True):
        check(row, derived, t)


def test_a_constant_of_one_element_is_its_number() -> None:
    # Choices are found by zeros that are numbers; an equal array that was met before must not stand for them.
    type = ArrayType((1,) * 7, np.dtype(float))
    assert literal(np.zeros(type.shape), type) is literal(0.0, type)
    assert literal(0.0, type).is_splat


# Third derivatives, which meet the corners of the second ones


def third(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ft.jacfwd(ft.jacrev(ft.jacfwd(f)))


def test_third_derivatives_of_sinc() -> None:
    for x in (0.0, 1e-3, 0.15, 0.2):
        with mpmath.workdps(100):
            wanted = [float(mpmath.diff(mpmath.sincpi, x, n)) for n in (3, 4)]
        found = [third(np.sinc)(x), ft.grad(third(np.sinc))(x)]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["un-jitted", "compiled"])
def test_third_derivatives_of_products_with_zeros(way: Any) -> None:
    x = np.array([0.0, 2.0, 0.0, 0.0])
    wanted = np.zeros((4, 4, 4))
    for i, j, k in itertools.permutations(range(4), 3):
        wanted[i, j, k] = np.prod(np.delete(x, (i, j, k)))
    np.testing.assert_array_equal(way(third(np.prod))(x), wanted)
    np.testing.assert_array_equal(way(third(lambda x: np.cumprod(x)[-1]))(x), wanted)


def test_a_choice_is_put_off_to_any_order() -> None:
    def f(x: Any) -> Any:
        return np.where(x > 0, np.sqrt(x) * np.log(x), x**3)

    derivative = f
    for _ in range(4):
        derivative = ft.grad(derivative)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert third(f)(0.0) == 6.0
        assert derivative(0.0) == 0.0


def test_a_zero_that_is_computed_leaves_no_wrong_derivative() -> None:
    # exp(2 log(x)) is x**2, so that a product of zero and infinity stands for 2 x in it, and for 1 in exp(log(x)).
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(ft.grad(lambda x: np.exp(np.log(x)))(0.0))
        assert np.isnan(ft.jvp(lambda x: np.exp(np.log(x)), (0.0,), (1.0,))[1])


POLES_OF_CHOICES: list[Callable[[Any], Any]] = [
    np.sqrt, np.log, np.reciprocal, np.cbrt, lambda x: x**0.5, lambda x: x * np.log(x), lambda x: np.arccosh(1 + x),
]  # fmt: skip


def random_choice(rng: np.random.Generator, depth: int) -> Callable[[Any, bool], Any]:
    """A function of four numbers, and of whether the operand is chosen before the result is."""
    steep = POLES_OF_CHOICES[rng.integers(len(POLES_OF_CHOICES))]
    smooth = [np.sin, np.exp, np.square, np.negative, lambda x: 2.0 * x][rng.integers(5)]
    before = [lambda x: 1.5 * x, lambda x: x[::-1], lambda x: np.concatenate([x[2:], x[:2]])][rng.integers(3)]
    other = random_choice(rng, depth - 1) if depth else lambda x, safe: 0.3 * x
    kind = rng.integers(5)

    def f(x: Any, safe: bool) -> Any:
        u, z = before(x), other(x, safe)
        ok = u > 0
        y = smooth(steep(np.where(ok, u, 1.0) if safe else u))
        if kind == 0:
            return np.where(ok.reshape(2, 2).T, y.reshape(2, 2).T, z.reshape(2, 2)).reshape(4)
        if kind == 1:
            ok = np.all(ok.reshape(2, 2), axis=1, keepdims=True)
            rows = np.sum(y.reshape(2, 2), axis=1, keepdims=True) * x.reshape(2, 2)
            return np.where(ok, rows, z.reshape(2, 2)).reshape(4)
        if kind == 2:
            return np.where(ok[1], y[1] * x, z)
        if kind == 3:
            return np.maximum(np.where(ok, y, -9.0), np.minimum(z, -1.0))
        return np.where(ok[::-1], y[::-1] * z, z)

    return f


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_choosing_the_result_is_as_good_as_choosing_the_operand_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    choice, weights, t = random_choice(rng, 2), rng.normal(size=4), rng.normal(size=4)
    x = rng.choice([0.0, -1.0, 2.0, 0.7, 1.3], 4)
    found, wanted = (
        further_derivatives(Row("", f, x, None, None, ""), x, t) + derivatives(Row("", f, x, None, 0, ""), x, t)
        for f in (lambda x, safe=safe: choice(x, safe) @ weights for safe in (False, True))
    )
    for actual, expected in zip(found, wanted, strict=True):
        assert np.all(np.isfinite(expected))
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_a_choice_costs_one_selection() -> None:
    program = ft.trace(ft.grad(lambda x: np.sum(np.where(x > 0, np.exp(np.sin(3.0 * x)), 0.0))))(np.ones(3))
    assert [eqn.primitive.name for eqn in program.eqns].count("select") == 1


def test_writing_element_by_element_makes_no_masks_of_the_whole_array() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(1, 20):
            y[i] = np.sqrt(y[i // 2] + x[i])
        return np.sum(y)

    program = ft.trace(ft.grad(f))(np.ones(20))
    assert not [eqn for eqn in program.eqns if eqn.outputs[0].type.dtype == np.bool_]


# Choices inside of loops and branches


def sixteenth(x: float) -> tuple[float, float]:
    """The first and the second derivative of x ** (1 / 16)."""
    return x ** (-15 / 16) / 16, -15 / 256 * x ** (-31 / 16)


# A step, and what two of them do to the second element of `LOOPED`; the first one has no influence.
LOOPED = [0.0, 16.0]
STEPS: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "a choice": (lambda c: np.where(c > 0, np.sqrt(c), 0.0), (1 / 32, -3 / 2048)),
    "choices in a choice": (
        lambda c: np.where(c > 0, np.where(c > 1, np.sqrt(np.sqrt(c)), np.log(c)), np.where(c < 0, c, 0.0)),
        sixteenth(16.0),
    ),
    "a steep function of a choice": (
        lambda c: np.sqrt(np.where(c > 0, np.where(c > 1, np.sqrt(c), c), 0.0)),
        sixteenth(16.0),
    ),
    "an element assigned": (lambda c: assigned(np.sqrt(c), 0, 0.0), (1 / 32, -3 / 2048)),
    "a slice": (lambda c: np.concatenate([np.zeros(1), np.sqrt(c)[1:]]), (1 / 32, -3 / 2048)),
    "padded": (lambda c: np.sqrt(np.pad(c[1:], (1, 0))), (1 / 32, -3 / 2048)),
}


def scanned(step: Callable[[Any], Any], x: Any) -> Any:
    """Two steps, with what is there between them."""
    return ft.scan(lambda c, _: (step(c), c), x, None, length=2)[0]


def chosen_branch(step: Callable[[Any], Any], x: Any) -> Any:
    """One step, which is a branch."""
    return ft.cond(x[1] > 0, step, lambda c: c, x)


LOOPS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "scan": scanned,
    "fori_loop": lambda step, x: ft.fori_loop(0, 2, lambda _, c: step(c), x),
    "while_loop": lambda step, x: ft.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, step(s[1])), (0, x))[1],
    "cond": lambda step, x: chosen_branch(lambda c: step(step(c)), x),
    "cond in scan": lambda step, x: scanned(lambda c: chosen_branch(step, c), x),
    "scan in cond": lambda step, x: chosen_branch(lambda c: scanned(step, c), x),
    "jit in scan": lambda step, x: scanned(ft.jit(step), x),
    "checkpoint in scan": lambda step, x: scanned(ft.checkpoint(step), x),
}


def in_loop(loop: str, step: str) -> Row:
    f, (first, second) = STEPS[step]
    return Row(
        f"{step} in {loop}",
        lambda x: np.sum(LOOPS[loop](f, x)),
        LOOPED,
        [0, first],
        np.diag([0, second]),
        "closed form",
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loop", LOOPS)
def test_in_loops(loop: str, step: str) -> None:
    row = in_loop(loop, step)
    x, t = point(row)
    _, *further = further_derivatives(row, x, t)
    check(row, derivatives(row, x, t), t)
    # Reverse mode of reverse mode forgets what was chosen inside.
    for actual, wanted in zip(further, expected(row, t)[-2:], strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("loop", LOOPS)
def test_in_compiled_loops(loop: str) -> None:
    rows = [in_loop(loop, step) for step in STEPS]
    x, t = point(rows[0])
    found = ft.jit(lambda x, t: [derivatives(row._replace(hessian=None), x, t) for row in rows])(x, t)
    for row, derived in zip(rows, found, strict=True):
        check(row, derived, t)
