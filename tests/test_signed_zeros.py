"""Zeros keep the signs that they have in NumPy, bit by bit: traced, simplified, compiled and batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ftrans as ft
from ftrans.base import tree
from ftrans.transforms.simplify import Sharing

X = np.array([-0.0, 0.0, -0.0, 1.5, -2.0])
FILLS = (0.0, -0.0, np.float64(-0.0), np.float32(-0.0), np.array(-0.0))


def written(y: Any, index: Any, value: Any) -> Any:
    y[index] = value
    return y


def added_at(y: Any, index: Any, value: Any) -> Any:
    np.add.at(y, index, value)
    return y


def filled(y: Any, value: Any) -> Any:
    y.fill(value)
    return y


# Functions of an array and a fill value, which is a constant of the program.
WITH_FILL: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda x, v: np.pad(x, 1, constant_values=v),
    "pad, both ends": lambda x, v: np.pad(x, 1, constant_values=(v, -v)),
    "pad of pad": lambda x, v: np.pad(np.pad(x, 1, constant_values=v), 1, constant_values=-v),
    "pad of constant": lambda x, v: np.pad(np.full_like(x, v), 1, constant_values=-v),
    "pad, ramp": lambda x, v: np.pad(x, 2, "linear_ramp", end_values=v),
    "full_like": lambda x, v: np.full_like(x, v) * x,
    "sum of constant": lambda x, v: np.sum(np.full_like(x, v)),
    "product of constants": lambda x, v: [np.prod(np.full_like(x[:n], v)) for n in (1, 2, 3)],
    "where": lambda x, v: np.where(x > 0, -v, np.where(x == 0, v, x)),
    "select": lambda x, v: np.select([x > 0], [x], v),
    "piecewise": lambda x, v: np.piecewise(x, [x > 0], [1.0, v]),
    "sums": lambda x, v: [x + v, v + x, x - v, v - x, (x + v) + 0.0, (x - v) - -0.0, -(x - v), -(v - x), x * -1.0 + v],
    "products": lambda x, v: [x * v, v * x, x * v * 2.0 + x, x * 1.0, x * -1, x / 1, x / -1],
    "of constants": lambda x, v: [np.full_like(x, v) - np.zeros_like(x), -np.full_like(x, v) + x],
    "quotients": lambda x, v: [v / (x + 3.0), 1.0 / (x + v), x // (1.0 - v)],
    "copysign": lambda x, v: [np.copysign(x, v), np.copysign(v, x), np.arctan2(v, x), np.arctan2(x, v)],
    "set": lambda x, v: [written(np.full_like(x, -v), i, v) for i in (slice(2), ..., [0, 3], slice(None, None, 2))],
    "set by mask": lambda x, v: written(np.full_like(x, -v), x > 0, v),
    "fill": lambda x, v: filled(x.copy(), v),
    "add to a part": lambda x, v: written(np.full_like(x, -0.0), slice(2), np.full_like(x, -0.0)[:2] + v),
    "add.at": lambda x, v: added_at(np.full_like(x, -0.0), [0, 1], v),
    "append": lambda x, v: np.append(x, v),
    "nan_to_num": lambda x, v: np.nan_to_num(x * np.inf, nan=v),
    "heaviside": lambda x, v: np.heaviside(x, v),
    "interp": lambda x, v: np.interp(x, [5.0, 6.0], [1.0, 2.0], left=v),
    "start of sums": lambda x, v: [np.sum(x[:n], initial=v) for n in (0, 1, 3)],
    "start of products": lambda x, v: [np.prod(x[:n], initial=v) for n in (0, 1, 3)],
    "complex": lambda x, v: [x + 1j * v, np.angle(x + 1j * v)],
}
# Functions of an array alone.
OF_ARRAY: dict[str, Callable[[Any], Any]] = {
    "sums of one element": lambda x: [np.sum(x[:1]), np.sum(x[None], 0), x[None].sum(0), np.sum(x, ()), np.mean(x[:1])],
    "other sums of one element": lambda x: [np.average(x[:1]), np.nansum(x[:1]), np.trace(x[:1, None]), np.median(x)],
    "einsum": lambda x: [np.einsum("ij->j", x[None]), np.einsum("i->", x[[0, 2]])],
    "sums": lambda x: [np.sum(x[[0, 2]]), np.sum(x[:3], where=x[:3] < 0), np.sum(x[[0, 2]] * 1j)],
    "running sums": lambda x: [np.cumsum(x), np.cumsum(x[[0, 2]]), np.add.accumulate(x), np.subtract.accumulate(x)],
    "negative": lambda x: [-x, -np.negative(x), 0 - x, 0.0 - x, -0.0 - x, x * 0, x - x],
    "zeros of arrays": lambda x: [np.zeros_like(x) + x, x - np.zeros_like(x), -np.zeros_like(x) + x, -np.zeros_like(x)],
    "ones of arrays": lambda x: [x * np.ones_like(x), x * -np.ones_like(x), x / np.ones_like(x)],
    "powers": lambda x: [x**1, x**2, x**3, x**0.5, np.sqrt(x), np.cbrt(x)],
    "rounding": lambda x: [np.sign(x), np.floor(x), np.ceil(x - 0.5), np.round(x - 0.2), np.trunc(x), x // 1.0],
    "remainders": lambda x: [x % 1.0, x % -1.0, np.fmod(x, 1.0), *np.divmod(x, -2.0), x // x[3], x % x[4]],
    "odd functions": lambda x: [np.sin(x), np.tanh(x), np.arctan(x), np.expm1(x), np.log1p(np.abs(x)), np.sinh(x)],
    "complex by one": lambda x: [(x + 0j) * 1, (x + 0j) * -1, -(x + 0j), (x - 0j) * -1, (x + 0j) / 1],
    "cuts": lambda x: [np.sqrt((x + 0j) * -1), np.log(-(x - 0.5 + 0j)), np.arcsin((2 + x * 1j) * 1)],
}
# Sums that do not begin with 0.0 are such that XLA rewrites them.
OF_ARRAY_PLAIN: dict[str, Callable[[Any], Any]] = {
    "reductions": lambda x: [np.subtract.reduce(x[:3]), np.subtract.reduce(x[[0, 2]]), np.hypot.reduce(x[:1])],
    "starts": lambda x: [np.sum(x[[0, 2]], initial=None), np.add.reduceat(x, [0, 1, 2, 0])],
}


def signed(x: Any) -> list[Any]:
    """Numbers to compare: NaN is NaN, and zeros have signs."""
    x = np.ravel(np.asarray(x))
    parts = [x.real, x.imag] if x.dtype.kind == "c" else [x]
    return [None if np.isnan(v) else (float(f"{v:.12g}"), bool(np.signbit(v))) for part in parts for v in part]


def check(found: Any, expected: Any) -> None:
    for x, y in zip(tree.flatten(found)[0], tree.flatten(expected)[0], strict=True):
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        assert signed(x) == signed(y)


CASES = [
    *((name, lambda x, f=f: [f(x, v) for v in FILLS]) for name, f in WITH_FILL.items()),
    *OF_ARRAY.items(),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "f"), [*CASES, *OF_ARRAY_PLAIN.items()], ids=lambda x: x if isinstance(x, str) else ""
)
def test_signs_of_zeros_are_those_of_numpy(name: str, f: Callable[[Any], Any]) -> None:
    expected = f(X)
    check(ft.trace(f)(X)(X), tree.flatten(expected)[0])
    check(ft.vjp(f, X)[0], expected)
    check(ft.jvp(f, (X,), (X,))[0], expected)
    if name != "set by mask":
        check([y[0] for y in tree.flatten(ft.vmap(f)(np.stack([X, X + 1])))[0]], tree.flatten(expected)[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled_programs_keep_the_signs_of_zeros() -> None:
    found, expected = ft.jit(lambda x: {name: f(x) for name, f in CASES})(X), {name: f(X) for name, f in CASES}
    for name in expected:
        check(found[name], expected[name])


def test_a_known_array_with_zeros_of_both_signs_is_no_single_number() -> None:
    builder = Sharing([])
    for values in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        constant = builder.constant(np.array(values)).atom
        assert constant.array().tobytes() == np.array(values).tobytes()
