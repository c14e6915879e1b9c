"""Log-sum-exp and softmax along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from ...core.types import is_complex, is_inexact
from ...numpy.dispatch import implements
from ...numpy.manipulation import normal_axes
from ...numpy.promotion import asarray, cast, promote
from ...ops import elementwise as e

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _floating(x: Any) -> Any:
    x = asarray(x)
    return x if is_inexact(x.dtype) else cast(x, np.dtype(float))


def _shift(x: Any, axes: Any) -> Any:
    """The largest of real numbers along axes, so that no exponential overflows; 0 where it is infinite."""
    top = np.max(e.stop_gradient(asarray(x)), axis=axes, keepdims=True, initial=-math.inf)
    return np.where(np.isfinite(top), top, 0.0)


def _plain(x: Any, axes: Any) -> Any:
    """The logarithm of the sum of exponentials of real numbers, with the axes kept.

    The largest ones are counted, so that the others are not lost in their rounding.
    """
    shift = _shift(x, axes)
    is_top = x == np.max(e.stop_gradient(x), axis=axes, keepdims=True, initial=-math.inf)
    count = np.maximum(np.sum(is_top, axis=axes, keepdims=True, dtype=x.dtype), 1)
    is_infinite = np.any(x == math.inf, axis=axes, keepdims=True)
    terms = np.where(is_infinite, -math.inf, x) - shift
    is_counted = is_top & np.isfinite(terms)
    # These are 0, but have derivatives.
    above = np.expm1(np.where(is_counted, terms, 0.0))
    rest = np.where(is_counted, above, np.exp(np.where(is_counted, 0.0, terms)))
    finite = shift + np.log(count) + np.log1p(np.sum(rest, axis=axes, keepdims=True) / count)
    infinite = np.sum(np.where(x == math.inf, x, 0.0), axis=axes, keepdims=True) / count
    is_empty = np.all(x == -math.inf, axis=axes, keepdims=True)
    return np.where(is_infinite, infinite, np.where(is_empty, -math.inf, finite))


def _weighted(x: Any, weights: Any, axes: Any) -> tuple[Any, Any]:
    """The sum of weighted exponentials, divided by `exp(shift)`, and this shift."""
    if weights is None:
        shift = _shift(x.real, axes)
        return np.sum(np.exp(x - shift), axis=axes, keepdims=True), shift
    shift = _shift(np.where(weights == 0, -math.inf, x.real), axes)
    terms = x - shift
    # What is weighted with 0 counts for the derivative with respect to that weight, but must stay finite.
    largest = math.floor(math.log(np.finfo(x.dtype).max) / 2)
    exponentials = np.exp(np.where((weights == 0) & (terms.real > largest), largest, terms))
    return np.sum(weights * exponentials, axis=axes, keepdims=True), shift


@implements(scipy.special.logsumexp)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Logarithm of `sum(b * exp(a))` along axes; with `return_sign`, of its absolute value, and the sign.

    Terms with `a == -inf` have zero derivatives; a sum of such terms only has none.
    """
    x: Any = np.atleast_1d(_floating(a))
    weights = None
    if b is not None:
        x, weights = promote("logsumexp", x, b)
    axes = normal_axes(axis, x.ndim)
    if weights is None and not is_complex(x.dtype):
        out = _plain(x, axes)
        sign = np.where(np.isnan(out), out, np.where(out == -math.inf, 0.0, np.ones_like(out)))
    else:
        total, shift = _weighted(x, weights, axes)
        is_zero = total == 0
        safe = np.where(is_zero, 1.0, total)
        sign = np.where(is_zero, 0.0, np.sign(safe))
        if is_complex(x.dtype) and not return_sign:
            logarithm = np.log(safe)
        else:
            logarithm = np.log(np.abs(safe))
            logarithm = logarithm if return_sign else np.where(sign < 0, math.nan, logarithm)
        out = np.where(is_zero, -math.inf, logarithm + shift)
    if not keepdims:
        out, sign = np.squeeze(out, axes), np.squeeze(sign, axes)
    return (out, sign) if return_sign else out


@implements(scipy.special.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along axes."""
    x = _floating(x)
    terms = np.exp(x - np.max(e.stop_gradient(x.real), axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


@implements(scipy.special.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax(x)`, without underflow."""
    x = _floating(x)
    x = x - _shift(x.real, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))
