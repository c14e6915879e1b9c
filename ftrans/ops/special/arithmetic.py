"""Arithmetic in formulas of special functions: a number stands for an array that is filled with it."""

from __future__ import annotations

from typing import Any

from ...core.trace import Tracer
from ...core.types import is_inexact
from ..elementwise import add, div, mul, sub, trunc
from ..literals import full_like


def _alike(x: Any, y: Any) -> tuple[Tracer, Tracer]:
    if not isinstance(x, Tracer):
        return full_like(y, x), y
    return x, y if isinstance(y, Tracer) else full_like(x, y)


def plus(x: Any, y: Any) -> Any:
    """`x + y`."""
    return add(*_alike(x, y))


def minus(x: Any, y: Any) -> Any:
    """`x - y`."""
    return sub(*_alike(x, y))


def times(x: Any, y: Any, *more: Any) -> Any:
    """`x * y`, and further factors."""
    product = mul(*_alike(x, y))
    return times(product, *more) if more else product


def over(x: Any, y: Any) -> Any:
    """`x / y`."""
    return div(*_alike(x, y))


def truncated(n: Tracer) -> Any:
    """An order without its fraction, as SciPy reads orders of some functions that must be whole numbers."""
    return trunc(n) if is_inexact(n.dtype) else n
