"""The functions of `numpy.emath` on traced values: real numbers outside of a real domain become complex ones.

Whether there are such numbers decides on the dtype of the result, so it is asked like a branch of Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.trace import Tracer
from .dispatch import implements
from .promotion import asarray

__all__ = ["arccos", "arcsin", "arctanh", "log", "log2", "log10", "logn", "power", "sqrt"]


def _complex_if(x: Tracer, is_outside: Any) -> Any:
    """`x`, as complex numbers if one is outside of the real domain."""
    return x.astype(np.result_type(x.dtype, np.complex64)) if np.any(is_outside) else x


def _not_negative(x: Any) -> Any:
    x = asarray(x)
    return x if x.dtype.kind == "c" else _complex_if(x, x < 0)


def _within_one(x: Any) -> Any:
    x = asarray(x)
    return x if x.dtype.kind == "c" else _complex_if(x, abs(x) > 1)


@implements(np.emath.sqrt)
def sqrt(x: Any) -> Any:
    """The square root, complex where `x` has negative elements."""
    return np.sqrt(_not_negative(x))


@implements(np.emath.log)
def log(x: Any) -> Any:
    """The natural logarithm, complex where `x` has negative elements."""
    return np.log(_not_negative(x))


@implements(np.emath.log10)
def log10(x: Any) -> Any:
    """The logarithm to base 10, complex where `x` has negative elements."""
    return np.log10(_not_negative(x))


@implements(np.emath.log2)
def log2(x: Any) -> Any:
    """The logarithm to base 2, complex where `x` has negative elements."""
    return np.log2(_not_negative(x))


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Any:
    """The logarithm to base `n`, complex where either has negative elements."""
    return np.log(_not_negative(x)) / np.log(_not_negative(n))


@implements(np.emath.power)
def power(x: Any, p: Any) -> Any:
    """`x` to the power `p`, complex where `x` has negative elements; negative whole powers are floating-point ones."""
    exponent = asarray(p)
    if exponent.dtype.kind in "biu" and np.any(exponent < 0):
        exponent = exponent * 1.0
    return np.power(_not_negative(x), exponent)


@implements(np.emath.arccos)
def arccos(x: Any) -> Any:
    """The inverse cosine, complex where elements of `x` are beyond -1 or 1."""
    return np.arccos(_within_one(x))


@implements(np.emath.arcsin)
def arcsin(x: Any) -> Any:
    """The inverse sine, complex where elements of `x` are beyond -1 or 1."""
    return np.arcsin(_within_one(x))


@implements(np.emath.arctanh)
def arctanh(x: Any) -> Any:
    """The inverse hyperbolic tangent, complex where elements of `x` are beyond -1 or 1."""
    return np.arctanh(_within_one(x))


def __dir__() -> list[str]:
    return sorted(__all__)
